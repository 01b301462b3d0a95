// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What the image of a module says of its size.

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code.h"

#define MACHINE_CUDA 190
// More is no image of code.
#define MOST ((uint64_t)1 << 32)

// sane tells whether a file header is one of GPU code.
static bool sane(const Elf64_Ehdr *h)
{
	return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_machine == MACHINE_CUDA;
}

// variables adds up what variables without content take.
static uint64_t variables(const char *base, uint64_t size, const Elf64_Ehdr *h)
{
	uint64_t bytes = 0;
	Elf64_Shdr names, s;

	if (h->e_shentsize != sizeof(s) || h->e_shstrndx >= h->e_shnum)
		return 0;
	memcpy(&names, base + h->e_shoff + h->e_shstrndx * sizeof(s), sizeof(s));
	if (names.sh_offset > size || names.sh_size > size - names.sh_offset)
		return 0;
	for (unsigned i = 0; i < h->e_shnum; i++) {
		static const char global[] = ".nv.global";

		memcpy(&s, base + h->e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type == SHT_NOBITS && s.sh_size <= MOST && s.sh_name < names.sh_size &&
		    names.sh_size - s.sh_name > sizeof(global) &&
		    !strncmp(base + names.sh_offset + s.sh_name, global, sizeof(global) - 1))
			bytes += s.sh_size;
	}
	return bytes;
}

uint64_t gs_code_image(const void *image)
{
	const char *base = image;
	Elf64_Ehdr h;
	uint64_t n;

	// An image of another kind may be shorter than this header.
	if (!image || base[0] != ELFMAG0 || base[1] != ELFMAG1 || base[2] != ELFMAG2 || base[3] != ELFMAG3)
		return 0;
	memcpy(&h, base, sizeof(h));
	// It comes without its size: its table of sections ends it.
	n = (uint64_t)h.e_shentsize * h.e_shnum;
	if (!sane(&h) || h.e_shoff >= MOST)
		return 0;
	n += h.e_shoff;
	return n + variables(base, n, &h);
}

uint64_t gs_code_file(const char *path)
{
	int saved = errno, fd;
	uint64_t bytes = 0;
	struct stat st;
	Elf64_Ehdr h;

	if (!path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0) {
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && pread(fd, &h, sizeof(h), 0) == sizeof(h) && sane(&h) &&
		    (uint64_t)st.st_size < MOST)
			bytes = (uint64_t)st.st_size;
		close(fd);
	}
	errno = saved;
	return bytes;
}
