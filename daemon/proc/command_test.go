// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bufio"
	"os/exec"
	"testing"
)

// What a tenant calls its process reaches the administrator's terminal: neither an
// escape, of whichever set of control characters, nor what turns text around may.
func TestCommandIsPrintable(t *testing.T) {
	cmd := exec.Command("sh", "-c", `printf 'a\033[1\n\302\233b\342\200\256\377é' >/proc/$$/comm; echo; read wait`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if got, want := Command(cmd.Process.Pid), "a?[1??b??é"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
