// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// good are files that dockerd reads; each gets the key and loses it again.
var goodDaemonJSON = map[string]string{
	"absent":          "\x00",
	"empty":           "",
	"white space":     " \n\n",
	"empty object":    "{}",
	"object, newline": "{\n}\n",
	"one line":        `{"log-level":"warn","bip":"172.26.0.1/16"}`,
	"typical": `{
  "log-driver": "journald",
  "exec-opts": ["native.cgroupdriver=systemd"],
  "log-opts": { "max-size": "10m" }
}
`,
	"tabs, order, odd spaces": "{\n\t\"storage-driver\" : \"overlay2\" ,\n\t\"bip\":\"10.9.0.1/24\"\n}",
	"CRLF":                    "{\r\n    \"debug\": true\r\n}\r\n",
	"BOM":                     "\xef\xbb\xbf{\n    \"debug\": true\n}\n",
	"BOM alone":               "\xef\xbb\xbf",
	"nvidia's": `{
    "default-runtime": "nvidia",
    "runtimes": {
        "nvidia": {
            "args": [],
            "path": "nvidia-container-runtime"
        }
    }
}
`,
	"runtimes in one line":       "{\n  \"runtimes\": { \"crun\": {\"path\": \"/usr/bin/crun\"} },\n  \"debug\": false\n}\n",
	"runtimes empty":             "{\n  \"runtimes\": {},\n  \"debug\": false\n}\n",
	"brackets and quotes inside": `{"labels": ["a}b", "c\"]", "{\"runtimes\": 1}"], "x\u0079": {"gpushare": {}}}`,
	"escaped key":                "{\n    \"\\u0072untimes\": {\"crun\": {\"path\": \"crun\"}}\n}",
	"non-ASCII":                  "{\n    \"data-root\": \"/srv/Größe/データ\"\n}\n",
}

func TestDockerInstallAndUninstall(t *testing.T) {
	for name, text := range goodDaemonJSON {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			file := filepath.Join(p.dir, "daemon.json")
			if text != "\x00" {
				p.write(file, []byte(text), 0o640)
				if err := os.Chown(file, 0, 7); err != nil {
					t.Fatal(err)
				}
			}
			before := p.snapshot()
			if err := p.install(Docker, file); err != nil {
				t.Fatal(err)
			}
			after := p.read(file)
			wantRuntime(t, after, filepath.Join(p.bin, "gpushare-runtime"), text)
			if text != "\x00" && strings.TrimSpace(strings.TrimPrefix(text, string(bomUTF8))) != "" {
				kept(t, []byte(text), after)
			}
			if strings.Contains(text, "\r\n") && bytes.Count(after, []byte("\n")) != bytes.Count(after, []byte("\r\n")) {
				t.Errorf("line ends are mixed: %q", after)
			}
			if info, err := os.Stat(file + ".gpushare"); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the record is not root's alone: %v, %v", info, err)
			}
			installed := p.snapshot()
			if err := p.install(Docker, file); err != nil || !strings.Contains(p.said.String(), "no change") {
				t.Errorf("second install: %v, %s", err, p.said.String())
			}
			if now := p.snapshot(); now != installed {
				t.Errorf("second install changed something:\n%s\nnow:\n%s", installed, now)
			}
			if err := p.uninstall(Docker, file); err != nil {
				t.Fatal(err)
			}
			if text == "\x00" {
				if len(p.names()) != 0 {
					t.Errorf("left: %q", p.names())
				}
				return
			}
			if got := p.read(file); string(got) != text {
				t.Errorf("after uninstall %q, want %q", got, text)
			}
			if len(p.names()) != 1 {
				t.Errorf("left: %q", p.names())
			}
			if stripTimes(p.snapshot()) != stripTimes(before) {
				t.Errorf("mode changed:\n%s\nnow:\n%s", before, p.snapshot())
			}
			if err := p.uninstall(Docker, file); err != nil || !strings.Contains(p.said.String(), "no change") {
				t.Errorf("second uninstall: %v, %s", err, p.said.String())
			}
		})
	}
}

// stripTimes drops all but names, modes and digests.
func stripTimes(snapshot string) string {
	var out strings.Builder
	for line := range strings.Lines(snapshot) {
		f := strings.Fields(line)
		out.WriteString(f[0] + " " + f[1] + " " + f[len(f)-1] + "\n")
	}
	return out.String()
}

// wantRuntime checks that the text has our runtime and nothing else was changed.
func wantRuntime(t *testing.T, after []byte, path, before string) {
	t.Helper()
	read := func(text string) map[string]any {
		m := map[string]any{}
		text = strings.TrimPrefix(text, string(bomUTF8))
		if strings.Trim(text, " \n\x00") != "" {
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				t.Fatalf("%v in %q", err, text)
			}
		}
		return m
	}
	was, is := read(before), read(string(after))
	runtimes, _ := is["runtimes"].(map[string]any)
	if want := map[string]any{"path": path}; !reflect.DeepEqual(runtimes[Handler], want) {
		t.Errorf("runtime is %v, want %v, in\n%s", runtimes[Handler], want, after)
	}
	delete(runtimes, Handler)
	if len(runtimes) == 0 && was["runtimes"] == nil {
		delete(is, "runtimes")
	}
	if !reflect.DeepEqual(was, is) {
		t.Errorf("other keys changed: %v, were %v", is, was)
	}
}

// What dockerd would not read, or reads otherwise than it looks, is left alone, and
// the message says where the trouble is.
func TestDockerLeavesBrokenFilesAlone(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"missing comma":     {"{\n  \"a\": 1\n  \"b\": 2\n}\n", "line 3, column 3"},
		"two objects":       {"{\"a\": 1}\n{\"b\": 2}\n", "line 2, column 1"},
		"trailing comma":    {"{\n  \"a\": 1,\n}\n", "line 3, column 1"},
		"comment":           {"{\n  // mine\n  \"a\": 1\n}\n", "line 2, column 3"},
		"cut off":           {"{\n  \"a\": \"b", "line 2, column"},
		"array":             {"\n[1]\n", "line 2, column 1: not a JSON object"},
		"garbage":           {"\x00\x01\x02", "line 1, column 1"},
		"duplicate key":     {"{\n  \"a\": 1,\n  \"a\": 2\n}\n", `line 3, column 3: key "a" is there twice`},
		"duplicate runtime": {"{\"runtimes\": {\"x\": {}, \"x\": {}}}", `line 1, column 24: key "x" is there twice`},
		"runtimes a list":   {"{\n  \"runtimes\": []\n}", `line 2, column 15: "runtimes" is not an object`},
		"UTF-16":            {"\xff\xfe{\x00}\x00", "line 1, column 1: written in UTF-16"},
		"somebody's own":    {"{\n  \"runtimes\": {\n    \"gpushare\": {\"path\": \"/opt/mine\"}\n  }\n}", "line 3, column 5: there is a runtime \"gpushare\" already"},
		"by type":           {"{\"runtimes\": {\"gpushare\": {\"runtimeType\": \"io.containerd.gpushare.v1\"}}}", "runtimeType"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			file := filepath.Join(p.dir, "daemon.json")
			p.write(file, []byte(c.text), 0o644)
			before := p.snapshot()
			err := p.install(Docker, file)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			if now := p.snapshot(); now != before {
				t.Errorf("touched:\n%s\nnow:\n%s", before, now)
			}
		})
	}
}

// What somebody has edited since the install stays; only our key goes.
func TestDockerUninstallAfterEdits(t *testing.T) {
	for name, c := range map[string]struct{ before, edit, with, want string }{
		"a key added": {"{\n    \"debug\": true\n}\n", "\"debug\": true", "\"debug\": false,\n    \"bip\": \"10.0.0.1/24\"",
			"{\n    \"debug\": false,\n    \"bip\": \"10.0.0.1/24\"\n}\n"},
		"a runtime added": {"{}", `"gpushare": {`, `"crun": {"path": "crun"}, "gpushare": {`,
			"{\n    \"runtimes\": {\n        \"crun\": {\"path\": \"crun\"}\n    }\n}"},
		"the first of two": {"{}", "\n        }", "\n        }, \"crun\": {\"path\": \"crun\"}",
			"{\n    \"runtimes\": {\n        \"crun\": {\"path\": \"crun\"}\n    }\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			file := filepath.Join(p.dir, "daemon.json")
			p.write(file, []byte(c.before), 0o644)
			if err := p.install(Docker, file); err != nil {
				t.Fatal(err)
			}
			edited := bytes.Replace(p.read(file), []byte(c.edit), []byte(c.with), 1)
			p.write(file, edited, 0o644)
			if err := p.install(Docker, file); err != nil || !strings.Contains(p.said.String(), "no change") {
				t.Errorf("install of an edited file: %v %s", err, p.said.String())
			}
			if err := p.uninstall(Docker, file); err != nil {
				t.Fatal(err)
			}
			if got := p.read(file); string(got) != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if !strings.Contains(p.said.String(), "has been edited since") {
				t.Errorf("does not say so: %s", p.said.String())
			}
			if len(p.names()) != 1 {
				t.Errorf("left: %q", p.names())
			}
		})
	}
	t.Run("made docker's default", func(t *testing.T) {
		p := newPlace(t)
		file := filepath.Join(p.dir, "daemon.json")
		p.write(file, []byte("{\n    \"default-runtime\": \"gpushare\"\n}\n"), 0o644)
		if err := p.install(Docker, file); err != nil {
			t.Fatal(err)
		}
		before := p.snapshot()
		if err := p.uninstall(Docker, file); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "default runtime") {
			t.Errorf("got %v", err)
		}
		if p.snapshot() != before {
			t.Error("touched")
		}
	})
}

// An install from another prefix takes over, and what uninstall puts back is still
// what was there before the first.
func TestDockerMovesWithThePrefix(t *testing.T) {
	const text = "{\n    \"debug\": true\n}\n"
	p := newPlace(t)
	file := filepath.Join(p.dir, "daemon.json")
	p.write(file, []byte(text), 0o644)
	if err := p.install(Docker, file); err != nil {
		t.Fatal(err)
	}
	p.bin = filepath.Join(filepath.Dir(p.bin), "opt")
	if err := os.Mkdir(p.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(filepath.Join(p.bin, "gpushare-runtime"), nil, 0o755)
	if err := p.install(Docker, file); err != nil {
		t.Fatal(err)
	}
	wantRuntime(t, p.read(file), filepath.Join(p.bin, "gpushare-runtime"), text)
	if err := p.uninstall(Docker, file); err != nil {
		t.Fatal(err)
	}
	if got := p.read(file); string(got) != text {
		t.Errorf("got %q", got)
	}
}
