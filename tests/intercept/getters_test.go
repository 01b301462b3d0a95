// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Of everything that NVML tells of a card, only what speaks of memory, processes and
// use differs with and without us.
func TestSMI06OnlyMemoryProcessesAndUse(t *testing.T) {
	n := simulateGPUs(t, 1, "--profile", "h100", "--driver", "newest")
	other := n.container(2048 * mib)
	other.start(true, compile(t, "tenant.c"), "init", fmt.Sprintf("alloc=%d", 1024*mib), "hold")
	source, names := getters(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "getters")
	args := []string{"-xc", "-std=gnu17", "-D_GNU_SOURCE", "-I", filepath.Join(root(t), "cuda-intercept/include"), "-o", program, "-", "-ldl"}
	if sanitized() {
		args = append(args, "-fsanitize="+sanitizer())
	}
	cmd := exec.Command("gcc", args...)
	cmd.Stdin = strings.NewReader(source)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, msg)
	}
	ask := func(bare bool) map[string]string {
		c := n.container(1024 * mib)
		if bare {
			c.env = append(c.env, "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
		}
		said := map[string]string{}
		for _, line := range linesOf(c.ask(nil, program)) {
			what, answer, _ := strings.Cut(line, " ")
			said[what] = answer
		}
		return said
	}
	// What grows by itself does so from the second to the third, too.
	bare, ours, again := ask(true), ask(false), ask(true)
	about := regexp.MustCompile(`Memory|BAR1|Attributes|ConfComputeMem|Process|Accounting|EncoderSt|EncoderSe|FBC|Utilization|Samples|Pstates|Gpm`)
	same, moving, differ, success := 0, map[string]bool{}, []string{}, 0
	for what, answer := range bare {
		if strings.HasPrefix(answer, "0 ") {
			success++
		}
		switch {
		case ours[what] == answer:
			same++
		case again[what] != answer:
			name, _, _ := strings.Cut(what, ",")
			moving[name] = true // by itself: times, temperatures
		default:
			differ = append(differ, what)
			if !about.MatchString(what) {
				t.Errorf("%s: bare %.100s, through us %.100s", what, answer, ours[what])
			}
		}
	}
	slices.Sort(differ)
	t.Logf("%d getters, %d questions, %d answered; %d the same, %d differ: %v; by themselves: %v", len(names), len(bare), success, same, len(differ), differ, slices.Sorted(maps.Keys(moving)))
	if len(names) < 120 || success < 120 || len(moving) > 12 || len(ours) != len(bare) {
		t.Errorf("%d getters, %d answered, %d move by themselves, %d and %d answers", len(names), success, len(moving), len(bare), len(ours))
	}
	for _, what := range []string{"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetBAR1MemoryInfo"} {
		if !slices.Contains(differ, what) {
			t.Errorf("%s does not differ", what)
		}
	}
}

// getters writes a program that asks each getter of NVML that needs no more than a
// device and numbers, and prints the answers and all that was written. Those that we
// refuse, and those that hand out handles, are left out.
func getters(t *testing.T) (source string, names []string) {
	t.Helper()
	header, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/include/nvml_abi.h"))
	if err != nil {
		t.Fatal(err)
	}
	refused := tabled(t, "nvml.def", "REFUSE")
	opaque := map[string]bool{}
	for _, m := range regexp.MustCompile(`GS_NVML_OPAQUE\((\w+)\);`).FindAllStringSubmatch(string(header), -1) {
		opaque[m[1]] = true
	}
	versioned := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?s)typedef struct \w+ \{\s*unsigned int version\b[^}]*\} (\w+);`).FindAllStringSubmatch(string(header), -1) {
		versioned[m[1]] = true
	}
	var b strings.Builder
	b.WriteString(`#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "nvml_abi.h"
#define SIZE 65536
#define BUFFERS 6
static _Alignas(64) unsigned char buffer[BUFFERS][SIZE];
static void clear(void) { memset(buffer, 0, sizeof(buffer)); }
static void show(const char *name, int arg, int r)
{
	if (arg < 0) printf("%s %d ", name, r); else printf("%s,%d %d ", name, arg, r);
	for (int i = 0; i < BUFFERS; i++) {
		int n = SIZE;
		while (n && !buffer[i][n - 1]) n--;
		for (int k = 0; k < n; k++) printf("%02x", buffer[i][k]);
		printf(".");
	}
	printf("\n");
}
int main(void)
{
	void *l = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlDevice_t dev;
	((__typeof__(&nvmlInit_v2))dlsym(l, "nvmlInit_v2"))();
	((__typeof__(&nvmlDeviceGetHandleByIndex_v2))dlsym(l, "nvmlDeviceGetHandleByIndex_v2"))(0, &dev);
`)
	for _, m := range regexp.MustCompile(`(?s)nvmlReturn_t (nvml\w+)\(([^;]*)\);`).FindAllStringSubmatch(string(header), -1) {
		name := m[1]
		if !regexp.MustCompile(`^nvml(Device|System|Gpm)(Get|Query|Is)`).MatchString(name) || slices.Contains(refused, name) || regexp.MustCompile(`Handle|ExportTable`).MatchString(name) {
			continue
		}
		var args, prepare []string
		buffers, loop, usable := 0, false, true
		for _, p := range strings.Split(m[2], ",") {
			p = strings.Join(strings.Fields(p), " ")
			typ := strings.TrimSpace(regexp.MustCompile(`\b(\w+)$`).ReplaceAllStringFunc(p, func(w string) string {
				if regexp.MustCompile(`_t$|^(int|long|char|double|void)$`).MatchString(w) {
					return w
				}
				return "" // the parameter's name
			}))
			switch {
			case p == "void":
			case strings.HasPrefix(p, "const"), strings.HasSuffix(typ, "**"), regexp.MustCompile(`^nvml(Unit|GpuInstance|ComputeInstance|EventSet|GpmSample|VgpuInstance|VgpuTypeId)_t$`).MatchString(typ):
				usable = false
			case typ == "nvmlDevice_t":
				args = append(args, "dev")
			case strings.HasSuffix(typ, "*"):
				of := strings.TrimSpace(strings.TrimSuffix(typ, "*"))
				args = append(args, fmt.Sprintf("(void *)buffer[%d]", buffers))
				switch {
				case of == "unsigned int":
					prepare = append(prepare, fmt.Sprintf("*(unsigned int *)buffer[%d] = 8;", buffers))
				case versioned[of] && !opaque[of]:
					prepare = append(prepare, fmt.Sprintf("*(unsigned int *)buffer[%d] = GS_NVML_STRUCT_VERSION(%s, v);", buffers, of))
				}
				buffers++
			case len(args) > 0 && strings.HasPrefix(args[len(args)-1], "(void") && strings.Contains(m[2], "char *"):
				args = append(args, "1024")
			case !loop:
				loop = true
				args = append(args, "i")
			default:
				args = append(args, "0")
			}
		}
		if !usable || buffers == 0 || buffers > 6 {
			continue
		}
		names = append(names, name)
		most, arg := 0, "-1"
		if loop {
			most, arg = 9, "i"
		}
		fmt.Fprintf(&b, "\t{ __typeof__(&%s) f = (void *)dlsym(l, \"%s\"); for (int i = 0; f && i <= %d; i++) { int r = 25; (void)i;\n"+
			"\t\tfor (unsigned int v = 1; r == 25 && v < 6; v++) { clear(); %s r = (int)f(%s); (void)v; }\n\t\tshow(\"%s\", %s, r); } }\n",
			name, name, most, strings.Join(prepare, " "), strings.Join(args, ", "), name, arg)
	}
	b.WriteString("\treturn 0;\n}\n")
	return b.String(), names
}
