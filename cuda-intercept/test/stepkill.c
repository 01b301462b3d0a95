// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Kills a process after single instructions of what it does with the ledger.
//
// A child does one thing (argv[1], see acts) under ptrace; this program steps it K
// instructions far, lets it stand there while a bystander takes memory, gives it back
// and asks how much is free, and kills it. K goes from 0 to the end in steps of argv[2],
// or is argv[2] random ones if it is negative. The bystander is not blocked, and the
// 64 MiB that it holds are as they were; once the last dead slots are given back, a new
// process can have all the rest to the byte. The last line is the number of kills and
// the longest time in nanoseconds that a call of the bystander was blocked.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "blocked.h"
#include "harness.h"

#define LIMIT (1024 * MIB)
#define CONTEXT (MIB / 16)
#define PIECE (MIB / 8)
#define HELD (64 * MIB)
#define LONGEST 50000000ULL

// Found before the stepping begins: how the loader finds a name is not of interest.
#define FUNCTIONS(F) \
	F(cuArrayCreate_v2) F(cuArrayDestroy) F(cuCtxCreate_v2) F(cuCtxDestroy_v2) \
	F(cuCtxSetCurrent) F(cuDevicePrimaryCtxReset_v2) F(cuDevicePrimaryCtxRetain) \
	F(cuInit) F(cuIpcCloseMemHandle) F(cuIpcGetMemHandle) F(cuIpcOpenMemHandle_v2) \
	F(cuMemAllocAsync) F(cuMemAllocFromPoolAsync) F(cuMemAlloc_v2) \
	F(cuMemCreate) F(cuMemFreeAsync) F(cuMemFree_v2) F(cuMemGetInfo_v2) F(cuMemMap) \
	F(cuMemPoolCreate) F(cuMemPoolDestroy) F(cuMemRelease) F(cuMemUnmap)

#define FUNCTION(name) __typeof__(&name) name;
static struct { FUNCTIONS(FUNCTION) } cu;

static void find_functions(void)
{
#define FIND(name) cu.name = CU(name);
	FUNCTIONS(FIND)
}

static CUcontext context;
static CUdeviceptr pointer;
static CUmemoryPool pool;
static CUmemGenericAllocationHandle handle;
static CUarray array;
static const CUmemAllocationProp device = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static void begin(void)
{
	if (cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context))
		_exit(9);
}

// with_memory has a context and what only the first allocation does behind it.
static void with_memory(void)
{
	begin();
	if (cu.cuMemAlloc_v2(&pointer, PIECE) || cu.cuMemAllocAsync(&pointer, PIECE, NULL))
		_exit(9);
}

static void with_pointer(void)
{
	begin();
	if (cu.cuMemAlloc_v2(&pointer, 2 * MIB))
		_exit(9);
}

static void with_handle(void)
{
	begin();
	if (cu.cuMemCreate(&handle, 2 * MIB, &device, 0))
		_exit(9);
}

static void with_array(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {256, 64, CU_AD_FORMAT_FLOAT, 1};

	begin();
	if (cu.cuArrayCreate_v2(&array, &d))
		_exit(9);
}

static void initialized(void)
{
	if (cu.cuInit(0))
		_exit(9);
}

static void nothing(void)
{
}

static void start(void)
{
	cu.cuInit(0);
}

static void primary(void)
{
	cu.cuDevicePrimaryCtxRetain(&context, 0);
}

static void reset(void)
{
	cu.cuDevicePrimaryCtxReset_v2(0);
}

static void alloc(void)
{
	cu.cuMemAlloc_v2(&pointer, PIECE);
}

static void release(void)
{
	cu.cuMemFree_v2(pointer);
}

static void ordered(void)
{
	cu.cuMemAllocAsync(&pointer, PIECE, NULL);
}

static void ordered_release(void)
{
	cu.cuMemFreeAsync(pointer, NULL);
}

static void own_pool(void)
{
	CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

	if (!cu.cuMemPoolCreate(&pool, &props) && !cu.cuMemAllocFromPoolAsync(&pointer, PIECE, pool, NULL))
		cu.cuMemPoolDestroy(pool);
}

static void create(void)
{
	cu.cuMemCreate(&handle, 2 * MIB, &device, 0);
}

static void mapped(void)
{
	if (!cu.cuMemMap(0x700000000000, 2 * MIB, 0, handle, 0) && !cu.cuMemRelease(handle))
		cu.cuMemUnmap(0x700000000000, 2 * MIB);
}

static void array_release(void)
{
	cu.cuArrayDestroy(array);
}

static void contexts(void)
{
	CUcontext c;

	if (!cu.cuCtxCreate_v2(&c, 0, 0))
		cu.cuCtxDestroy_v2(c);
}

// Refused, with others in the way: looks for the dead.
static void refused(void)
{
	cu.cuMemAlloc_v2(&pointer, LIMIT - MIB);
}

static void view(void)
{
	size_t a, b;

	cu.cuMemGetInfo_v2(&a, &b);
}

static void export(void)
{
	CUipcMemHandle h;

	cu.cuIpcGetMemHandle(&h, pointer);
}

// What a process of its own has exported, for those who import it.
static struct given {
	CUipcMemHandle handle;
	int set;
} *given;

static int import(void)
{
	CUdeviceptr p;

	return cu.cuIpcOpenMemHandle_v2(&p, given->handle, 1) || cu.cuIpcCloseMemHandle(p);
}

static void imported(void)
{
	import();
}

static void export_for_others(void)
{
	pid_t pid = fork();

	if (pid) {
		while (!__atomic_load_n(&given->set, __ATOMIC_SEQ_CST))
			usleep(1000);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	begin();
	if (cu.cuMemAlloc_v2(&pointer, 2 * MIB) || cu.cuIpcGetMemHandle(&given->handle, pointer))
		_exit(9);
	__atomic_store_n(&given->set, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static const struct act {
	const char *name;
	void (*ready)(void);
	void (*run)(void);
} acts[] = {
	{"start", nothing, start},
	{"context", initialized, primary},
	{"reset", with_memory, reset},
	{"alloc", with_memory, alloc},
	{"free", with_memory, release},
	{"ordered", with_memory, ordered},
	{"ordered-free", with_memory, ordered_release},
	{"own-pool", with_memory, own_pool},
	{"create", with_handle, create},
	{"map", with_handle, mapped},
	{"array", with_array, array_release},
	{"contexts", begin, contexts},
	{"refused", begin, refused},
	{"view", begin, view},
	{"export", with_pointer, export},
	{"import", begin, imported}, // of what a third process has; the bystander imports it, too
};

static const struct act *find(const char *name)
{
	for (unsigned i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (!strcmp(acts[i].name, name))
			return &acts[i];
	exit(2);
}

// child stops where the stepping is to start and to end.
static void child(const struct act *act)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	act->ready();
	raise(SIGSTOP);
	act->run();
	raise(SIGUSR1);
	_exit(0);
}

// ---- the bystander -------------------------------------------------------------

static int ask[2], tell[2];
static unsigned long long longest;

static unsigned long long at_work(void)
{
	CUdeviceptr p;
	size_t a, b;
	struct blocked t = blocked_begin();
	int bad = cu.cuMemAlloc_v2(&p, PIECE) || cu.cuMemFree_v2(p) || cu.cuMemGetInfo_v2(&a, &b);
	unsigned long long ns;

	if (given->set)
		bad |= import();
	ns = blocked_end(&t);
	return bad ? ~0ULL : ns;
}

static pid_t bystander(void)
{
	unsigned long long ns = 0;
	CUdeviceptr p;
	char c = 0;
	pid_t pid;

	if (pipe(ask) || pipe(tell))
		exit(2);
	pid = fork();
	if (!pid) {
		close(ask[1]);
		begin();
		if (cu.cuMemAlloc_v2(&p, HELD) || at_work() == ~0ULL || write(tell[1], &ns, sizeof(ns)) < 0)
			_exit(9);
		while (read(ask[0], &c, 1) == 1) {
			ns = at_work();
			if (write(tell[1], &ns, sizeof(ns)) < 0)
				_exit(9);
		}
		_exit(0);
	}
	close(ask[0]);
	if (read(tell[0], &ns, sizeof(ns)) != sizeof(ns))
		exit(2);
	return pid;
}

static void let_work(const char *what, int k)
{
	unsigned long long ns;
	char c = 0;

	if (write(ask[1], &c, 1) != 1 || read(tell[0], &ns, sizeof(ns)) != sizeof(ns))
		exit(2);
	CHECK(ns != ~0ULL, "%s, step %d: a call of the bystander failed", what, k);
	if (ns != ~0ULL && ns > longest)
		longest = ns;
}

// ---- stepping ------------------------------------------------------------------

// step_and_kill returns 1 if the child came to the end before step k, and sets
// ret_steps to how far it came.
static int step_and_kill(const struct act *act, int k, int *ret_steps)
{
	int status, ended = 0, i;
	pid_t pid = fork();

	if (!pid)
		child(act);
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) {
		CHECK(0, "%s: the child stopped with status %x", act->name, status);
		ended = 1;
	}
	for (i = 0; i < k && !ended; i++) {
		ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
		waitpid(pid, &status, 0);
		ended = !WIFSTOPPED(status) || WSTOPSIG(status) == SIGUSR1;
	}
	*ret_steps = i;
	let_work(act->name, k);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return ended;
}

// bury gives the dead child's slot back at once, as the daemon does later: a sum
// must not become longer with every step.
static void bury(void)
{
	static const char zero[GS_SLOT_SIZE];
	int fd = open("/run/gpushare/ledger", O_RDWR | O_CLOEXEC);
	const struct gs_ledger_header *h = (const void *)harness_ledger();

	for (uint32_t slot = 0; slot < h->slot_high; slot++) {
		struct flock lock = {.l_type = F_WRLCK, .l_start = (off_t)(GS_LOCK_BASE + slot), .l_len = 1};

		if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
			continue; // the bystander's
		if (pwrite(fd, zero, 8, (off_t)(GS_LEDGER_HEADER_SIZE + GS_SLOT_COUNT * GS_SLOT_SIZE + slot * 8)) != 8 ||
		    pwrite(fd, zero, GS_SLOT_SIZE, (off_t)(GS_LEDGER_HEADER_SIZE + slot * GS_SLOT_SIZE)) != GS_SLOT_SIZE)
			exit(2);
	}
	close(fd);
	CHECK(ledger_sum(0) == HELD + CONTEXT, "the bystander's bytes are %llu", (unsigned long long)ledger_sum(0));
}

// all_the_rest returns what a new process can have, byte-exact by halves.
static unsigned long long all_the_rest(void)
{
	unsigned long long got = 0;
	CUdeviceptr p;
	int tries = 0;

	begin();
	// The dead are found 64 in 100 ms; wait until a first big piece fits.
	while (cu.cuMemAlloc_v2(&p, LIMIT - HELD - 2 * CONTEXT) && tries++ < 300)
		usleep(20000);
	if (tries < 300)
		got = LIMIT - HELD - 2 * CONTEXT;
	while (cu.cuMemAlloc_v2(&p, 512) == CUDA_SUCCESS)
		got += 512;
	return got;
}

static void have_all_the_rest(const struct act *act)
{
	int status;

	if (fork() == 0) {
		unsigned long long got = all_the_rest();

		CHECK(got == LIMIT - HELD - 2 * CONTEXT, "%s: a new process got %llu of %llu", act->name, got,
		      LIMIT - HELD - 2 * CONTEXT);
		CHECK(ledger_sum(0) == LIMIT, "%s: the ledger says %llu", act->name, (unsigned long long)ledger_sum(0));
		_exit(harness_failures ? 1 : 0);
	}
	wait(&status);
	CHECK(status == 0, "%s: the new process failed", act->name);
}

int main(int argc, char **argv)
{
	int status, k = 0, stride = argc > 2 ? atoi(argv[2]) : 0, kills = 0, length = 0, shared;
	const struct act *act;
	pid_t by;

	if (!stride)
		return 2;
	act = find(argv[1]);
	find_functions();
	given = mmap(NULL, sizeof(*given), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	// Who is buried by hand here would still hold what is shared: the test looks itself.
	shared = act->run == export || act->run == imported;
	if (act->run == imported)
		export_for_others();
	by = bystander();
	if (stride > 0) {
		for (; !step_and_kill(act, k, &length); k += stride, kills++)
			shared ? (void)0 : bury();
	} else {
		srandom((unsigned)getpid());
		step_and_kill(act, 1 << 30, &length);
		for (shared ? (void)0 : bury(); kills < -stride; kills++) {
			step_and_kill(act, (int)(random() % length), &k);
			shared ? (void)0 : bury();
		}
	}
	CHECK(length > 40, "%s took only %d instructions", act->name, length);
	if (!shared)
		have_all_the_rest(act);
	close(ask[1]);
	waitpid(by, &status, 0);
	CHECK(status == 0, "%s: the bystander failed", act->name);
	CHECK(longest <= LONGEST, "%s: a call of the bystander was blocked for %llu ns", act->name, longest);
	printf("%d kills in %d instructions, bystander blocked %llu ns\n", kills, length, longest);
	return harness_failures ? 1 : 0;
}
