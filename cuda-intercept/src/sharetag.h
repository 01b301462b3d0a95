// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Tags: a lock of one byte, at an offset that nobody else uses, on the open file
// description behind an exported descriptor. It goes with the descriptor into other
// processes, also while a message carries it, and ends with the last copy.

#ifndef GS_SHARETAG_H
#define GS_SHARETAG_H

#include <stdbool.h>
#include <stdint.h>

// gs_sharetag_put puts a tag on a descriptor.
bool gs_sharetag_put(int fd, uint64_t tag);

// gs_sharetag_read returns how many offsets of locks on a descriptor it has set, at
// most that many; negative if the kernel does not tell.
int gs_sharetag_read(int fd, uint64_t *ret_offsets, int most);

// gs_sharetag_file names the file behind a descriptor with that tag as /proc/locks
// does: gs_share.file. 0 if the kernel does not tell.
uint64_t gs_sharetag_file(int fd, uint64_t tag);

// One question to gs_sharetag_alive.
struct gs_sharetag {
	uint64_t tag;
	uint64_t file[2]; // both 0: any
	bool alive;	  // the answer; only ever set
};

// gs_sharetag_alive looks which tags stand anywhere on this machine. It returns false
// if the kernel does not tell.
bool gs_sharetag_alive(struct gs_sharetag *tags, int n);

#endif
