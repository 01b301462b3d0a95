// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// kubeNode is the node's name in the cluster. It resolves to the loopback address,
// by which the API server reaches kubelet for logs and exec.
const kubeNode = "localhost"

// Kubernetes is a cluster of one node: etcd, kube-apiserver and kubelet, on a
// private containerd. There is no scheduler and no controller; Schedule stands in
// for the former. It listens on a unix socket and on loopback ports that want a
// token or a certificate.
type Kubernetes struct {
	node *Node
	c    *Containerd
	bin  string
	dir  string

	api, port int // of the API server and of kubelet
}

// StartKubernetes starts a cluster whose programs lie in bin. It belongs to the
// node: Close ends it. Pods have a network of their own with nothing in it.
func (n *Node) StartKubernetes(ctx context.Context, c *Containerd, bin string) (*Kubernetes, error) {
	k := &Kubernetes{node: n, c: c, bin: bin, dir: filepath.Join(n.Dir, "kubernetes")}
	for _, d := range []string{"etcd", "certs", "kubelet", "pods", "plugins"} {
		if err := os.MkdirAll(filepath.Join(k.dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("start kubernetes: %w", err)
		}
	}
	for _, port := range []*int{&k.api, &k.port} {
		var err error
		if *port, err = freePort(); err != nil {
			return nil, fmt.Errorf("start kubernetes: %w", err)
		}
	}
	for _, step := range []func(context.Context) error{k.network, k.write, k.startEtcd, k.startServer, k.StartKubelet} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("start kubernetes: %w", err)
		}
	}
	return k, nil
}

// freePort is a port that nobody listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// network gives the pods' sandboxes a network plugin that makes nothing, since no
// real one is at hand, and keeps their namespaces' files with containerd's own.
func (k *Kubernetes) network(ctx context.Context) error {
	for _, name := range []string{"none", "loopback"} {
		if err := os.WriteFile(filepath.Join(k.c.dir, "cni/bin", name), []byte(networkPlugin), 0o755); err != nil {
			return err
		}
	}
	const conf = `{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "none"}]}`
	if err := os.WriteFile(filepath.Join(k.c.dir, "cni/conf/10-none.conflist"), []byte(conf), 0o644); err != nil {
		return err
	}
	return k.c.Reconfigure(ctx, func(config string) string {
		const after = "  restrict_oom_score_adj = true\n"
		return strings.Replace(config, after, after+"  netns_mounts_under_state_dir = true\n", 1)
	})
}

const networkPlugin = `#!/bin/sh
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD)
	echo '{"cniVersion": "1.0.0", "interfaces": [{"name": "'"$CNI_IFNAME"'", "sandbox": "'"$CNI_NETNS"'"}],'
	echo ' "ips": [{"interface": 0, "address": "203.0.113.1/32"}]}'
	;;
esac
`

func (k *Kubernetes) startEtcd(ctx context.Context) error {
	client, peer := "unix://"+k.file("etcd.sock"), "unix://"+k.file("peer.sock")
	p, err := k.node.start("etcd", nil, filepath.Join(k.bin, "etcd"), "--data-dir", k.file("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer)
	if err != nil {
		return err
	}
	k.node.add(p)
	return p.ready(ctx, func() error { _, err := os.Stat(k.file("etcd.sock")); return err })
}

func (k *Kubernetes) startServer(ctx context.Context) error {
	p, err := k.node.start("kube-apiserver", nil, filepath.Join(k.bin, "kube-apiserver"),
		"--etcd-servers", "unix://"+k.file("etcd.sock"),
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", fmt.Sprint(k.api),
		"--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "198.51.100.0/24",
		"--cert-dir", k.file("certs"), "--token-auth-file", k.file("tokens.csv"), "--authorization-mode", "AlwaysAllow",
		// Pods get no account: there is no controller that would make one.
		"--disable-admission-plugins", "ServiceAccount",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", k.file("certs/client.key"), "--service-account-signing-key-file", k.file("certs/client.key"),
		"--kubelet-preferred-address-types", "Hostname",
		"--kubelet-client-certificate", k.file("certs/client.crt"), "--kubelet-client-key", k.file("certs/client.key"))
	if err != nil {
		return err
	}
	k.node.add(p)
	return p.ready(ctx, func() error { return k.Kubectl(ctx, "get", "namespace", "default").Err })
}

// StartKubelet starts kubelet, again after it was killed, and waits until its node
// is ready. It runs in a mount namespace of its own, so that what it writes outside
// the node's directory stays there, the kernel's settings included.
func (k *Kubernetes) StartKubelet(ctx context.Context) error {
	begin := time.Now().UTC().Truncate(time.Second)
	p, err := k.node.start("kubelet", nil, "unshare", "--mount", "--propagation", "slave", "sh", "-eu", "-c", kubeletScript,
		k.node.Dir, filepath.Join(k.bin, "kubelet"), "--config", k.file("kubelet.json"), "--kubeconfig", k.file("kubeconfig"),
		"--root-dir", k.file("kubelet"), "--cert-dir", k.file("certs"), "--hostname-override", kubeNode)
	if err != nil {
		return err
	}
	k.node.add(p)
	return p.ready(ctx, func() error {
		const path = `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}`
		r := k.Kubectl(ctx, "get", "node", kubeNode, "-o", path)
		if r.Err != nil {
			return r.Err
		}
		ready, at, _ := strings.Cut(r.Stdout, " ")
		when, err := time.Parse(time.RFC3339, at)
		if ready != "True" || err != nil || when.Before(begin) {
			return fmt.Errorf("node is not ready: %s %s", ready, at)
		}
		return nil
	})
}

// kubeletScript is run with the node's directory as $0. Kubelet insists on folders
// below /var and on settings of the kernel; it is shown ones of its own.
const kubeletScript = `
exec 3<"$0"
mount -t tmpfs kubelet /var/lib
mkdir -p "$0"
mount --no-canonicalize --rbind /proc/self/fd/3 "$0" # as it was before the line above
exec 3<&-
mount -t tmpfs kubelet /var/log
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	file=/var/lib/$(basename "${setting%=*}")
	echo "${setting#*=}" >"$file"
	mount --bind "$file" "/proc/sys/${setting%=*}"
done
exec "$@"
`

// Kubelet is the kubelet that was started last.
func (k *Kubernetes) Kubelet() *Process { return k.node.process("kubelet") }

func (k *Kubernetes) file(name string) string { return filepath.Join(k.dir, name) }

// Env points kubectl at the cluster.
func (k *Kubernetes) Env() []string {
	return []string{"KUBECONFIG=" + k.file("kubeconfig"), "KUBECACHEDIR=" + k.file("cache")}
}

// Kubectl runs a kubectl command.
func (k *Kubernetes) Kubectl(ctx context.Context, args ...string) Result {
	return Run(ctx, k.Env(), append([]string{"kubectl", "--request-timeout=60s"}, args...)...)
}

// Schedule puts pods that have no node on the only one, as a scheduler would, until
// ctx ends. It minds a pod's node selector and counts nothing.
func (k *Kubernetes) Schedule(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := k.schedule(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("schedule pods: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
	return nil
}

func (k *Kubernetes) schedule(ctx context.Context) error {
	r := k.Kubectl(ctx, "get", "pods", "--field-selector", "spec.nodeName=", "-o", "json")
	if r.Err != nil {
		return r.Err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ NodeSelector map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
		return err
	}
	for _, pod := range list.Items {
		var selector []string
		for key, value := range pod.Spec.NodeSelector {
			selector = append(selector, key+"="+value)
		}
		r := k.Kubectl(ctx, "get", "nodes", "-o", "name", "-l", strings.Join(selector, ","))
		if r.Err != nil {
			return r.Err
		}
		if strings.TrimSpace(r.Stdout) == "" {
			continue
		}
		file := k.file("binding.json")
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Binding", "metadata": map[string]string{"name": pod.Metadata.Name},
			"target": map[string]string{"apiVersion": "v1", "kind": "Node", "name": kubeNode}})
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			return err
		}
		path := "/api/v1/namespaces/default/pods/" + pod.Metadata.Name + "/binding"
		if r := k.Kubectl(ctx, "create", "--raw", path, "-f", file); r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// Close ends the cluster, kubelet first, so that what containerd then removes is
// not started again. The node's Close does the same for one that was not closed.
func (k *Kubernetes) Close() error {
	var errs []error
	for _, name := range []string{"kubelet", "kube-apiserver", "etcd"} {
		errs = append(errs, k.node.process(name).Stop(20*time.Second))
	}
	return errors.Join(errs...)
}
