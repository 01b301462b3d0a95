// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Podman runs a podman command with stores of the node's own. podman has no daemon;
// what it starts are conmon and the containers.
func (n *Node) Podman(ctx context.Context, args ...string) Result {
	return Run(ctx, n.PodmanEnv(), n.PodmanArgs(args...)...)
}

// PodmanArgs is the command line of a podman command, for Talk.
func (n *Node) PodmanArgs(args ...string) []string {
	return append([]string{"podman", "--tmpdir", n.podmanFile("tmp"), "--cgroup-manager", "cgroupfs", "--events-backend", "none",
		"--runtime", n.Bin("gpushare-runtime")}, args...)
}

// PodmanCreate are the arguments of `podman create`, or run, on a node: in its
// cgroup, and with the limits that a root without CAP_SYS_RESOURCE may set.
func (n *Node) PodmanCreate(command string, args ...string) []string {
	return append([]string{command, "--network", "none", "--cgroup-parent", n.cgroupParent(),
		"--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096"}, args...)
}

func (n *Node) podmanFile(name string) string { return filepath.Join(n.Dir, "podman", name) }

// PodmanEnv goes with PodmanArgs; it keeps the machine's configuration out.
func (n *Node) PodmanEnv() []string {
	return []string{"CONTAINERS_CONF=" + n.podmanFile("containers.conf"), "CONTAINERS_STORAGE_CONF=" + n.podmanFile("storage.conf"), "TMPDIR=" + n.podmanFile("")}
}

// SetUpPodman makes podman's own directory of the node.
func (n *Node) SetUpPodman() error {
	if err := os.MkdirAll(n.podmanFile(""), 0o755); err != nil {
		return fmt.Errorf("set up podman: %w", err)
	}
	storage := fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", n.podmanFile("root"), n.podmanFile("run"))
	// By its own choice podman leaves a file in /dev/shm.
	engine := fmt.Sprintf("[engine]\nlock_type = \"file\"\n[network]\nnetwork_config_dir = %q\n", n.podmanFile("net"))
	for name, text := range map[string]string{"storage.conf": storage, "containers.conf": engine} {
		if err := os.WriteFile(n.podmanFile(name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("set up podman: %w", err)
		}
	}
	return nil
}

// PodmanImport makes a podman image called name of the root file system in dir.
func (n *Node) PodmanImport(ctx context.Context, dir, name string) error {
	return importTree(ctx, n.PodmanEnv(), dir, n.PodmanArgs("import", "-", name)...)
}
