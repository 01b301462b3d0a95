// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package state keeps what the daemon must know after its own restart: one small
// file for each container, on the run directory's tmpfs, so that a reboot forgets
// them all.
//
// The files are a cache of what the runtimes and the kernel know. A file that
// does not read back is set aside under the suffix .corrupt, once, and never
// stops the daemon. A Store must be used by one goroutine at a time.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/proc"
)

// Schema is the version of the files. A file of another one is set aside.
const Schema = 1

// maxFile bounds a file in bytes: a record with 16 GPUs takes about 4 KiB.
const maxFile = 256 << 10

// ErrCorrupt is returned for a file that is not a record of this schema.
var ErrCorrupt = errors.New("not a record")

// GPU is a container's part of one GPU.
type GPU struct {
	UUID         string `json:"uuid"`
	Index        int    `json:"index"` // when it was claimed; shown if the GPU is gone
	MemoryBytes  uint64 `json:"memory_bytes"`
	ComputeMilli uint32 `json:"compute_milli"`
	CeilingMilli uint32 `json:"ceiling_milli"`
}

// Set is a word that `gpushare set` put in the place of the one asked for.
type Set struct {
	Word string    `json:"word"`
	Time time.Time `json:"time"`
}

// Record is what is kept of a container.
type Record struct {
	ID          string     `json:"id"`
	BootID      string     `json:"boot_id"`
	Generation  uint64     `json:"generation"` // bumped by every Save
	Bundle      string     `json:"bundle,omitempty"`
	BundleSeen  bool       `json:"bundle_seen,omitempty"` // by the daemon, at the claim
	RuntimeRoot string     `json:"runtime_root,omitempty"`
	MountLabel  string     `json:"mount_label,omitempty"`
	Request     v1.Request `json:"request"`
	Source      string     `json:"source,omitempty"`
	Created     time.Time  `json:"created"`
	// Claimant is the process that asked and becomes the low-level runtime.
	Claimant proc.ID `json:"claimant"`
	// Init is the container's first process; no process while the claim is pending.
	Init  proc.ID    `json:"init"`
	Group proc.Group `json:"group"`
	GPUs  []GPU      `json:"gpus"`
	// HostMemoryBytes of the host's memory may hold what does not fit into the limits.
	HostMemoryBytes uint64 `json:"host_memory_bytes,omitempty"`
	// Asked is what the container asked for when it was claimed, once a word of
	// Request has been changed since.
	Asked *v1.Request `json:"asked,omitempty"`
	// Set holds the words that were changed since, by the name of the limit.
	Set map[string]Set `json:"set,omitempty"`
	// Fault says what of the container's enforcement was lost for good.
	Fault string `json:"fault,omitempty"`
	// Name and Engine are what the engine calls it.
	Name   string `json:"name,omitempty"`
	Engine string `json:"engine,omitempty"`
	// Exposed says how the container could undo its limits; node policy allowed it.
	Exposed []string `json:"exposed,omitempty"`

	// unknown holds fields of a newer daemon, kept over a downgrade.
	unknown map[string]json.RawMessage
}

// Original is what the container asked for when it was claimed.
func (r *Record) Original() v1.Request {
	if r.Asked != nil {
		return *r.Asked
	}
	return r.Request
}

// file is what is on disk.
type file struct {
	Schema int             `json:"schema"`
	CRC32C uint32          `json:"crc32c"` // of Record's bytes
	Record json.RawMessage `json:"record"`
}

var table = crc32.MakeTable(crc32.Castagnoli)

// Store is the directory of the files.
type Store struct{ dir string }

// Open makes the directory, mode 0700, if need be.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	return &Store{dir: dir}, nil
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, id+".json") }

// Save writes the record and returns when it is in place: a reader sees the old
// file or the new one.
func (s *Store) Save(r *Record) error {
	if err := proc.ValidID(r.ID); err != nil {
		return fmt.Errorf("save record: %w", err)
	}
	r.Generation++
	raw, err := encode(r)
	if err != nil {
		return fmt.Errorf("save record of %s: %w", r.ID, err)
	}
	// The name cannot be a container's: those have no ~.
	tmp := filepath.Join(s.dir, "~new")
	if err := writeFile(tmp, raw); err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("save record of %s: %w", r.ID, err)
	}
	if err := os.Rename(tmp, s.path(r.ID)); err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("save record of %s: %w", r.ID, err)
	}
	return nil
}

func writeFile(path string, raw []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(raw); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Remove forgets a container. One that is not there is no error.
func (s *Store) Remove(id string) error {
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove record of %s: %w", id, err)
	}
	return nil
}

// Corrupt is a file that did not read back.
type Corrupt struct {
	ID  string // of the container, by the file's name
	Err error
}

// Load reads all records. Files that are none are set aside and listed.
func (s *Store) Load() ([]*Record, []Corrupt, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("load state: %w", err)
	}
	var records []*Record
	var bad []Corrupt
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		r, err := s.read(id)
		if err == nil {
			records = append(records, r)
			continue
		}
		if aside := os.Rename(s.path(id), s.path(id)+".corrupt"); aside != nil {
			err = errors.Join(err, aside)
		}
		bad = append(bad, Corrupt{ID: id, Err: err})
	}
	return records, bad, nil
}

func (s *Store) read(id string) (*Record, error) {
	f, err := os.OpenFile(s.path(id), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	r, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	if r.ID != id {
		return nil, fmt.Errorf("read record: it is %q's: %w", r.ID, ErrCorrupt)
	}
	return r, nil
}

func encode(r *Record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(r.unknown) > 0 {
		all := make(map[string]json.RawMessage)
		if err := json.Unmarshal(body, &all); err != nil {
			return nil, err
		}
		for k, v := range r.unknown {
			if _, ok := all[k]; !ok {
				all[k] = v
			}
		}
		if body, err = json.Marshal(all); err != nil {
			return nil, err
		}
	}
	return json.Marshal(file{Schema: Schema, CRC32C: crc32.Checksum(body, table), Record: body})
}

func decode(raw []byte) (*Record, error) {
	if len(raw) > maxFile {
		return nil, fmt.Errorf("more than %d bytes: %w", maxFile, ErrCorrupt)
	}
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if f.Schema != Schema {
		return nil, fmt.Errorf("schema %d, this daemon writes %d: %w", f.Schema, Schema, ErrCorrupt)
	}
	if sum := crc32.Checksum(f.Record, table); sum != f.CRC32C {
		return nil, fmt.Errorf("checksum %08x, %08x written: %w", sum, f.CRC32C, ErrCorrupt)
	}
	r := &Record{}
	if err := json.Unmarshal(f.Record, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err := json.Unmarshal(f.Record, &r.unknown); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	for _, k := range known {
		delete(r.unknown, k)
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// known are the fields that Record has. What is known is never kept from an older
// file: a field that is empty now would come back from it.
var known = func() (names []string) {
	t := reflect.TypeFor[Record]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}()

func (r *Record) validate() error {
	if err := proc.ValidID(r.ID); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(r.GPUs) == 0 {
		return fmt.Errorf("no GPU: %w", ErrCorrupt)
	}
	for _, g := range r.GPUs {
		if g.UUID == "" || g.MemoryBytes == 0 || g.ComputeMilli > g.CeilingMilli || g.CeilingMilli == 0 || g.CeilingMilli > 1000 {
			return fmt.Errorf("impossible limits on %q: %w", g.UUID, ErrCorrupt)
		}
	}
	return nil
}
