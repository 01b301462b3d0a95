// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpushare/gpushare/tests/node"
)

// podFile and classFile are what the examples for Kubernetes say, and no more: a
// field that is not here is an error, since it would go untried.
type podFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		RuntimeClassName string `json:"runtimeClassName"`
		RestartPolicy    string `json:"restartPolicy"`
		Patience         int    `json:"terminationGracePeriodSeconds"`
		Containers       []struct {
			Name    string   `json:"name"`
			Image   string   `json:"image"`
			Command []string `json:"command"`
		} `json:"containers"`
	} `json:"spec"`
}

type classFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Handler    string `json:"handler"`
	Scheduling struct {
		NodeSelector map[string]string `json:"nodeSelector"`
	} `json:"scheduling"`
}

// manifest reads a file of the examples for Kubernetes.
func manifest(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "examples/kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("examples/kubernetes/%s: %v", name, err)
	}
}

// kubeletsCalls has the CRI plugin make a pod as kubelet would for this file, and
// checks what each container gets.
func kubeletsCalls(t *testing.T, k *containerdNode, class classFile, p podFile, sizes map[string]uint64) {
	t.Helper()
	if p.Spec.RuntimeClassName != class.Metadata.Name {
		t.Fatalf("pod %s names class %q, the class is called %q", p.Metadata.Name, p.Spec.RuntimeClassName, class.Metadata.Name)
	}
	if len(p.Spec.Containers) != len(sizes) {
		t.Fatalf("pod %s has %d containers, want the sizes %v", p.Metadata.Name, len(p.Spec.Containers), sizes)
	}
	pod, err := k.c.NewPod(within(t), class.Handler, p.Metadata.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	defer pod.Remove(within(t))
	for _, c := range p.Spec.Containers {
		id, r := pod.Create(within(t), node.CRIContainer{Name: c.Name, Args: c.Command, Edit: func(m map[string]any) {
			m["image"] = map[string]any{"image": c.Image}
		}})
		if r.Err == nil {
			r = k.c.Crictl(within(t), "start", id)
		}
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if c.Command[0] == "sleep" {
			k.filled(t, id, sizes[c.Name])
		} else {
			shown(t, pod.Wait(within(t), id, c.Name).Stdout, sizes[c.Name])
		}
	}
}

// kubernetesExamples are the pods of the examples, with what each container gets of
// an 80 GiB GPU.
var kubernetesExamples = map[string]map[string]uint64{
	"two-containers.yaml": {"training": 6 * gib, "notebook": 2 * gib},
	"quarter.yaml":        {"main": 20 * gib},
}

// The examples for Kubernetes ask for what their text says, through the calls that
// kubelet makes. TestKubernetes has a real kubelet make them.
func TestKubernetesExamples(t *testing.T) {
	var class classFile
	manifest(t, "runtimeclass.yaml", &class)
	eachExampleNode(t, func(t *testing.T, k *containerdNode) {
		for name, sizes := range kubernetesExamples {
			t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
				var p podFile
				manifest(t, name, &p)
				kubeletsCalls(t, k, class, p, sizes)
			})
		}
	})
}
