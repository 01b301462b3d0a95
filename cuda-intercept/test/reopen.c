// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Opens and closes the driver's libraries argv[1] times, with a use of each in the
// middle: mappings, descriptors, threads and memory do not grow.

#include <dirent.h>
#include <malloc.h>

#include "harness.h"

static int entries(const char *directory)
{
	DIR *d = opendir(directory);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0, c;

	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void once(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	int n;

	if (!cuda || !nvml) {
		printf("%s\n", dlerror());
		exit(2);
	}
	EXPECT(((__typeof__(&cuInit))dlsym(cuda, "cuInit"))(0), 0);
	EXPECT(((__typeof__(&cuDriverGetVersion))dlsym(cuda, "cuDriverGetVersion"))(&n), 0);
	EXPECT(((int (*)(void))dlsym(nvml, "nvmlInit_v2"))(), 0);
	EXPECT(((int (*)(void))dlsym(nvml, "nvmlShutdown"))(), 0);
	dlclose(nvml);
	dlclose(cuda);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 0, maps, files, tasks;
	struct mallinfo2 heap;

	for (int i = 0; i < 10; i++)
		once();
	maps = mappings();
	files = entries("/proc/self/fd");
	tasks = entries("/proc/self/task");
	heap = mallinfo2();
	for (int i = 0; i < times; i++)
		once();
	CHECK(mappings() <= maps, "%d mappings, then %d", maps, mappings());
	CHECK(entries("/proc/self/fd") == files, "%d descriptors, then %d", files, entries("/proc/self/fd"));
	CHECK(entries("/proc/self/task") == tasks, "%d threads, then %d", tasks, entries("/proc/self/task"));
	CHECK(mallinfo2().uordblks <= heap.uordblks + 4096, "%zu bytes of heap, then %zu", heap.uordblks, mallinfo2().uordblks);
	return harness_failures || !times;
}
