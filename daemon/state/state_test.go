// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/proc"
)

func record(id string) *Record {
	return &Record{
		ID: id, BootID: "boot", HostMemoryBytes: 7, Bundle: "/b", BundleSeen: true, RuntimeRoot: "/r", MountLabel: "l",
		Request: v1.Request{Memory: "8Gi", Compute: "30%"}, Source: v1.SourceEnv,
		Created:  time.Unix(1700000000, 5).UTC(),
		Claimant: proc.ID{PID: 4, Start: 5}, Init: proc.ID{PID: 6, Start: 7}, Group: proc.Group{Hierarchy: "devices", Path: "/x"},
		GPUs: []GPU{{UUID: "GPU-1", Index: 1, MemoryBytes: 8 << 30, ComputeMilli: 300, CeilingMilli: 300}},
		Name: "n", Engine: "docker", Exposed: []string{"privileged"}, Fault: "f",
		Asked: &v1.Request{Memory: "4Gi"}, Set: map[string]Set{"memory": {Word: "8Gi", Time: time.Unix(1700000009, 0).UTC()}},
	}
}

func open(t *testing.T) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func TestRoundTrip(t *testing.T) {
	s, dir := open(t)
	want := record("a")
	for range 2 {
		if err := s.Save(want); err != nil {
			t.Fatal(err)
		}
	}
	got, bad, err := s.Load()
	if err != nil || len(bad) != 0 || len(got) != 1 {
		t.Fatalf("Load = %v, %v, %v", got, bad, err)
	}
	got[0].unknown = nil
	if want.Generation != 2 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("read %+v, want %+v", got[0], want)
	}
	// Every field is set above, so that one that is forgotten shows here.
	v := reflect.ValueOf(*want)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && v.Field(i).IsZero() {
			t.Errorf("the test leaves %s empty", f.Name)
		}
	}
	if fi, _ := os.Stat(dir); fi.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, want 0700", fi.Mode())
	}
	if err := s.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("a"); err != nil {
		t.Errorf("Remove twice: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("left over: %v", names)
	}
}

// A field that has become empty does not come back from the file that the record was
// read from.
func TestEmptiedFieldsStayEmpty(t *testing.T) {
	s, _ := open(t)
	full := record("a")
	full.HostMemoryBytes, full.Fault, full.BundleSeen, full.Exposed = 5, "a fault", true, []string{"x"}
	full.Asked, full.Set = &v1.Request{Memory: "1Gi"}, map[string]Set{"memory": {Word: "1Gi"}}
	if err := s.Save(full); err != nil {
		t.Fatal(err)
	}
	load := func() *Record {
		got, bad, err := s.Load()
		if len(got) != 1 || len(bad) != 0 || err != nil {
			t.Fatalf("Load: %v, %v, %v", got, bad, err)
		}
		return got[0]
	}
	r := load()
	if len(r.unknown) != 0 {
		t.Errorf("fields of Record that it does not know: %v", r.unknown)
	}
	r.Bundle, r.RuntimeRoot, r.MountLabel, r.Source, r.Fault, r.Name, r.Engine = "", "", "", "", "", "", ""
	r.HostMemoryBytes, r.BundleSeen, r.Asked, r.Set, r.Exposed = 0, false, nil, nil, nil
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	got := load()
	r.unknown, got.unknown = nil, nil
	if !reflect.DeepEqual(got, r) {
		t.Errorf("read back %+v, saved %+v", got, r)
	}
}

// A newer daemon's fields survive being saved by this one.
func TestUnknownFieldsSurvive(t *testing.T) {
	s, dir := open(t)
	body, _ := json.Marshal(record("a"))
	body = append([]byte(`{"from_the_future":{"x":[1]},`), body[1:]...)
	raw, _ := json.Marshal(file{Schema: Schema, CRC32C: crc32.Checksum(body, table), Record: body})
	os.WriteFile(filepath.Join(dir, "a.json"), raw, 0o600)
	got, bad, _ := s.Load()
	if len(got) != 1 {
		t.Fatalf("Load: %v", bad)
	}
	if err := s.Save(got[0]); err != nil {
		t.Fatal(err)
	}
	raw, _ = os.ReadFile(filepath.Join(dir, "a.json"))
	if !strings.Contains(string(raw), `"from_the_future":{"x":[1]}`) {
		t.Errorf("lost: %s", raw)
	}
}

// Whatever a file holds, Load returns the others and sets it aside.
func TestCorruptFilesAreSetAside(t *testing.T) {
	good := func() []byte { b, _ := encode(record("bad")); return b }
	sealed := func(body string) []byte {
		b, _ := json.Marshal(file{Schema: Schema, CRC32C: crc32.Checksum([]byte(body), table), Record: json.RawMessage(body)})
		return b
	}
	cases := map[string][]byte{
		"empty":            {},
		"cut short":        good()[:40],
		"zeros":            make([]byte, 4096),
		"null":             []byte("null"),
		"a bit flipped":    []byte(strings.Replace(string(good()), `"memory_bytes":8`, `"memory_bytes":9`, 1)),
		"another schema":   []byte(strings.Replace(string(good()), `"schema":1`, `"schema":99`, 1)),
		"another's record": func() []byte { b, _ := encode(record("other")); return b }(),
		"wrong types":      sealed(`{"id":7}`),
		"no GPU":           sealed(`{"id":"bad","gpus":[]}`),
		"zero limit":       sealed(`{"id":"bad","gpus":[{"uuid":"x","ceiling_milli":1000}]}`),
		"share over 1":     sealed(`{"id":"bad","gpus":[{"uuid":"x","memory_bytes":1,"ceiling_milli":1001}]}`),
		"too large":        make([]byte, maxFile+1),
		"deep":             []byte(strings.Repeat("[", 20000)),
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			s, dir := open(t)
			if err := s.Save(record("good")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "bad.json"), raw, 0o600); err != nil {
				t.Fatal(err)
			}
			got, bad, err := s.Load()
			if err != nil || len(got) != 1 || got[0].ID != "good" || len(bad) != 1 || bad[0].ID != "bad" {
				t.Fatalf("Load = %v, %v, %v", got, bad, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "bad.json.corrupt")); err != nil {
				t.Error(err)
			}
			if _, bad, _ := s.Load(); len(bad) != 0 {
				t.Errorf("set aside twice: %v", bad)
			}
		})
	}
	t.Run("a link", func(t *testing.T) {
		s, dir := open(t)
		os.Symlink("/etc/passwd", filepath.Join(dir, "bad.json"))
		if got, bad, err := s.Load(); err != nil || len(got) != 0 || len(bad) != 1 {
			t.Fatalf("Load = %v, %v, %v", got, bad, err)
		}
	})
}

func TestSaveRefusesPaths(t *testing.T) {
	s, _ := open(t)
	if err := s.Save(record("../x")); !errors.Is(err, proc.ErrBadID) {
		t.Errorf("Save: %v, want ErrBadID", err)
	}
}

func FuzzDecode(f *testing.F) {
	b, _ := encode(record("a"))
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if r, err := decode(raw); err == nil && r.validate() != nil {
			t.Error("decode returned an impossible record")
		}
	})
}
