// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// Whatever the file is, it is refused, or it has our key and all that it had, and
// loses nothing but that key again.
func FuzzDaemonJSON(f *testing.F) {
	for _, text := range goodDaemonJSON {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		after, same, err := withRuntime("f", data, "/bin/gpushare-runtime")
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		read := func(text []byte) map[string]any {
			text = bytes.TrimPrefix(text, bomUTF8)
			m := map[string]any{}
			if len(bytes.TrimSpace(text)) > 0 {
				if err := json.Unmarshal(text, &m); err != nil {
					t.Fatalf("%q became %q: %v", data, text, err)
				}
			}
			return m
		}
		was, is := read(data), read(after)
		runtimes, _ := is["runtimes"].(map[string]any)
		if own, _ := runtimes[Handler].(map[string]any); own["path"] != "/bin/gpushare-runtime" {
			t.Fatalf("%q became %q", data, after)
		}
		if again, twice, err := withRuntime("f", after, "/bin/gpushare-runtime"); err != nil || !twice || !bytes.Equal(again, after) {
			t.Fatalf("a second time %q became %q, %v", after, again, err)
		}
		rest, found, err := withoutRuntime("f", after)
		if err != nil || !found {
			t.Fatalf("%q: %t, %v", after, found, err)
		}
		now := read(rest)
		for _, m := range []map[string]any{was, now} { // an empty "runtimes" is as good as none
			if all, ok := m["runtimes"].(map[string]any); ok {
				if delete(all, Handler); len(all) == 0 {
					delete(m, "runtimes")
				}
			}
		}
		if !same && !reflect.DeepEqual(was, now) {
			t.Fatalf("%q came back as %q", data, rest)
		}
	})
}

// Nothing that a containerd may say as its CRI configuration upsets the reader.
func FuzzCRIStatus(f *testing.F) {
	f.Add([]byte{0x12, 0x0c, 0x0a, 0x06, 'c', 'o', 'n', 'f', 'i', 'g', 0x12, 0x02, '{', '}'})
	f.Fuzz(func(_ *testing.T, data []byte) {
		_ = fields(data, func(_ uint64, entry []byte) error {
			return fields(entry, func(uint64, []byte) error { return nil })
		})
	})
}
