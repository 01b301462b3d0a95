// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

// Package clients runs unmodified Python CUDA programs, as published, in a container
// with a share of a SIMULATED GPU.
package clients

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

func TestPythonClients(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("containers need root")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 9*time.Minute)
	defer cancel()
	wheels := filepath.Join(root, ".cache/clients")
	image := filepath.Join(root, ".cache/images/python")
	for _, cmd := range [][]string{{"tests/setup/wheels.sh", wheels}, {"tests/setup/image.sh", "python", image}} {
		cmd[0] = filepath.Join(root, cmd[0])
		if r := node.Run(ctx, nil, cmd...); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	n, err := node.Start(ctx, node.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("gpushared's log ends:\n%s", n.LogTail("gpushared", 20))
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := n.Import(ctx, image, "python"); err != nil {
		t.Fatal(err)
	}
	const limit = uint64(4) << 30
	for _, script := range []string{"nvml_view.py", "numba_fill.py", "tinygrad_fill.py"} {
		t.Run(script, func(t *testing.T) {
			name := strings.TrimSuffix(script, ".py")
			r := n.Docker(ctx, "create", "--name", name, "--runtime", node.Runtime, "--network", "none",
				"-e", "GPUSHARE_MEMORY=4Gi", "-e", "GPUSHARE_COMPUTE=50%",
				"-e", "HOME=/tmp", "-e", "CACHEDB=/tmp/tinygrad.db",
				"-v", wheels+":/usr/local/lib/python3.11/dist-packages:ro",
				"-v", filepath.Join(root, "tests/clients/py")+":/clients:ro",
				"python", "python3", "/clients/"+script, strconv.FormatUint(limit, 10))
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			id := strings.TrimSpace(r.Stdout)
			defer n.Docker(context.Background(), "rm", "-f", id)
			r = n.Docker(ctx, "start", "-a", id)
			if r.Err != nil || !strings.Contains(r.Stdout, "passed") {
				t.Fatalf("%v\n%s%s", r.Err, r.Stdout, r.Stderr)
			}
			t.Log(strings.TrimSpace(r.Stdout))
			a, err := n.Account(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if a.HighWaterBytes > limit {
				t.Errorf("the simulator counts %d bytes, %d over the limit", a.HighWaterBytes, a.HighWaterBytes-limit)
			}
			if strings.Contains(script, "fill") && a.HighWaterBytes < limit/2 {
				t.Errorf("only %d bytes were used: the test did not reach the limit", a.HighWaterBytes)
			}
		})
	}
}
