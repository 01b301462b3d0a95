// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A program that shares device memory with others of its kind, as it is told on its
// standard input, one command a line; it answers each with one line. It knows nothing
// of gpushare. Objects have numbers of the caller's choice; bytes are in MiB.
//
//	at P           takes descriptors at the Unix socket P from now on
//	create M N     cuMemCreate of N; handle M
//	export M F     descriptor F of handle M
//	import F M     handle M of descriptor F
//	map M, unmap M, retain M R, release M
//	send F P       sends descriptor F to the socket P; it stays open here
//	recv F         takes one descriptor as F
//	close F
//	tags F         how many locks the kernel shows of descriptor F
//	alloc A N, free A
//	get A          IPC handle of A, in hex
//	open A H, shut A
//	ext E F N, buffer E A, destroy E
//	pool P, pexport P F, pimport F P, palloc P A N, pget A, popen P A H, afree A
//	multi M N, bind M H N, unbind M N
//	context, drop  a context of its own, its end
//	fork           a child that lives as long as standard input; prints its number
//	race S N       N random operations on memory of its own, seed S

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "harness.h"

#define MOST 4096

static CUmemGenericAllocationHandle handles[MOST];
static CUdeviceptr pointers[MOST], mappings[MOST];
static size_t sizes[MOST];
static int files[MOST], box = -1;
static CUexternalMemory externals[MOST];
static CUmemoryPool pools[MOST];
static CUcontext context;

static int export(unsigned m, int *fd)
{
	return (int)CU(cuMemExportToShareableHandle)(fd, handles[m], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static int import(int fd, unsigned m)
{
	return (int)CU(cuMemImportFromShareableHandle)(&handles[m], (void *)(intptr_t)fd,
						       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static int create(unsigned m, size_t bytes)
{
	CUmemAllocationProp prop = {.type = 1,
				    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

	sizes[m] = bytes;
	return (int)CU(cuMemCreate)(&handles[m], bytes, &prop, 0);
}

static int map(unsigned m, size_t bytes)
{
	CUresult r = CU(cuMemAddressReserve)(&mappings[m], bytes, 0, 0, 0);

	sizes[m] = bytes;
	return (int)(r != CUDA_SUCCESS ? r : CU(cuMemMap)(mappings[m], bytes, 0, handles[m], 0));
}

static int listen_at(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	box = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return bind(box, (struct sockaddr *)&a, sizeof(a)) ? errno : 0;
}

union rights {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static int pass(int fd, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct iovec io = {.iov_base = "x", .iov_len = 1};
	union rights c = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof(a), .msg_iov = &io, .msg_iovlen = 1,
			   .msg_control = &c, .msg_controllen = sizeof(c)};
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
	r = sendmsg(s, &m, 0) == 1 ? 0 : errno;
	close(s);
	return r;
}

static int take(int *fd)
{
	char byte;
	struct iovec io = {.iov_base = &byte, .iov_len = 1};
	union rights c;
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};

	if (recvmsg(box, &m, MSG_CMSG_CLOEXEC) != 1 || !m.msg_controllen)
		return errno ? errno : -1;
	memcpy(fd, CMSG_DATA(&c.head), sizeof(*fd));
	return 0;
}

static int tags(int fd)
{
	char path[64], line[256];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		n += !strncmp(line, "lock:", 5);
	if (f)
		fclose(f);
	return n;
}

static void hex(const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((const unsigned char *)bytes)[i]);
	printf("\n");
}

static void unhex(const char *s, void *bytes, size_t n)
{
	for (size_t i = 0; i < n && s[2 * i] && s[2 * i + 1]; i++) {
		char two[3] = {s[2 * i], s[2 * i + 1], 0};

		((unsigned char *)bytes)[i] = (unsigned char)strtoul(two, NULL, 16);
	}
}

// The layouts that the header leaves open.
struct memory_desc {
	int type;
	union {
		int fd;
		void *pair[2];
	} handle;
	unsigned long long size;
	unsigned int flags, reserved[16];
};

struct buffer_desc {
	unsigned long long offset, size;
	unsigned int flags, reserved[16];
};

struct multicast_prop {
	unsigned int devices;
	size_t size;
	unsigned long long types, flags;
};

static int external(unsigned e, int fd, size_t bytes)
{
	struct memory_desc d = {.type = 1, .handle = {.fd = dup(fd)}, .size = bytes};
	int r;

	sizes[e] = bytes;
	r = (int)CU(cuImportExternalMemory)(&externals[e], (const void *)&d);
	if (r)
		close(d.handle.fd); // else it is the driver's
	return r;
}

static int buffer(unsigned e, unsigned a)
{
	struct buffer_desc d = {.size = sizes[e]};

	return (int)CU(cuExternalMemoryGetMappedBuffer)(&pointers[a], externals[e], (const void *)&d);
}

static int pool(unsigned p)
{
	CUmemPoolProps props = {.allocType = 1,
				.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

	return (int)CU(cuMemPoolCreate)(&pools[p], &props);
}

static int multicast(unsigned m, size_t bytes)
{
	struct multicast_prop p = {1, bytes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0};
	CUresult r = CU(cuMulticastCreate)(&handles[m], (const void *)&p);

	return (int)(r != CUDA_SUCCESS ? r : CU(cuMulticastAddDevice)(handles[m], 0));
}

// race makes, exports, imports and releases at random; at the end all of it is gone.
static int race(unsigned seed, unsigned n)
{
	enum { OBJECTS = 8 };
	int fds[OBJECTS], have[OBJECTS] = {0}, mapped[OBJECTS] = {0}, refused = 0;

	for (int i = 0; i < OBJECTS; i++)
		fds[i] = -1;
	for (unsigned i = 0; i < n; i++) {
		unsigned k = (unsigned)rand_r(&seed) % OBJECTS, m = 100 + k;
		int r = 0;

		switch (rand_r(&seed) % 6) {
		case 0:
			if (!have[k])
				have[k] = !(r = create(m, (1 + (size_t)rand_r(&seed) % 4) * 2 * MIB));
			break;
		case 1:
			if (have[k] && fds[k] < 0)
				r = export(m, &fds[k]);
			break;
		case 2:
			if (!have[k] && fds[k] >= 0)
				have[k] = !(r = import(fds[k], m));
			break;
		case 3:
			if (have[k] && !mapped[k])
				mapped[k] = !(r = map(m, 2 * MIB));
			else if (mapped[k])
				mapped[k] = !!(r = (int)CU(cuMemUnmap)(mappings[m], 2 * MIB));
			break;
		case 4:
			if (have[k] && !(r = (int)CU(cuMemRelease)(handles[m])))
				have[k] = 0;
			break;
		default:
			if (fds[k] >= 0) {
				close(fds[k]);
				fds[k] = -1;
			}
		}
		refused += r == CUDA_ERROR_OUT_OF_MEMORY;
		if (r && r != CUDA_ERROR_OUT_OF_MEMORY)
			return r;
	}
	for (int k = 0; k < OBJECTS; k++) {
		if (mapped[k])
			CU(cuMemUnmap)(mappings[100 + k], 2 * MIB);
		if (have[k])
			CU(cuMemRelease)(handles[100 + k]);
		if (fds[k] >= 0)
			close(fds[k]);
	}
	return -refused;
}

static int child(void)
{
	int pid = fork();
	char c;

	if (pid)
		return pid;
	// The parent keeps standard input: the child waits for a signal.
	while (read(box >= 0 ? box : 0, &c, 0) >= 0)
		pause();
	_exit(0);
}

#define IS(name) (!strcmp(word, name))

int main(void)
{
	char line[1024], word[32], text[600];
	unsigned a, b, c;
	CUcontext primary;

	EXPECT(CU(cuInit)(0), CUDA_SUCCESS);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
	EXPECT(CU(cuCtxSetCurrent)(primary), CUDA_SUCCESS);
	printf("holding\n");
	while (fgets(line, sizeof(line), stdin)) {
		int n = sscanf(line, "%31s %u %u %u", word, &a, &b, &c), r = -1;
		size_t mib = n > 1 ? (n > 3 ? c : b) * MIB : 0;

		if (n > 1 && (a >= MOST || (n > 2 && b >= MOST && !IS("race") && !IS("open"))) && !IS("race"))
			return 3;
		if (IS("at") && sscanf(line, "%*s %599s", text) == 1)
			r = listen_at(text);
		else if (IS("create"))
			r = create(a, mib);
		else if (IS("export"))
			r = export(a, &files[b]);
		else if (IS("import"))
			r = import(files[a], b);
		else if (IS("map"))
			r = map(a, n > 2 ? mib : sizes[a]);
		else if (IS("unmap"))
			r = (int)CU(cuMemUnmap)(mappings[a], sizes[a]);
		else if (IS("retain"))
			r = (int)CU(cuMemRetainAllocationHandle)(&handles[b], (void *)(uintptr_t)mappings[a]);
		else if (IS("release"))
			r = (int)CU(cuMemRelease)(handles[a]);
		else if (IS("send") && sscanf(line, "%*s %*u %599s", text) == 1)
			r = pass(files[a], text);
		else if (IS("recv"))
			r = take(&files[a]);
		else if (IS("close"))
			r = close(files[a]);
		else if (IS("tags"))
			r = tags(files[a]);
		else if (IS("alloc"))
			r = (int)CU(cuMemAlloc_v2)(&pointers[a], mib);
		else if (IS("free"))
			r = (int)CU(cuMemFree_v2)(pointers[a]);
		else if (IS("get") || IS("pget")) {
			union {
				CUipcMemHandle ipc;
				CUmemPoolPtrExportData data;
			} h;

			r = (int)(IS("get") ? CU(cuIpcGetMemHandle)(&h.ipc, pointers[a])
					    : CU(cuMemPoolExportPointer)(&h.data, pointers[a]));
			if (!r) {
				hex(&h, sizeof(h));
				continue;
			}
		} else if (IS("open") && sscanf(line, "%*s %*u %599s", text) == 1) {
			CUipcMemHandle h = {0};

			unhex(text, &h, sizeof(h));
			r = (int)CU(cuIpcOpenMemHandle_v2)(&pointers[a], h, 1);
		} else if (IS("shut"))
			r = (int)CU(cuIpcCloseMemHandle)(pointers[a]);
		else if (IS("ext"))
			r = external(a, files[b], mib);
		else if (IS("buffer"))
			r = buffer(a, b);
		else if (IS("destroy"))
			r = (int)CU(cuDestroyExternalMemory)(externals[a]);
		else if (IS("pool"))
			r = pool(a);
		else if (IS("pexport"))
			r = (int)CU(cuMemPoolExportToShareableHandle)(&files[b], pools[a],
								      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		else if (IS("pimport"))
			r = (int)CU(cuMemPoolImportFromShareableHandle)(&pools[b], (void *)(intptr_t)files[a],
									CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		else if (IS("palloc"))
			r = (int)CU(cuMemAllocFromPoolAsync)(&pointers[b], mib, pools[a], NULL);
		else if (IS("popen") && sscanf(line, "%*s %*u %*u %599s", text) == 1) {
			CUmemPoolPtrExportData d = {0};

			unhex(text, &d, sizeof(d));
			r = (int)CU(cuMemPoolImportPointer)(&pointers[b], pools[a], &d);
		} else if (IS("afree")) {
			r = (int)CU(cuMemFreeAsync)(pointers[a], NULL);
			CU(cuStreamSynchronize)(NULL);
		} else if (IS("multi"))
			r = multicast(a, mib);
		else if (IS("bind"))
			r = (int)CU(cuMulticastBindMem)(handles[a], 0, handles[b], 0, mib, 0);
		else if (IS("unbind"))
			r = (int)CU(cuMulticastUnbind)(handles[a], 0, 0, mib);
		else if (IS("context"))
			r = (int)CU(cuCtxCreate_v2)(&context, 0, 0);
		else if (IS("drop"))
			r = (int)(CU(cuCtxDestroy_v2)(context) ?: CU(cuCtxSetCurrent)(primary));
		else if (IS("fork"))
			r = child();
		else if (IS("race"))
			r = race(a, b);
		printf("%d\n", r);
	}
	return 0;
}
