// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// withEmptyRuntimes is content with an empty table of runtimes, nil if it has one of
// its own. dockerd goes on with the runtimes that it has when it reads a file without
// the key. The result is read once; how it is laid out does not matter.
func withEmptyRuntimes(content []byte) ([]byte, error) {
	const key = "runtimes"
	top := map[string]json.RawMessage{}
	if content = bytes.TrimSpace(bytes.TrimPrefix(content, bomUTF8)); len(content) > 0 {
		if err := json.Unmarshal(content, &top); err != nil {
			return nil, fmt.Errorf("not valid JSON: %w", err)
		}
	}
	if _, has := top[key]; has {
		return nil, nil
	}
	top[key] = json.RawMessage("{}")
	return json.Marshal(top)
}

// forget makes the running dockerd forget our runtime before a file with the content
// next takes the place of its own. If next names no runtimes, reading it would change
// nothing, so dockerd is shown an empty table first. A crash between leaves that in
// the file; its digest is in the record by then, so that an uninstall still finds the
// original.
func (d *docker) forget(ctx context.Context, next []byte) error {
	empty, err := withEmptyRuntimes(next)
	if err != nil || empty == nil || d.proc == nil || d.opts.NoRestart {
		return err
	}
	info, err := d.api.info(ctx)
	if err != nil {
		return err
	}
	if _, known := info.Runtimes[Handler]; !known {
		return nil
	}
	if err := d.file.show(empty); err != nil {
		return err
	}
	if _, err := d.activate(ctx); err != nil {
		return err
	}
	return d.opts.await(ctx, d, false)
}

// show puts content into the file for a moment, known to the record as ours.
func (f *file) show(content []byte) error {
	if r := readRecord(f.recordPath()); r != nil {
		r.Clearing = digest(content)
		if err := writeRecord(f, r); err != nil {
			return err
		}
	}
	return f.put(content)
}

// sticks reports whether reading the file on disk again would leave dockerd with our
// runtime, if it has it.
func (d *docker) sticks() bool {
	f, err := readFile(d.file.path)
	if err != nil {
		return false
	}
	empty, err := withEmptyRuntimes(f.content())
	return err == nil && empty != nil
}

// forget calls an engine's own forget, if it needs one.
func forget(ctx context.Context, d driver, next []byte) error {
	if k, ok := d.(*docker); ok {
		return k.forget(ctx, next)
	}
	return nil
}
