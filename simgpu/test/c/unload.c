// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * unload.c: loads the libraries, uses them, and closes them, again and again:
 *   unload LIBCUDA LIBNVIDIA-ML
 * What a round takes (a descriptor, a mapping, a context) it must find again.
 */
#include <dirent.h>
#include <dlfcn.h>

#include "t.h"

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    TRUE(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void round_of(char **argv)
{
    void *cuda = dlopen(argv[1], RTLD_NOW), *nvml = dlopen(argv[2], RTLD_NOW);
    CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*release)(CUdevice);
    int (*nvml_init)(void), (*nvml_end)(void);
    CUcontext c;

    TRUE(cuda && nvml);
    *(void **)&init = dlsym(cuda, "cuInit");
    *(void **)&retain = dlsym(cuda, "cuDevicePrimaryCtxRetain");
    *(void **)&release = dlsym(cuda, "cuDevicePrimaryCtxRelease_v2");
    *(void **)&nvml_init = dlsym(nvml, "nvmlInit_v2");
    *(void **)&nvml_end = dlsym(nvml, "nvmlShutdown");
    OK(init(0));
    OK(retain(&c, 0));
    OK(release(0));
    OK(nvml_init());
    OK(nvml_end());
    dlclose(cuda);
    dlclose(nvml);
}

int main(int argc, char **argv)
{
    int before;

    TRUE(argc == 3);
    round_of(argv);
    before = descriptors();
    for (int i = 0; i < 20; i++)
        round_of(argv);
    WANT(descriptors(), before);
    return 0;
}
