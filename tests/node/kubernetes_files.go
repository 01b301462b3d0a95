// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"time"
)

// write writes what the programs of the cluster and kubectl read.
func (k *Kubernetes) write(context.Context) error {
	token := rand.Text()
	files := map[string]string{"tokens.csv": token + ",admin,admin,system:masters\n", "resolv.conf": ""}
	var err error
	if files["certs/client.crt"], files["certs/client.key"], err = certificate(); err != nil {
		return fmt.Errorf("make certificate: %w", err)
	}
	for name, content := range map[string]any{"kubelet.json": k.kubeletConfig(), "kubeconfig": k.kubeconfig(token)} {
		data, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return err
		}
		files[name] = string(data)
	}
	for name, text := range files {
		if err := os.WriteFile(k.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

type object = map[string]any

func (k *Kubernetes) kubeconfig(token string) object {
	const name = "test"
	return object{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []object{{"name": name, "cluster": object{
			"server": fmt.Sprintf("https://127.0.0.1:%d", k.api), "insecure-skip-tls-verify": true,
		}}},
		"users":    []object{{"name": name, "user": object{"token": token}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	}
}

// kubeletConfig is for a host whose cgroups are not kubelet's to arrange, which may
// be of version 1, and where root may lack CAP_SYS_RESOURCE.
func (k *Kubernetes) kubeletConfig() object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": "127.0.0.1", "port": k.port, "readOnlyPort": 0, "healthzPort": 0,
		"authentication": object{
			"anonymous": object{"enabled": false}, "webhook": object{"enabled": false},
			"x509": object{"clientCAFile": k.file("certs/client.crt")},
		},
		"authorization":            object{"mode": "AlwaysAllow"},
		"containerRuntimeEndpoint": "unix://" + k.c.socket(),
		"cgroupDriver":             "cgroupfs", "cgroupRoot": k.node.cgroupParent(),
		"cgroupsPerQOS": false, "enforceNodeAllocatable": []string{}, "failCgroupV1": false,
		"failSwapOn": false, "oomScoreAdj": 0, "localStorageCapacityIsolation": false,
		"evictionHard":           object{"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
		"makeIPTablesUtilChains": false, "hairpinMode": "none",
		// Without one, each pod gets an event about it.
		"clusterDNS": []string{"198.51.100.10"},
		"resolvConf": k.file("resolv.conf"), "podLogsDir": k.file("pods"), "volumePluginDir": k.file("plugins"),
		// A container that was refused is tried again at once, nearly.
		"crashLoopBackOff":          object{"maxContainerRestartPeriod": "1s"},
		"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "1s",
	}
}

// certificate is one that the API server shows to kubelet, with its key, as PEM. It
// vouches for itself.
func certificate() (crt, key string, err error) {
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &pair.PublicKey, pair)
	if err != nil {
		return "", "", err
	}
	private, err := x509.MarshalECPrivateKey(pair)
	if err != nil {
		return "", "", err
	}
	crt = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return crt, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})), nil
}
