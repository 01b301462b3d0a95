// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Pod is a pod sandbox that was made through the CRI plugin.
type Pod struct {
	ID, Name, UID string

	c    *Containerd
	dir  string // logs and the messages that crictl reads
	next atomic.Int64
}

// CRIContainer is what a test wants of a container of a pod.
type CRIContainer struct {
	Name        string
	Args        []string
	Env         []string
	Annotations map[string]string
	Stdin       bool // the container's standard input can be attached to
	// Edit changes the message at the end; may be nil.
	Edit func(map[string]any)
}

var pods atomic.Int64

// CrictlArgs is the command line of a crictl command, for Talk.
func (c *Containerd) CrictlArgs(args ...string) []string {
	return append([]string{c.opts.Crictl, "--config", filepath.Join(c.dir, "crictl.yaml"),
		"--runtime-endpoint", "unix://" + c.socket(), "--timeout", "60s"}, args...)
}

// Crictl runs a crictl command. What it warns of is on standard error too.
func (c *Containerd) Crictl(ctx context.Context, args ...string) Result {
	return Run(ctx, nil, c.CrictlArgs(args...)...)
}

// NewPod starts a pod's sandbox in the host's network, through handler, with the
// pod's annotations. Edits change the message at the end.
func (c *Containerd) NewPod(ctx context.Context, handler string, annotations map[string]string, edits ...func(map[string]any)) (*Pod, error) {
	n := pods.Add(1)
	p := &Pod{Name: fmt.Sprintf("pod%d", n), UID: fmt.Sprintf("5b0f2a40-0000-4000-8000-%012d", n), c: c}
	p.dir = filepath.Join(c.dir, "pods", p.Name)
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make pod: %w", err)
	}
	message := map[string]any{
		"metadata":      map[string]any{"name": p.Name, "uid": p.UID, "namespace": "default", "attempt": 0},
		"annotations":   annotations,
		"log_directory": p.dir,
		"linux": map[string]any{
			"cgroup_parent":    c.node.cgroupParent(),
			"security_context": map[string]any{"namespace_options": map[string]any{"network": 2}},
		},
	}
	for _, edit := range edits {
		edit(message)
	}
	if err := p.write("pod.json", message); err != nil {
		return nil, fmt.Errorf("make pod: %w", err)
	}
	r := c.Crictl(ctx, "runp", "--runtime", handler, filepath.Join(p.dir, "pod.json"))
	if r.Err != nil {
		return nil, fmt.Errorf("make pod: %w", r.Err)
	}
	p.ID = strings.TrimSpace(r.Stdout)
	return p, nil
}

func (p *Pod) write(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, name), data, 0o644)
}

// Create makes a container of the pod and returns its id. Pods may be filled by
// several callers at once.
func (p *Pod) Create(ctx context.Context, k CRIContainer) (string, Result) {
	file := fmt.Sprintf("%s-%d.json", k.Name, p.next.Add(1))
	envs := []map[string]string{}
	for _, e := range k.Env {
		key, value, _ := strings.Cut(e, "=")
		envs = append(envs, map[string]string{"key": key, "value": value})
	}
	message := map[string]any{
		"metadata":    map[string]any{"name": k.Name, "attempt": 0},
		"image":       map[string]any{"image": SmallImageName},
		"command":     k.Args,
		"envs":        envs,
		"annotations": k.Annotations,
		"log_path":    k.Name + ".log",
		"stdin":       k.Stdin,
		"linux": map[string]any{
			"security_context": map[string]any{"namespace_options": map[string]any{"network": 2, "pid": 1}},
		},
	}
	if k.Edit != nil {
		k.Edit(message)
	}
	if err := p.write(file, message); err != nil {
		return "", Result{Code: -1, Err: fmt.Errorf("make container: %w", err)}
	}
	r := p.c.Crictl(ctx, "create", p.ID, filepath.Join(p.dir, file), filepath.Join(p.dir, "pod.json"))
	return strings.TrimSpace(r.Stdout), r
}

// Remove ends and removes the pod with all its containers.
func (p *Pod) Remove(ctx context.Context) Result {
	return p.c.Crictl(ctx, "rmp", "--force", p.ID)
}

// Run makes a container, starts it, waits for its end and returns its id with what
// it printed. A create or start that is refused is the result as crictl gave it.
func (p *Pod) Run(ctx context.Context, k CRIContainer) (string, Result) {
	id, r := p.Create(ctx, k)
	if r.Err != nil {
		return id, r
	}
	if r := p.c.Crictl(ctx, "start", id); r.Err != nil {
		return id, r
	}
	return id, p.Wait(ctx, id, k.Name)
}

// Wait waits for the end of the container called name and returns what it printed.
func (p *Pod) Wait(ctx context.Context, id, name string) Result {
	const ended = `{{.status.state}} {{.status.exitCode}}`
	for {
		r := p.c.Crictl(ctx, "inspect", "--output", "go-template", "--template", ended, id)
		state, code, _ := strings.Cut(strings.TrimSpace(r.Stdout), " ")
		switch {
		case r.Err != nil:
			return r
		case state == "CONTAINER_EXITED":
			return p.output(name, code)
		case ctx.Err() != nil:
			return Result{Code: -1, Err: ctx.Err()}
		}
		time.Sleep(20 * time.Millisecond) // the CRI has no call that waits
	}
}

// output reads a container's log: a time, the stream, a mark, the text in each line.
func (p *Pod) output(name, code string) Result {
	data, err := os.ReadFile(filepath.Join(p.dir, name+".log"))
	if err != nil {
		return Result{Code: -1, Err: fmt.Errorf("read log: %w", err)}
	}
	var r Result
	for line := range strings.SplitAfterSeq(string(data), "\n") {
		f := strings.SplitN(line, " ", 4)
		if len(f) < 4 {
			continue
		}
		text := f[3]
		if f[2] == "P" {
			text = strings.TrimSuffix(text, "\n")
		}
		if f[1] == "stderr" {
			r.Stderr += text
		} else {
			r.Stdout += text
		}
	}
	if r.Code, err = strconv.Atoi(code); err != nil {
		r.Err = fmt.Errorf("read exit code: %w", err)
	} else if r.Code != 0 {
		r.Err = errors.New("container " + name + ": exit status " + code + ": " + strings.TrimSpace(r.Stderr))
	}
	return r
}
