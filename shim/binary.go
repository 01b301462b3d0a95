// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook"
	"github.com/gpushare/gpushare/hook/create"
	"github.com/gpushare/gpushare/hook/node"
	"github.com/gpushare/gpushare/internal/config"
)

// wrapperName is our own OCI runtime, which edits bundles too.
const wrapperName = "gpushare-runtime"

// lowLevelRuntime returns the absolute path of the runtime that options name, or
// of the configured one. gpushare-runtime as BinaryName, which an administrator may
// have left from a setup without this shim, is passed over: the bundle is edited
// once, here.
func lowLevelRuntime(c *config.Config, named string) (string, error) {
	names := c.Runtimes
	if named != "" && !isWrapper(named) {
		names = []string{named}
	}
	path, err := node.LowLevelRuntime(names)
	if err != nil {
		if named != "" {
			err = fmt.Errorf("BinaryName %.200q of the runtime's options: %w", named, err)
		}
		return "", &hook.Refusal{Code: hook.CodeRuntime, Message: err.Error()}
	}
	switch {
	case isWrapper(path):
		return "", &hook.Refusal{Code: hook.CodeRuntime, Message: fmt.Sprintf(
			"use %s as the low-level runtime: it is %s, which would call itself: name runc or crun in runtimes of config.toml", path, wrapperName)}
	case same(path, "/proc/self/exe"):
		return "", &hook.Refusal{Code: hook.CodeRuntime, Message: fmt.Sprintf(
			"use %s as the low-level runtime: it is this shim, not an OCI runtime: name runc or crun", path)}
	}
	return path, nil
}

// isWrapper says whether path is gpushare-runtime: the one beside us, whatever it
// is called there, or another of that name.
func isWrapper(path string) bool {
	if filepath.Base(path) == wrapperName {
		return true
	}
	if !filepath.IsAbs(path) {
		return false
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(real) == wrapperName {
		return true
	}
	self, err := os.Executable()
	return err == nil && same(path, filepath.Join(filepath.Dir(self), wrapperName))
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// sandboxed returns the name of a runtime that starts containers on a kernel of
// its own, where mounts of ours do not take effect; empty for others.
func sandboxed(path string) string {
	name := filepath.Base(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		name = filepath.Base(real)
	}
	for _, known := range []string{"runsc", "kata", "krun"} {
		if strings.HasPrefix(name, known) || strings.HasPrefix(filepath.Base(path), known) {
			return name
		}
	}
	return ""
}

// noClaims stands in for the daemon where no GPU container can be held to a limit.
// Others never ask it.
type noClaims struct{ runtime string }

var _ create.Claims = noClaims{}

func (n noClaims) Claim(context.Context, v1.ClaimRequest) (v1.Claim, error) {
	return v1.Claim{}, &hook.Refusal{Code: hook.CodeRuntime, Message: fmt.Sprintf(
		"the low-level runtime %s runs containers on a kernel of its own, where no limit could be held: use runc or crun", n.runtime)}
}

func (noClaims) Release(context.Context, string) error { return nil }
