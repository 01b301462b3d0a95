// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// unset says what a key means that has no value.
var unset = map[string]string{
	"library_dir":         "../lib/gpushare beside the binary's folder",
	"driver_cdi_spec":     "the first of nvidia.com/gpu in /etc/cdi, /var/run/cdi",
	"nvml_library":        "found by the loader",
	"cuda_library":        "found by the loader",
	"extra_driver_mounts": "none",
	"default_share":       "none: a GPU container that asks for no share is refused",
	hostMemoryKey:         "none: no container gets host memory",
	envCap:                "none",
	annotationCap:         "none",
}

// Effective returns the configuration that is in force as a config.toml: values
// that are the defaults are marked, keys without a value are comments.
func (c *Config) Effective() (string, error) {
	var keys, tables strings.Builder
	if err := write(&keys, &tables, "", reflect.ValueOf(*c), reflect.ValueOf(*Default())); err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	return keys.String() + tables.String(), nil
}

func write(keys, tables *strings.Builder, table string, v, usual reflect.Value) error {
	for field := range fields(v.Type()) {
		name := field.Tag.Get("toml")
		full := strings.TrimPrefix(table+"."+name, ".")
		value, was := v.FieldByIndex(field.Index), usual.FieldByIndex(field.Index)
		meaning, optional := unset[full]
		switch {
		case optional && (value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0):
			into := keys
			if field.Type.Kind() == reflect.Struct {
				full, into = "["+full+"]", tables
			}
			fmt.Fprintf(into, "# %s: %s\n", full, meaning)
		case field.Type.Kind() == reflect.Struct:
			var own strings.Builder
			if err := write(&own, tables, full, value, was); err != nil {
				return err
			}
			if own.Len() > 0 {
				fmt.Fprintf(tables, "[%s]\n%s", full, &own)
			}
		case value.Kind() == reflect.String && value.Len() == 0 && was.Len() == 0: // a word of a share
		default:
			line, err := toml.Marshal(map[string]any{name: value.Interface()})
			if err != nil {
				return err
			}
			text := strings.TrimSpace(string(line))
			if !strings.ContainsAny(text, "\"\\") { // as people write it
				text = strings.ReplaceAll(text, "'", "\"")
			}
			keys.WriteString(text)
			if reflect.DeepEqual(value.Interface(), was.Interface()) {
				keys.WriteString(" # default")
			}
			keys.WriteByte('\n')
		}
	}
	return nil
}
