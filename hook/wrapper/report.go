// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report tells a failure twice, as runc does: a line on stderr, and a line in
// the file that the engine named with --log and whose last error it shows to
// its user.
func report(stderr io.Writer, inv *invocation, err error, now time.Time) {
	message := "gpushare: " + oneLine(err.Error())
	fmt.Fprintln(stderr, message)
	kind, path, named := strings.Cut(inv.log, ":")
	switch {
	case inv.log == "", named && (kind == "journald" || kind == "syslog"):
		return // crun's other places
	case !named || kind != "file":
		path = inv.log
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return // stderr has it already
	}
	defer f.Close()
	stamp := now.UTC().Format(time.RFC3339)
	if inv.logFormat == "json" {
		line, err := json.Marshal(struct {
			Level string `json:"level"`
			Msg   string `json:"msg"`
			Time  string `json:"time"`
		}{"error", message, stamp})
		if err == nil {
			_, _ = f.Write(append(line, '\n'))
		}
		return
	}
	_, _ = fmt.Fprintf(f, "time=%q level=error msg=%q\n", stamp, message)
}

// oneLine keeps a message in one line and free of control characters, whatever
// a tenant's value in it contains.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
