// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * vtime.c: every way to wait for a time, under the time library: each takes as
 * long on the program's clock as it says. Of the wall clock's time it takes next
 * to none, so a program that is not on the virtual clock would not end in time.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "t.h"

static double began;

static struct timespec in(clockid_t c, double s)
{
    struct timespec t;

    clock_gettime(c, &t);
    t.tv_sec += (time_t)s;
    t.tv_nsec += (long)((s - (double)(time_t)s) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

#define TAKES(s, ...)                                                     \
    do {                                                                  \
        double t_;                                                        \
        began = now_s();                                                  \
        __VA_ARGS__;                                                      \
        t_ = now_s() - began;                                             \
        if (t_ < (s) - 1e-6 || t_ > (s) + 1e-4)                                 \
            FAIL("%s took %.9f s, want %g", #__VA_ARGS__, t_, (double)(s)); \
    } while (0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static uint32_t word;
static int pipes[2];

static long futex(int op, uint32_t value, const struct timespec *t)
{
    return syscall(SYS_futex, &word, op, value, t, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* After 2 s, gives everything that the main thread waits for, one a second. */
static void *giver(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    pthread_rwlock_wrlock(&rw);
    sleep(2);
    pthread_mutex_unlock(&lock);
    sleep(1);
    pthread_rwlock_unlock(&rw);
    sleep(1);
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
    sleep(1);
    sem_post(&sem);
    sleep(1);
    word = 1;
    futex(FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL);
    sleep(1);
    if (write(pipes[1], "x", 1) != 1)
        FAIL("write");
    sleep(1);
    pthread_barrier_wait(&barrier);
    sleep(1);
    return NULL;
}

static void given(void)
{
    pthread_t t;
    char c;

    OK(pipe(pipes));
    OK(pthread_barrier_init(&barrier, NULL, 2));
    OK(pthread_create(&t, NULL, giver, NULL));
    sched_yield();
    while (pthread_mutex_trylock(&lock) == 0) {
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    TAKES(1.9999, OK(pthread_mutex_lock(&lock)));
    TAKES(1, OK(pthread_rwlock_rdlock(&rw)));
    OK(pthread_rwlock_unlock(&rw));
    TAKES(1, OK(pthread_cond_wait(&cond, &lock)));
    OK(pthread_mutex_unlock(&lock));
    TAKES(1, OK(sem_wait(&sem)));
    TAKES(1, OK(futex(FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL)));
    TAKES(1, TRUE(poll(&(struct pollfd){.fd = pipes[0], .events = POLLIN}, 1, 100000) == 1));
    TRUE(read(pipes[0], &c, 1) == 1);
    TAKES(1, pthread_barrier_wait(&barrier));
    TAKES(1, OK(pthread_join(t, NULL)));
}

static void timed(void)
{
    struct timespec t;
    struct timeval tv = {.tv_sec = 3};
    struct epoll_event e;
    fd_set set;
    int p[2], ep;

    OK(pipe(p));
    TAKES(10, OK(nanosleep(&(struct timespec){.tv_sec = 10}, NULL)));
    t = in(CLOCK_MONOTONIC, 5);
    TAKES(4.9999, OK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)));
    t = in(CLOCK_REALTIME, 5);
    TAKES(4.9999, OK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL)));
    TAKES(0.25, OK(usleep(250000)));
    TAKES(7, OK(sleep(7)));
    TAKES(4, OK(poll(NULL, 0, 4000)));
    TAKES(4, OK(poll(&(struct pollfd){.fd = p[0], .events = POLLIN}, 1, 4000)));
    TAKES(1.5, OK(ppoll(NULL, 0, &(struct timespec){1, 500000000}, NULL)));
    FD_ZERO(&set);
    FD_SET(p[0], &set);
    TAKES(3, OK(select(p[0] + 1, &set, NULL, NULL, &tv)));
    TRUE(!FD_ISSET(p[0], &set) && tv.tv_sec == 0 && tv.tv_usec == 0);
    ep = epoll_create1(0);
    e = (struct epoll_event){.events = EPOLLIN};
    OK(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &e));
    TAKES(6, OK(epoll_wait(ep, &e, 1, 6000)));
    TRUE(write(p[1], "x", 1) == 1);
    TAKES(0, TRUE(epoll_wait(ep, &e, 1, 6000) == 1));
    OK(pthread_mutex_lock(&lock));
    t = in(CLOCK_REALTIME, 2);
    TAKES(1.9999, WANT(pthread_cond_timedwait(&cond, &lock, &t), ETIMEDOUT));
    t = in(CLOCK_MONOTONIC, 2);
    TAKES(1.9999, WANT(pthread_cond_clockwait(&cond, &lock, CLOCK_MONOTONIC, &t), ETIMEDOUT));
    t = in(CLOCK_REALTIME, 2);
    TAKES(1.9999, WANT(pthread_mutex_timedlock(&lock, &t), ETIMEDOUT));
    OK(pthread_mutex_unlock(&lock));
    OK(sem_init(&sem, 0, 0));
    t = in(CLOCK_REALTIME, 3);
    TAKES(2.9999, WANT(sem_timedwait(&sem, &t), -1));
    TRUE(errno == ETIMEDOUT);
    TAKES(1, WANT(futex(FUTEX_WAIT, 0, &(struct timespec){1, 0}), -1)); /* as between processes */
    TRUE(errno == ETIMEDOUT);
    t = in(CLOCK_MONOTONIC, 1);
    TAKES(0.9999, WANT(futex(FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &t), -1));
}

static void clocks(void)
{
    struct timespec a, b;
    struct timeval tv;
    double end;

    clock_gettime(CLOCK_MONOTONIC, &a);
    clock_gettime(CLOCK_BOOTTIME, &b);
    TRUE(b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec);
    clock_gettime(CLOCK_REALTIME, &b);
    TRUE(b.tv_sec - a.tv_sec == 1767225600); /* the first day of 2026 */
    OK(gettimeofday(&tv, NULL));
    TRUE(tv.tv_sec == b.tv_sec && time(NULL) == b.tv_sec);
    /* Looking in a loop comes to an end, as yielding does. */
    TAKES(0.001, for (end = now_s() + 0.001; now_s() < end;));
    end = now_s() + 0.001;
    TAKES(0.00099, while (now_s() < end) sched_yield());
}

static void forked(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        sleep(5);
        _exit(3);
    }
    TAKES(5, TRUE(waitpid(pid, &status, 0) == pid));
    TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

int main(void)
{
    clocks();
    timed();
    given();
    forked();
    puts("done");
    return 0;
}
