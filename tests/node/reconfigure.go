// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Reconfigure changes containerd's configuration file and starts containerd anew.
func (c *Containerd) Reconfigure(ctx context.Context, edit func(string) string) error {
	file := filepath.Join(c.dir, "config.toml")
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reconfigure containerd: %w", err)
	}
	if err := os.WriteFile(file, []byte(edit(string(data))), 0o644); err != nil {
		return fmt.Errorf("reconfigure containerd: %w", err)
	}
	if err := c.Process().Stop(10 * time.Second); err != nil {
		return fmt.Errorf("reconfigure containerd: %w", err)
	}
	return c.Start(ctx)
}

// WithoutHandler takes a runtime handler's tables out of a configuration.
func WithoutHandler(config, name string) string {
	var kept []string
	skip := false
	for line := range strings.SplitSeq(config, "\n") {
		if strings.HasPrefix(line, "[") {
			skip = strings.HasSuffix(line, ".runtimes."+name+"]") || strings.Contains(line, ".runtimes."+name+".")
		}
		if !skip {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n") + "\n"
}

// Env lets clients find this containerd, and ctr, crictl and gpushare under their
// own names: ctr is told where its pipes and its containers' cgroups go, since no
// variable does that.
func (c *Containerd) Env() ([]string, error) {
	dir := filepath.Join(c.dir, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make clients: %w", err)
	}
	script := fmt.Sprintf(ctrScript, filepath.Join(c.dir, "fifo"), c.node.cgroupParent(), c.program("ctr"))
	if err := os.WriteFile(filepath.Join(dir, "ctr"), []byte(script), 0o755); err != nil {
		return nil, fmt.Errorf("make clients: %w", err)
	}
	path := []string{dir, c.node.Dir + "/bin"}
	if c.opts.Crictl != "" {
		path = append(path, filepath.Dir(c.opts.Crictl))
	}
	return []string{
		"PATH=" + strings.Join(append(path, os.Getenv("PATH")), ":"),
		"CONTAINERD_ADDRESS=" + c.socket(),
		"CONTAINER_RUNTIME_ENDPOINT=unix://" + c.socket(),
		"CRI_CONFIG_FILE=" + filepath.Join(c.dir, "crictl.yaml"),
	}, nil
}

const ctrScript = `#!/bin/sh
if [ "$1" = run ]; then
	shift
	set -- run --fifo-dir %q --cgroup %q/ctr-$$ "$@"
fi
PATH=${PATH#*:} exec %q "$@"
`
