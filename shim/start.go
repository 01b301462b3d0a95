// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	bootstrap "github.com/containerd/containerd/api/runtime/bootstrap/v1"
	"github.com/containerd/containerd/v2/pkg/atomicfile"
	"github.com/containerd/containerd/v2/pkg/identifiers"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// maxInput bounds what containerd may write to stdin, in bytes.
const maxInput = 10 << 20

// ttrpcAddress is the variable in which containerd before 2.3 names the socket that
// takes events; later ones still set it.
const ttrpcAddress = "TTRPC_ADDRESS"

// commandLine is what containerd passes besides stdin.
type commandLine struct {
	namespace, id, address, publishBinary string
	debug, version                        bool
	action                                string
}

// parseCommandLine reads what it knows; the rest is reported by the real parser, in
// shim.RunShim.
func parseCommandLine(args []string) (commandLine, error) {
	var c commandLine
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.namespace, "namespace", "", "")
	f.StringVar(&c.id, "id", "", "")
	f.StringVar(&c.address, "address", "", "")
	f.StringVar(&c.publishBinary, "publish-binary", "", "")
	f.BoolVar(&c.debug, "debug", false, "")
	f.BoolVar(&c.version, "v", false, "")
	f.BoolVar(&c.version, "version", false, "")
	f.Bool("info", false, "")
	for _, other := range []string{"socket", "debug-socket", "bundle"} {
		f.String(other, "", "")
	}
	err := f.Parse(args)
	c.action = f.Arg(0)
	return c, err
}

// readStart reads what containerd wrote to stdin of a start. It returns nil for a
// containerd before 2.3, which writes the runtime's options there, or nothing.
//
// Options can decode as bootstrap parameters by accident, so those count only if
// they name the container of the command line. A containerd that leaves the flags
// out, as is announced, must name one by itself.
func readStart(input []byte, c commandLine) *bootstrap.BootstrapParams {
	if len(input) == 0 {
		return nil
	}
	var p bootstrap.BootstrapParams
	if proto.Unmarshal(input, &p) != nil {
		return nil
	}
	if p.GetInstanceID() == "" || p.GetNamespace() == "" {
		return nil
	}
	if c.id == "" && c.namespace == "" {
		// Of an old containerd's message the first field is a type's name.
		if identifiers.Validate(p.GetNamespace()) != nil || p.GetContainerdGrpcAddress() == "" {
			return nil
		}
		return &p
	}
	if p.GetInstanceID() != c.id || p.GetNamespace() != c.namespace {
		return nil
	}
	return &p
}

// start answers one start, in the words of the containerd that asks.
func start(ctx context.Context, m shim.Shim, c commandLine, stdin io.Reader, stdout io.Writer) error {
	input, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	if err != nil {
		return fmt.Errorf("read stdin: %w", err)
	}
	if len(input) > maxInput {
		return fmt.Errorf("read stdin: more than %d bytes", maxInput)
	}
	if p := readStart(input, c); p != nil {
		return handOver(ctx, m, c, p, input)
	}
	return startOld(ctx, m, c, input, stdout)
}

// handOver leaves a start of the new protocol to containerd's own code, which
// expects it on stdin, with the flags and variables that it still reads.
func handOver(ctx context.Context, m shim.Shim, c commandLine, p *bootstrap.BootstrapParams, input []byte) error {
	if c.id == "" {
		os.Args = append(os.Args[:1:1], "-namespace", p.GetNamespace(), "-id", p.GetInstanceID(),
			"-address", p.GetContainerdGrpcAddress(), "start")
	}
	if os.Getenv(ttrpcAddress) == "" && p.GetContainerdTtrpcAddress() != "" {
		if err := os.Setenv(ttrpcAddress, p.GetContainerdTtrpcAddress()); err != nil {
			return fmt.Errorf("pass on the address for events: %w", err)
		}
	}
	fd, err := unix.MemfdCreate("bootstrap", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("pass on stdin: %w", err)
	}
	f := os.NewFile(uintptr(fd), "bootstrap")
	if _, err := f.WriteAt(input, 0); err != nil {
		return fmt.Errorf("pass on stdin: %w", err)
	}
	os.Stdin = f
	shim.RunShim(ctx, m)
	return nil
}

// startOld serves containerd before 2.3: parameters from flags, environment and
// stdin, a plain address on stdout, and the address once more in the bundle, where
// containerd 1.6 looks for it after a restart.
func startOld(ctx context.Context, m shim.Shim, c commandLine, input []byte, stdout io.Writer) error {
	if c.namespace == "" || c.id == "" {
		return errors.New("start: containerd named no namespace or no container, neither in flags nor on stdin")
	}
	p := &bootstrap.BootstrapParams{
		InstanceID: c.id, Namespace: c.namespace, LogLevel: bootstrap.LogLevel_LOG_LEVEL_INFO,
		ContainerdGrpcAddress: c.address, ContainerdTtrpcAddress: os.Getenv(ttrpcAddress), ContainerdBinary: c.publishBinary,
	}
	if c.debug {
		p.LogLevel = bootstrap.LogLevel_LOG_LEVEL_DEBUG
	}
	var options anypb.Any
	if len(input) > 0 && proto.Unmarshal(input, &options) == nil && options.GetTypeUrl() != "" {
		// runc's options carry the cgroup that the shim is to join.
		if err := p.AddExtension(&options); err != nil {
			return fmt.Errorf("read options: %w", err)
		}
	}
	result, err := m.Start(namespaces.WithNamespace(ctx, c.namespace), p)
	if err != nil {
		return err
	}
	if err := writeAddress("address", result.GetAddress()); err != nil {
		abandon(ctx, result.GetAddress(), c)
		return err
	}
	_, err = io.WriteString(stdout, result.GetAddress())
	return err
}

func writeAddress(name, address string) error {
	f, err := atomicfile.New(name, 0o600)
	if err != nil {
		return fmt.Errorf("write the shim's address: %w", err)
	}
	if _, err := io.WriteString(f, address); err != nil {
		_ = f.Cancel()
		return fmt.Errorf("write the shim's address: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the shim's address: %w", err)
	}
	return nil
}

// printVersion prints what -v asks for.
func printVersion(w io.Writer, argv0, version, containerd, goVersion string) {
	fmt.Fprintf(w, "%s:\n  Version:  %s\n  containerd's task service: %s\n  Go version: %s\n",
		filepath.Base(argv0), strconv.Quote(version), containerd, goVersion)
}
