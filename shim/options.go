// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/api/types/runtimeoptions/v1"
	"github.com/containerd/errdefs"
	"github.com/pelletier/go-toml/v2"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gpushare/gpushare/internal/config"
)

// maxOptions bounds a file of options, in bytes; maxSpec a config.json.
const (
	maxOptions = 1 << 20
	maxSpec    = 16 << 20
)

// runcOptions reads the options of whatever type came: runc's own, or the generic
// ones in which the CRI plugin passes the TOML of its configuration to runtimes
// whose type it does not know. It returns nil if none came, and
// errdefs.ErrInvalidArgument for a type or a key that it does not know: an option
// that is dropped in silence would put containers elsewhere than asked.
func runcOptions(a *anypb.Any) (*runcoptions.Options, error) {
	if a == nil || (a.GetTypeUrl() == "" && len(a.GetValue()) == 0) {
		return nil, nil
	}
	// containerd writes plain type names, protobuf's own library puts a host before.
	name := a.GetTypeUrl()[strings.LastIndexByte(a.GetTypeUrl(), '/')+1:]
	switch name {
	case typeName(&runcoptions.Options{}):
		var o runcoptions.Options
		if err := proto.Unmarshal(a.GetValue(), &o); err != nil {
			return nil, fmt.Errorf("read runtime options %s: %w: %w", name, err, errdefs.ErrInvalidArgument)
		}
		return &o, nil
	case typeName(&runtimeoptions.Options{}):
		var o runtimeoptions.Options
		if err := proto.Unmarshal(a.GetValue(), &o); err != nil {
			return nil, fmt.Errorf("read runtime options %s: %w: %w", name, err, errdefs.ErrInvalidArgument)
		}
		return genericOptions(&o)
	}
	return nil, fmt.Errorf("runtime options of type %.100q are not supported: pass %s, %s or none: %w",
		a.GetTypeUrl(), typeName(&runcoptions.Options{}), typeName(&runtimeoptions.Options{}), errdefs.ErrInvalidArgument)
}

func typeName(m proto.Message) string { return string(m.ProtoReflect().Descriptor().FullName()) }

// tomlOptions are runc's options by their names in containerd's configuration.
type tomlOptions struct {
	BinaryName    string
	Root          string
	SystemdCgroup bool
	NoPivotRoot   bool
	NoNewKeyring  bool
	ShimCgroup    string
	IoUid         uint32 //nolint:revive // the key's spelling
	IoGid         uint32 //nolint:revive // the key's spelling
	CriuImagePath string
	CriuWorkPath  string

	// Known to containerd, of no use with runc.
	CriuPath       string
	TypeUrl        string //nolint:revive // the key's spelling
	ConfigPath     string
	TaskApiAddress string //nolint:revive // the key's spelling
	TaskApiVersion uint32 //nolint:revive // the key's spelling
}

// genericOptions reads TOML, from the message or from the file that it names.
func genericOptions(g *runtimeoptions.Options) (*runcoptions.Options, error) {
	body := g.GetConfigBody()
	from := "ConfigBody"
	if len(body) == 0 && g.GetConfigPath() != "" {
		from = g.GetConfigPath()
		var err error
		if body, err = readOptionsFile(from); err != nil {
			return nil, fmt.Errorf("read runtime options: %w: %w", err, errdefs.ErrInvalidArgument)
		}
	}
	if len(body) == 0 {
		return nil, nil
	}
	var t tomlOptions
	if err := toml.NewDecoder(bytes.NewReader(body)).DisallowUnknownFields().Decode(&t); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) && len(strict.Errors) > 0 {
			err = fmt.Errorf("unknown key %q", strings.Join(strict.Errors[0].Key(), "."))
		}
		return nil, fmt.Errorf("read runtime options in %s: %w: %w", from, err, errdefs.ErrInvalidArgument)
	}
	return &runcoptions.Options{
		BinaryName: t.BinaryName, Root: t.Root, SystemdCgroup: t.SystemdCgroup,
		NoPivotRoot: t.NoPivotRoot, NoNewKeyring: t.NoNewKeyring, ShimCgroup: t.ShimCgroup,
		IoUid: t.IoUid, IoGid: t.IoGid, CriuImagePath: t.CriuImagePath, CriuWorkPath: t.CriuWorkPath,
	}, nil
}

// readOptionsFile reads a file that decides what root runs.
func readOptionsFile(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("ConfigPath %.100q is not an absolute path", path)
	}
	if err := config.CheckRootOwned(path); err != nil {
		return nil, err
	}
	return readBounded(path, 0, maxOptions)
}

func readBounded(path string, flags, most int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, fmt.Errorf("%s: more than %d bytes", path, most)
	}
	return data, nil
}

// saysNothing says whether the options that came leave the cgroup driver open: none
// did, or those for one task that name the owner of its streams and nothing else.
// containerd sends the latter for containers with a user namespace, in the place of
// the runtime's own options.
func saysNothing(o *runcoptions.Options) bool {
	if o == nil {
		return true
	}
	owner := &runcoptions.Options{IoUid: o.GetIoUid(), IoGid: o.GetIoGid()}
	return (o.GetIoUid() != 0 || o.GetIoGid() != 0) && proto.Equal(o, owner)
}

// inferSystemd is what the runtime's options would have said: a cgroup path of the
// form slice:prefix:name is understood by runc's systemd driver only.
func inferSystemd(bundle string) bool {
	var spec struct {
		Linux struct {
			CgroupsPath string `json:"cgroupsPath"`
		} `json:"linux"`
	}
	data, err := readBounded(filepath.Join(bundle, "config.json"), unix.O_NOFOLLOW, maxSpec)
	if err != nil || json.Unmarshal(data, &spec) != nil {
		return false // who reads it next says what is wrong
	}
	return systemdPath(spec.Linux.CgroupsPath)
}

// systemdPath says whether path is slice:prefix:name.
func systemdPath(path string) bool {
	part := strings.Split(path, ":")
	return len(part) == 3 && !strings.Contains(path, "/") && part[2] != "" &&
		(part[0] == "" || strings.HasSuffix(part[0], ".slice"))
}
