// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * churn.c: a pair of processes that take, share and give back memory of every
 * kind without an end, until they are killed. churn SEED prints the pid of its
 * child and "ready". churn SEED END does some of it, then ends by itself: exit,
 * abort (in a callback of the GPU's), or exec.
 */
#include <signal.h>

#include "ipc.h"

#define MIB ((size_t)1 << 20)
#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define N(v) (sizeof(v) / sizeof((v)[0]))

struct message {
    int kind; /* 0: handle, 1: a descriptor goes with it */
    CUipcMemHandle handle;
};

static const CUmemAllocationProp prop = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc rw = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static unsigned seed;
static CUmodule module;
static CUdeviceptr linear[24], opened[8], range;
static CUmemGenericAllocationHandle made[8], imported[8];

static unsigned pick(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

/* Sends without waiting: the peer may be dead or busy. */
static void send_to(int peer, const struct message *m, int fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } c;
    struct iovec v = {(void *)(uintptr_t)m, sizeof(*m)};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};

    memset(&c, 0, sizeof(c));
    if (fd >= 0) {
        h.msg_control = c.buf;
        h.msg_controllen = sizeof(c.buf);
        c.head.cmsg_level = SOL_SOCKET;
        c.head.cmsg_type = SCM_RIGHTS;
        c.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
    }
    sendmsg(peer, &h, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void take_from(int peer)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } c;
    struct message m;
    struct iovec v = {&m, sizeof(m)};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c.buf, .msg_controllen = sizeof(c.buf)};
    unsigned i = pick(N(opened));
    int fd = -1;

    if (recvmsg(peer, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != (ssize_t)sizeof(m))
        return;
    if (CMSG_FIRSTHDR(&h))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
    if (m.kind == 0) {
        if (opened[i])
            cuIpcCloseMemHandle(opened[i]);
        if (cuIpcOpenMemHandle_v2(&opened[i], m.handle, 1) != CUDA_SUCCESS)
            opened[i] = 0;
        else
            OK(cuMemsetD8_v2(opened[i], 1, 1));
    } else if (fd >= 0) {
        if (imported[i])
            OK(cuMemRelease(imported[i]));
        if (cuMemImportFromShareableHandle(&imported[i], (void *)(intptr_t)fd, FD) != CUDA_SUCCESS)
            imported[i] = 0;
        close(fd);
    }
}

static void linear_memory(void)
{
    unsigned i = pick(N(linear));

    if (linear[i])
        OK(cuMemFree_v2(linear[i]));
    if (cuMemAlloc_v2(&linear[i], pick(4) ? 1 + pick(100000) : 1 + pick(32) * MIB) != CUDA_SUCCESS)
        linear[i] = 0;
}

static void show(int peer)
{
    struct message m = {0};
    unsigned i = pick(N(linear));

    if (linear[i] && cuIpcGetMemHandle(&m.handle, linear[i]) == CUDA_SUCCESS)
        send_to(peer, &m, -1);
}

static void physical(int peer)
{
    struct message m = {.kind = 1};
    unsigned i = pick(N(made));
    int fd;

    if (made[i])
        OK(cuMemRelease(made[i]));
    made[i] = 0;
    if (cuMemCreate(&made[i], (1 + pick(4)) * 2 * MIB, &prop, 0) != CUDA_SUCCESS)
        return;
    if (cuMemMap(range, 2 * MIB, 0, made[i], 0) == CUDA_SUCCESS) {
        OK(cuMemSetAccess(range, 2 * MIB, &rw, 1));
        OK(cuMemsetD8_v2(range, 1, 4096));
    }
    if (pick(2) && cuMemExportToShareableHandle(&fd, made[i], FD, 0) == CUDA_SUCCESS) {
        send_to(peer, &m, fd);
        close(fd);
    }
    cuMemUnmap(range, 2 * MIB);
}

static void others(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUcontext c;
    CUdeviceptr p;
    CUarray a;

    switch (pick(6)) {
    case 0:
        if (cuMemAllocAsync(&p, 1 + pick(MIB), NULL) == CUDA_SUCCESS)
            OK(cuMemFreeAsync(p, NULL));
        break;
    case 1:
        OK(cuCtxSynchronize());
        break;
    case 2:
        if (cuMemAllocManaged(&p, 8 * MIB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) {
            cuMemPrefetchAsync(p, 4 * MIB, 0, NULL);
            OK(cuMemFree_v2(p));
        }
        break;
    case 3:
        if (cuArray3DCreate_v2(&a, &d) == CUDA_SUCCESS && pick(2))
            OK(cuArrayDestroy(a));
        break;
    case 4:
        if (cuCtxCreate_v2(&c, 0, 0) == CUDA_SUCCESS) {
            cuMemAlloc_v2(&p, MIB);
            OK(cuCtxDestroy_v2(c));
        }
        break;
    default:
        launch(function(module, "any"), NULL);
    }
}

static void churn(int peer, unsigned rounds)
{
    CUcontext ctx;

    module = start(&ctx);
    OK(cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0));
    for (unsigned i = 0; !rounds || i < rounds; i++) {
        take_from(peer);
        switch (pick(4)) {
        case 0:
            linear_memory();
            break;
        case 1:
            show(peer);
            break;
        case 2:
            physical(peer);
            break;
        default:
            others();
        }
    }
}

static unsigned child_rounds;

static void child(int parent)
{
    seed += 7919;
    churn(parent, child_rounds);
}

static void give_up(void *arg)
{
    (void)arg;
    abort();
}

int main(int argc, char **argv)
{
    const char *end = argc > 2 ? argv[2] : "";
    pid_t pid;
    int s;

    seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    child_rounds = *end ? 300 : 0;
    s = beside(child, &pid);
    printf("child %d\n", pid);
    puts("ready");
    fflush(stdout);
    churn(s, *end ? 300 : 0);
    if (!strcmp(end, "abort")) {
        OK(cuLaunchHostFunc(NULL, give_up, NULL));
        cuCtxSynchronize();
    } else if (!strcmp(end, "exec")) {
        execlp("sleep", "sleep", "0.2", NULL);
    }
    return 0;
}
