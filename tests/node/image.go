// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// descriptor is the part of an OCI descriptor that is used here.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ociArchive writes file, an OCI image layout in a tar, in which each of the names
// is an image of the one layer that holds the root file system in dir.
func ociArchive(ctx context.Context, dir, file string, commands map[string][]string) error {
	layer := file + ".layer"
	defer os.Remove(layer)
	if r := Run(ctx, nil, "tar", "-C", dir, "-cf", layer, "."); r.Err != nil {
		return fmt.Errorf("make image: %w", r.Err)
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	defer out.Close()
	a := archive{tar.NewWriter(out)}
	blob, err := a.layer(layer)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	var index []descriptor
	for name, cmd := range commands {
		config, err := a.json("application/vnd.oci.image.config.v1+json", map[string]any{
			"architecture": runtime.GOARCH, "os": "linux",
			"config": map[string]any{"Cmd": cmd, "Env": []string{"PATH=/usr/bin:/bin"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{blob.Digest}},
		})
		if err != nil {
			return fmt.Errorf("make image: %w", err)
		}
		manifest, err := a.json("application/vnd.oci.image.manifest.v1+json", map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
			"config": config, "layers": []descriptor{blob},
		})
		if err != nil {
			return fmt.Errorf("make image: %w", err)
		}
		manifest.Annotations = map[string]string{"io.containerd.image.name": name}
		index = append(index, manifest)
	}
	text, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": index})
	if err == nil {
		err = a.file("index.json", text)
	}
	if err == nil {
		err = a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	}
	if err == nil {
		err = a.Close()
	}
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	return nil
}

type archive struct{ *tar.Writer }

func (a archive) file(name string, data []byte) error {
	if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := a.Write(data)
	return err
}

// json adds a blob and describes it.
func (a archive) json(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	sum := sha256.Sum256(data)
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
	return d, a.file("blobs/sha256/"+hex.EncodeToString(sum[:]), data)
}

// layer adds the file as a blob, without holding it in memory.
func (a archive) layer(file string) (descriptor, error) {
	f, err := os.Open(file)
	if err != nil {
		return descriptor{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return descriptor{}, err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return descriptor{}, err
	}
	if err := a.WriteHeader(&tar.Header{Name: "blobs/sha256/" + sum, Mode: 0o644, Size: size}); err != nil {
		return descriptor{}, err
	}
	_, err = io.Copy(a, f)
	return descriptor{MediaType: "application/vnd.oci.image.layer.v1.tar", Digest: "sha256:" + sum, Size: size}, err
}

// importImages gives containerd the small image, for ctr and for the CRI plugin,
// and the image of the pods' sandboxes.
func (c *Containerd) importImages(ctx context.Context, dir string) error {
	file := filepath.Join(c.dir, "images.tar")
	defer os.Remove(file)
	err := ociArchive(ctx, dir, file, map[string][]string{
		SmallImageName: {"sh"},
		pauseImageName: {"sleep", "100000"},
	})
	if err != nil {
		return err
	}
	for _, namespace := range []string{"default", "k8s.io"} {
		if r := c.Ctr(ctx, "--namespace", namespace, "images", "import", file); r.Err != nil {
			return fmt.Errorf("import images: %w", r.Err)
		}
	}
	return nil
}
