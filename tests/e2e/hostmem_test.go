// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// A container with host memory gets its limit on the device and all of that beside it,
// and then out-of-memory; it is shown, changed and given back. More than the cap, or
// than the node lends, starts nothing.
func TestHostMemory(t *testing.T) {
	const host = 2 * gib
	n := up(t, node.Options{NoEngine: true, Profile: "h100", Config: "host_memory = \"3Gi\"\n[cap.env]\nhost_memory = \"2Gi\"\n"})
	e := bare{n}
	ask := func(memory, host string) []string { return append(share(memory), "GPUSHARE_HOST_MEMORY="+host) }
	_, r := e.run(t, ask("2Gi", "2147483649B"), "echo", "started")
	refused(t, r, "2147483649 bytes asked", `cap.env.host_memory = "2Gi"`, "[GS-CAP]")
	_, r = e.run(t, ask("2Gi", "50%"), "echo", "started")
	refused(t, r, "GPUSHARE_HOST_MEMORY", "not counted in parts", "[GS-UNIT]")

	c, s := e.talk(t, ask("2Gi", "2Gi"), "alloc", "--fill", "--hold", "stdin")
	var filled uint64
	line := expect(t, s, "filled ")
	if _, err := fmt.Sscanf(line, "filled %d bytes", &filled); err != nil || !strings.Contains(line, "CUDA_ERROR_OUT_OF_MEMORY (2)") {
		t.Errorf("%q, %v", line, err)
	}
	one := shownByPS(t, n)[c.id]
	used := account(t, n, c)
	if used.HighWaterBytes > 2*gib {
		t.Errorf("%d bytes on the device by the simulator's account, 2 GiB is the limit (SIMULATED)", used.HighWaterBytes)
	}
	if one.HostMemoryLimitBytes != host || one.HostMemoryUsedBytes > host || one.HostMemoryUsedBytes < host-mib {
		t.Errorf("shown as %d of %d bytes of host memory", one.HostMemoryUsedBytes, one.HostMemoryLimitBytes)
	}
	// What the program got is what it has in both places, but for its context and what
	// is rounded up.
	if filled <= host || filled > used.MemoryBytes+host {
		t.Errorf("the program got %d bytes, %d are on the device", filled, used.MemoryBytes)
	}
	if r := n.CLI(within(t), "ps"); !strings.Contains(r.Stdout, "HOSTMEM") || !strings.Contains(r.Stdout, "2.0/2.0 GiB") {
		t.Errorf("%s", r.Stdout)
	}

	_, r = e.run(t, ask("2Gi", "2Gi"), "echo", "started")
	refused(t, r, "1 GiB of the 3 GiB that this node lends", "[GS-NO-FIT]")
	r = n.CLI(within(t), "set", c.id, "--gpu-host-memory", "1Gi")
	if r.Err == nil || !strings.Contains(r.Stderr, "[GS-MEM-IN-USE]") {
		t.Errorf("lowered below the use: %v, %s", r.Err, r.Stderr)
	}
	if r = n.CLI(within(t), "set", c.id, "--gpu-host-memory", "0B", "--soft"); r.Err != nil || !strings.Contains(r.Stdout, "host-memory 2 GiB → 0 B") {
		t.Errorf("%v, %s", r.Err, r.Stdout)
	}
	s.End()
	c.remove()
	// It is free again, and its successor can have all of it.
	c, s = e.talk(t, ask("2Gi", "2Gi"), "alloc", "--fill", "--hold", "stdin")
	if again := expect(t, s, "filled "); again != line {
		t.Errorf("%q, before %q", again, line)
	}
	s.End()
	c.remove()
	if r := n.CLI(within(t), "ps"); strings.Contains(r.Stdout, "HOSTMEM") {
		t.Errorf("a column for nobody: %s", r.Stdout)
	}
}
