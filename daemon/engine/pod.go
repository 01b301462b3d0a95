// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// maxConfig bounds what is read of a bundle's config.json in bytes.
const maxConfig = 4 << 20

// Pod is what Kubernetes calls a container.
type Pod struct{ Namespace, Name, Container string }

// String is the pod's name and the container's.
func (p Pod) String() string { return p.Name + "/" + p.Container }

// ErrNoPod is returned for a bundle that names no pod.
var ErrNoPod = errors.New("no pod is named")

// kubeName is what Kubernetes accepts as the name of a pod or a container.
var kubeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// PodOf reads which container of which pod a bundle is, from the annotations that
// containerd's CRI plugin writes. It returns ErrNoPod if it is none.
func PodOf(bundle string) (Pod, error) {
	path := filepath.Join(bundle, "config.json")
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Pod{}, fmt.Errorf("read pod of bundle: %w", err)
	}
	defer f.Close()
	var spec struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxConfig)).Decode(&spec); err != nil {
		return Pod{}, fmt.Errorf("read pod of bundle %s: %w", path, err)
	}
	const cri = "io.kubernetes.cri."
	p := Pod{
		Namespace: spec.Annotations[cri+"sandbox-namespace"],
		Name:      spec.Annotations[cri+"sandbox-name"],
		Container: spec.Annotations[cri+"container-name"],
	}
	for _, s := range []string{p.Namespace, p.Name, p.Container} {
		if !kubeName.MatchString(s) {
			return Pod{}, fmt.Errorf("read pod of bundle %s: %w", path, ErrNoPod)
		}
	}
	return p, nil
}
