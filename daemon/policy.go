// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
)

// Policy is what the node's administrator lets claims ask for.
type Policy struct {
	// EnvCap and AnnotationCap are the most that a request by each may mean. The
	// node's default share and the administrator's own changes are not capped.
	EnvCap, AnnotationCap limiter.Cap
	// HostMemoryBytes is how much of the host's memory all containers together may
	// be granted; 0 lets none have any.
	HostMemoryBytes uint64
	// Privileged and HostNamespaces let containers start that could undo their
	// limits.
	Privileged, HostNamespaces bool
}

// caps returns those that a request of the source is under.
func (p Policy) caps(source string) []limiter.Cap {
	var caps []limiter.Cap
	if (source == v1.SourceEnv || source == v1.SourceBoth) && !p.EnvCap.Empty() {
		caps = append(caps, p.EnvCap)
	}
	if (source == v1.SourceAnnotation || source == v1.SourceBoth) && !p.AnnotationCap.Empty() {
		caps = append(caps, p.AnnotationCap)
	}
	return caps
}

// allows refuses a container that is exposed in a way that is not allowed. The
// runtime has asked the same of the same file; the daemon read it when it started.
func (p Policy) allows(exposed []string) error {
	for _, e := range exposed {
		key, allowed := "override.host_namespaces", p.HostNamespaces
		if e == v1.ExposedPrivileged {
			key, allowed = "override.privileged", p.Privileged
		}
		if !allowed {
			return v1.Errorf(http.StatusForbidden, v1.CodePolicy,
				"container is exposed (%s), and gpushared's config.toml did not say %s = true when it started: restart gpushared if it says so now", e, key)
		}
	}
	return nil
}

var exposures = []string{v1.ExposedPrivileged, v1.ExposedPID, v1.ExposedIPC}

// checkExposed accepts the known reasons, each at most once.
func checkExposed(exposed []string) error {
	for i, e := range exposed {
		if !slices.Contains(exposures, e) || slices.Contains(exposed[:i], e) {
			return fmt.Errorf("%.60q is unknown or given twice: known are %s", e, strings.Join(exposures, ", "))
		}
	}
	return nil
}

// exposedReason is how people read one.
func exposedReason(e string) string { return e + " by node policy" }
