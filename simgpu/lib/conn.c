// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * conn.c: the connection to the simulator's host process. The socket closes on
 * exec and is inherited over fork, so the host sees the end of the last holder.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fault.h"
#include "sg.h"

struct sg_conn sg_conn = {
    .fd = -1,
    .rpc_lock = PTHREAD_MUTEX_INITIALIZER,
    .ring_lock = PTHREAD_MUTEX_INITIALIZER,
};

static bool default_socket; /* found at the place for containers */

/* Writes the directory of the library that holds this code. */
static bool own_directory(char *buf, size_t size)
{
    unsigned long long lo, hi, self = (unsigned long long)(uintptr_t)&own_directory;
    char line[4400], path[4200];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "re");

    if (!f)
        return false;
    while (!found && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %4199[^\n]", &lo, &hi, path) == 3)
            found = self >= lo && self < hi;
    }
    fclose(f);
    if (found) {
        char *slash = strrchr(path, '/');

        found = slash && (size_t)(slash - path) < size;
        if (found) {
            *slash = 0;
            memcpy(buf, path, (size_t)(slash - path) + 1);
        }
    }
    return found;
}

static int try_connect(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof(a.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(a.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    while (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
        if (errno == EINTR)
            continue;
        close(fd);
        return -1;
    }
    return fd;
}

/* Moves fd out of the range that programs close in loops or compare with. */
static int high(int fd)
{
    int h = fcntl(fd, F_DUPFD_CLOEXEC, 500);

    if (h < 0)
        return fd;
    close(fd);
    return h;
}

/* A socket path is limited to 107 bytes, a directory is not: go through a
 * descriptor of it. */
static int connect_in(const char *dir)
{
    char path[64];
    int fd, d = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (d < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d/simgpu.sock", d);
    fd = try_connect(path);
    close(d);
    return fd;
}

static int find_host(void)
{
    const char *env = secure_getenv("SIMGPU_SOCKET");
    char dir[4200];
    int fd;

    default_socket = false;
    if (env && *env)
        return try_connect(env);
    if (own_directory(dir, sizeof(dir))) {
        fd = connect_in(dir);
        if (fd >= 0)
            return fd;
    }
    default_socket = true;
    return try_connect("/run/simgpu/sock");
}

/* Sends a message in two parts, and a descriptor if pass is one. */
static bool send_all(int fd, const void *head, size_t nhead, const void *data, size_t n, int pass)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } c;
    struct iovec v[2] = {{(void *)head, nhead}, {(void *)data, n}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = n ? 2 : 1};
    ssize_t r;

    if (pass >= 0) {
        memset(&c, 0, sizeof(c));
        c.head.cmsg_level = SOL_SOCKET;
        c.head.cmsg_type = SCM_RIGHTS;
        c.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&c.head), &pass, sizeof(pass));
        m.msg_control = c.buf;
        m.msg_controllen = sizeof(c.buf);
    }
    do
        r = sendmsg(fd, &m, MSG_NOSIGNAL);
    while (r < 0 && errno == EINTR);
    return r == (ssize_t)(nhead + n);
}

#define MAX_FDS 3
/* Receives one message into two parts and nfds descriptors; with nfds -1 one
 * descriptor or none. */
static ssize_t receive(int fd, struct sg_reply *head, void *data, size_t n, int *fds, int nfds)
{
    union {
        char buf[CMSG_SPACE(MAX_FDS * sizeof(int))];
        struct cmsghdr align;
    } c;
    struct iovec v[2] = {{head, sizeof(*head)}, {data, n}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = n ? 2 : 1};
    struct cmsghdr *h;
    ssize_t r;

    if (nfds) {
        m.msg_control = c.buf;
        m.msg_controllen = sizeof(c.buf);
    }
    do
        r = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    while (r < 0 && errno == EINTR);
    if (r < (ssize_t)sizeof(*head))
        return -1;
    if (!nfds)
        return r;
    h = CMSG_FIRSTHDR(&m);
    if (nfds < 0) {
        *fds = -1;
        if (!h)
            return r;
        nfds = 1;
    }
    if (!h || h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN((size_t)nfds * sizeof(int)))
        return -1;
    memcpy(fds, CMSG_DATA(h), (size_t)nfds * sizeof(int));
    return r;
}

/* Maps a file of the host's; at the place of the same file of a connection before. */
static void *map(int fd, size_t size, int prot, const void *before)
{
    void *p = mmap((void *)before, size, prot, MAP_SHARED | (before ? MAP_FIXED : 0), fd, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* Maps what the host has sent: for a CUDA client its own memory and the kicks,
 * for a time library its table and the kicks, and for every client the node. */
static bool map_all(uint32_t kind, const int *fds, int nfds)
{
    if (kind == SG_KIND_CUDA) {
        sg_conn.shm = map(fds[0], sizeof(struct sg_shared), PROT_READ | PROT_WRITE, sg_conn.shm);
        sg_conn.waits = sg_conn.shm ? &sg_conn.shm->waits : NULL;
    } else if (kind == SG_KIND_CLOCK) {
        sg_conn.waits = map(fds[0], sizeof(struct sg_waits), PROT_READ | PROT_WRITE, sg_conn.waits);
    }
    if (nfds > 1) {
        sg_conn.kicks = map(fds[1], SG_PAGE, PROT_READ | PROT_WRITE, sg_conn.kicks);
        if (!sg_conn.waits || !sg_conn.kicks)
            return false;
    }
    sg_conn.node = map(fds[nfds - 1], sizeof(struct sg_node), PROT_READ, sg_conn.node);
    return sg_conn.node && sg_conn.node->magic == SG_WIRE_MAGIC && sg_conn.node->gpus <= SG_MAX_GPUS;
}

/* The name by which a trace knows this program, from its environment. */
static size_t own_name(const char **ret)
{
    *ret = secure_getenv("SIMGPU_CLIENT");
    return *ret && strlen(*ret) < SG_NAME ? strlen(*ret) : 0;
}

/* Makes a connection and maps what the host sends. Returns it, or a negative
 * errno. Pointers into what an earlier connection mapped stay good. */
static int greet(uint32_t kind)
{
    struct sg_request req = {.op = SG_OP_HELLO, .a = kind, .b = SG_WIRE_VERSION};
    int fds[MAX_FDS], fd = find_host(), nfds = kind == SG_KIND_NVML || kind == SG_KIND_FAULTS ? 1 : MAX_FDS;
    const char *name;
    struct sg_reply rep;
    bool mapped;

    if (fd < 0)
        return -ENODEV;
    fd = high(fd);
    req.len = (uint32_t)own_name(&name);
    if (!send_all(fd, &req, sizeof(req), name, req.len, -1) || receive(fd, &rep, NULL, 0, fds, nfds) != (ssize_t)sizeof(rep)) {
        close(fd);
        return -EPROTO;
    }
    mapped = map_all(kind, fds, nfds);
    for (int i = 0; i < nfds; i++)
        close(fds[i]);
    if (!mapped) {
        close(fd);
        return -EPROTO;
    }
    return fd;
}

/* Connects and maps the shared memory. Returns 0 or a negative errno. */
int sg_connect(uint32_t kind)
{
    int fd = greet(kind);

    if (fd < 0)
        return fd;
    sg_conn.fd = fd;
    sg_conn.lost = false;
    sg_fault_connected();
    return 0;
}

/* A connection only to ask which calls are to fail. */
int sg_link(void)
{
    return greet(SG_KIND_FAULTS);
}

/* One request and its answer on such a connection: the bytes received, or -1. */
ssize_t sg_exchange(int fd, struct sg_request *req, const void *data, struct sg_reply *ret, void *out, size_t out_size)
{
    return send_all(fd, req, sizeof(*req), data, req->len, -1) ? receive(fd, ret, out, out ? out_size : 0, NULL, 0) : -1;
}

/* A connection of its own for what a set of events receives: the descriptor,
 * or -1. */
int sg_open(uint32_t kind)
{
    struct sg_request req = {.op = SG_OP_HELLO, .a = kind, .b = SG_WIRE_VERSION};
    struct sg_reply rep;
    int fd = find_host();

    if (fd < 0)
        return -1;
    fd = high(fd);
    if (send_all(fd, &req, sizeof(req), NULL, 0, -1) && receive(fd, &rep, NULL, 0, NULL, 0) == (ssize_t)sizeof(rep))
        return fd;
    close(fd);
    return -1;
}

/* The host process is gone, and with it all contexts: every call that needs one
 * says so from now on, also a query that only reads shared memory. */
void sg_host_gone(void)
{
    sg_conn.lost = true;
    for (unsigned i = 0; sg_conn.shm && i < SG_CONTEXT_SLOTS; i++)
        __atomic_store_n(&sg_conn.shm->ctx_fault[i], CUDA_ERROR_UNKNOWN, __ATOMIC_RELEASE);
}

/* One request and its answer, and a descriptor each way: pass -1 and ret_fd NULL
 * for none. The status of a lost host is 999. */
CUresult sg_call_fd(struct sg_request *req, const void *data, int pass, struct sg_reply *ret, void *out, size_t out_size,
                    size_t *ret_len, int *ret_fd)
{
    ssize_t n = -1;

    if (__builtin_expect(sg_conn.before_call != NULL, 0))
        sg_conn.before_call();
    pthread_mutex_lock(&sg_conn.rpc_lock);
    req->id = ++sg_conn.next_id;
    if (sg_conn.waits)
        __atomic_add_fetch(&sg_conn.waits->calls, 1, __ATOMIC_SEQ_CST);
    if (ret_fd)
        *ret_fd = -1;
    if (!sg_conn.lost && send_all(sg_conn.fd, req, sizeof(*req), data, req->len, pass))
        n = receive(sg_conn.fd, ret, out, out ? out_size : 0, ret_fd, ret_fd ? -1 : 0);
    if (n < 0)
        sg_host_gone();
    pthread_mutex_unlock(&sg_conn.rpc_lock);
    if (n < 0)
        return CUDA_ERROR_UNKNOWN;
    if (ret_len)
        *ret_len = (size_t)n - sizeof(*ret);
    return (CUresult)ret->status;
}

CUresult sg_call(struct sg_request *req, const void *data, struct sg_reply *ret, void *out, size_t out_size,
                 size_t *ret_len)
{
    return sg_call_fd(req, data, -1, ret, out, out_size, ret_len, NULL);
}

CUresult sg_rpc(uint32_t op, uint32_t gpu, uint32_t ctx, uint64_t a, uint64_t *ret_a)
{
    struct sg_request req = {.op = op, .gpu = gpu, .ctx = ctx, .a = a};
    struct sg_reply rep;
    CUresult r = sg_call(&req, NULL, &rep, NULL, 0, NULL);

    if (r == CUDA_SUCCESS && ret_a)
        *ret_a = rep.a;
    return r;
}

/* A request without an answer. */
void sg_tell(uint32_t op, uint64_t a, uint64_t b)
{
    struct sg_request req = {.op = op, .a = a, .b = b};

    if (__builtin_expect(sg_conn.before_call != NULL, 0))
        sg_conn.before_call();
    if (sg_conn.waits)
        __atomic_add_fetch(&sg_conn.waits->calls, 1, __ATOMIC_SEQ_CST);
    send_all(sg_conn.fd, &req, sizeof(req), NULL, 0, -1);
}

/*
 * A process may use the GPUs whose device node it may open, as with the real
 * driver: without the kernel's driver the open fails with ENXIO, without the
 * right to the device with EPERM. On the host itself, where the node's devices
 * are not in /dev, there is nothing to look at and all GPUs are visible.
 */
unsigned sg_visible(const struct sg_node *node, unsigned *ret_index, unsigned max)
{
    bool check = default_socket || access("/dev/nvidiactl", F_OK) == 0;
    unsigned n = 0;

    for (unsigned i = 0; i < node->gpus && n < max; i++) {
        if (check) {
            char path[64];
            int fd;

            snprintf(path, sizeof(path), "/dev/nvidia%u", node->gpu[i].info.minor);
            fd = open(path, O_RDWR | O_CLOEXEC);
            if (fd >= 0)
                close(fd);
            else if (errno != ENXIO && errno != ENODEV)
                continue;
        }
        ret_index[n++] = i;
    }
    return n;
}
