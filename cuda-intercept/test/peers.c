// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Prints what the driver says of each pair of GPUs: who can reach whose memory, and how.

#include "harness.h"

int main(void)
{
	int n = 0, v;

	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuDeviceGetCount)(&n), 0);
	printf("%d\n", n);
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++) {
			int (*reach)(int *, int, int) = (int (*)(int *, int, int))harness_symbol("cuDeviceCanAccessPeer");
			int (*how)(int *, int, int, int) = (int (*)(int *, int, int, int))harness_symbol("cuDeviceGetP2PAttribute");
			int code;

			v = -1;
			code = reach(&v, a, b);
			printf("%d %d: %d %d", a, b, code, v);
			for (int attribute = 0; attribute < 7; attribute++) {
				v = -1;
				code = how(&v, attribute, a, b);
				printf(" %d/%d", code, v);
			}
			printf("\n");
		}
	return harness_failures ? 1 : 0;
}
