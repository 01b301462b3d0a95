// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// DefaultTimeout bounds one call, connecting included.
const DefaultTimeout = 2 * time.Second

// maxAnswer bounds an answer's body in bytes: 200 containers with 16 GPUs each
// take about 2 MB.
const maxAnswer = 16 << 20

// Client talks to the daemon. It opens one connection a call and keeps none. The
// zero value is not usable; see NewClient. It may be used by several goroutines.
type Client struct {
	socket  string
	timeout time.Duration
}

// NewClient returns a client of the daemon that listens on the unix socket at
// that path; a unix:// prefix is taken off. It does not connect yet.
func NewClient(socket string) *Client {
	socket = strings.TrimPrefix(socket, "unix://")
	return &Client{socket: socket, timeout: DefaultTimeout}
}

// WithTimeout returns a copy of c whose calls take at most d.
func (c *Client) WithTimeout(d time.Duration) *Client {
	other := *c
	other.timeout = d
	return &other
}

// Socket is the path that c connects to.
func (c *Client) Socket() string { return c.socket }

// Claim asks for a place. The same id may be claimed again while it is not
// released; the answer is then the same.
func (c *Client) Claim(ctx context.Context, req ClaimRequest) (Claim, error) {
	var out Claim
	return out, c.do(ctx, "POST", "/v1/claims", req, &out)
}

// Release gives a claim back. The error's code is CodeNotFound if there is none.
func (c *Client) Release(ctx context.Context, id string) error {
	return c.do(ctx, "DELETE", "/v1/claims/"+url.PathEscape(id), nil, nil)
}

// Containers lists the containers that hold a claim, oldest first.
func (c *Client) Containers(ctx context.Context) (ContainerList, error) {
	var out ContainerList
	return out, c.do(ctx, "GET", "/v1/containers", nil, &out)
}

// Container returns one container by id, unique prefix or name.
func (c *Client) Container(ctx context.Context, ref string) (Container, error) {
	var out Container
	return out, c.do(ctx, "GET", "/v1/containers/"+url.PathEscape(ref), nil, &out)
}

// Resize changes the limits of a container while it runs.
func (c *Client) Resize(ctx context.Context, ref string, req ResizeRequest) (Resize, error) {
	var out Resize
	return out, c.do(ctx, "PATCH", "/v1/containers/"+url.PathEscape(ref), req, &out)
}

// Daemon asks the daemon about itself and the node's GPUs.
func (c *Client) Daemon(ctx context.Context) (Daemon, error) {
	var out Daemon
	return out, c.do(ctx, "GET", "/v1/daemon", nil, &out)
}

// Health returns nil if the daemon makes progress.
func (c *Client) Health(ctx context.Context) error {
	return c.do(ctx, "GET", "/v1/health", nil, nil)
}

// do sends in as JSON, if any, and reads the answer into out, if any. Every
// error that it returns is an *Error.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return Errorf(0, CodeInternal, "encode request: %w", err)
		}
	}
	resp, err := open(ctx, c.socket, method, path, body)
	if err != nil {
		return c.unreachable(err)
	}
	defer resp.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.body, maxAnswer))
	if err != nil {
		return c.unreachable(err)
	}
	if resp.status >= 400 {
		return refusal(resp.status, raw)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return Errorf(resp.status, CodeInternal, "decode the daemon's answer: %w", err)
	}
	return nil
}

// refusal makes an Error of the body of an answer with that status.
func refusal(status int, raw []byte) error {
	e := &Error{}
	if err := json.Unmarshal(raw, e); err != nil || e.Code == "" {
		e = Errorf(status, CodeInternal, "the daemon answered with HTTP status %d and no reason", status)
	}
	e.Status = status
	return e
}

// unreachable says in one line why the daemon gave no answer and what to do.
func (c *Client) unreachable(err error) error {
	var ne net.Error
	at := "unix://" + c.socket
	tail := " Limits of running containers stay in force without it."
	switch {
	case errors.Is(err, fs.ErrPermission):
		return Errorf(0, CodeDaemonDown, "cannot reach the gpushare daemon at %s: permission denied for uid %d; only root may. Run this with sudo.%w", at, os.Getuid(), quiet{err})
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return Errorf(0, CodeDaemonDown, "cannot reach the gpushare daemon at %s: it is not running. Start it as root: gpushared (with systemd: systemctl start gpushared).%s%w", at, tail, quiet{err})
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return Errorf(0, CodeTimeout, "the gpushare daemon at %s gave no answer within %s. See its log.%s%w", at, c.timeout, tail, quiet{err})
	}
	return Errorf(0, CodeDaemonDown, "cannot reach the gpushare daemon at %s: %w. See its log.", at, err)
}

// quiet is a cause that adds nothing to the text.
type quiet struct{ error }

func (quiet) Error() string   { return "" }
func (q quiet) Unwrap() error { return q.error }
