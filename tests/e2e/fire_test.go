// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/tests/node"
)

const (
	// kills is how often the daemon is killed.
	kills = 50
	// rightAgain is what a daemon may take from its start until `ps` says what is.
	rightAgain = 2 * time.Second
)

// busyScript is a tenant that never rests: it allocates, forks, and has a child
// killed that holds memory. It uses half of its 2 GiB at most, so that each error
// it meets is one that was not due.
const busyScript = `
n=0
while :; do
	n=$((n+1))
	out=$(alloc --take 256MiB 2>&1) || echo "BAD take: $out"
	case $out in *"took 268435456 bytes"*) ;; *) echo "BAD take: $out" ;; esac
	out=$(alloc --take 64MiB --procs 2 2>&1) || echo "BAD processes: $out"
	alloc --take 64MiB --hold signal >/tmp/held 2>&1 & child=$!
	until grep -q holding /tmp/held; do kill -0 $child 2>/dev/null || { echo "BAD hold: $(cat /tmp/held)"; break; }; done
	kill -9 $child; wait $child 2>/dev/null
	echo "round $n"
done`

// fire is a node whose daemon is killed again and again.
type fire struct {
	t    *testing.T
	n    *node.Node
	e    bare
	busy []*burning
	all  []*burning // also those that are gone
	// holders have 1 GiB of their 4 for as long as they live.
	holders []*burning
	compute container
	refused *node.Bundle
	took    []time.Duration
	changed int // limits that were changed before the daemon was killed
}

// burning is a container and what is true of it.
type burning struct {
	container
	bundle *node.Bundle
	limit  uint64
	// highest is the most that its limit was.
	highest uint64
	live    bool
}

func (f *fire) start(limit uint64, env []string, args ...string) (*burning, error) {
	c, b := f.e.bundle(f.t, append(env, fmt.Sprintf("GPUSHARE_MEMORY=%dB", limit)), args...)
	f.t.Cleanup(c.remove)
	k := &burning{container: c, bundle: b, limit: limit}
	f.all = append(f.all, k)
	return k, f.launch(k)
}

func (f *fire) launch(k *burning) error {
	if err := f.n.Detach(within(f.t), k.bundle); err != nil {
		return err
	}
	k.live = true
	return nil
}

// output is what a container's processes have said so far.
func (k *burning) output(t *testing.T) string {
	t.Helper()
	out, err := os.ReadFile(filepath.Join(k.bundle.Dir, "log.out"))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// right says what `ps` has wrong, "" if nothing: which containers live, their
// limits, and, of those that are at rest, their bytes as the simulator counts them.
func (f *fire) right() string {
	r := f.n.CLI(within(f.t), "ps", "-o", "json")
	if r.Err != nil {
		return r.Err.Error()
	}
	var list v1.ContainerList
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
		return err.Error()
	}
	want := map[string]uint64{f.compute.id: gib}
	for _, k := range f.all {
		if k.live {
			want[k.id] = k.limit
		}
	}
	for _, c := range list.Containers {
		limit, ok := want[c.ID]
		switch {
		case !ok:
			return "lists " + c.ID + ", which does not live"
		case c.GPUs[0].MemoryLimitBytes != limit:
			return fmt.Sprintf("%s: limit %d, want %d", c.ID, c.GPUs[0].MemoryLimitBytes, limit)
		case c.GPUs[0].OverrunBytes > 0 || c.State == v1.StateDegraded && !strings.HasPrefix(c.Reason, "unpriced"):
			return fmt.Sprintf("%s: %d of %d bytes, %s", c.ID, c.GPUs[0].MemoryUsedBytes, limit, c.Reason)
		}
		delete(want, c.ID)
		if slices.ContainsFunc(f.holders, func(k *burning) bool { return k.id == c.ID }) {
			if truth := account(f.t, f.n, container{id: c.ID}).MemoryBytes; c.GPUs[0].MemoryUsedBytes != truth || truth < gib {
				return fmt.Sprintf("%s: %d bytes, the simulator says %d", c.ID, c.GPUs[0].MemoryUsedBytes, truth)
			}
		}
	}
	for id := range want {
		return "does not list " + id
	}
	return ""
}

// outage does what tenants and engines do while there is no daemon.
func (f *fire) outage(round int) {
	// A container that starts now is refused, and its bundle is as it was.
	before, err := f.refused.Config()
	if err != nil {
		f.t.Fatal(err)
	}
	refused(f.t, f.refused.Run(within(f.t)), "[GS-DAEMON-DOWN]", "it is not running")
	if after, err := f.refused.Config(); err != nil || after != before {
		f.t.Errorf("a refused container's config.json was changed: %v", err)
	}
	// Its own limit holds to the byte for a program that starts now.
	holder := f.holders[round%len(f.holders)]
	r := holder.exec(within(f.t), "env", "-i", "/usr/bin/alloc", "--fill", "--step", "256MiB")
	left := holder.limit - gib - 2*300*mib
	if !strings.Contains(r.Stdout, fmt.Sprintf("filled %d bytes", left)) || !strings.Contains(r.Stdout, "OUT_OF_MEMORY (2)") {
		f.t.Errorf("round %d: a program without a daemon, %d bytes left: %s %v", round, left, r.Stdout, r.Err)
	}
	if round%2 == 0 {
		k := f.busy[round/2%len(f.busy)]
		if k.live {
			k.remove()
			k.live = false
		}
	}
}

// restart starts the daemon and waits until ps is right.
func (f *fire) restart(round int) {
	begin := time.Now()
	if err := f.n.StartDaemon(within(f.t)); err != nil {
		f.t.Fatal(err)
	}
	wrong := ""
	for {
		if wrong = f.right(); wrong == "" {
			break
		}
		if time.Since(begin) > 5*rightAgain {
			f.t.Fatalf("round %d: ps is still wrong: %s", round, wrong)
		}
	}
	f.took = append(f.took, time.Since(begin))
}

// replace starts a container in the place of each that was ended, while the
// daemon is killed: it starts, or is refused and can be started again.
func (f *fire) replace(round int) {
	for i, k := range f.busy {
		if k.live {
			continue
		}
		c, b := f.e.bundle(f.t, []string{fmt.Sprintf("GPUSHARE_MEMORY=%dB", k.limit)}, "sh", "-c", busyScript)
		f.t.Cleanup(c.remove)
		fresh := &burning{container: c, bundle: b, limit: k.limit}
		started := make(chan error, 1)
		go func() { started <- f.n.Detach(context.Background(), b) }()
		if round%4 == 1 {
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // anywhere in its start
			f.kill()
			err := <-started
			f.restartQuietly()
			if fresh.live = err == nil; err != nil {
				if !strings.Contains(err.Error(), "[GS-DAEMON-DOWN]") {
					f.t.Errorf("round %d: the daemon was killed while a container started: %v", round, err)
				}
				err = f.n.Detach(within(f.t), b)
			}
			started <- err
		}
		if err := <-started; err != nil {
			f.t.Errorf("round %d: start a container: %v", round, err)
			continue
		}
		fresh.live = true
		f.busy[i] = fresh
		f.all = append(f.all, fresh)
	}
}

// resize changes a limit while the daemon is killed: the container is told the old
// one or the new one, and ps the same.
func (f *fire) resize(round int) {
	if round%4 != 3 {
		return
	}
	k := f.holders[round/4%len(f.holders)]
	want := 9*gib - k.limit // 4 GiB, 5 GiB, 4 GiB, …
	done := make(chan struct{})
	go func() {
		f.n.CLI(context.Background(), "set", k.id, "--gpu-memory", fmt.Sprintf("%dB", want))
		close(done)
	}()
	time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) // anywhere in it
	f.kill()
	<-done
	f.restartQuietly()
	r := k.exec(within(f.t), "alloc", "--probe")
	var free, total uint64
	if i := strings.Index(r.Stdout, "info free"); i < 0 {
		f.t.Errorf("round %d: %s %v", round, r.Stdout, r.Err)
	} else if _, err := fmt.Sscanf(r.Stdout[i:], "info free %d total %d", &free, &total); err != nil || total != k.limit && total != want {
		f.t.Errorf("round %d: limit %d, %d asked for, the container is told %d: %v", round, k.limit, want, total, err)
	}
	if total == want {
		f.changed++
	}
	k.limit, k.highest = total, max(total, k.highest)
	if wrong := f.right(); wrong != "" {
		f.t.Errorf("round %d: after a change of a limit: %s", round, wrong)
	}
}

func (f *fire) kill() {
	if err := f.n.Daemon().Kill(); err != nil {
		f.t.Fatal(err)
	}
}

// restartQuietly starts the daemon, in place of one that runs, without a look at ps.
func (f *fire) restartQuietly() {
	if f.n.Daemon().Alive() {
		f.kill()
	}
	if err := f.n.StartDaemon(within(f.t)); err != nil {
		f.t.Fatal(err)
	}
}

// The daemon is killed fifty times while containers exec, fork, allocate and die:
// no tenant meets an error that was not due, limits hold by the simulator's
// account, and ps is right again at once.
func TestDaemonUnderFire(t *testing.T) {
	n := up(t, node.Options{NoEngine: true, KernelTimes: []string{"spin=200us"}})
	f := &fire{t: t, n: n, e: bare{n}}
	confined := confine(t, n) // from the first restart on
	for range 4 {
		k, err := f.start(2*gib, nil, "sh", "-c", busyScript)
		if err != nil {
			t.Fatal(err)
		}
		f.busy = append(f.busy, k)
	}
	for range 3 {
		k, err := f.start(4*gib, nil, "alloc", "--take", "1GiB", "--hold", "signal")
		if err != nil {
			t.Fatal(err)
		}
		f.holders = append(f.holders, k)
		soon(t, limit, "a holder holds", func() bool { return strings.Contains(k.output(t), "holding") })
	}
	f.compute = f.e.background(t, "GPUSHARE_MEMORY=1Gi", "GPUSHARE_COMPUTE=20%")
	launches := f.compute.enter(t, "saturate", "--kernel", "spin")
	expect(t, launches, "running")
	var refusedContainer container
	refusedContainer, f.refused = f.e.bundle(t, share("1Gi"), "echo", "started")
	t.Cleanup(refusedContainer.remove)
	time.Sleep(settle) // its kernels get their price
	begin := account(t, n, f.compute)
	holding := f.holders[0].output(t)

	total := time.Now()
	for round := range kills {
		f.kill()
		f.outage(round)
		f.restart(round)
		f.replace(round)
		f.resize(round)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Daemon().PID))
	if err != nil || confined && !strings.Contains(string(status), "NoNewPrivs:\t1") {
		t.Errorf("the daemon has not the unit's confinement: %v", err)
	}
	t.Logf("SIMULATED: %d kills in %v", kills, time.Since(total).Round(time.Second))

	slices.Sort(f.took)
	t.Logf("SIMULATED: from the start of a daemon until ps is right: median %v, at most %v", f.took[len(f.took)/2].Round(time.Millisecond), f.took[len(f.took)-1].Round(time.Millisecond))
	if slowest := f.took[len(f.took)-1]; slowest > rightAgain {
		t.Errorf("ps was right again after %v, want at most %v", slowest, rightAgain)
	}
	end := account(t, n, f.compute)
	used := 100 * float64(end.GPUTimeNs-begin.GPUTimeNs) / float64(end.At-begin.At)
	t.Logf("SIMULATED: the tenant with 20%% of a GPU had %.2f%%", used)
	if used > 20.2 || used < 10 {
		t.Errorf("a share of 20%%, %.2f%% used", used)
	}
	f.compute.remove()
	launches.End()
	f.verdict(holding)
}

// verdict looks at every container that there was.
func (f *fire) verdict(holding string) {
	rounds := 0
	for _, k := range f.all {
		if high := high(f.t, f.n, k.container); high > max(k.limit, k.highest) {
			f.t.Errorf("%s: %d bytes in use, limit %d", k.id, high, k.limit)
		}
		out := k.output(f.t)
		if i := strings.Index(out, "BAD"); i >= 0 {
			f.t.Errorf("%s met an error that was not due: %.300s", k.id, out[i:])
		}
		rounds += strings.Count(out, "round ")
	}
	f.t.Logf("SIMULATED: %d containers, %d rounds of allocating, forking and being killed; %d limits changed before a kill, %d not",
		len(f.all)+1, rounds, f.changed, kills/4-f.changed)
	if rounds < kills {
		f.t.Errorf("the tenants made %d rounds only: the test has shown nothing", rounds)
	}
	if got := f.holders[0].output(f.t); got != holding {
		f.t.Errorf("a holder said %q, then %q", holding, got)
	}
	for _, k := range f.all {
		k.remove()
	}
	soon(f.t, limit, "all shares released", func() bool {
		return strings.TrimSpace(f.n.CLI(within(f.t), "ps", "-q").Stdout) == ""
	})
	if m := f.n.Mounts("/run/c/"); m != 0 {
		f.t.Errorf("%d mounts of ended containers are left", m)
	}
	for _, d := range []string{"c", "state"} {
		if left, err := os.ReadDir(filepath.Join(f.n.RunDir(), d)); err != nil || len(left) != 0 {
			f.t.Errorf("left in %s: %v %v", d, left, err)
		}
	}
}
