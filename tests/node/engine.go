// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Runtime is the name under which the private dockerd knows our wrapper. Recorded
// is the same wrapper behind a script that first keeps a copy of config.json.
const (
	Runtime  = "gpushare"
	Recorded = "recorded"
)

func (n *Node) dockerSocket() string { return filepath.Join(n.Dir, "docker.sock") }

// cgroupParent keeps the node's containers under one cgroup that Close removes.
func (n *Node) cgroupParent() string { return "/" + filepath.Base(n.Dir) }

// engineEnv puts the engine's own programs first.
func (n *Node) engineEnv() []string {
	path := n.opts.EnginePath
	if path != "" {
		path += ":"
	}
	// containerd finds our shim by its name only on its PATH.
	return append([]string{"PATH=" + path + os.Getenv("PATH") + ":" + filepath.Join(n.Dir, "bin")}, n.opts.EngineEnv...)
}

func (n *Node) containerdSocket() string { return filepath.Join(n.Dir, "containerd.sock") }

func (n *Node) daemonFile() string { return filepath.Join(n.Dir, "daemon.json") }

// startEngine starts containerd and dockerd with sockets and data of their own. A
// dockerd without a --containerd would join the machine's.
func (n *Node) startEngine(ctx context.Context) error {
	conf := filepath.Join(n.Dir, "containerd.toml")
	text := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\n"+
		"disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n[grpc]\n  address = %q\n",
		filepath.Join(n.Dir, "containerd"), filepath.Join(n.Dir, "containerd-state"), n.containerdSocket())
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return fmt.Errorf("start engine: %w", err)
	}
	containerd, err := n.start("containerd", n.engineEnv(), n.engine("containerd"), "--config", conf)
	if err != nil {
		return err
	}
	n.add(containerd)
	if err := containerd.ready(ctx, func() error { _, err := os.Stat(n.containerdSocket()); return err }); err != nil {
		return err
	}
	daemon := map[string]any{
		"bridge": "none", "iptables": false, "ip6tables": false,
		"cgroup-parent": n.cgroupParent(),
		"runtimes": map[string]any{
			Runtime:  map[string]string{"path": n.Bin("gpushare-runtime")},
			Recorded: map[string]string{"path": n.recorder()},
		},
	}
	if n.opts.EditDaemon != nil {
		n.opts.EditDaemon(n, daemon)
	}
	data, err := json.MarshalIndent(daemon, "", "  ")
	if err != nil {
		return fmt.Errorf("start engine: %w", err)
	}
	if err := os.WriteFile(n.recorder(), []byte(fmt.Sprintf(recorder, n.Bin("gpushare-runtime"))), 0o755); err != nil {
		return fmt.Errorf("start engine: %w", err)
	}
	if err := os.WriteFile(n.daemonFile(), data, 0o644); err != nil {
		return fmt.Errorf("start engine: %w", err)
	}
	return n.StartDockerd(ctx)
}

// StartDockerd starts dockerd, again if it was ended, and waits until it answers.
func (n *Node) StartDockerd(ctx context.Context) error {
	dockerd, err := n.start("dockerd", n.engineEnv(), n.engine("dockerd"), "--config-file", n.daemonFile(), "--containerd", n.containerdSocket(),
		"--data-root", filepath.Join(n.Dir, "docker/data"), "--exec-root", filepath.Join(n.Dir, "docker/exec"),
		"--pidfile", filepath.Join(n.Dir, "docker.pid"), "--host", "unix://"+n.dockerSocket())
	if err != nil {
		return err
	}
	n.add(dockerd)
	return dockerd.ready(ctx, func() error { return n.Docker(ctx, "version").Err })
}

// Dockerd is the dockerd that was started last.
func (n *Node) Dockerd() *Process { return n.process("dockerd") }

// engine is a program of the engine: EnginePath's, if it has one.
func (n *Node) engine(program string) string {
	for _, dir := range filepath.SplitList(n.opts.EnginePath) {
		if own := filepath.Join(dir, program); executable(own) {
			return own
		}
	}
	return program
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// DockerEnv points a docker command at the node's dockerd and away from the
// user's own settings.
func (n *Node) DockerEnv() []string {
	return []string{"DOCKER_HOST=unix://" + n.dockerSocket(), "DOCKER_CONFIG=" + filepath.Join(n.Dir, "docker"), "DOCKER_CONTEXT="}
}

// DockerCommand is the docker command that speaks to the node's dockerd.
func (n *Node) DockerCommand() string { return n.engine("docker") }

// Docker runs a docker command against the node's dockerd.
func (n *Node) Docker(ctx context.Context, args ...string) Result {
	return Run(ctx, n.DockerEnv(), append([]string{n.engine("docker")}, args...)...)
}

// Import makes a Docker image called name of the root file system in dir.
func (n *Node) Import(ctx context.Context, dir, name string) error {
	return importTree(ctx, n.DockerEnv(), dir, n.engine("docker"), "import", "-", name)
}

// importTree gives a root file system to a command that reads a tar archive.
func importTree(ctx context.Context, env []string, dir string, argv ...string) error {
	tar := exec.CommandContext(ctx, "tar", "-C", dir, "-c", ".")
	load := exec.CommandContext(ctx, argv[0], argv[1:]...)
	load.Env = append(os.Environ(), env...)
	pipe, err := tar.StdoutPipe()
	if err != nil {
		return fmt.Errorf("import image: %w", err)
	}
	load.Stdin = pipe
	if err := tar.Start(); err != nil {
		return fmt.Errorf("import image: %w", err)
	}
	out, err := load.CombinedOutput()
	if err != nil {
		_ = tar.Process.Kill()
		_ = tar.Wait()
		return fmt.Errorf("import image: %s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	if err := tar.Wait(); err != nil {
		return fmt.Errorf("import image: tar: %w", err)
	}
	return nil
}

// SmallImage makes the small root file system in dir: busybox, the C library and
// the C clients, out of this machine's files.
func SmallImage(ctx context.Context, root, dir string) error {
	return Run(ctx, nil, filepath.Join(root, "tests/setup/image.sh"), "small", dir).Err
}

func (n *Node) recorder() string { return filepath.Join(n.Dir, "recorder") }

const recorder = `#!/bin/sh
previous= bundle= create=
for a; do
	[ "$previous" = --bundle ] && bundle=$a
	[ "$a" = create ] && create=1
	previous=$a
done
[ -n "$create" ] && [ -n "$bundle" ] && cp -p "$bundle/config.json" "$bundle/config.json.before"
exec %q "$@"
`

// BundleFile returns a file of a running Docker container's bundle: config.json as
// it is, or config.json.before as dockerd wrote it, if its runtime is Recorded.
func (n *Node) BundleFile(id, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(n.Dir, "containerd-state/io.containerd.runtime.v2.task/moby", id, name))
}

// Ctr runs ctr against the containerd that serves the node's dockerd, in a
// namespace apart from Docker's. What ctr itself warns of is not in the result.
func (n *Node) Ctr(ctx context.Context, args ...string) Result {
	r := Run(ctx, nil, append([]string{n.engine("ctr"), "-a", n.containerdSocket(), "-n", "tests"}, args...)...)
	r.Stderr = ctrWarning.ReplaceAllString(r.Stderr, "")
	return r
}

var ctrWarning = regexp.MustCompile(`(?m)^time="[^"]*" level=warning msg="DEPRECATION: .*\n`)

// Cgroup is the path of a cgroup of the node, for engines that must be told.
func (n *Node) Cgroup(id string) string { return filepath.Join(n.cgroupParent(), id) }
