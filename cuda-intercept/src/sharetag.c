// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "sharetag.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

static bool set(int fd, uint64_t tag, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)tag, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

bool gs_sharetag_put(int fd, uint64_t tag)
{
	// Several descriptors of one device file have the same tag: a lock for reading, if
	// the descriptor may read.
	return set(fd, tag, F_RDLCK) || set(fd, tag, F_WRLCK);
}

// ---- reading what the kernel says of locks ----------------------------------------

// One line: "[lock:\t]1: OFDLCK ADVISORY  WRITE -1 00:0f:123 456 456".
struct line {
	uint64_t file;
	uint64_t start;
	bool tag; // a lock of a description, on one byte
};

static const char *word(const char *p, const char *end, const char **ret_end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	*ret_end = p;
	while (*ret_end < end && **ret_end != ' ' && **ret_end != '\t')
		++*ret_end;
	return p;
}

// number reads digits up to end or stop, which it skips.
static uint64_t number(const char **p, const char *end, unsigned base, char stop)
{
	uint64_t n = 0;

	while (*p < end && **p != stop) {
		char c = **p;
		unsigned digit = c >= 'a' ? (unsigned)(c - 'a') + 10 : (unsigned)(c - '0');

		n = n * base + digit;
		++*p;
	}
	if (*p < end)
		++*p;
	return n;
}

static void parse(const char *p, const char *end, struct line *ret)
{
	const char *e, *w[9];
	int n = 0;
	uint64_t major, minor;

	*ret = (struct line){0};
	while (n < 9) {
		w[n] = word(p, end, &e);
		if (w[n] == e)
			break;
		p = e;
		if (n == 0 && e - w[0] == 5 && !memcmp(w[0], "lock:", 5))
			continue; // as a descriptor's line begins
		n++;
	}
	// 1: OFDLCK ADVISORY WRITE -1 file start end
	if (n < 8 || end - w[1] < 6 || memcmp(w[1], "OFDLCK", 6))
		return;
	p = w[5];
	e = w[6];
	major = number(&p, e, 16, ':');
	minor = number(&p, e, 16, ':');
	ret->file = (major << 52) + (minor << 40) + number(&p, e, 10, ' ');
	p = w[6];
	ret->start = number(&p, end, 10, ' ');
	p = w[7];
	ret->tag = number(&p, end, 10, ' ') == ret->start; // "EOF" is another number
}

typedef bool each_line(const struct line *l, void *arg);

// read_lines gives each line of a file to fn until that returns false.
static bool read_lines(const char *path, each_line *fn, void *arg)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char buf[4096];
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	while ((n = read(fd, buf + have, sizeof(buf) - have)) > 0 || (n < 0 && errno == EINTR)) {
		char *start = buf, *end, *nl;
		struct line l;

		if (n < 0)
			continue;
		end = buf + have + n;
		while ((nl = memchr(start, '\n', (size_t)(end - start)))) {
			parse(start, nl, &l);
			if (l.tag && !fn(&l, arg)) {
				close(fd);
				return true;
			}
			start = nl + 1;
		}
		have = (size_t)(end - start);
		if (have == sizeof(buf))
			have = 0; // no line of ours is that long
		memmove(buf, start, have);
	}
	close(fd);
	return n == 0;
}

// info is the path of what the kernel says of a descriptor of this thread, or of this
// process where threads have no place of their own.
static void info(char *to, const char *self, int fd)
{
	char digits[12];
	int n = 0;

	to = stpcpy(to, self);
	do {
		digits[n++] = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd);
	while (n)
		*to++ = digits[--n];
	*to = 0;
}

static bool read_descriptor(int fd, each_line *fn, void *arg)
{
	char path[64];

	if (fd < 0)
		return false;
	info(path, "/proc/thread-self/fdinfo/", fd);
	if (read_lines(path, fn, arg))
		return true;
	info(path, "/proc/self/fdinfo/", fd);
	return read_lines(path, fn, arg);
}

struct offsets {
	uint64_t *list;
	int n, most;
};

static bool add_offset(const struct line *l, void *arg)
{
	struct offsets *o = arg;

	o->list[o->n++] = l->start;
	return o->n < o->most;
}

int gs_sharetag_read(int fd, uint64_t *ret_offsets, int most)
{
	struct offsets o = {.list = ret_offsets, .most = most};

	return read_descriptor(fd, add_offset, &o) ? o.n : -1;
}

static bool find_file(const struct line *l, void *arg)
{
	struct line *want = arg;

	if (l->start != want->start)
		return true;
	want->file = l->file;
	return false;
}

uint64_t gs_sharetag_file(int fd, uint64_t tag)
{
	struct line want = {.start = tag};

	return read_descriptor(fd, find_file, &want) ? want.file : 0;
}

struct question {
	struct gs_sharetag *tags;
	int n;
};

static bool answer(const struct line *l, void *arg)
{
	struct question *q = arg;

	for (int i = 0; i < q->n; i++) {
		struct gs_sharetag *t = &q->tags[i];

		if (t->tag == l->start &&
		    ((!t->file[0] && !t->file[1]) || t->file[0] == l->file || t->file[1] == l->file))
			t->alive = true;
	}
	return true;
}

bool gs_sharetag_alive(struct gs_sharetag *tags, int n)
{
	struct question q = {.tags = tags, .n = n};

	// Twice: the kernel gives the list in pieces, and where a lock goes between two of
	// them it leaves out the next.
	return read_lines("/proc/locks", answer, &q) && read_lines("/proc/locks", answer, &q);
}
