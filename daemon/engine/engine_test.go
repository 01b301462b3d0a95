// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	for bundle, want := range map[string]string{
		"/run/containerd/io.containerd.runtime.v2.task/moby/ab":               Docker,
		"/tmp/x/exec/containerd/daemon/io.containerd.runtime.v2.task/moby/ab": Docker,
		"/run/containerd/io.containerd.runtime.v2.task/k8s.io/ab":             Kubernetes,
		"/run/containerd/io.containerd.runtime.v2.task/default/ab":            Containerd,
		"/var/lib/containers/storage/overlay-containers/ab/userdata":          Podman,
		"/run/crio/ab": CRIO,
		"/tmp/bundle":  Runtime,
		"":             Runtime,
	} {
		if got := Of(bundle); got != want {
			t.Errorf("Of(%q) = %q, want %q", bundle, got, want)
		}
	}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "unix://" + path
}

func TestDockerName(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/containers/good/json":
			fmt.Fprint(w, `{"Id":"good","Name":"/train.1"}`)
		case "/containers/evil/json":
			fmt.Fprint(w, `{"Name":"/\u001b[31mred"}`)
		case "/containers/huge/json":
			fmt.Fprintf(w, `{"Name":"/%s"}`, strings.Repeat("a", 4<<20))
		default:
			http.Error(w, "no", http.StatusNotFound)
		}
	})
	if name, err := DockerName(context.Background(), host, "good"); err != nil || name != "train.1" {
		t.Errorf("DockerName = %q, %v", name, err)
	}
	for _, id := range []string{"evil", "huge", "none", "../../x"} {
		if name, err := DockerName(context.Background(), host, id); err == nil {
			t.Errorf("%s: name %q", id, name)
		}
	}
	if _, err := DockerName(context.Background(), "tcp://127.0.0.1:1", "good"); err == nil {
		t.Error("a host that is no unix socket was asked")
	}
	if _, err := DockerName(context.Background(), "unix://"+filepath.Join(t.TempDir(), "none"), "good"); err == nil {
		t.Error("no engine gave a name")
	}
}

func TestDockerNameHasADeadline(t *testing.T) {
	stop := make(chan struct{})
	host := serve(t, func(http.ResponseWriter, *http.Request) { <-stop })
	defer close(stop)
	begin := time.Now()
	if _, err := DockerName(context.Background(), host, "a"); err == nil {
		t.Error("an engine that hangs gave a name")
	}
	if d := time.Since(begin); d > Timeout+2*time.Second {
		t.Errorf("took %v", d)
	}
}
