// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// PyTorch's tensors in two processes under a limit: what the script itself checks through
// NVML, and all the while the ledger is the simulator's account.
func TestTorchBetweenProcesses(t *testing.T) {
	if sanitized() {
		t.Skip("Python is not built with the sanitizer")
	}
	wheels := filepath.Join(root(t), ".cache/clients-torch")
	if m, _ := filepath.Glob(filepath.Join(wheels, "torch/_C.cpython-311-*.so")); len(m) == 0 {
		t.Skip("no PyTorch in .cache/clients-torch: tests/setup/wheels.sh fetches it")
	}
	python, err := exec.LookPath("python3.11")
	if err != nil {
		t.Skip("no python3.11")
	}
	clients := filepath.Join(root(t), "tests/clients")
	if out, err := exec.Command("make", "-s", "-C", filepath.Join(clients, "cudart")).CombinedOutput(); err != nil {
		t.Fatalf("the stand-in runtime: %v\n%s", err, out)
	}
	const limit = 4 << 30
	s := &sharing{node: simulateGPUs(t, 1)}
	s.container = s.node.container(limit)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := s.container.command(ctx, python, filepath.Join(clients, "py/torch_ipc.py"), strconv.Itoa(limit),
		filepath.Join(s.node.dir, "result.json"))
	cmd.Env = append(cmd.Env, "PYTHONPATH="+wheels, "PYTHONDONTWRITEBYTECODE=1", "HOME="+s.node.dir,
		"LD_PRELOAD="+filepath.Join(root(t), "build/tests/cudart/libcudart.so.13"))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var most, same int
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			running = false
		case <-time.After(20 * time.Millisecond):
		}
		before := s.gpu().Used
		ledger := s.sweep()
		// A sample is of one moment if nothing moved meanwhile.
		if used := s.gpu().Used; used == before && used > 0 {
			if ledger == used {
				same++
			}
			most++
		}
	}
	t.Logf("SIMULATED: %d of %d samples of the ledger are the simulator's account", same, most)
	if most == 0 || same < most*9/10 {
		t.Errorf("the ledger is the simulator's account in %d of %d samples", same, most)
	}
	if high := s.gpu().High; high > limit || high < 1<<30 {
		t.Errorf("SIMULATED: the driver has held %d bytes, under a limit of %d", high, limit)
	}
	if _, err := os.Stat(filepath.Join(s.node.dir, "result.json")); err != nil {
		t.Error(err)
	}
	waitFor(t, "all to be given back", func() bool { return s.sweep() == 0 && s.gpu().Used == 0 })
}
