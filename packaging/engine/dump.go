// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpushare/gpushare/internal/config"
)

// dumpTimeout bounds one `containerd config dump`.
const dumpTimeout = 20 * time.Second

// dump is the configuration as containerd itself understands it: the file, what it
// imports, and the defaults.
type dump struct {
	all tree
	// plugin is the CRI plugin's id there.
	plugin string
}

// configDump asks the containerd binary what it makes of a file.
func configDump(ctx context.Context, binary, file string) (*dump, error) {
	if err := config.CheckRootOwned(binary); err != nil {
		return nil, refuse("%s would be run as root: %w", binary, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--config", file, "config", "dump")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("%s cannot read it: %w: %s", filepath.Base(binary), err, lastLine(said.String()))
	}
	t, err := parseTOML("config dump", out.Bytes())
	if err != nil {
		return nil, err
	}
	d := &dump{all: t}
	for _, p := range []string{criRuntime, criV2} {
		if at(t, "plugins", p, "containerd") != nil {
			d.plugin = p
			break
		}
	}
	return d, nil
}

func lastLine(s string) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(all[len(all)-1])
}

func (d *dump) cri() tree      { return at(d.all, "plugins", d.plugin, "containerd") }
func (d *dump) runtimes() tree { return at(d.cri(), "runtimes") }

// disabled names the entry of disabled_plugins by which there is no CRI plugin.
func (d *dump) disabled() string {
	list, _ := d.all["disabled_plugins"].([]any)
	for _, one := range list {
		name, _ := one.(string)
		if name == criV1 || name == criV2 || name == criRuntime {
			return name
		}
	}
	return ""
}

// compare returns what differs between two dumps besides our own handler. imports
// is a list of the files that were read on 1.x, so it does not count.
func (d *dump) compare(after *dump) []string {
	var found []string
	differences(nil, d.all, after.all, func(path []string) {
		text := strings.Join(path, ".")
		if own := []string{"plugins", after.plugin, "containerd", "runtimes", Handler}; text == "imports" ||
			len(path) >= len(own) && slices.Equal(path[:len(own)], own) {
			return
		}
		found = append(found, text)
	})
	slices.Sort(found)
	return found
}

func differences(path []string, a, b tree, report func([]string)) {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for k := range keys {
		here := append(slices.Clone(path), k)
		ta, isA := a[k].(tree)
		tb, isB := b[k].(tree)
		switch {
		case isA && isB:
			differences(here, ta, tb, report)
		case !reflect.DeepEqual(a[k], b[k]):
			report(here)
		}
	}
}

// release is a version of containerd: major, minor, patch.
type release [3]int

func (r release) before(other release) bool { return slices.Compare(r[:], other[:]) < 0 }

var versionText = regexp.MustCompile(`\bv?(\d+)\.(\d+)\.(\d+)`)

// containerdVersion asks the binary for its version.
func containerdVersion(ctx context.Context, binary string) (r release, err error) {
	if err := config.CheckRootOwned(binary); err != nil {
		return r, refuse("%s would be run as root: %w", binary, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return r, fmt.Errorf("ask %s for its version: %w", binary, err)
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return r, fmt.Errorf("ask %s for its version: it says %.80q", binary, out)
	}
	for i := range r {
		if r[i], err = strconv.Atoi(string(m[i+1])); err != nil {
			return r, fmt.Errorf("ask %s for its version: %w", binary, err)
		}
	}
	return r, nil
}

// tryDump asks about a content that is not in place yet: a file of another name
// beside the real one, so that relative imports mean the same.
func tryDump(ctx context.Context, binary string, f *file, data []byte) (*dump, error) {
	tmp, err := os.CreateTemp(filepath.Dir(f.real), "."+filepath.Base(f.real)+".gpushare-try-*")
	if err != nil {
		return nil, fmt.Errorf("try a configuration: %w", err)
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if _, err := tmp.Write(data); err != nil {
		return nil, fmt.Errorf("try a configuration: %w", err)
	}
	return configDump(ctx, binary, tmp.Name())
}
