// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/tests/node"
)

// wholeGPU is what limits may add up to on the node's first GPU, and what `gpushare
// ps` knows of its containers.
func wholeGPU(t *testing.T, n *node.Node) uint64 {
	t.Helper()
	var d v1.Daemon
	askCLI(t, n, &d, "daemon", "-o", "json")
	return d.GPUs[0].MemoryUsableBytes
}

func shownByPS(t *testing.T, n *node.Node) map[string]v1.Container {
	t.Helper()
	var list v1.ContainerList
	askCLI(t, n, &list, "ps", "-o", "json")
	out := make(map[string]v1.Container)
	for _, c := range list.Containers {
		out[c.ID] = c
	}
	return out
}

func askCLI(t *testing.T, n *node.Node, answer any, args ...string) {
	t.Helper()
	r := n.CLI(within(t), args...)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if err := json.Unmarshal([]byte(r.Stdout), answer); err != nil {
		t.Fatalf("gpushare %v: %v", args, err)
	}
}

// N containers of 1ofN start on one GPU and fill it, each to its share; the next
// one is refused.
func TestProfiles(t *testing.T) {
	n := up(t, node.Options{})
	d, whole := docker{n}, wholeGPU(t, n)
	for _, parts := range []uint64{2, 4, 6} {
		t.Run(fmt.Sprint("1of", parts), func(t *testing.T) {
			env := []string{fmt.Sprintf("GPUSHARE_PROFILE=1of%d", parts)}
			var all []container
			for range parts {
				all = append(all, d.background(t, env...))
			}
			for _, c := range all {
				r := c.exec(within(t), "alloc", "--fill")
				if want := fmt.Sprintf("total %d", whole/parts); !strings.Contains(r.Stdout, want) {
					t.Errorf("no %q in %q, %v", want, r.Stdout, r.Err)
				}
				if used := high(t, n, c); used > whole/parts || used+511 < whole/parts {
					t.Errorf("%d bytes used by the simulator's account, %d are the share (SIMULATED)", used, whole/parts)
				}
				one := shownByPS(t, n)[c.id]
				if one.Request.Profile != fmt.Sprint("1of", parts) || one.GPUs[0].ComputeMilli != uint32(1000/parts) || one.GPUs[0].ComputeMaxMilli != uint32(1000/parts) {
					t.Errorf("shown as %+v, %+v", one.Request, one.GPUs[0])
				}
			}
			_, r := d.run(t, env, "echo", "started")
			refused(t, r, fmt.Sprintf("profile 1of%d", parts), "[GS-NO-FIT]")
			for _, c := range all {
				c.remove()
			}
		})
	}
	t.Run("slice-4g", func(t *testing.T) {
		c := d.background(t, "GPUSHARE_PROFILE=slice-4g")
		if r := c.exec(within(t), "alloc", "--fill"); !strings.Contains(r.Stdout, "total 4000000000") {
			t.Errorf("%q, %v", r.Stdout, r.Err)
		}
		if g := shownByPS(t, n)[c.id].GPUs[0]; g.MemoryLimitBytes != 4_000_000_000 || uint64(g.ComputeMilli) != 1000*4_000_000_000/whole {
			t.Errorf("%+v", g)
		}
		// A running container is brought to another profile.
		if r := n.CLI(within(t), "set", c.id, "--gpu-profile", "1of4"); r.Err != nil {
			t.Fatal(r.Err)
		}
		if r := c.exec(within(t), "alloc", "--fill"); !strings.Contains(r.Stdout, fmt.Sprintf("total %d", whole/4)) {
			t.Errorf("after set: %q, %v", r.Stdout, r.Err)
		}
	})
	for name, env := range map[string][]string{
		"GPUSHARE_MEMORY is given too": {"GPUSHARE_PROFILE=1of2", "GPUSHARE_MEMORY=1Gi"},
		"write 1of2, 1of4, 1of6":       {"GPUSHARE_PROFILE=half"},
	} {
		_, r := d.run(t, env, "echo", "started")
		refused(t, r, name)
	}
}

const capsConfig = `
default_share = { profile = "1of4" }
[cap.env]
memory = "25%"
compute = "20%"
compute_max = "50%"
[cap.annotation]
memory = "30Gi"
`

// What is above the cap of its source is refused with both numbers; the default
// share and the administrator's changes are not under it. A file in which the
// default is above the cap is found out before anything runs.
func TestCaps(t *testing.T) {
	n := up(t, node.Options{EnginePath: fakeHook(t), Config: strings.Replace(capsConfig, `compute = "20%"`, `compute = "25%"`, 1)})
	d, whole := docker{n}, wholeGPU(t, n)
	for _, c := range []struct {
		env   []string
		words []string
	}{
		{share("21Gi"), []string{"21 GiB asked", "20 GiB allowed", `cap.env.memory = "25%"`, "administrator", "[GS-CAP]"}},
		{[]string{"GPUSHARE_PROFILE=1of2"}, []string{"40 GiB asked", "[GS-CAP]"}},
		{append(share("1Gi"), "GPUSHARE_COMPUTE=30%"), []string{"30% asked, 25% allowed", "cap.env.compute"}},
		{append(share("1Gi"), "GPUSHARE_COMPUTE_MAX=none"), []string{"100% asked, 50% allowed", "cap.env.compute_max"}},
	} {
		_, r := d.run(t, c.env, "echo", "started")
		refused(t, r, c.words...)
	}
	open := d.background(t, share("1Gi")...)
	if g := shownByPS(t, n)[open.id].GPUs[0]; g.ComputeMaxMilli != 500 {
		t.Errorf("without a ceiling of its own it has %d of 1000, not the cap", g.ComputeMaxMilli)
	}
	c := d.create(t, nil, []string{"--gpus", "all"}, "alloc", "--fill")
	t.Cleanup(c.remove)
	limited(t, n, c, n.Docker(within(t), "start", "-a", c.id), whole/4)
	if r := n.CLI(within(t), "set", open.id, "--gpu-memory", "30Gi", "--gpu-compute-max", "none"); r.Err != nil {
		t.Errorf("the administrator is capped: %v", r.Err)
	}

	// Annotations: docker 20.10 has no channel for them, so without an engine.
	annotated := func(env []string, annotations map[string]string) node.Result {
		t.Helper()
		b, err := n.NewBundle(within(t), fmt.Sprintf("a%d", serial.Add(1)), node.Spec{
			Rootfs: image(n), Args: []string{"alloc", "--fill"}, Env: env, Annotations: annotations})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Delete(within(t)) })
		return b.Run(within(t))
	}
	refused(t, annotated(nil, map[string]string{"gpushare.io/memory": "31Gi"}), "31 GiB asked, 30 GiB allowed", `cap.annotation.memory = "30Gi"`)
	refused(t, annotated(nil, map[string]string{"gpushare.io/profile": "1of2"}), "40 GiB asked, 30 GiB allowed")
	refused(t, annotated([]string{"GPUSHARE_GPU=0"}, map[string]string{"gpushare.io/memory": "21Gi"}), "cap.env.memory")
	if r := annotated(nil, map[string]string{"gpushare.io/memory": "21Gi"}); !strings.Contains(r.Stdout, fmt.Sprintf("total %d", 21*gib)) {
		t.Errorf("within the cap: %q, %v", r.Stdout, r.Err)
	}

	for name, flags := range map[string][]string{
		"privileged": {"--privileged"}, "--pid=host": {"--pid=host"}, "--ipc=host": {"--ipc=host"},
	} {
		refused(t, n.Docker(within(t), append(append([]string{"run", "--rm", "--runtime", node.Runtime, "--network", "none", "-e", "GPUSHARE_MEMORY=1Gi"},
			flags...), "small", "echo", "started")...), name)
	}

	bad := filepath.Join(n.Dir, "bad.toml")
	if err := os.WriteFile(bad, []byte(capsConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	r := n.CLI(within(t), "config", "check", bad)
	if want := bad + ":2: default_share is above cap.env, so who asks for nothing would have more than who asks: 25% asked, 20% allowed"; r.Code != 1 || !strings.HasPrefix(r.Stdout, want) {
		t.Errorf("config check: %d %q, want %q", r.Code, r.Stdout, want)
	}
	if r := n.CLI(within(t), "config", "check"); r.Code != 0 || !strings.Contains(r.Stdout, `memory = "30Gi"`) {
		t.Errorf("config check of the node's own: %d %q %q", r.Code, r.Stdout, r.Stderr)
	}
}

// capSysResource is the number of a capability that some test machines lack.
const capSysResource = 24

// runcWithoutMissing is a runc that starts a privileged container on a machine whose
// root lacks CAP_SYS_RESOURCE: it takes that one out, after all others have seen
// the spec as docker made it. Empty where nothing lacks.
func runcWithoutMissing(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var bounding uint64
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			if bounding, err = strconv.ParseUint(strings.TrimSpace(hex), 16, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	if bounding&(1<<capSysResource) != 0 {
		return ""
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	t.Log("this machine's root lacks CAP_SYS_RESOURCE: the containers are privileged but for that")
	path := filepath.Join(t.TempDir(), "runc")
	script := fmt.Sprintf(`#!/bin/sh
previous= file=
for a; do
	[ "$previous" = --bundle ] && file=$a/config.json
	[ "$previous" = --process ] && file=$a
	previous=$a
done
[ -f "$file" ] && sed -i 's/"CAP_SYS_RESOURCE",//g' "$file"
exec %q "$@"
`, runc)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// What the administrator lets in is limited as far as an ordinary program goes, and
// shown as degraded for its whole life.
func TestOverrides(t *testing.T) {
	n := up(t, node.Options{GPUs: 2, Runc: runcWithoutMissing(t), Config: "[override]\nprivileged = true\nhost_namespaces = true\n"})
	d := docker{n}
	start := func(t *testing.T, flags ...string) container {
		t.Helper()
		c := d.create(t, append(share("1Gi"), "GPUSHARE_GPU=0"), flags, "sleep", "100000")
		t.Cleanup(c.remove)
		if r := n.Docker(within(t), "start", c.id); r.Err != nil {
			t.Fatal(r.Err)
		}
		return c
	}
	reason := func(c container) string {
		one := shownByPS(t, n)[c.id]
		return one.State + ": " + one.Reason
	}
	for _, tc := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--privileged"}, "degraded: privileged by node policy"},
		{[]string{"--pid=host"}, "degraded: host PID namespace by node policy"},
		{[]string{"--ipc=host"}, "degraded: host IPC namespace by node policy"},
		{[]string{"--privileged", "--pid=host", "--ipc=host"}, "degraded: privileged by node policy; host PID namespace by node policy; host IPC namespace by node policy"},
	} {
		t.Run(strings.Join(tc.flags, " "), func(t *testing.T) {
			c := start(t, tc.flags...)
			for range 2 { // the second sees what the first gave back
				r := c.exec(within(t), "alloc", "--fill")
				if !strings.Contains(r.Stdout, fmt.Sprintf("total %d", gib)) {
					t.Errorf("not limited: %q %q, %v", r.Stdout, r.Stderr, r.Err)
				}
			}
			if used := high(t, n, c); used != gib {
				t.Errorf("%d bytes used by the simulator's account, 1 GiB is the limit (SIMULATED)", used)
			}
			if got := reason(c); got != tc.want {
				t.Errorf("shown as %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("devices", func(t *testing.T) {
		// A node of a driver that is not loaded cannot be opened by anybody; who is
		// not let open it learns less.
		c := start(t, "--privileged")
		for script, want := range map[string]string{
			"mknod /dev/n1 c 195 1; cat /dev/n1":                    "Operation not permitted",
			"mknod /dev/n0 c 195 0; cat /dev/n0":                    "No such device or address",
			"cat /dev/nvidia1":                                      "No such file",
			"dd if=/dev/kmsg bs=8192 count=1 >/dev/null && echo ok": "ok",
		} {
			r := c.exec(within(t), "sh", "-c", script)
			if !strings.Contains(r.Stdout+r.Stderr, want) {
				t.Errorf("%s: %q %q, want %q", script, r.Stdout, r.Stderr, want)
			}
		}
	})
	t.Run("the host's /dev", func(t *testing.T) {
		// The simulated nodes are not in it, so its programs have no GPU here; the
		// container starts, is shown, and gets nothing past its share.
		c := start(t, "--privileged", "-v", "/dev:/dev")
		c.exec(within(t), "alloc", "--fill")
		if used := high(t, n, c); used > gib {
			t.Errorf("%d bytes used by the simulator's account, 1 GiB is the limit (SIMULATED)", used)
		}
		if got := reason(c); got != "degraded: privileged by node policy" {
			t.Errorf("shown as %q", got)
		}
	})
	t.Run("the daemon restarts", func(t *testing.T) {
		c := start(t, "--privileged")
		if err := n.Daemon().Kill(); err != nil {
			t.Fatal(err)
		}
		if err := n.StartDaemon(within(t)); err != nil {
			t.Fatal(err)
		}
		if got := reason(c); got != "degraded: privileged by node policy" {
			t.Errorf("shown as %q", got)
		}
		r := c.exec(within(t), "alloc", "--fill")
		if !strings.Contains(r.Stdout, fmt.Sprintf("total %d", gib)) {
			t.Errorf("not limited: %q, %v", r.Stdout, r.Err)
		}
	})
	if log := n.LogTail("gpushared", 200); !strings.Contains(log, "level=WARN msg=\"container can undo its limits") {
		t.Errorf("the daemon's log has no warning:\n%s", log)
	}
	for name, args := range map[string][]string{
		"[GS-CAPABILITY]": {"--cap-add", "SYS_ADMIN"},
		"[GS-BIND]":       {"-v", "/dev:/dev"},
		"[GS-ANN]":        {"--privileged", "-e", "GPUSHARE_OVERRIDE=privileged"},
	} {
		refused(t, n.Docker(within(t), append(append([]string{"run", "--rm", "--runtime", node.Runtime, "--network", "none", "-e", "GPUSHARE_MEMORY=1Gi"},
			args...), "small", "echo", "started")...), name)
	}
}
