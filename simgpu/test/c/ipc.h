// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* ipc.h: two test processes that talk to each other. */
#ifndef SG_TEST_IPC_H
#define SG_TEST_IPC_H

#include <sys/socket.h>
#include <sys/wait.h>

#include "t.h"

/* Sends n bytes and, unless it is -1, a descriptor. */
static inline void tell(int to, const void *data, size_t n, int fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } c;
    struct iovec v = {(void *)(uintptr_t)data, n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

    if (fd >= 0) {
        memset(&c, 0, sizeof(c));
        m.msg_control = c.buf;
        m.msg_controllen = sizeof(c.buf);
        c.head.cmsg_level = SOL_SOCKET;
        c.head.cmsg_type = SCM_RIGHTS;
        c.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
    }
    TRUE(sendmsg(to, &m, MSG_NOSIGNAL) == (ssize_t)n);
}

/* Receives the same; returns the descriptor or -1. */
static inline int hear(int from, void *data, size_t n)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } c;
    struct iovec v = {data, n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c.buf, .msg_controllen = sizeof(c.buf)};
    struct cmsghdr *h;
    int fd = -1;

    TRUE(recvmsg(from, &m, MSG_CMSG_CLOEXEC) == (ssize_t)n);
    h = CMSG_FIRSTHDR(&m);
    if (h)
        memcpy(&fd, CMSG_DATA(h), sizeof(fd));
    return fd;
}

/* Runs f in a child of its own, which has not used CUDA; returns the socket to it. */
static inline int beside(void (*f)(int), pid_t *ret_child)
{
    int s[2];

    TRUE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0);
    fflush(stdout);
    *ret_child = fork();
    TRUE(*ret_child >= 0);
    if (!*ret_child) {
        close(s[0]);
        f(s[1]);
        exit(0);
    }
    close(s[1]);
    return s[0];
}

static inline void ended(pid_t child)
{
    int status;

    TRUE(waitpid(child, &status, 0) == child);
    TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline size_t used(void)
{
    size_t f, t;

    OK(cuMemGetInfo_v2(&f, &t));
    return t - f;
}

#endif
