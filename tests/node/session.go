// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Session is a program that is talked with line by line, so that a test waits for
// what happens and not for time to pass.
type Session struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string
	stderr strings.Builder
	once   sync.Once
	err    error
}

// Talk starts a program with its standard input and output in the caller's hands.
func Talk(ctx context.Context, env []string, argv ...string) (*Session, error) {
	s := &Session{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), lines: make(chan string, 1024)}
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = 2 * time.Second
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("talk with %s: %w", argv[0], err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("talk with %s: %w", argv[0], err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("talk with %s: %w", argv[0], err)
	}
	go func() {
		defer close(s.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	return s, nil
}

// Expect reads on to the first line that starts with prefix and returns it.
func (s *Session) Expect(prefix string, patience time.Duration) (string, error) {
	timeout := time.After(patience)
	var seen []string
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				err := s.Wait()
				return "", fmt.Errorf("expected %q, but the program ended (%w) after %q; it said: %s",
					prefix, err, seen, strings.TrimSpace(s.stderr.String()))
			}
			if strings.HasPrefix(line, prefix) {
				return line, nil
			}
			seen = append(seen, line)
		case <-timeout:
			return "", fmt.Errorf("expected %q within %v, saw %q", prefix, patience, seen)
		}
	}
}

// Next lets a program that holds go on.
func (s *Session) Next() error {
	if _, err := io.WriteString(s.stdin, "\n"); err != nil {
		return fmt.Errorf("let the program go on: %w", err)
	}
	return nil
}

// Wait closes standard input and waits for the end of the program.
func (s *Session) Wait() error {
	s.once.Do(func() {
		_ = s.stdin.Close()
		for range s.lines { // drained, so that the program is not stuck on a full pipe
		}
		s.err = s.cmd.Wait()
	})
	if s.err != nil {
		return s.err
	}
	return errEnded(s.cmd)
}

func errEnded(cmd *exec.Cmd) error {
	if cmd.ProcessState != nil && cmd.ProcessState.Success() {
		return nil
	}
	return errors.New("it did not end well")
}

// End ends the program by force; for one that only follows another's output.
func (s *Session) End() {
	_ = s.cmd.Process.Kill()
	_ = s.Wait()
}

// Stderr is what the program has written to standard error; complete after Wait.
func (s *Session) Stderr() string { return s.stderr.String() }
