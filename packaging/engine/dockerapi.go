// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer bounds what is read of an engine's answer, bytes.
const maxAnswer = 8 << 20

// answerTimeout bounds the answer to one question.
const answerTimeout = 10 * time.Second

// DockerInfo is what we read of dockerd's account of itself.
type DockerInfo struct {
	ServerVersion  string
	DefaultRuntime string
	Runtimes       map[string]struct {
		Path string `json:"path"`
	}
}

// dockerClient speaks dockerd's API on a unix socket.
type dockerClient struct {
	http http.Client
}

func newDockerClient(socket string) *dockerClient {
	return &dockerClient{http: http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}}
}

// call sends one request and decodes the answer into out, unless that is nil. body
// is JSON-encoded unless it is a Reader, which is sent as a tar archive.
func (c *dockerClient) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	data, err := c.raw(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("docker %s %s: %w", method, path, err)
	}
	return nil
}

func (c *dockerClient) raw(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	var send io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case io.Reader:
		send, kind = b, "application/x-tar"
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("docker %s %s: %w", method, path, err)
		}
		send = bytes.NewReader(data)
	}
	target := "http://docker" + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, send)
	if err != nil {
		return nil, fmt.Errorf("docker %s %s: %w", method, path, err)
	}
	if send != nil {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("docker %s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("docker %s %s: %w", method, path, err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotModified {
		var said struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(data, &said) != nil || said.Message == "" {
			said.Message = resp.Status
		}
		return nil, &dockerError{status: resp.StatusCode, message: strings.TrimSpace(said.Message)}
	}
	return data, nil
}

// dockerError is a refusal by dockerd.
type dockerError struct {
	status  int
	message string
}

func (e *dockerError) Error() string { return "docker says: " + e.message }

func (c *dockerClient) info(ctx context.Context) (DockerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var i DockerInfo
	err := c.call(ctx, http.MethodGet, "/info", nil, nil, &i)
	return i, err
}
