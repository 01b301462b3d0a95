// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// judge stands for a containerd in which a handler changes something else too, as
// 2.2 does with two imported files. WHERE chooses the files for which it does.
const judge = `#!/bin/sh
if [ "$1" = --version ]; then echo "containerd test v2.4.2"; exit; fi
echo 'version = 4'
if grep -q runtimes.gpushare "$2"; then
	sed -n '/^\[.*gpushare/,$p' "$2"
	case $2 in WHERE) echo '[plugins."io.containerd.cri.v1.images"]'; echo 'snapshotter = "native"' ;; esac
fi
echo '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]'
echo 'runtime_type = "io.containerd.runc.v2"'
`

// A handler with which anything else changes is refused before the file is written;
// where only the file in place shows it, the file is put back.
func TestContainerdJudgesEveryChange(t *testing.T) {
	for name, c := range map[string]struct {
		where string
		want  error
	}{
		"before": {"*gpushare-try*", ErrRefused},
		"after":  {"*/config.toml", ErrRolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.program = filepath.Join(p.bin, "containerd")
			p.write(p.program, []byte(strings.Replace(judge, "WHERE", c.where, 1)), 0o755)
			file := filepath.Join(p.dir, "config.toml")
			p.write(file, []byte("version = 4\n"), 0o644)
			before := p.snapshot()
			err := p.install(Containerd, file)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "other settings would change too: plugins.io.containerd.cri.v1.images") {
				t.Errorf("got %v", err)
			}
			if now := p.snapshot(); stripTimes(now) != stripTimes(before) {
				t.Errorf("before:\n%s\nnow:\n%s", before, now)
			}
		})
	}
}
