// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gpushare/gpushare/internal/config"
)

// record is what we know of a file that we have changed. It lies beside the file,
// with the original as a plain copy that people can put back by hand.
type record struct {
	Version int    `json:"version"`
	File    string `json:"file"`
	// Original is the digest of the backup; empty: there was no file.
	Original string `json:"original_sha256,omitempty"`
	// Written is the digest of what we wrote. A file with another content has been
	// edited by somebody since.
	Written string `json:"written_sha256"`
	// Clearing is the digest of what is there for a moment while dockerd is made to
	// forget the runtime; it is ours as well.
	Clearing string `json:"clearing_sha256,omitempty"`
	// MadeDir says that the directory was made by us, too.
	MadeDir bool `json:"made_dir,omitempty"`
}

const recordVersion = 1

func (f *file) backupPath() string { return f.real + ".gpushare-backup" }
func (f *file) recordPath() string { return f.real + ".gpushare" }

// history returns the record of a file and its original content (nil: there was
// none). The record is nil if the file is not as we left it, or never was ours; a
// record that cannot be trusted counts as none, since the key alone can be taken out
// without it.
func (f *file) history() (*record, []byte) {
	r := readRecord(f.recordPath())
	if r == nil || !f.exists {
		return nil, nil
	}
	if now := digest(f.content()); now != r.Written && now != r.Clearing {
		return nil, nil
	}
	if r.Original == "" {
		return r, nil
	}
	data, err := readOwn(f.backupPath())
	if err != nil || digest(data) != r.Original {
		return nil, nil
	}
	return r, data
}

func readRecord(path string) *record {
	data, err := readOwn(path)
	if err != nil {
		return nil
	}
	var r record
	if json.Unmarshal(data, &r) != nil || r.Version != recordVersion {
		return nil
	}
	return &r
}

func readOwn(path string) ([]byte, error) {
	if err := config.CheckRootOwned(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// commit writes an edit: first the original and the record, then the file. A crash
// between leaves the old file with a record that does not fit it, which counts for
// nothing. undo puts back what was there before.
func (e *edit) commit() (undo func() error, err error) {
	f := e.file
	old := readRecord(f.recordPath())
	oldBackup, backupErr := readOwn(f.backupPath())
	hadBackup := backupErr == nil
	replaced := false
	back := func() (err error) {
		if now, readErr := readFile(f.path); replaced && (readErr != nil || digest(now.content()) != digest(f.content())) {
			err = f.put(f.content())
		}
		if old != nil {
			err = errors.Join(err, writeRecord(f, old))
		} else {
			err = errors.Join(err, drop(f.recordPath()))
		}
		if !hadBackup {
			err = errors.Join(err, drop(f.backupPath()))
		} else if now, readErr := readOwn(f.backupPath()); readErr != nil || !bytes.Equal(now, oldBackup) {
			err = errors.Join(err, writeWhole(f.backupPath(), oldBackup, 0o600, 0, 0))
		}
		if f.noDir {
			_ = os.Remove(filepath.Dir(f.real)) // only if it is empty
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, back())
		}
	}()
	if f.noDir {
		if err := os.Mkdir(filepath.Dir(f.real), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	r := &record{Version: recordVersion, File: f.path, Original: digest(e.base), Written: digest(e.after), MadeDir: f.noDir || old != nil && old.MadeDir}
	if e.base != nil {
		if err := writeWhole(f.backupPath(), e.base, 0o600, 0, 0); err != nil {
			return nil, err
		}
	}
	if err := writeRecord(f, r); err != nil {
		return nil, err
	}
	replaced = true
	if err := f.put(e.after); err != nil {
		return nil, err
	}
	return back, nil
}

// forget removes what we keep beside a file, and the directory if we made it and it
// is empty now.
func (f *file) forget() error {
	old := readRecord(f.recordPath())
	err := errors.Join(drop(f.backupPath()), drop(f.recordPath()))
	if old != nil && old.MadeDir {
		_ = os.Remove(filepath.Dir(f.real))
	}
	return err
}

func writeRecord(f *file, r *record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", f.recordPath(), err)
	}
	return writeWhole(f.recordPath(), append(data, '\n'), 0o600, 0, 0)
}

func drop(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
