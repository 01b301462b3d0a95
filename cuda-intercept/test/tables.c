// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// cuGetExportTable passes through, and what it hands out that is not known is
// counted, before cuInit and after. The driver is a stand-in that has the first
// two tables.

#include "harness.h"

static uint64_t counted(void)
{
	return ((const volatile struct gs_ledger_header *)(const void *)harness_ledger())->export_tables;
}

int main(void)
{
	static const CUuuid runtime = {{0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4, (char)0xe7, 0x4a,
				       (char)0x89, (char)0x87, (char)0xd9, 0x39, 0x12, (char)0xfd, (char)0x9d, (char)0xf9}};
	static const CUuuid unknown = {{1, 2, 3}}, none = {{9}};
	__typeof__(&cuGetExportTable) table = CU(cuGetExportTable);
	const void *t = &unknown;

	EXPECT(table(&t, &runtime), 0);
	CHECK(t && t != &unknown, "the driver's table: %p", t);
	EXPECT(table(&t, &unknown), 0);
	CHECK(t != &unknown, "the driver's other table: %p", t);
	t = &none;
	EXPECT(table(&t, &none), CUDA_ERROR_NOT_FOUND);
	CHECK(t == &none, "the output of a failed look-up is set: %p", t);
	CHECK(counted() == 0, "counted %llu before there is a slot", (unsigned long long)counted());
	EXPECT(CU(cuInit)(0), 0);
	CHECK(counted() == 1, "counted %llu at cuInit", (unsigned long long)counted());
	EXPECT(table(&t, &runtime), 0);
	EXPECT(table(&t, &none), CUDA_ERROR_NOT_FOUND);
	CHECK(counted() == 1, "counted %llu", (unsigned long long)counted());
	EXPECT(table(&t, &unknown), 0);
	CHECK(counted() == 2, "counted %llu", (unsigned long long)counted());
	return harness_failures > 0;
}
