// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

const (
	gib = uint64(1) << 30
	// patience bounds each wait for something that must happen.
	patience = 30 * time.Second
	// settle is the time in which a tenant's share has become steady.
	settle = 1500 * time.Millisecond
	// window is how long a share is measured.
	window = 3 * time.Second
)

type show struct {
	p    *printer
	n    *node.Node
	root string
	// followed are the readers of the tenants' output.
	followed []*node.Session
}

// tenant is a container of the demo.
type tenant struct {
	name, id string
	session  *node.Session
}

func (s *show) all(ctx context.Context, begin time.Time) error {
	defer func() {
		for _, f := range s.followed {
			f.End()
		}
	}()
	image := filepath.Join(s.n.Dir, "image")
	if err := node.SmallImage(ctx, s.root, image); err != nil {
		return err
	}
	if err := s.n.Import(ctx, image, "demo"); err != nil {
		return err
	}
	s.p.heading("A node")
	gpus := s.n.CLI(ctx, "daemon")
	if gpus.Err != nil {
		return gpus.Err
	}
	s.p.command("gpushare daemon")
	s.p.output(gpus.Stdout)
	s.p.note(fmt.Sprintf("   A simulated driver, a private dockerd and gpushared, up in %.1f s.", time.Since(begin).Seconds()))
	for _, step := range []func(context.Context) error{s.memory, s.compute} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// docker starts a tenant in the background, shows the command and follows its output.
func (s *show) docker(ctx context.Context, name string, share []string, program string) (*tenant, error) {
	argv := []string{"run", "-d", "--runtime=" + node.Runtime}
	for _, e := range share {
		argv = append(argv, "-e", e)
	}
	argv = append(argv, "--name", name)
	s.p.command("docker " + strings.Join(append(argv, "demo", program), " "))
	argv = append(append(argv, "--network=none", "demo"), strings.Fields(program)...)
	r := s.n.Docker(ctx, argv...)
	if r.Err != nil {
		return nil, r.Err
	}
	t := &tenant{name: name, id: strings.TrimSpace(r.Stdout)}
	session, err := node.Talk(ctx, s.n.DockerEnv(), "docker", "logs", "-f", t.id)
	if err != nil {
		return nil, err
	}
	t.session = session
	s.followed = append(s.followed, session)
	return t, nil
}

func (s *show) account(ctx context.Context, t *tenant) (node.Account, error) {
	return s.n.Account(ctx, t.id)
}

// memory: a limit to the byte, changed while the program runs.
func (s *show) memory(ctx context.Context) error {
	s.p.heading("Memory is a hard limit, to the byte")
	t, err := s.docker(ctx, "notebook", []string{"GPUSHARE_MEMORY=30Gi", "GPUSHARE_GPU=0"},
		"alloc --fill --rounds 2 --hold signal")
	if err != nil {
		return err
	}
	line, err := t.session.Expect("filled", patience)
	if err != nil {
		return err
	}
	s.p.output(line)
	used, err := s.account(ctx, t)
	if err != nil {
		return err
	}
	s.p.check(strings.Contains(line, "CUDA_ERROR_OUT_OF_MEMORY"), "the program got CUDA's own out-of-memory error")
	s.p.check(used.HighWaterBytes == 30*gib, "the simulator counts at most %s bytes in use, context included; the limit is %s",
		comma(used.HighWaterBytes), comma(30*gib))
	if line, err = t.session.Expect("info", patience); err != nil {
		return err
	}
	s.p.output(line)
	s.p.check(strings.Contains(line, fmt.Sprintf("total %d device %d", 30*gib, 30*gib)), "to the program the share is the whole card")

	s.p.heading("A shell in the container without any environment is held to the same limit")
	s.p.command("docker exec notebook env -i /usr/bin/alloc --take 1GiB")
	r := s.n.Docker(ctx, "exec", "notebook", "env", "-i", "/usr/bin/alloc", "--take", "1GiB")
	s.p.output(strings.SplitN(r.Stdout+r.Stderr, "\n", 2)[0])
	if used, err = s.account(ctx, t); err != nil {
		return err
	}
	s.p.check(strings.Contains(r.Stdout+r.Stderr, "CUDA_ERROR_OUT_OF_MEMORY") && used.HighWaterBytes <= 30*gib,
		"refused: the notebook is full, and not a byte more was given (%s)", comma(used.HighWaterBytes))

	s.p.heading("The limit changes while the program runs")
	s.p.command("gpushare set notebook --gpu-memory 40Gi")
	set := s.n.CLI(ctx, "set", "notebook", "--gpu-memory", "40Gi")
	s.p.output(set.Stdout + set.Stderr)
	if set.Err != nil {
		return set.Err
	}
	if r := s.n.Docker(ctx, "kill", "-s", "USR1", "notebook"); r.Err != nil { // "go on" to the program
		return r.Err
	}
	if line, err = t.session.Expect("filled", patience); err != nil {
		return err
	}
	s.p.output(line)
	s.p.check(strings.HasPrefix(line, fmt.Sprintf("filled %d bytes", 10*gib)), "the same process got exactly 10 GiB more")
	return nil
}

// compute: two tenants that want everything, then each alone.
func (s *show) compute(ctx context.Context) error {
	s.p.heading("Two more tenants of GPU 0 want all of its time")
	train, err := s.docker(ctx, "train", []string{"GPUSHARE_MEMORY=20Gi", "GPUSHARE_COMPUTE=60%", "GPUSHARE_GPU=0"},
		"saturate --kernel short")
	if err != nil {
		return err
	}
	if _, err = train.session.Expect("running", patience); err != nil {
		return err
	}
	s.p.note("   Its kernels take 50 microseconds. Alone on the GPU:")
	if err := s.shares(ctx, []*tenant{train}, []float64{60}); err != nil {
		return err
	}
	batch, err := s.docker(ctx, "batch", []string{"GPUSHARE_MEMORY=10Gi", "GPUSHARE_COMPUTE=20%", "GPUSHARE_GPU=0"},
		"saturate --kernel long")
	if err != nil {
		return err
	}
	if _, err = batch.session.Expect("running", patience); err != nil {
		return err
	}
	s.p.note("   Its kernels take 5 milliseconds, a hundred times as long, on the same grid. Both together:")
	if err := s.shares(ctx, []*tenant{train, batch}, []float64{60, 20}); err != nil {
		return err
	}
	s.p.command("gpushare ps")
	ps := s.n.CLI(ctx, "ps")
	s.p.output(ps.Stdout)
	s.p.check(ps.Err == nil && strings.Count(ps.Stdout, "enforced") >= 3, "three tenants of one GPU, all enforced")

	s.p.heading("A share of GPU time changes while the program runs")
	s.p.command("gpushare set train --gpu-compute 30% --gpu-compute-max 30%")
	set := s.n.CLI(ctx, "set", "train", "--gpu-compute", "30%", "--gpu-compute-max", "30%")
	s.p.output(set.Stdout + set.Stderr)
	if set.Err != nil {
		return set.Err
	}
	if err := s.shares(ctx, []*tenant{train, batch}, []float64{30, 20}); err != nil {
		return err
	}
	if r := s.n.Docker(ctx, "stop", "-t", "5", "train"); r.Err != nil {
		return r.Err
	}
	s.p.note("   train has ended. batch alone stays at its cap:")
	return s.shares(ctx, []*tenant{batch}, []float64{20})
}

// shares measures what part of the time each tenant had the GPU, by the
// simulator's account, and compares it with what it asked for. Too little is
// measured again: a busy machine may not let a program ask for all of its share.
func (s *show) shares(ctx context.Context, tenants []*tenant, want []float64) error {
	if err := pause(ctx, settle); err != nil {
		return err
	}
	var got []float64
	for range 3 {
		var err error
		if got, err = s.measure(ctx, tenants); err != nil {
			return err
		}
		low := false
		for i := range got {
			low = low || got[i] < want[i]-5
		}
		if !low {
			break
		}
	}
	for i, t := range tenants {
		s.p.check(math.Abs(got[i]-want[i]) <= 5, "%-8s asked %3.0f %%, had %5.1f %% of GPU time", t.name, want[i], got[i])
	}
	return nil
}

func (s *show) measure(ctx context.Context, tenants []*tenant) ([]float64, error) {
	before, err := s.accounts(ctx, tenants)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, window); err != nil {
		return nil, err
	}
	after, err := s.accounts(ctx, tenants)
	if err != nil {
		return nil, err
	}
	var out []float64
	for i := range tenants {
		out = append(out, 100*float64(after[i].GPUTimeNs-before[i].GPUTimeNs)/float64(after[i].At-before[i].At))
	}
	return out, nil
}

func (s *show) accounts(ctx context.Context, tenants []*tenant) ([]node.Account, error) {
	var all []node.Account
	for _, t := range tenants {
		a, err := s.account(ctx, t)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// pause lets the tenants work for a while.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return errors.New("interrupted")
	case <-time.After(d):
		return nil
	}
}

func (s *show) howToPlay() {
	s.p.heading("The node stays up. Play with it:")
	for _, c := range [][2]string{
		{fmt.Sprintf("export DOCKER_HOST=unix://%[1]s/docker.sock PATH=%[1]s/bin:$PATH", s.n.Dir), ""},
		{"docker run --rm --runtime=gpushare --network=none -e GPUSHARE_MEMORY=5Gi -e GPUSHARE_COMPUTE=25% demo alloc --fill", ""},
		{"docker run --rm --runtime=gpushare --network=none -e GPUSHARE_MEMORY=5Gi demo nvml", ""},
		{"gpushare ps", "what each container may use and uses"},
		{"gpushare set batch --gpu-compute 40% --gpu-compute-max 40%", "while it runs"},
		{"simgpu status --dir " + s.n.Dir + "/sim", "the simulator's own account"},
		{"make demo-down", "ends it all"},
	} {
		if c[1] != "" {
			c[0] = fmt.Sprintf("%-62s # %s", c[0], c[1])
		}
		s.p.line("   " + c[0])
	}
}
