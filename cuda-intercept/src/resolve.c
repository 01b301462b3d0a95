// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include <dlfcn.h>
#include <link.h>

#include "resolve.h"

void *gs_library_open(const char *path)
{
	return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

void *gs_library_symbol(void *library, const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

int gs_library_text(const void *address, uintptr_t *ret_low, uintptr_t *ret_high)
{
	Dl_info info;
	const ElfW(Ehdr) *elf;
	const ElfW(Phdr) *segment;
	uintptr_t base = 0, low = UINTPTR_MAX, high = 0;

	if (!address || !dladdr(address, &info) || !info.dli_fbase)
		return -1;
	// The first page of a library is its ELF header and segment table.
	elf = info.dli_fbase;
	segment = (const void *)((const char *)info.dli_fbase + elf->e_phoff);
	for (int i = 0; i < elf->e_phnum; i++)
		if (segment[i].p_type == PT_LOAD && segment[i].p_offset == 0)
			base = (uintptr_t)info.dli_fbase - segment[i].p_vaddr;
	for (int i = 0; i < elf->e_phnum; i++) {
		uintptr_t start = base + segment[i].p_vaddr;

		if (segment[i].p_type != PT_LOAD || !(segment[i].p_flags & PF_X))
			continue;
		low = start < low ? start : low;
		high = start + segment[i].p_memsz > high ? start + segment[i].p_memsz : high;
	}
	if (low >= high)
		return -1;
	*ret_low = low;
	*ret_high = high;
	return 0;
}
