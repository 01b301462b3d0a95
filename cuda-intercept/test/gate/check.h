// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#ifndef GS_TEST_CHECK_H
#define GS_TEST_CHECK_H

#include <stdio.h>

extern int check_failed;

// CHECK counts a failure and goes on, so that one run tells all.
#define CHECK(cond, ...)                                                          \
	do {                                                                      \
		if (!(cond)) {                                                    \
			check_failed++;                                           \
			printf("FAIL %s:%d: %s: ", __FILE__, __LINE__, #cond);    \
			printf(__VA_ARGS__);                                      \
			printf("\n");                                             \
		}                                                                 \
	} while (0)

#endif
