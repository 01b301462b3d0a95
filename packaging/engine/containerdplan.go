// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// contains reports whether a table has all that want has.
func contains(have, want tree) bool {
	for k, v := range want {
		if sub, ok := v.(tree); ok {
			if !contains(at(have, k), sub) {
				return false
			}
		} else if !reflect.DeepEqual(have[k], v) {
			return false
		}
	}
	return true
}

// plugins are the names under which a file of a version may have the runtime handlers,
// the usual one first. What a 2.x release makes of an older file's names differs from
// release to release, so each is tried until one does what it should.
func (c *containerd) plugins(version int64) []string {
	if usual := criPlugin(version); usual != c.before.plugin {
		return []string{usual, c.before.plugin}
	}
	return []string{c.before.plugin}
}

// effect returns why a configuration that was tried is not what it should be; nil if
// it has our handler and differs in nothing else.
func (c *containerd) effect(tried *dump, err error) error {
	if err != nil {
		return err
	}
	if at(tried.runtimes(), Handler) == nil {
		return errors.New("containerd does not see it, as where an imported file has the table of the CRI plugin too and replaces it")
	}
	if found := c.before.compare(tried); len(found) > 0 {
		return fmt.Errorf("other settings would change too: %s", strings.Join(found, ", "))
	}
	return nil
}

// planDropIn puts our handler into a file of its own, which containerd merges.
func (c *containerd) planDropIn(ctx context.Context, dir string, version int64, main, handler tree, notes []string) (*edit, error) {
	f, err := readFile(filepath.Join(dir, dropInName))
	if err != nil {
		return nil, err
	}
	if record, _ := f.history(); f.exists && record == nil {
		return nil, refuse("%s is there, and is not as this program writes it; remove it, or take out what you need", f.path)
	}
	// An imported file of a higher version than the main file's is not read by all.
	head := "# Written by \"gpushare install\", removed by \"gpushare uninstall\".\n"
	if _, says := main["version"]; says {
		head += fmt.Sprintf("version = %d\n", version)
	}
	var first error
	for _, plugin := range c.plugins(version) {
		text := []byte(head + "\n" + table(plugin, Handler, handler, layout{newline: "\n"}))
		err := c.effect(c.tryDropIn(ctx, main, text))
		if err == nil {
			return &edit{file: f, after: text, activation: c.activation(), notes: notes}, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, refuse("%s: with our handler in it, %w; define the handler by hand, see docs/reference/install.md", f.path, first)
}

// tryDropIn asks containerd about a file that is not in place yet, by a main file
// that means the same as the real one and imports it too.
func (c *containerd) tryDropIn(ctx context.Context, main tree, text []byte) (*dump, error) {
	tmp, err := os.CreateTemp(filepath.Dir(c.main.real), "."+dropInName+".gpushare-try-*")
	if err != nil {
		return nil, fmt.Errorf("try a configuration: %w", err)
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if _, err := tmp.Write(text); err != nil {
		return nil, fmt.Errorf("try a configuration: %w", err)
	}
	with := maps.Clone(main)
	imports, _ := main["imports"].([]any)
	with["imports"] = append(slices.Clone(imports), tmp.Name())
	data, err := toml.Marshal(with)
	if err != nil {
		return nil, fmt.Errorf("try a configuration: %w", err)
	}
	return tryDump(ctx, c.binary, c.main, data)
}

// planMain adds our handler at the end of the main file.
func (c *containerd) planMain(ctx context.Context, version int64, handler tree, notes []string) (*edit, error) {
	f := c.main
	base := f.content()
	if record, original := f.history(); record != nil {
		base = original
	} else if base != nil {
		var found bool
		if base, found = withoutBlock(base, readRecord(f.recordPath()) != nil); found {
			notes = append(notes, f.path+" has been edited since; only our own part of it is written anew")
		}
	}
	plain, err := parseTOML(f.path, base)
	if err != nil {
		return nil, err
	}
	l := layout{newline: "\n"}
	if bytes.Contains(base, []byte("\r\n")) {
		l.newline = "\r\n"
	}
	start := base
	if base == nil {
		if version = 2; c.before.plugin == criRuntime {
			version = versionOf(c.before.all)
		}
		start = fmt.Appendf(nil, "version = %d\n", version)
		notes = append(notes, fmt.Sprintf("%s is not there; it is made with our handler alone, and containerd's defaults stay", f.path))
	}
	var first error
	for _, plugin := range c.plugins(version) {
		if at(plain, "plugins", plugin, "containerd", "runtimes", Handler) != nil {
			return nil, refuse("%s has a handler %q already that this program did not write; remove it, or give it another name", f.path, Handler)
		}
		after, hidden, err := c.tryMain(ctx, start, plugin, handler, l)
		if err == nil {
			for _, name := range hidden {
				notes = append(notes, fmt.Sprintf("runtime %q is a built-in default that the file would hide, so it is written out", name))
			}
			return &edit{file: f, after: after, base: base, activation: c.activation(), notes: notes}, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, refuse("%s: with our handler added, %w; define the handler by hand, see docs/reference/install.md", f.path, first)
}

// tryMain adds our handler under one name of the plugin. On 1.x a table of handlers in
// the file stands in place of the built-in one, so that those which the file does not
// have would be gone; they are written out as containerd had them, and named.
func (c *containerd) tryMain(ctx context.Context, start []byte, plugin string, handler tree, l layout) (after []byte, hidden []string, err error) {
	block := table(plugin, Handler, handler, l)
	tried, err := c.try(ctx, withBlock(start, block, l))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.before.runtimes())) {
		if name == Handler || at(tried.runtimes(), name) != nil {
			continue
		}
		block += table(plugin, name, at(c.before.runtimes(), name), l)
		hidden = append(hidden, name)
	}
	after = withBlock(start, block, l)
	return after, hidden, c.effect(c.try(ctx, after))
}

// try asks containerd about the main file with another content.
func (c *containerd) try(ctx context.Context, data []byte) (*dump, error) {
	if c.main.noDir {
		return c.dumpAlone(ctx, data)
	}
	return tryDump(ctx, c.binary, c.main, data)
}

// planRemoval takes our handler out of the drop-in, or of the main file.
func (c *containerd) planRemoval(dir string) (*edit, error) {
	if name, _ := c.before.cri()["default_runtime_name"].(string); name == Handler {
		return nil, refuse("%q is containerd's default runtime; make it another one in %s first", Handler, c.main.path)
	}
	for _, d := range []string{dir, filepath.Join(filepath.Dir(c.main.path), "conf.d")} {
		if d == "" {
			continue
		}
		f, err := readFile(filepath.Join(d, dropInName))
		if err != nil {
			return nil, err
		}
		if f.exists {
			return c.removal(f, true)
		}
	}
	return c.removal(c.main, false)
}

func (c *containerd) removal(f *file, own bool) (*edit, error) {
	e := &edit{file: f, after: f.content(), base: f.content(), activation: c.activation()}
	if record, original := f.history(); record != nil {
		e.after, e.base = original, original
		return e, nil
	}
	if !f.exists {
		return e, nil
	}
	rest, found := withoutBlock(f.data, readRecord(f.recordPath()) != nil)
	if !found {
		return e, nil
	}
	e.notes = []string{f.path + " has been edited since; only our own part of it is taken out"}
	if left, err := parseTOML(f.path, rest); own && err == nil {
		if delete(left, "version"); len(left) == 0 {
			rest = nil
		}
	}
	e.after, e.base = rest, rest
	return e, nil
}

// check compares what containerd makes of its files now with what it made of them
// before: nothing but our handler may differ.
func (c *containerd) check(ctx context.Context) error {
	after, err := c.current(ctx)
	if err != nil {
		return err
	}
	if found := c.before.compare(after); len(found) > 0 {
		return fmt.Errorf("other settings would change too: %s", strings.Join(found, ", "))
	}
	if have := at(after.runtimes(), Handler) != nil; have != c.want {
		return fmt.Errorf("containerd reads its files as if nothing had been changed (handler %q: %t, want %t)", Handler, have, c.want)
	}
	return nil
}

func (c *containerd) current(ctx context.Context) (*dump, error) {
	now, err := readFile(c.main.path)
	if err != nil {
		return nil, err
	}
	if !now.exists {
		return c.dumpEmpty(ctx)
	}
	return configDump(ctx, c.binary, now.real)
}
