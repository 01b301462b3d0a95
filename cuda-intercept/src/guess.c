// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "guess.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "attach.h"
#include "gate_os.h"
#include "grant.h"
#include "ledger.h"
#include "slots.h"

// Guesses of one GPU that have ended and may not have been looked at, kept apart
// for this many looks.
#define ENDED 16

// How long a refusal waits for a look, and how long it then takes the daemon to be
// away.
#define WAIT_NS 60000000ULL
#define WAIT_STEP_NS 2000000ULL
#define PATIENCE_NS 1000000000ULL

struct ended {
	uint64_t bytes;
	uint32_t mark;
};

// What this process has in its slot's guess words. The lock is held for a few
// memory accesses.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ended ended[GS_MAX_GPUS][ENDED];
static uint32_t under_way; // guesses between begin and end, all GPUs

// The looks that will know of what was given back.
static _Atomic(uint32_t) given_back[GS_MAX_GPUS];

static _Atomic(uint64_t) next_ring;
static _Atomic(uint64_t) given_up; // when a look did not come

static _Atomic(uint64_t) *word_of(unsigned gpu)
{
	return gs_slot_guess(gpu, (uint32_t)gs_self.slot);
}

// subtract never goes below zero: the file is writable by the program itself.
static void subtract(unsigned gpu, uint64_t bytes)
{
	_Atomic(uint64_t) *word = word_of(gpu);
	uint64_t old = atomic_load(word);

	while (!atomic_compare_exchange_weak(word, &old, old > bytes ? old - bytes : 0))
		;
}

// prune takes off what the daemon has looked at since. It was stored in the growth
// before the number of the look, so whoever misses it here finds it there.
static void prune(unsigned gpu)
{
	uint32_t done = gs_settle_done(gpu);

	for (int i = 0; i < ENDED; i++) {
		struct ended *e = &ended[gpu][i];

		if (e->bytes && e->mark <= done) {
			subtract(gpu, e->bytes);
			e->bytes = 0;
		}
	}
}

// keep notes a guess that has ended. When there is no room it joins the youngest.
static void keep(unsigned gpu, uint64_t bytes, uint32_t mark)
{
	struct ended *to = &ended[gpu][0];

	for (int i = 0; i < ENDED; i++) {
		struct ended *e = &ended[gpu][i];

		if (e->bytes && e->mark == mark) {
			to = e;
			break;
		}
		if (to->bytes && (!e->bytes || e->mark > to->mark))
			to = e;
	}
	to->mark = to->bytes && to->mark > mark ? to->mark : mark;
	to->bytes += bytes;
}

// newest is the mark of the youngest guess that counts, 0 without one.
static uint32_t newest(void)
{
	uint32_t mark = 0;

	for (unsigned gpu = 0; gpu < gs_self.gpus; gpu++)
		for (int i = 0; i < ENDED; i++)
			if (ended[gpu][i].bytes && ended[gpu][i].mark > mark)
				mark = ended[gpu][i].mark;
	return mark;
}

static void raise_header(uint32_t mark)
{
	uint32_t *word = &gs_self.ledger->guess_mark;
	uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);

	while (seen < mark && !__atomic_compare_exchange_n(word, &seen, mark, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void set_mark(uint32_t mark)
{
	__atomic_store_n(&gs_slot_at((uint32_t)gs_self.slot)->guess_mark, mark, __ATOMIC_SEQ_CST);
}

static void ring(unsigned gpu)
{
	int saved = errno;
	uint64_t now = gs_os_now(), due = atomic_load(&next_ring);

	if (now >= due && atomic_compare_exchange_strong(&next_ring, &due, now + GS_SETTLE_RING))
		gs_os_ring((uint32_t)GS_DOORBELL_SETTLE, gpu, (uint32_t)gs_self.slot, 0);
	errno = saved;
}

int gs_guess_begin(unsigned gpu, uint64_t bytes)
{
	// Charged by the rules of every allocation, then moved: counted twice for a
	// moment, and never not at all.
	int r = bytes ? gs_charge(gpu, bytes) : 0;

	if (r < 0 || !bytes)
		return r;
	pthread_mutex_lock(&lock);
	prune(gpu);
	if (!under_way++) {
		__atomic_fetch_add(&gs_self.ledger->guessing, 1, __ATOMIC_SEQ_CST);
		set_mark((uint32_t)GS_GUESS_PENDING);
	}
	atomic_fetch_add(word_of(gpu), bytes);
	pthread_mutex_unlock(&lock);
	gs_ledger_refund(gpu, bytes);
	return 0;
}

uint32_t gs_guess_mark(unsigned gpu)
{
	return __atomic_load_n(&gs_self.limits->gpu[gpu].settle_begin, __ATOMIC_SEQ_CST) + 1;
}

void gs_guess_end(unsigned gpu, uint64_t bytes, bool happened)
{
	if (!bytes)
		return;
	pthread_mutex_lock(&lock);
	prune(gpu);
	if (happened)
		keep(gpu, bytes, gs_guess_mark(gpu));
	else
		subtract(gpu, bytes);
	if (under_way && !--under_way) {
		uint32_t mark = newest();

		raise_header(mark);
		set_mark(mark);
		__atomic_fetch_sub(&gs_self.ledger->guessing, 1, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&lock);
	if (happened)
		ring(gpu);
}

uint64_t gs_guess_undo(unsigned gpu, uint64_t bytes, uint32_t mark)
{
	pthread_mutex_lock(&lock);
	prune(gpu);
	for (int i = 0; i < ENDED && bytes && mark > gs_settle_done(gpu); i++) {
		struct ended *e = &ended[gpu][i];

		// It may have joined younger ones.
		if (e->mark >= mark && e->bytes) {
			uint64_t n = e->bytes < bytes ? e->bytes : bytes;

			subtract(gpu, n);
			e->bytes -= n;
			bytes -= n;
		}
	}
	if (!under_way || mark <= gs_settle_done(gpu))
		bytes = 0;
	pthread_mutex_unlock(&lock);
	return bytes;
}

void gs_guess_given_back(unsigned gpu)
{
	atomic_store(&given_back[gpu], gs_guess_mark(gpu));
	ring(gpu);
}

// due tells whether something has not been looked at: a guess of any process, or
// what this one gave back.
static bool due(unsigned gpu)
{
	uint32_t done = gs_settle_done(gpu), high = gs_slots_high();

	if (atomic_load(&given_back[gpu]) > done)
		return true;
	if (!gs_guesses_stand(done))
		return false;
	for (uint32_t slot = 0; slot < high; slot++)
		if (gs_slot_guessed(gpu, slot, done))
			return true;
	return false;
}

bool gs_guess_wait(unsigned gpu)
{
	int saved = errno;
	const uint32_t *word = &gs_self.limits->gpu[gpu].settle_done;
	uint64_t start, last = atomic_load(&given_up);
	uint32_t done = gs_settle_done(gpu);
	bool came = false;

	if (!due(gpu))
		return false;
	start = gs_os_now();
	// Without a daemon, or a figure of the driver's, none will come.
	if (last && start - last < PATIENCE_NS)
		return false;
	ring(gpu);
	while (!came && gs_os_now() - start < WAIT_NS) {
		gs_os_wait(word, done, WAIT_STEP_NS);
		came = !due(gpu);
	}
	if (gs_settle_done(gpu) == done)
		atomic_store(&given_up, gs_os_now());
	else
		came = true;
	errno = saved;
	return came;
}

void gs_guess_forked(void)
{
	// Another thread of the parent may have held it. The words are the parent's.
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(ended, 0, sizeof(ended));
	under_way = 0;
	for (unsigned gpu = 0; gpu < GS_MAX_GPUS; gpu++)
		atomic_store(&given_back[gpu], 0);
	atomic_store(&next_ring, 0);
	atomic_store(&given_up, 0);
}
