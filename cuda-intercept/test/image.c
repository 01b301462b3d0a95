// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What images say of their size: a cubin made here, and what is none.

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code.h"

static int failures;

#define CHECK(have, want)                                                                                       \
	do {                                                                                                    \
		unsigned long long have_ = (have), want_ = (want);                                              \
		if (have_ != want_) {                                                                           \
			failures++;                                                                             \
			printf("%s:%d: %s is %llu, want %llu\n", __FILE__, __LINE__, #have, have_, want_); \
		}                                                                                               \
	} while (0)

// A cubin with names, some code, a variable without content and shared memory, which is
// not the device's.
static struct {
	Elf64_Ehdr head;
	char names[64];
	char code[4096];
	Elf64_Shdr sections[5];
} cubin;

static const char names[] = "\0.shstrtab\0.text.k\0.nv.global\0.nv.shared.k";

static void make(void)
{
	memset(&cubin, 0, sizeof(cubin));
	memcpy(cubin.head.e_ident, ELFMAG, SELFMAG);
	cubin.head.e_ident[EI_CLASS] = ELFCLASS64;
	cubin.head.e_machine = 190;
	cubin.head.e_shoff = (char *)cubin.sections - (char *)&cubin;
	cubin.head.e_shentsize = sizeof(Elf64_Shdr);
	cubin.head.e_shnum = 5;
	cubin.head.e_shstrndx = 1;
	memcpy(cubin.names, names, sizeof(names));
	cubin.sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = cubin.names - (char *)&cubin,
					 .sh_size = sizeof(names)};
	cubin.sections[2] = (Elf64_Shdr){.sh_name = 11, .sh_type = SHT_PROGBITS, .sh_size = sizeof(cubin.code)};
	cubin.sections[3] = (Elf64_Shdr){.sh_name = 19, .sh_type = SHT_NOBITS, .sh_size = 100000};
	cubin.sections[4] = (Elf64_Shdr){.sh_name = 30, .sh_type = SHT_NOBITS, .sh_size = 7777};
}

static void images(void)
{
	static const unsigned int fat[4] = {0xba55ed50, 0x100001, 1000, 0};

	make();
	CHECK(gs_code_image(&cubin), sizeof(cubin) + 100000);
	cubin.sections[1].sh_size = 1ULL << 60; // names that lie outside
	CHECK(gs_code_image(&cubin), sizeof(cubin));
	make();
	cubin.head.e_shstrndx = 99;
	CHECK(gs_code_image(&cubin), sizeof(cubin));
	cubin.head.e_shoff = 1ULL << 40;
	CHECK(gs_code_image(&cubin), 0);
	make();
	cubin.head.e_machine = 62; // a program of the host's
	CHECK(gs_code_image(&cubin), 0);
	CHECK(gs_code_image(".version 6.0"), 0);
	CHECK(gs_code_image("\x7f"), 0);
	CHECK(gs_code_image(fat), 0);
	CHECK(gs_code_image(NULL), 0);
}

static void files(void)
{
	char path[] = "/tmp/image-XXXXXX";
	int fd = mkstemp(path);

	make();
	if (write(fd, &cubin, sizeof(cubin)) != sizeof(cubin))
		failures++;
	CHECK(gs_code_file(path), sizeof(cubin));
	if (ftruncate(fd, 10) != 0)
		failures++;
	CHECK(gs_code_file(path), 0);
	CHECK(gs_code_file("/tmp"), 0);
	CHECK(gs_code_file("/tmp/none/such"), 0);
	CHECK(gs_code_file(NULL), 0);
	unlink(path);
	close(fd);
}

int main(void)
{
	images();
	files();
	return failures ? 1 : 0;
}
