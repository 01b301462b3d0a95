// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// NVML tells a container how busy it keeps the GPU itself: a share, or nothing, while
// its neighbour is busy all the time.
func TestOwnUtilization(t *testing.T) {
	each(t, node.Options{KernelTimes: []string{"spin=200us"}}, func(t *testing.T, n *node.Node, e engine) {
		idle := e.background(t, share("1Gi")...)
		a, run := e.talk(t, append(share("1Gi"), "GPUSHARE_COMPUTE=60%"), "saturate", "--kernel", "spin")
		expect(t, run, "running")
		b, run := e.talk(t, append(share("1Gi"), "GPUSHARE_COMPUTE=20%"), "saturate", "--kernel", "spin")
		expect(t, run, "running")
		time.Sleep(settle)
		for _, c := range []struct {
			container
			want int
		}{{idle, 0}, {a, 60}, {b, 20}} {
			busy := -1
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				r := c.exec(within(t), "nvml", "--busy")
				if _, err := fmt.Sscanf(strings.TrimSpace(r.Stdout), "busy %d", &busy); r.Err != nil || err != nil {
					t.Fatalf("nvml --busy: %v, %v: %s%s", r.Err, err, r.Stdout, r.Stderr)
				}
				if busy >= c.want-6 && busy <= c.want+6 {
					break
				}
			}
			if busy < c.want-6 || busy > c.want+6 {
				t.Errorf("a container with %d %% of the GPU is told that it is %d %% busy", c.want, busy)
			}
		}
		if r := n.Sim(within(t), "status"); r.Err == nil {
			t.Log(r.Stdout)
		}
	})
}
