// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// podman starts containers with the wrapper by its path.
type podman struct {
	n     *node.Node
	image string
}

func (p podman) create(t *testing.T, flags []string, args ...string) container {
	t.Helper()
	argv := append(append(p.n.PodmanCreate("create", flags...), p.image), args...)
	r := p.n.Podman(within(t), argv...)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	id := strings.TrimSpace(r.Stdout)
	c := container{
		id: id,
		exec: func(ctx context.Context, args ...string) node.Result {
			return p.n.Podman(ctx, append([]string{"exec", id}, args...)...)
		},
		enter: func(t *testing.T, args ...string) *node.Session {
			return talk(t, p.n.PodmanEnv(), p.n.PodmanArgs(append([]string{"exec", "-i", id}, args...)...)...)
		},
		remove: func() { p.n.Podman(context.Background(), "rm", "-f", "-t", "0", id) },
	}
	t.Cleanup(c.remove)
	return c
}

func variables(env []string) []string {
	var flags []string
	for _, e := range env {
		flags = append(flags, "-e", e)
	}
	return flags
}

func (p podman) background(t *testing.T, env ...string) container {
	t.Helper()
	c := p.create(t, variables(env), "sleep", "100000")
	if r := p.n.Podman(within(t), "start", c.id); r.Err != nil {
		t.Fatal(r.Err)
	}
	return c
}

func (p podman) talk(t *testing.T, env []string, args ...string) (container, *node.Session) {
	t.Helper()
	c := p.create(t, append([]string{"-i"}, variables(env)...), args...)
	return c, talk(t, p.n.PodmanEnv(), p.n.PodmanArgs("start", "-ai", c.id)...)
}

func (p podman) run(t *testing.T, env []string, args ...string) (container, node.Result) {
	t.Helper()
	c := p.create(t, variables(env), args...)
	return c, p.n.Podman(within(t), "start", "-a", c.id)
}

// start runs a container with flags to its end.
func (p podman) start(t *testing.T, flags []string, args ...string) (container, node.Result) {
	t.Helper()
	c := p.create(t, flags, args...)
	return c, p.n.Podman(within(t), "start", "-a", c.id)
}

// podmanNode is a node with podman's stores; skipped where there is no podman.
func podmanNode(t *testing.T, lowLevel string) podman {
	t.Helper()
	if !*everyEngine {
		t.Skip("podman is tried by make test-engines")
	}
	for _, program := range []string{"podman", lowLevel} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here: tests/setup/host.sh podman installs it, as make test-engines does", program)
		}
	}
	path, _ := exec.LookPath(lowLevel)
	n := up(t, node.Options{NoEngine: true, Runc: path})
	if err := n.SetUpPodman(); err != nil {
		t.Fatal(err)
	}
	if err := n.PodmanImport(within(t), image(n), "small"); err != nil {
		t.Fatal(err)
	}
	version := n.Podman(within(t), "version", "--format", "{{.Client.Version}}")
	t.Logf("podman %s, %s", strings.TrimSpace(version.Stdout), lowLevel)
	return podman{n, "small"}
}

// The memory limit under rootful podman with runc.
func TestMemoryLimitPodman(t *testing.T) { podmanHolds(t, podmanNode(t, "runc")) }

// crun does not work where both kinds of cgroups are mounted, as on this kind of
// machine: the test starts itself in a mount namespace without the second kind.
func TestMemoryLimitPodmanCrun(t *testing.T) {
	const unified = "/sys/fs/cgroup/unified"
	script := "true"
	if _, err := os.Stat(filepath.Join(unified, "cgroup.procs")); err == nil {
		script = "umount " + unified + "; mount -t tmpfs none " + unified
	}
	if printed, done := namespaced(t, script, "-engines"); done {
		rowsFrom(t, printed)
		return
	}
	p := podmanNode(t, "crun")
	// crun takes what is mounted there now for cgroups and leaves files in it.
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(unified, filepath.Base(p.n.Dir))) })
	podmanHolds(t, p)
	for _, r := range recorded {
		t.Logf("ROW\t%s\t%s\t%d\t%t", r.engine, r.kind, r.got, r.failed)
	}
}

// rowsFrom takes over the rows of the table that a test in another process printed.
func rowsFrom(t *testing.T, text string) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 5 || !strings.HasSuffix(f[0], "ROW") {
			continue
		}
		got, err := strconv.ParseUint(f[3], 10, 64)
		if err != nil {
			t.Error(err)
		}
		recorded = append(recorded, recordedRow{f[1], f[2], got, f[4] == "true"})
	}
}

func podmanHolds(t *testing.T, p podman) {
	for _, c := range byLookup {
		t.Run(c.name, func(t *testing.T) { c.check(t, p.n, p) })
	}
	t.Run("annotation", func(t *testing.T) {
		c, r := p.start(t, []string{"--annotation", "gpushare.io/memory=2Gi"}, "alloc-link", "--fill")
		limited(t, p.n, c, r, 2*gib)
	})
	nvidia := filepath.Join(p.n.Devices(), "nvidia0")
	for name, flags := range map[string][]string{
		"annotation and variable": {"--annotation", "gpushare.io/memory=2Gi", "-e", "GPUSHARE_MEMORY=1Gi"},
		"misspelt annotation":     {"--annotation", "gpushare.io/memroy=2Gi"},
		"privileged":              {"--privileged"},
		"privileged, a share":     {"--privileged", "-e", "GPUSHARE_MEMORY=1Gi"},
		"device":                  {"--device", nvidia + ":/dev/nvidia0"},
		"bind of /dev":            {"-v", "/dev:/dev"},
		"host's processes":        {"--pid", "host", "-e", "GPUSHARE_MEMORY=1Gi"},
		"host's shared memory":    {"--ipc", "host", "-e", "GPUSHARE_MEMORY=1Gi"},
		"CAP_SYS_ADMIN":           {"--cap-add", "SYS_ADMIN", "-e", "GPUSHARE_MEMORY=1Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := p.start(t, flags, "echo", "started")
			refused(t, r)
		})
	}
	t.Run("exec and restart", func(t *testing.T) {
		c := p.background(t, share("1Gi")...)
		limited(t, p.n, c, c.exec(within(t), "alloc-link", "--fill"), gib)
		if r := p.n.Podman(within(t), "restart", "-t", "0", c.id); r.Err != nil {
			t.Fatal(r.Err)
		}
		limited(t, p.n, c, c.exec(within(t), "env", "-i", "/usr/bin/alloc-link", "--fill"), gib)
	})
	t.Run("no GPU", func(t *testing.T) {
		if _, r := p.run(t, nil, "echo", "plain"); r.Stdout != "plain\n" || r.Stderr != "" {
			t.Errorf("got %q %q %v", r.Stdout, r.Stderr, r.Err)
		}
	})
	t.Run("an image's own libcuda", func(t *testing.T) { ownLibcuda(t, p.n, []string{"podman"}, fewOrAll()) })
	t.Run("an image's own code", func(t *testing.T) { foreignCode(t, p.n, []string{"podman"}) })
	p.n.Podman(within(t), "rm", "-f", "-a", "-t", "0")
	soon(t, 2*time.Second, "shares released", func() bool {
		return strings.TrimSpace(p.n.CLI(within(t), "ps", "-q").Stdout) == ""
	})
}
