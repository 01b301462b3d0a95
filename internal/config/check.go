// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/gpushare/gpushare/internal/suggest"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
)

// Problem is something in a config.toml that cannot be used.
type Problem struct {
	Line int // from 1; 0 if it is of no line
	Text string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// checker collects the problems of one file.
type checker struct {
	c        *Config
	data     []byte
	problems []Problem
	lines    map[string]int // read when the first problem needs it
}

// Check reads data, the content of the file called name, over the defaults, and
// says all that is wrong with it, in the order of lines. It looks at nothing but
// data. The Config is what is left of it, and must not be used if there is a
// problem.
func Check(name string, data []byte) (*Config, []Problem) {
	k := &checker{c: Default(), data: data}
	k.c.Path = name
	if k.decode() {
		k.paths()
		k.choices()
		k.quantities()
	}
	slices.SortStableFunc(k.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return k.c, k.problems
}

// decode reports whether the file could be read to its end.
func (k *checker) decode() bool {
	err := toml.NewDecoder(bytes.NewReader(k.data)).DisallowUnknownFields().Decode(k.c)
	var strict *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case err == nil:
	case errors.As(err, &strict):
		for _, e := range strict.Errors {
			row, _ := e.Position()
			k.problems = append(k.problems, Problem{row, unknown(e.Key())})
		}
	case errors.As(err, &decode):
		row, column := decode.Position()
		text := form(decode.Key())
		if text == "" { // no fault of a value: of the file's grammar
			text = fmt.Sprintf("column %d: %s", column, oneLine(err))
		}
		k.problems = append(k.problems, Problem{row, text})
		return false
	default:
		k.problems = append(k.problems, Problem{0, oneLine(err)})
		return false
	}
	return true
}

// form says how the value of a key is written; empty if there is no such key.
func form(key []string) string {
	at := reflect.TypeFor[Config]()
	for _, part := range key {
		var next reflect.Type
		if at.Kind() == reflect.Struct {
			for field := range fields(at) {
				if field.Tag.Get("toml") == part {
					next = field.Type
				}
			}
		}
		if next == nil {
			return ""
		}
		at = next
	}
	if len(key) == 0 {
		return ""
	}
	name, wants := strings.Join(key, "."), ""
	switch at.Kind() {
	case reflect.String:
		wants = `is a text: write it in quotes, as "…"`
	case reflect.Slice:
		wants = `is a list of texts: write ["…", "…"]`
	case reflect.Bool:
		wants = "is true or false, without quotes"
	case reflect.Struct:
		wants = "is a table: write [" + name + "] on a line of its own and its keys below"
	default:
		return ""
	}
	return name + " " + wants
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " ") }

// unknown says that there is no such key, and which there are.
func unknown(key []string) string {
	table, siblings := reflect.TypeFor[Config](), []string(nil)
	for i, part := range key {
		siblings = nil
		var next reflect.Type
		for field := range fields(table) {
			name := field.Tag.Get("toml")
			siblings = append(siblings, strings.Join(append(slices.Clone(key[:i]), name), "."))
			if name == part {
				next = field.Type
			}
		}
		if next == nil || next.Kind() != reflect.Struct {
			key = key[:i+1]
			break
		}
		table = next
	}
	text := fmt.Sprintf("unknown key %q", strings.Join(key, "."))
	prefix := strings.Join(key[:len(key)-1], ".") + "."
	if near := suggest.Nearest(strings.Join(key, "."), siblings, prefix); near != "" {
		return text + ": did you mean " + near + "?"
	}
	return text + ": known are " + strings.Join(siblings, ", ")
}

// fields yields the keys of a table.
func fields(table reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range table.NumField() {
			if f := table.Field(i); f.Tag.Get("toml") != "-" && !yield(f) {
				return
			}
		}
	}
}

// add notes a problem of a key.
func (k *checker) add(key, format string, args ...any) {
	if k.lines == nil {
		k.lines = lines(k.data)
	}
	k.problems = append(k.problems, Problem{k.lines[key], key + fmt.Sprintf(format, args...)})
}

func (k *checker) paths() {
	for _, p := range []struct {
		key     string
		value   *string
		must    bool // be given
		library bool // a plain name is looked up by the loader
	}{
		{"run_dir", &k.c.RunDir, true, false}, {"state_dir", &k.c.StateDir, true, false},
		{"library_dir", &k.c.LibraryDir, false, false}, {"driver_cdi_spec", &k.c.DriverCDISpec, false, false},
		{"nvml_library", &k.c.NVMLLibrary, false, true}, {"cuda_library", &k.c.CUDALibrary, false, true},
	} {
		switch {
		case *p.value == "" && p.must:
			k.add(p.key, " is empty: write an absolute path")
		case *p.value == "" || p.library && !strings.Contains(*p.value, "/"):
		case !filepath.IsAbs(*p.value):
			k.add(p.key, " %q is not an absolute path", *p.value)
		default:
			*p.value = filepath.Clean(*p.value)
		}
	}
	if h := k.c.DockerHost; h != "" {
		if socket, ok := strings.CutPrefix(h, "unix://"); !ok || !filepath.IsAbs(socket) {
			k.add("docker_host", " %q: write unix:// and the absolute path of a socket, or \"\" to ask nobody", h)
		}
	}
}

func (k *checker) choices() {
	if c := k.c.Compat; c != "route" && c != "host" && c != "refuse" {
		k.add("compat", ` is %q: write "route", "host" or "refuse"`, c)
	}
	if len(k.c.Runtimes) == 0 {
		k.add("runtimes", ` is empty: name at least one, for example ["runc"]`)
	}
	for _, r := range k.c.Runtimes {
		if r == "" || (strings.Contains(r, "/") && !filepath.IsAbs(r)) {
			k.add("runtimes", " has %q: write a plain name or an absolute path", r)
		}
	}
	for _, m := range k.c.ExtraDriverMounts {
		if _, _, err := SplitMount(m); err != nil {
			k.add("extra_driver_mounts", ": %v", err)
		}
	}
}

// quantities reads the default share and the caps, and whether they fit together.
func (k *checker) quantities() {
	share := k.c.DefaultShare.Words()
	var request limiter.Request
	good := true
	lends, err := k.c.HostBytes()
	if err != nil {
		k.add(hostMemoryKey, "%s", strings.TrimPrefix(codeless(err), hostMemoryKey))
	}
	if !share.Empty() {
		var err error
		if request, err = limiter.Parse(share, quantity.Strict); err != nil {
			k.quantity("default_share", err)
			good = false
		} else if request.HostBytes > lends {
			k.add("default_share", " has host_memory = %q, but host_memory of this file lends %s to all containers together: no container could have it",
				share.HostMemory, quantity.FormatBytes(lends))
		}
	}
	for _, named := range []struct {
		name string
		most Most
	}{{envCap, k.c.Cap.Env}, {annotationCap, k.c.Cap.Annotation}} {
		limit, err := limiter.ParseCap(named.name, named.most.words())
		if err != nil {
			k.quantity(named.name, err)
		} else if good && !share.Empty() && !limit.Empty() {
			k.fits(request, limit)
		}
	}
}

// quantity notes a word that is refused, under its key.
func (k *checker) quantity(table string, err error) {
	var field *limiter.FieldError
	if !errors.As(err, &field) {
		k.add(table, ": %v", err)
		return
	}
	k.add(table+"."+strings.ReplaceAll(field.Field, "-", "_"), " %s", codeless(field.Err))
}

// codeless is an error's text on one line, without the code.
func codeless(err error) string {
	return strings.ReplaceAll(strings.TrimSuffix(err.Error(), "  ["+quantity.Code+"]"), "\n", " ")
}

// fits notes a default share that is above a cap whatever the GPU: who asks for
// nothing would have more than who asks.
func (k *checker) fits(share limiter.Request, most limiter.Cap) {
	capped := share
	capped.Caps = []limiter.Cap{most}
	if _, err := capped.Host(); err != nil {
		k.add("default_share", above, most.Name, err)
		return
	}
	var refused error
	for shift := 30; shift < 44; shift++ {
		usable := uint64(1) << shift
		want, err := share.On(usable)
		if err != nil {
			continue
		}
		got, err := capped.On(usable)
		switch {
		case err == nil && got == want:
			return
		case err == nil:
			refused = fmt.Errorf("no compute_max, %s allowed (%s.compute_max)", quantity.FormatShare(got.CeilingMilli), most.Name)
		default:
			refused = err
		}
	}
	if refused != nil {
		k.add("default_share", above, most.Name, refused)
	}
}

const above = " is above %s, so who asks for nothing would have more than who asks: %v"
