// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor looks at a node from outside and says what keeps limits from
// holding, each with one command that mends it. It changes nothing.
package doctor

import (
	"context"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/internal/config"
)

// States of a check.
const (
	OK      = "ok"
	Warning = "warning"
	Failure = "failure"
)

// Check is one finding.
type Check struct {
	// Area groups findings: host, configuration, driver, daemon, programs, engines.
	Area  string `json:"area"`
	State string `json:"state"`
	Text  string `json:"text"`
	// Fix is one command; empty if there is nothing to mend.
	Fix string `json:"fix,omitempty"`
}

// Report is all that was found.
type Report struct {
	APIVersion string  `json:"apiVersion"`
	Checks     []Check `json:"checks"`
	Failures   int     `json:"failures"`
	Warnings   int     `json:"warnings"`
	Simulated  bool    `json:"simulated"`
}

// Node is what is looked at.
type Node struct {
	// Config is the node's configuration; ConfigErr why there is none to use.
	Config    *config.Config
	ConfigErr error
	// BinDir and LibDir have our programs and our libraries.
	BinDir, LibDir string
	// Daemon asks gpushared.
	Daemon func(context.Context) (v1.Daemon, error)
	// Version is what the daemon should be.
	Version string
	// DockerSocket and ContainerdSocket are where engines are; empty: as usual.
	DockerSocket, ContainerdSocket string
}

// Examine looks at everything.
func Examine(ctx context.Context, n Node) Report {
	r := &Report{APIVersion: v1.APIVersion}
	n.host(ctx, r)
	if n.configuration(r); n.ConfigErr == nil {
		n.driver(r)
		n.daemon(ctx, r)
	} else { // it says where these are; the rest is looked at as it would be without a file
		n.Config = config.Default()
	}
	n.programs(r)
	n.engines(ctx, r)
	return *r
}

func (r *Report) add(area, state, text, fix string) {
	r.Checks = append(r.Checks, Check{Area: area, State: state, Text: text, Fix: fix})
	switch state {
	case Warning:
		r.Warnings++
	case Failure:
		r.Failures++
	}
}

func (r *Report) ok(area, text string)        { r.add(area, OK, text, "") }
func (r *Report) warn(area, text, fix string) { r.add(area, Warning, text, fix) }
func (r *Report) fail(area, text, fix string) { r.add(area, Failure, text, fix) }
