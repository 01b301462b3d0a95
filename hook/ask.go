// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"maps"
	"sort"
	"strings"

	"github.com/gpushare/gpushare/internal/suggest"
)

// The channels through which a container asks for a share.
const (
	EnvPrefix        = "GPUSHARE_"
	AnnotationPrefix = "gpushare.io/"

	// ClaimAnnotation is the mark that Edit leaves: the claim and a digest.
	ClaimAnnotation = AnnotationPrefix + "claim"
)

// Sources of a request.
const (
	SourceEnv        = "env"
	SourceAnnotation = "annotation"
	SourceDefault    = "default"
	// SourceBoth is a request of which words came by both of the first two.
	SourceBoth = "env+annotation"
)

// maxValue bounds one requested value, in bytes.
const maxValue = 128

// Ask is what a container asks for, each value as its author wrote it. Reading
// the values is the daemon's affair; it is a request, never a proof.
type Ask struct {
	Memory, Compute, ComputeMax, GPU string
	// Profile stands in the place of the first three.
	Profile string
	// HostMemory is beside all of them.
	HostMemory string
	// Source says where the request came from; empty if there is none.
	Source string
}

// word is one thing that can be asked for.
type word struct {
	name    string // in annotations; the variable's name follows from it
	example string
	field   func(*Ask) *string // nil: reserved, not supported by this version
}

var words = []word{
	{"memory", "8Gi", func(a *Ask) *string { return &a.Memory }},
	{"compute", "30%", func(a *Ask) *string { return &a.Compute }},
	{"compute-max", "50%", func(a *Ask) *string { return &a.ComputeMax }},
	{"gpu", "0", func(a *Ask) *string { return &a.GPU }},
	{profileWord, "1of4", func(a *Ask) *string { return &a.Profile }},
	{"host-memory", "8Gi", func(a *Ask) *string { return &a.HostMemory }},
	{name: "model"}, {name: "priority"}, {name: "queue"}, {name: "type"},
}

// profileWord names a share; shareWords are what it stands for.
const profileWord = "profile"

var shareWords = []string{"memory", "compute", "compute-max"}

func (w *word) variable() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(w.name, "-", "_"))
}

func (w *word) annotation() string { return AnnotationPrefix + w.name }

func supported(name func(*word) string) []string {
	var names []string
	for i := range words {
		if words[i].field != nil {
			names = append(names, name(&words[i]))
		}
	}
	return names
}

func find(name string, as func(*word) string) *word {
	for i := range words {
		if as(&words[i]) == name {
			return &words[i]
		}
	}
	return nil
}

// Ask returns what the container asks for. It refuses words under our prefixes
// that it does not know, since a misspelt limit must not mean no limit, and
// words that are given twice with different values or stand beside a profile.
func (s *Spec) Ask() (Ask, error) {
	var a Ask
	if s.sandbox() {
		return a, nil // it bears the pod's annotations, but they are not for it
	}
	env, err := s.askedByEnv()
	if err != nil {
		return a, err
	}
	annotated, err := s.askedByAnnotation()
	if err != nil {
		return a, err
	}
	written := map[string]string{} // the word as its author spells it
	for i := range words {
		w := &words[i]
		if w.field == nil {
			continue
		}
		fromEnv, inEnv := env[w.name]
		fromAnnotation, inAnnotation := annotated[w.name]
		switch {
		case inEnv && inAnnotation && fromEnv != fromAnnotation:
			return a, refuse(CodeConflict, "%s is %q but annotation %s is %q: keep one of them",
				w.variable(), fromEnv, w.annotation(), fromAnnotation)
		case inEnv:
			*w.field(&a), written[w.name] = fromEnv, w.variable()
		case inAnnotation:
			*w.field(&a), written[w.name] = fromAnnotation, "annotation "+w.annotation()
		}
	}
	for _, w := range shareWords {
		if written[w] != "" && written[profileWord] != "" {
			return a, refuse(CodeConflict, "%s is %q, which sets memory and compute, but %s is given too: keep one of them",
				written[profileWord], a.Profile, written[w])
		}
	}
	switch {
	case len(env) > 0 && len(annotated) > 0:
		a.Source = SourceBoth
	case len(env) > 0:
		a.Source = SourceEnv
	case len(annotated) > 0:
		a.Source = SourceAnnotation
	}
	return a, nil
}

func (s *Spec) askedByEnv() (map[string]string, error) {
	asked := map[string]string{}
	for _, pair := range s.env {
		if !strings.HasPrefix(pair, EnvPrefix) {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		w := find(name, (*word).variable)
		if err := known(w, "environment variable", name, (*word).variable); err != nil {
			return nil, err
		}
		if err := checkValue(w, name, value, w.variable()+"="); err != nil {
			return nil, err
		}
		if before, twice := asked[w.name]; twice && before != value {
			return nil, refuse(CodeConflict, "%s is given twice, as %q and as %q: keep one of them", name, before, value)
		}
		asked[w.name] = value
	}
	return asked, nil
}

// askedByAnnotation also reads the form for one container of a pod,
// gpushare.io/memory.<container>, which goes before the pod's own word. A profile
// and the words that it stands for go before each other likewise.
func (s *Spec) askedByAnnotation() (map[string]string, error) {
	keys := make([]string, 0, len(s.annotations))
	for key := range s.annotations {
		if strings.HasPrefix(key, AnnotationPrefix) && key != ClaimAnnotation {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	asked, own := map[string]string{}, map[string]string{}
	for _, key := range keys {
		short, container, single := strings.Cut(strings.TrimPrefix(key, AnnotationPrefix), ".")
		w := find(AnnotationPrefix+short, (*word).annotation)
		if err := known(w, "annotation", key, (*word).annotation); err != nil {
			return nil, err
		}
		if err := checkValue(w, key, s.annotations[key], w.annotation()+": "); err != nil {
			return nil, err
		}
		if single {
			name := s.containerName()
			if name == "" {
				return nil, refuse(CodeUnknown, "annotation %q is for one container of a pod, but this engine gives the container no name: write %s", key, w.annotation())
			}
			if container == name {
				own[w.name] = s.annotations[key]
			}
			continue
		}
		asked[w.name] = s.annotations[key]
	}
	for _, w := range shareWords {
		if own[profileWord] != "" {
			delete(asked, w)
		}
		if own[w] != "" {
			delete(asked, profileWord)
		}
	}
	maps.Copy(asked, own)
	return asked, nil
}

func known(w *word, what, name string, as func(*word) string) error {
	if w != nil && w.field != nil {
		return nil
	}
	if w != nil {
		return refuse(CodeUnknown, "%s %q is not supported by this version: it knows %s", what, name, strings.Join(supported(as), ", "))
	}
	// The part after a dot names a container, in whose name nothing is misspelt.
	stem, container := name, ""
	if dot := strings.Index(strings.TrimPrefix(name, AnnotationPrefix), "."); strings.HasPrefix(name, AnnotationPrefix) && dot >= 0 {
		stem, container = name[:len(AnnotationPrefix)+dot], name[len(AnnotationPrefix)+dot:]
	}
	if near := suggest.Nearest(stem, supported(as), EnvPrefix, AnnotationPrefix); near != "" {
		return refuse(CodeUnknown, "%s %q is unknown: did you mean %s?", what, name, near+container)
	}
	return refuse(CodeUnknown, "%s %q is unknown: known are %s", what, name, strings.Join(supported(as), ", "))
}

func checkValue(w *word, name, value, prefix string) error {
	if value == "" {
		return refuse(CodeUnit, "%s is empty: write for example %s%s", name, prefix, w.example)
	}
	if len(value) > maxValue {
		return refuse(CodeUnit, "%s is %d bytes long, at most %d are read: write for example %s%s", name, len(value), maxValue, prefix, w.example)
	}
	return nil
}

// WithDefault fills in the node's default share: the whole of it for a container
// that asks for no share, only the memory for one that names no memory. It refuses
// a container that is then still without memory. The default's Source and GPU do
// not count.
func (a Ask) WithDefault(share Ask, reasons []string) (Ask, error) {
	none := a.Memory == "" && a.Compute == "" && a.ComputeMax == "" && a.Profile == ""
	switch {
	case a.Source == "" && (share.Memory != "" || share.Profile != ""):
		share.Source, share.GPU = SourceDefault, ""
		return share, nil
	case a.Source == "":
		return a, refuse(CodeNoShare, "container would reach a GPU (%s) but asks for no share, and this node has no default share: add -e GPUSHARE_MEMORY=8Gi (docker) or the annotation gpushare.io/memory: 8Gi", strings.Join(reasons, ", "))
	case a.Memory != "" || a.Profile != "":
	case share.Memory != "":
		a.Memory = share.Memory
	case none && share.Profile != "":
		a.Profile = share.Profile
	case share.Profile != "":
		return a, refuse(CodeNoShare, "container asks for a share of a GPU but names no memory, and this node's default share, profile %s, is whole or not at all: add -e GPUSHARE_MEMORY=8Gi (docker) or the annotation gpushare.io/memory: 8Gi", share.Profile)
	default:
		return a, refuse(CodeNoShare, "container asks for a share of a GPU but names no memory, and this node has no default: add -e GPUSHARE_MEMORY=8Gi (docker) or the annotation gpushare.io/memory: 8Gi")
	}
	return a, nil
}

// containerName is the name that a Kubernetes engine gave the container.
func (s *Spec) containerName() string {
	if name := s.annotations["io.kubernetes.cri.container-name"]; name != "" {
		return name
	}
	return s.annotations["io.kubernetes.container.name"]
}

// sandbox says whether this is a pod's pause container, which bears the pod's
// annotations and runs no program of the tenant.
func (s *Spec) sandbox() bool {
	return s.annotations["io.kubernetes.cri.container-type"] == "sandbox" ||
		s.annotations["io.kubernetes.cri-o.ContainerType"] == "sandbox"
}
