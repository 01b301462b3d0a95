// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// counted runs counted.c and returns, for each way to take memory, which system
// calls were made how often.
func (c *container) counted(program, way string, times int) map[string]map[int]int {
	c.t.Helper()
	out, err := c.run(program, way, fmt.Sprint(times))
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	ways := map[string]map[int]int{}
	for _, line := range linesOf(out) {
		f := strings.Fields(line)
		ways[f[0]] = map[int]int{}
		for _, pair := range f[1:] {
			var nr, n int
			if _, err := fmt.Sscanf(pair, "%d=%d", &nr, &n); err != nil {
				c.t.Fatalf("%q: %v", line, err)
			}
			ways[f[0]][nr] = n
		}
	}
	return ways
}

// Taking memory and giving it back makes no system call that the driver does not
// make, over a driver that makes none and over the simulator. A refusal makes none
// that could reach a driver: over the simulator every question of it is a message.
func TestAllocationMakesNoSystemCall(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers make system calls of their own")
	}
	const times = 10000
	program := compile(t, "counted.c")
	t.Run("in process", func(t *testing.T) {
		c := newContainer(t, standInLimit())
		c.driver = standIn(t)
		for way, calls := range c.counted(program, "all", times) {
			for nr, n := range calls {
				// A driver's own malloc grows its heap now and then; and who is refused
				// lets a neighbour run, once.
				if nr == unix.SYS_BRK || nr == unix.SYS_MMAP || nr == unix.SYS_MUNMAP || (way == "edge" && nr == unix.SYS_SCHED_YIELD && n <= times) {
					continue
				}
				t.Errorf("%s: system call %d, %d times in %d", way, nr, n, times)
			}
		}
	})
	t.Run("simulated", func(t *testing.T) {
		n := simulate(t)
		c := n.container(512 * mib)
		ours := c.counted(program, "all", times/10)
		c.env = append(c.env, "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
		bare := c.counted(program, "small", times/10)
		for _, way := range []string{"large", "managed", "pitch", "vmm", "array", "refused"} {
			bare[way] = c.counted(program, way, times/10)[way]
		}
		for way, calls := range ours {
			if way == "refused" || way == "edge" {
				for _, nr := range []int{unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_FUTEX, unix.SYS_POLL, unix.SYS_WRITE, unix.SYS_READ} {
					if calls[nr] != 0 {
						t.Errorf("%s: the driver was asked: system call %d, %d times", way, nr, calls[nr])
					}
				}
				continue
			}
			if len(bare[way]) == 0 {
				t.Errorf("%s: over the bare driver nothing was counted", way)
			}
			for nr, n := range calls {
				if n > bare[way][nr] {
					t.Errorf("%s: system call %d, %d times, and %d over the bare driver", way, nr, n, bare[way][nr])
				}
			}
			t.Logf("SIMULATED: %s: %v, bare %v", way, calls, bare[way])
		}
	})
}
