// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package engine knows which engine made a container and what that engine calls
// it. Names are only shown and looked up by people: nothing depends on them.
package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Timeout bounds one question to an engine.
const Timeout = time.Second

// maxAnswer bounds what is read of an engine's answer, bytes.
const maxAnswer = 1 << 20

// Engine names, as they are shown.
const (
	Docker     = "docker"
	Containerd = "containerd"
	Kubernetes = "kubernetes"
	Podman     = "podman"
	CRIO       = "cri-o"
	Runtime    = "runc" // a low-level runtime called by hand
)

// Of returns the engine that made a bundle, by where engines put theirs.
func Of(bundle string) string {
	for _, known := range []struct{ part, engine string }{
		{"/io.containerd.runtime.v2.task/moby/", Docker},
		{"/io.containerd.runtime.v1.linux/moby/", Docker},
		{"/io.containerd.runtime.v2.task/k8s.io/", Kubernetes},
		{"/io.containerd.runtime.v2.task/", Containerd},
		{"/overlay-containers/", Podman},
		{"/vfs-containers/", Podman},
		{"/containers/storage/", Podman},
		{"/crio/", CRIO},
	} {
		if strings.Contains(bundle, known.part) {
			return known.engine
		}
	}
	return Runtime
}

// plainName is what docker accepts as a container's name.
var plainName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)

// DockerName asks the docker engine at host (unix:///path) for the name of a
// container. It takes Timeout at most.
func DockerName(ctx context.Context, host, id string) (string, error) {
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return "", fmt.Errorf("ask docker for a name: %q is not a unix socket", host)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/containers/"+url.PathEscape(id)+"/json", nil)
	if err != nil {
		return "", fmt.Errorf("ask docker for a name: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask docker for a name: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ask docker for a name: HTTP status %d", resp.StatusCode)
	}
	var answer struct{ Name string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer); err != nil {
		return "", fmt.Errorf("ask docker for a name: %w", err)
	}
	name := strings.TrimPrefix(answer.Name, "/")
	if !plainName.MatchString(name) {
		return "", fmt.Errorf("ask docker for a name: it says %.60q", name)
	}
	return name, nil
}
