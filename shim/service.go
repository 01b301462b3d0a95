// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	task "github.com/containerd/containerd/api/runtime/task/v3"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/types/known/anypb"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook/create"
	"github.com/gpushare/gpushare/internal/config"
)

// releaseTimeout bounds what a delete may cost.
const releaseTimeout = 50 * time.Millisecond

// prepared is a bundle that may go to runc.
type prepared struct {
	claimed bool
	undo    func() // gives the claim back
}

// service is containerd's task service for runc, with an eye on Create and Delete.
type service struct {
	task.TTRPCTaskService

	// What a test replaces.
	configuration func() (*config.Config, error)
	daemon        func(*config.Config) create.Claims
	prepare       func(context.Context, *config.Config, create.Container, create.Claims) (prepared, error)

	alone   *alone
	mu      sync.Mutex
	claimed map[string]*config.Config // by container id, with the configuration of its claim
}

func newService(runc task.TTRPCTaskService) *service {
	return &service{
		TTRPCTaskService: runc,
		configuration:    config.Find,
		daemon:           func(c *config.Config) create.Claims { return v1.NewClient(c.SocketPath()) },
		prepare:          prepare,
		claimed:          make(map[string]*config.Config),
		// Which does nothing while there is a container.
		alone: newAlone(aloneAfter, func() { _, _ = runc.Shutdown(context.Background(), &task.ShutdownRequest{}) }),
	}
}

func prepare(ctx context.Context, c *config.Config, ct create.Container, d create.Claims) (prepared, error) {
	p, err := create.Prepare(ctx, c, ct, d)
	if err != nil {
		return prepared{}, err
	}
	return prepared{p.Claimed, p.Undo}, nil
}

// RegisterTTRPC serves the task API in both versions.
func (s *service) RegisterTTRPC(server *ttrpc.Server) error {
	register(server, s)
	return nil
}

// Create puts a GPU container under its limits and has runc make it. A container
// that is refused, or that runc does not make, holds no claim afterwards.
func (s *service) Create(ctx context.Context, r *task.CreateTaskRequest) (_ *task.CreateTaskResponse, err error) {
	defer recovered(ctx, "Create", &err)
	s.alone.begin()
	defer s.alone.done()
	made := false
	p, c, err := s.enter(ctx, r)
	defer func() {
		// The shim lives on, so the daemon would wait for this container for as long.
		if !made && p.claimed {
			p.undo()
		}
	}()
	if err != nil {
		return nil, refusal(err)
	}
	response, err := s.TTRPCTaskService.Create(ctx, r)
	if err != nil {
		return nil, err
	}
	made = true
	if p.claimed {
		s.mu.Lock()
		s.claimed[r.GetID()] = c
		s.mu.Unlock()
	}
	return response, nil
}

// enter makes of the request what runc's service understands, and edits the bundle
// of a GPU container.
func (s *service) enter(ctx context.Context, r *task.CreateTaskRequest) (prepared, *config.Config, error) {
	c, broken := s.configuration()
	if broken != nil {
		c = config.Default() // for containers without a GPU
	}
	answered := false
	defer func() {
		if !answered { // a panic, perhaps behind a claim
			s.giveBack(c, r.GetID())
		}
	}()
	p, err := s.prepareFor(ctx, c, broken, r)
	answered = true
	return p, c, err
}

func (s *service) prepareFor(ctx context.Context, c *config.Config, broken error, r *task.CreateTaskRequest) (prepared, error) {
	options, err := runcOptions(r.GetOptions())
	if err != nil {
		return prepared{}, err
	}
	if saysNothing(options) {
		if options == nil {
			options = &runcoptions.Options{}
		}
		options.SystemdCgroup = inferSystemd(r.GetBundle())
	}
	if options.BinaryName, err = lowLevelRuntime(c, options.GetBinaryName()); err != nil {
		return prepared{}, err
	}
	message, err := anypb.New(options)
	if err != nil {
		return prepared{}, fmt.Errorf("write runc's options: %w", err)
	}
	r.Options = message
	namespace, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return prepared{}, fmt.Errorf("make container %.64q: %w", r.GetID(), err)
	}
	root := options.GetRoot()
	if root == "" {
		root = defaultRuntimeRoot
	}
	if root, err = filepath.Abs(root); err != nil {
		return prepared{}, fmt.Errorf("find the runtime's root: %w", err)
	}
	daemon := s.daemon(c)
	if kind := sandboxed(options.GetBinaryName()); kind != "" {
		daemon = noClaims{kind}
	}
	ct := create.Container{
		ID: r.GetID(), Bundle: r.GetBundle(), RuntimeRoot: filepath.Join(root, namespace),
		PID: os.Getpid(), Restore: r.GetCheckpoint() != "",
	}
	if broken != nil {
		return prepared{}, create.WithoutConfig(ct, broken)
	}
	return s.prepare(ctx, c, ct, daemon)
}

// Delete removes a container or one of its processes, as runc's service does, and
// tells the daemon of the former.
func (s *service) Delete(ctx context.Context, r *task.DeleteRequest) (_ *task.DeleteResponse, err error) {
	defer recovered(ctx, "Delete", &err)
	s.alone.begin()
	defer s.alone.done()
	response, err := s.TTRPCTaskService.Delete(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.GetExecID() == "" {
		s.mu.Lock()
		c := s.claimed[r.GetID()]
		delete(s.claimed, r.GetID())
		s.mu.Unlock()
		if c != nil {
			s.giveBack(c, r.GetID())
		}
	}
	return response, nil
}

func (s *service) giveBack(c *config.Config, id string) { _ = giveBack(s.daemon(c), id) }

// giveBack tells the daemon that a container has been deleted. It is a hint: the
// daemon sees the end of the container's processes by itself, and does not release
// one that lives.
func giveBack(daemon create.Claims, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	return daemon.Release(ctx, id)
}

// refusal is err as containerd shows it to who asked for the container: one line,
// free of control characters, whatever a tenant's value in it contains.
func refusal(err error) error {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, err.Error())
	var class error = errdefs.ErrFailedPrecondition
	if errdefs.IsInvalidArgument(err) {
		class = errdefs.ErrInvalidArgument
		line = strings.TrimSuffix(line, ": "+class.Error())
	}
	if strings.Contains(line, "%") {
		// containerd 1.6 takes the message of every class that it knows for a format.
		class = errdefs.ErrUnknown
	}
	return errgrpc.ToGRPCf(class, "gpushare: %s", line)
}
