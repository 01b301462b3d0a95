// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// maxHead bounds an answer's status line and headers, in bytes.
const maxHead = 64 << 10

// answer is what the daemon said. The body must be closed.
type answer struct {
	status int
	// simulated is what SimulatedHeader says.
	simulated bool
	body      io.Reader
	close     func() error
}

func (a *answer) Close() error { return a.close() }

// open sends one request over a connection of its own and reads the answer's head.
// The body may go on for as long as ctx does.
//
// net/http would add 2 MB, TLS included, to programs that run at every container
// start or stay for as long as a container does. HTTP/1.0 to a unix socket is all
// that they need: the body ends with the connection, so there is nothing to decode.
func open(ctx context.Context, socket, method, path string, body []byte) (_ *answer, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	end := func() error { stop(); return conn.Close() }
	defer func() {
		if err == nil {
			return
		}
		_ = end()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	head := method + " " + path + " HTTP/1.0\r\nHost: gpushared\r\n"
	if body != nil {
		head += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	// A daemon that refuses early need not read it all; its answer counts.
	_, writing := conn.Write(append([]byte(head+"\r\n"), body...))
	limited := &io.LimitedReader{R: conn, N: maxHead}
	r := bufio.NewReader(limited)
	a, length, err := readHead(r)
	if err != nil {
		return nil, errors.Join(writing, err)
	}
	limited.N = 1<<63 - 1
	a.body, a.close = &whole{r: r, left: length, ctx: ctx}, end
	return a, nil
}

// readHead reads up to the empty line. length is -1 if the answer does not say.
func readHead(r *bufio.Reader) (_ *answer, length int64, err error) {
	line, err := readLine(r)
	if err != nil {
		return nil, 0, err
	}
	a := &answer{}
	protocol, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	if a.status, err = strconv.Atoi(code); err != nil || !strings.HasPrefix(protocol, "HTTP/1.") || a.status < 200 || a.status > 599 {
		return nil, 0, fmt.Errorf("read its answer: %.60q is no status line of HTTP", line)
	}
	for length = -1; ; {
		if line, err = readLine(r); err != nil || line == "" {
			return a, length, err
		}
		key, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(key, "Content-Length") {
			if length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil || length < 0 {
				return nil, 0, fmt.Errorf("read its answer: content length %.60q", value)
			}
		}
		if strings.EqualFold(key, SimulatedHeader) {
			a.simulated = strings.TrimSpace(value) == "true"
		}
	}
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return "", fmt.Errorf("read its answer: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// whole reads a body of a known length, or to the end, and tells a body that was
// cut off from one that has ended.
type whole struct {
	r    io.Reader
	left int64 // -1: until the connection ends
	ctx  context.Context
}

func (w *whole) Read(p []byte) (int, error) {
	if w.left == 0 {
		return 0, io.EOF
	}
	if w.left > 0 && int64(len(p)) > w.left {
		p = p[:w.left]
	}
	n, err := w.r.Read(p)
	if w.left > 0 {
		w.left -= int64(n)
		if errors.Is(err, io.EOF) && w.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil && !errors.Is(err, io.EOF) && w.ctx.Err() != nil {
		err = w.ctx.Err()
	}
	return n, err
}
