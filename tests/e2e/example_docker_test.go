// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// The example for Docker does what it says, with compose and without.
func TestDockerExample(t *testing.T) {
	n := up(t, node.Options{})
	if err := n.Import(within(t), exampleRoot(t, n), "debian:12"); err != nil {
		t.Fatal(err)
	}
	var direct, compose []string
	for line := range strings.SplitSeq(strings.Join(scripts(t, "docker"), "\n"), "\n") {
		if strings.HasPrefix(line, "docker compose") {
			compose = append(compose, line)
		} else {
			direct = append(direct, line)
		}
	}
	t.Run("docker", func(t *testing.T) {
		shown(t, play(t, "docker", n.DockerEnv(), direct...).Stdout, 8*gib, 6*gib, 2*gib)
	})
	t.Run("compose", func(t *testing.T) {
		plugin := filepath.Join(n.Dir, "docker/cli-plugins/docker-compose")
		if err := os.MkdirAll(filepath.Dir(plugin), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(builtFor(t, "compose"), "docker-compose"), plugin); err != nil {
			t.Fatal(err)
		}
		defer n.Docker(within(t), "compose", "-f", filepath.Join(root, "examples/docker/compose.yaml"), "down", "--timeout", "1")
		out := play(t, "docker", n.DockerEnv(), compose...).Stdout
		shown(t, out, 6*gib, 2*gib)
		for _, service := range []string{"training", "notebook"} {
			if !strings.Contains(out, service+"-1 exited with code 0") {
				t.Errorf("service %s did not end well:\n%s", service, out)
			}
		}
	})
}
