// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * image.c: what kernels need, read from their image: PTX says their static
 * shared memory and largest block; a cubin (an ELF file of machine 190, in the
 * form that NVIDIA's nvrtc writes for 7.5 to 12.0) says their registers and
 * stack as well. In other images functions are taken to need 32 registers.
 */
#include <ctype.h>
#include <elf.h>
#include <stdio.h>

#include "sg.h"

#define MACHINE_CUDA 190
#define MOST_SECTIONS 65280u

/* Attributes in .nv.info sections: a format, the attribute, and a value of 16
 * bits, or with format SIZED so many bytes behind it. */
enum { SIZED = 4, MAX_THREADS = 0x05, REQUIRED_THREADS = 0x10, FRAME_SIZE = 0x11, REGISTER_COUNT = 0x2f,
       PARAM = 0x17, PARAM_V2 = 0x45 };

struct image {
    const char *base;
    uint64_t size;
    Elf64_Shdr *section; /* a copy: newer tools write the table at any address */
    unsigned n;
    const char *names;
    uint64_t names_size;
    unsigned sm; /* 90 for capability 9.0 */
};

static bool inside(const struct image *i, uint64_t at, uint64_t n)
{
    return at <= i->size && n <= i->size - at;
}

static const char *name_of(const struct image *i, const Elf64_Shdr *s)
{
    if (s->sh_name >= i->names_size || !memchr(i->names + s->sh_name, 0, i->names_size - s->sh_name))
        return "";
    return i->names + s->sh_name;
}

static bool open_image(struct image *i, const void *image)
{
    const Elf64_Shdr *names;
    Elf64_Ehdr e;

    memcpy(&e, image, EI_NIDENT);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    memcpy(&e, image, sizeof(e));
    if (e.e_machine != MACHINE_CUDA || e.e_shentsize != sizeof(Elf64_Shdr) || !e.e_shnum || e.e_shnum > MOST_SECTIONS ||
        e.e_shstrndx >= e.e_shnum || e.e_shoff > UINT32_MAX)
        return false;
    /* An image comes without its size: its table of sections lies behind them. */
    i->base = image;
    i->size = e.e_shoff + (uint64_t)e.e_shnum * sizeof(Elf64_Shdr);
    i->n = e.e_shnum;
    i->sm = e.e_ident[EI_ABIVERSION] >= 8 ? e.e_flags >> 8 & 0xff : e.e_flags & 0xff;
    i->section = malloc(i->n * sizeof(*i->section));
    if (!i->section)
        return false;
    memcpy(i->section, i->base + e.e_shoff, i->n * sizeof(*i->section));
    names = &i->section[e.e_shstrndx];
    if (!inside(i, names->sh_offset, names->sh_size)) {
        free(i->section);
        return false;
    }
    i->names = i->base + names->sh_offset;
    i->names_size = names->sh_size;
    return true;
}

static uint32_t word(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Reads one .nv.info section: the image's own, of which only what is said of
 * symbol counts, or the one of the function. */
static void read_info(const struct image *i, const Elf64_Shdr *s, uint32_t symbol, bool own, CUfunction fn)
{
    struct sg_function_facts *f = &fn->facts;
    const char *p = i->base + s->sh_offset;
    uint64_t left = s->sh_size;

    if (s->sh_type == SHT_NOBITS || !inside(i, s->sh_offset, s->sh_size))
        return;
    fn->params_read |= !own;
    while (left >= 4) {
        unsigned attribute = (unsigned char)p[1], n = 0;

        if (p[0] == SIZED)
            n = (unsigned char)p[2] | (unsigned)(unsigned char)p[3] << 8;
        p += 4;
        left -= 4;
        if (n > left)
            return;
        if (own && attribute == REGISTER_COUNT && n >= 8 && word(p) == symbol && word(p + 4) <= 255)
            f->registers = (int)word(p + 4);
        if (own && attribute == FRAME_SIZE && n >= 8 && word(p) == symbol && word(p + 4) <= 1 << 20)
            f->local = (int)word(p + 4);
        if (!own && (attribute == MAX_THREADS || attribute == REQUIRED_THREADS) && n >= 12) {
            uint32_t x = word(p), y = word(p + 4), z = word(p + 8);

            if (x && y && z && x <= 1024 && y <= 1024 && z <= 64 && x * y * z <= 1024)
                f->max_threads = (int)(x * y * z);
        }
        /* Index; position and offset, 16 bits each; the size above 18 others. */
        if (!own && attribute == PARAM && n >= 12 &&
            !sg_param_set(fn, word(p + 4) & 0xffff, word(p + 4) >> 16, word(p + 8) >> 18))
            fn->params_read = false;
        if (!own && attribute == PARAM_V2)
            fn->params_read = false; /* another form, which is not known here */
        p += n;
        left -= n;
    }
}

/* What the section of code says of its function. */
static void read_kernel(const struct image *i, const char *name, const Elf64_Shdr *code, CUfunction fn)
{
    struct sg_function_facts *f = &fn->facts;
    unsigned before = code->sh_info >> 24;

    if (before)
        f->registers = (int)before; /* the older form */
    for (unsigned k = 0; k < i->n; k++) {
        const Elf64_Shdr *s = &i->section[k];
        const char *n = name_of(i, s);

        if (!strcmp(n, ".nv.info")) {
            read_info(i, s, code->sh_info & 0xffffff, true, fn);
        } else if (!strncmp(n, ".nv.info.", 9) && !strcmp(n + 9, name)) {
            read_info(i, s, 0, false, fn);
        } else if (!strncmp(n, ".nv.shared.", 11) && !strcmp(n + 11, name) && s->sh_size <= 1 << 20) {
            f->shared = (int)s->sh_size;
            /* From 9.0 on what the system reserves is counted in. */
            if (i->sm >= 90 && f->shared >= 1024)
                f->shared -= 1024;
        }
    }
}

#define MOST_KERNELS 4096u /* an image of more is only loaded, not read */

/* Makes the functions of a cubin. The lock is held. */
CUresult sg_image_read(CUmodule m, const void *image)
{
    struct image i;
    unsigned kernels = 0;
    CUresult r = CUDA_SUCCESS;

    if (!open_image(&i, image))
        return r;
    for (unsigned k = 0; k < i.n; k++)
        kernels += !strncmp(name_of(&i, &i.section[k]), ".text.", 6);
    for (unsigned k = 0; kernels <= MOST_KERNELS && k < i.n && r == CUDA_SUCCESS; k++) {
        const char *name = name_of(&i, &i.section[k]);
        CUfunction f;

        if (strncmp(name, ".text.", 6) || !name[6])
            continue;
        f = sg_module_function(m, name + 6, strlen(name + 6));
        if (f)
            read_kernel(&i, name + 6, &i.section[k], f);
        else
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(i.section);
    return r;
}

/* ---- PTX ------------------------------------------------------------------------- */

static bool part_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* The product of up to three numbers behind a directive; 0 if there is none. */
static int product(const char *p)
{
    unsigned v[3] = {0, 1, 1};
    int n = sscanf(p, " %u , %u , %u", &v[0], &v[1], &v[2]);

    return n < 1 || v[0] > 1024 || v[1] > 1024 || v[2] > 1024 || v[0] * v[1] > 1024 || v[0] * v[1] * v[2] > 1024
               ? 0
               : (int)(v[0] * v[1] * v[2]);
}

/* ".shared .align 4 .b8 name[4096]": bytes, 0 for what is sized at the launch. */
static unsigned long shared_bytes(const char *p, const char *end)
{
    static const struct {
        const char *type;
        unsigned bytes;
    } types[] = {{".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2}, {".s16", 2}, {".f16", 2}, {".b32", 4},
                 {".u32", 4}, {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}};
    unsigned each = 0;
    unsigned long n = 1;

    for (; p < end && *p != ';' && *p != '['; p++) {
        for (unsigned k = 0; k < SG_LEN(types) && *p == '.'; k++) {
            size_t len = strlen(types[k].type);

            if (!strncmp(p, types[k].type, len) && !part_of_name(p[len]))
                each = types[k].bytes;
        }
    }
    for (; p < end && *p == '['; p++) {
        n *= strtoul(p + 1, (char **)(uintptr_t)&p, 10);
        if (n > 1 << 20)
            return 0;
        while (p < end && *p != ']')
            p++;
    }
    return n * each;
}

/* Finds what PTX says of a kernel between ".entry NAME" and the end of its body. */
void sg_text_facts(const char *text, CUfunction f)
{
    const char *p = text, *body, *end;
    size_t len = strlen(f->name);
    unsigned long shared = 0;
    int depth = 0, registers = 0;

    for (;; p += 6) {
        const char *q;

        p = strstr(p, ".entry");
        if (!p)
            return;
        for (q = p + 6; isspace((unsigned char)*q); q++)
            ;
        if (!strncmp(q, f->name, len) && !part_of_name(q[len]))
            break;
    }
    body = strchr(p, '{');
    if (!body)
        return;
    sg_params_of_text(p, body, f);
    for (end = body; *end; end++) {
        depth += *end == '{' ? 1 : *end == '}' ? -1 : 0;
        if (!depth)
            break;
    }
    for (; p < end && (p = strchr(p, '.')) && p < end; p++) {
        if (p < body && (!strncmp(p, ".maxntid", 8) || !strncmp(p, ".reqntid", 8))) {
            f->facts.max_threads = product(p + 8);
        } else if (p < body && !strncmp(p, ".maxnreg", 8)) {
            registers = atoi(p + 8);
        } else if (p > body && !strncmp(p, ".shared", 7) && isspace((unsigned char)p[7])) {
            shared += shared_bytes(p + 7, end);
        }
    }
    if (registers > 0 && registers < f->facts.registers)
        f->facts.registers = registers;
    if (shared <= 1 << 20)
        f->facts.shared = (int)shared;
}
