// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// debianDocker is Debian's docker command: the newest that speaks to BuildKit
// without a plugin.
const debianDocker = "/usr/bin/docker"

// Builds that want no GPU are none of our business, also where our runtime is the
// default and where BuildKit, which calls runc by itself and with run, is told to
// call the wrapper instead. With the wrapper below
// it, a step that asks for a share gets that share; without, it gets no GPU.
func TestDockerBuild(t *testing.T) {
	if r := node.Run(within(t), nil, debianDocker, "--version"); r.Err != nil || !strings.Contains(r.Stdout, "version 20.") {
		t.Skipf("needs Debian's docker command, which speaks to BuildKit: %s %v", r.Stdout, r.Err)
	}
	t.Run("this machine's, BuildKit runs runc", func(t *testing.T) {
		builds(t, node.Options{}, false) // 20.10's cannot be told otherwise
	})
	t.Run("current, BuildKit runs the wrapper", func(t *testing.T) {
		builds(t, withCurrent(t, node.Options{EngineEnv: wrapperBelowBuildKit}), true)
	})
}

// wrapperBelowBuildKit tells dockerd what BuildKit is to run; its PATH has the file.
var wrapperBelowBuildKit = []string{"DOCKER_BUILDKIT_RUNC_COMMAND=gpushare-runtime"}

func builds(t *testing.T, opts node.Options, below bool) {
	opts.EditDaemon = func(n *node.Node, daemon map[string]any) { daemon["default-runtime"] = node.Runtime }
	n := up(t, opts)
	for _, daemon := range []string{"daemon alive", "daemon dead"} {
		if daemon == "daemon dead" {
			if err := n.Daemon().Kill(); err != nil {
				t.Fatal(err)
			}
		}
		for _, builder := range []string{"the old builder", "BuildKit"} {
			t.Run(builder+", "+daemon, func(t *testing.T) {
				plainBuild(t, n, builder)
				shareInBuild(t, n, builder, daemon == "daemon alive" && (below || builder == "the old builder"))
			})
		}
	}
}

// A build may get devices of a CDI specification whose author allowed that. With the
// wrapper below BuildKit it gets them with a share or not at all.
func TestDockerBuildDevice(t *testing.T) {
	n := up(t, withCurrent(t, node.Options{EngineEnv: wrapperBelowBuildKit, EditDaemon: func(n *node.Node, daemon map[string]any) {
		daemon["cdi-spec-dirs"] = []string{allowBuilds(t, n)}
	}}))
	const step = "RUN --device=nvidia.com/gpu=0 ls /dev/nvidia0 && alloc-link --fill && echo started\n"
	refused(t, built(t, n, "BuildKit", "open", "FROM small\n"+step), "GPUSHARE_MEMORY")
	r := built(t, n, "BuildKit", "shared", "FROM small\nENV GPUSHARE_MEMORY=1Gi\n"+step)
	if r.Err != nil || !strings.Contains(r.Stdout+r.Stderr, fmt.Sprintf("total %d device %d", gib, gib)) {
		t.Errorf("a step with a device and a share: %s%s %v", r.Stdout, r.Stderr, r.Err)
	}
}

// allowBuilds is a directory with the driver's specification and the word in it that
// lets builds have its devices.
func allowBuilds(t *testing.T, n *node.Node) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(n.DriverCDI(), "nvidia.json"))
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	spec["cdiVersion"] = "0.6.0"
	spec["annotations"] = map[string]string{"org.mobyproject.buildkit.device.autoallow": "true"}
	if data, err = json.Marshal(spec); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// built builds a Dockerfile as an image called name.
func built(t *testing.T, n *node.Node, builder, name, dockerfile string) node.Result {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644); err != nil {
		t.Fatal(err)
	}
	buildkit := map[string]string{"the old builder": "0", "BuildKit": "1"}[builder]
	return node.Run(within(t), append(n.DockerEnv(), "DOCKER_BUILDKIT="+buildkit),
		debianDocker, "build", "--no-cache", "--network", "none", "--progress", "plain", "-t", name, dir)
}

func plainBuild(t *testing.T, n *node.Node, builder string) {
	t.Helper()
	r := built(t, n, builder, "built", "FROM small\nENV NVIDIA_VISIBLE_DEVICES=all\n"+
		"RUN echo built >/built && test ! -e /dev/nvidia0 && test ! -e /run/gpushare\nRUN cat /built\n")
	if r.Err != nil {
		t.Errorf("a build without a GPU: %v", r.Err)
		return
	}
	if r := n.Docker(within(t), "run", "--rm", "--network", "none", "built", "cat", "/built"); r.Stdout != "built\n" {
		t.Errorf("the image holds %q, %v", r.Stdout, r.Err)
	}
}

// shareInBuild builds with a step that asks for a share and needs it.
func shareInBuild(t *testing.T, n *node.Node, builder string, gets bool) {
	t.Helper()
	r := built(t, n, builder, "shared", "FROM small\nENV GPUSHARE_MEMORY=1Gi\nRUN alloc-link --fill\n")
	if gets != (r.Err == nil) {
		t.Errorf("a step with a share: %v", r.Err)
	}
	if want := fmt.Sprintf("total %d device %d", gib, gib); gets && !strings.Contains(r.Stdout+r.Stderr, want) {
		t.Errorf("the step was not limited: %s%s", r.Stdout, r.Stderr)
	}
	if left := n.CLI(within(t), "ps", "-q"); gets && strings.TrimSpace(left.Stdout) != "" {
		t.Errorf("the build left a share: %s", left.Stdout)
	}
}
