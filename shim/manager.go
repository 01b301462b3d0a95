// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/api/types"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/pkg/shim"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/internal/config"
)

// manager is containerd's manager of runc shims, with our view of options and
// our account of what ends. Start is containerd's own: it is called once a pod.
type manager struct {
	shim.Shim
	version string
}

var _ shim.Shim = (*manager)(nil)

// Info describes the runtime to containerd. It answers without options and with
// options that it cannot read, as containerd does not always pass them here.
func (m *manager) Info(ctx context.Context, stdin io.Reader) (*types.RuntimeInfo, error) {
	c, err := config.Find()
	if err != nil {
		c = config.Default() // Create says what is wrong, to GPU containers
	}
	options := &runcoptions.Options{}
	var given anypb.Any
	if data, err := io.ReadAll(io.LimitReader(stdin, maxInput)); err == nil && proto.Unmarshal(data, &given) == nil {
		if o, err := runcOptions(&given); err == nil && o != nil {
			options = o
		}
	}
	low, err := lowLevelRuntime(c, options.GetBinaryName())
	if err != nil {
		return nil, err
	}
	options.BinaryName = low
	message, err := anypb.New(options)
	if err != nil {
		return nil, fmt.Errorf("describe the runtime: %w", err)
	}
	// containerd knows its types by their plain names.
	message.TypeUrl = string(options.ProtoReflect().Descriptor().FullName())
	data, err := proto.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("describe the runtime: %w", err)
	}
	info, err := m.Shim.Info(ctx, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	info.Name = Name
	if info.Version == nil {
		info.Version = &types.RuntimeVersion{}
	}
	info.Version.Version = m.version
	return info, nil
}

// Stop removes what a dead shim left: containerd calls it in the container's
// bundle, after it lost the shim.
func (m *manager) Stop(ctx context.Context, id string) (shim.StopStatus, error) {
	dead := socketOfBundle()
	defer dead.removeIfDead()
	c, err := config.Find()
	if err != nil || !held(c, id) {
		return m.Shim.Stop(ctx, id)
	}
	daemon := v1.NewClient(c.SocketPath())
	// It refuses now, and looks closely. runc's delete returns when the first process
	// has been reaped, which may be seconds after the last one could do anything.
	_ = giveBack(daemon, id)
	status, err := m.Shim.Stop(ctx, id)
	_ = giveBack(daemon, id)
	return status, err
}

// held says whether the daemon has a directory for the container.
func held(c *config.Config, id string) bool {
	if id != filepath.Base(id) {
		return false
	}
	_, err := os.Lstat(filepath.Join(c.ContainersDir(), id))
	return err == nil
}
