// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

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

// ---- names that the real library lacks --------------------------------------

// symbols counts the entries of a symbol table by its GNU hash table: the last
// chain that a bucket starts ends with the last symbol.
static size_t symbols(const uint32_t *hash)
{
	uint32_t buckets = hash[0], first = hash[1], last = 0;
	const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(hash + 4) + hash[2]);
	const uint32_t *chain = bucket + buckets;

	for (uint32_t i = 0; i < buckets; i++)
		last = bucket[i] > last ? bucket[i] : last;
	if (last < first)
		return 0;
	while (!(chain[last - first] & 1))
		last++;
	return last + 1;
}

struct table {
	uintptr_t base;
	ElfW(Sym) *first;
	size_t n;
	bool plain; // readable memory without code
};

// find_table is a dl_iterate_phdr callback that stops at our own library.
static int find_table(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct table *t = arg;
	const uint32_t *hash = NULL;
	uintptr_t at;
	bool ours = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		ours |= info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
			info->dlpi_addr + info->dlpi_phdr[i].p_vaddr == (uintptr_t)_DYNAMIC;
	if (!ours)
		return 0;
	t->base = info->dlpi_addr;
	for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
		// The dynamic linker has made these absolute, but need not.
		at = d->d_un.d_ptr < t->base ? t->base + d->d_un.d_ptr : d->d_un.d_ptr;
		if (d->d_tag == DT_SYMTAB)
			t->first = (ElfW(Sym) *)at;
		if (d->d_tag == DT_GNU_HASH)
			hash = (const uint32_t *)at;
	}
	if (!hash || !t->first)
		return 1;
	t->n = symbols(hash);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t low = t->base + p->p_vaddr;

		if (p->p_type == PT_LOAD && (uintptr_t)t->first >= low && (uintptr_t)(t->first + t->n) <= low + p->p_memsz)
			t->plain = p->p_flags == PF_R;
	}
	return 1;
}

static bool is_hidden(const struct table *t, const ElfW(Sym) *s, void *const *wrappers, void *const *real, int n)
{
	if (s->st_shndx == SHN_UNDEF)
		return false;
	for (int i = 0; i < n; i++)
		if (!real[i] && (uintptr_t)wrappers[i] == t->base + s->st_value)
			return true;
	return false;
}

void gs_library_hide(void *const *wrappers, void *const *real, int n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), low, high;
	struct table t = {0};
	int lacking = 0, saved = errno;

	for (int i = 0; i < n; i++)
		lacking += !real[i];
	// Without a real library our functions must stand, to refuse.
	if (!lacking || lacking == n)
		return;
	dl_iterate_phdr(find_table, &t);
	low = (uintptr_t)t.first & ~(page - 1);
	high = ((uintptr_t)(t.first + t.n) + page - 1) & ~(page - 1);
	if (!t.plain || mprotect((void *)low, high - low, PROT_READ | PROT_WRITE) < 0) {
		errno = saved;
		return;
	}
	for (size_t i = 0; i < t.n; i++)
		if (is_hidden(&t, &t.first[i], wrappers, real, n)) {
			t.first[i].st_value = 0;
			t.first[i].st_shndx = SHN_UNDEF;
		}
	mprotect((void *)low, high - low, PROT_READ);
	errno = saved;
}
