// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
)

var (
	bomUTF8  = []byte("\xef\xbb\xbf")
	bomUTF16 = [][]byte{[]byte("\xff\xfe"), []byte("\xfe\xff")}
)

// withRuntime returns daemon.json with runtimes.gpushare.path = path and everything
// else, byte for byte, as it was. same is set if the file says so already. data nil
// is a file that is not there.
func withRuntime(name string, data []byte, path string) (after []byte, same bool, err error) {
	bom, body, top, err := parseDaemonJSON(name, data)
	if err != nil {
		return nil, false, err
	}
	entry := nested("path", quoted(path))
	if body == nil {
		l := layout{indent: "    ", newline: "\n"}
		text := nested("runtimes", nested(Handler, entry))("", l) + "\n"
		return slices.Concat(bom, []byte(text)), false, nil
	}
	l := layoutOf(body, top)
	runtimes, _, there := top.find("runtimes")
	if !there {
		return slices.Concat(bom, insert(body, top, l, 1, "runtimes", nested(Handler, entry))), false, nil
	}
	s := scanner{data: body, at: runtimes.value}
	if body[runtimes.value] != '{' {
		return nil, false, refuse("%s: %s: \"runtimes\" is not an object", name, position(body, runtimes.value))
	}
	o := s.object()
	own, _, there := o.find(Handler)
	if !there {
		return slices.Concat(bom, insert(body, o, l, 2, Handler, entry)), false, nil
	}
	var have map[string]any
	if json.Unmarshal(body[own.value:own.end], &have) == nil && len(have) == 1 {
		if old, ok := have["path"].(string); ok && old == path {
			return data, true, nil
		} else if ok && filepath.Base(old) == filepath.Base(path) { // ours, installed elsewhere
			in, alone := indentation(body, own.key)
			if !alone {
				l = layout{}
			}
			return slices.Concat(bom, body[:own.value], []byte(entry(in, l)), body[own.end:]), false, nil
		}
	}
	return nil, false, refuse("%s: %s: there is a runtime %q already that this program did not write (%s); remove it, or give it another name",
		name, position(body, own.key), Handler, bytes.TrimSpace(body[own.value:own.end]))
}

// withoutRuntime returns daemon.json without runtimes.gpushare; without runtimes, if
// nothing else is in there. found is unset if there is no such key.
func withoutRuntime(name string, data []byte) (after []byte, found bool, err error) {
	bom, body, top, err := parseDaemonJSON(name, data)
	if err != nil || body == nil {
		return data, false, err
	}
	runtimes, at, there := top.find("runtimes")
	if !there || body[runtimes.value] != '{' {
		return data, false, nil
	}
	s := scanner{data: body, at: runtimes.value}
	o := s.object()
	_, i, there := o.find(Handler)
	switch {
	case !there:
		return data, false, nil
	case len(o.members) == 1:
		body = remove(body, top, at)
	default:
		body = remove(body, o, i)
	}
	return slices.Concat(bom, body), true, nil
}

// notDefault refuses to take away the runtime that docker starts containers with.
func notDefault(name string, data []byte) error {
	_, body, top, err := parseDaemonJSON(name, data)
	if err != nil || body == nil {
		return err
	}
	if def, _, there := top.find("default-runtime"); there {
		var text string
		if json.Unmarshal(body[def.value:def.end], &text) == nil && text == Handler {
			return refuse("%s: %s: %q is docker's default runtime; make it another one first",
				name, position(body, def.key), Handler)
		}
	}
	return nil
}

// parseDaemonJSON splits off a byte order mark. body is nil if there is no text.
func parseDaemonJSON(name string, data []byte) (bom, body []byte, top object, err error) {
	for _, mark := range bomUTF16 {
		if bytes.HasPrefix(data, mark) {
			return nil, nil, top, refuse("%s: line 1, column 1: written in UTF-16; save it as UTF-8", name)
		}
	}
	if bytes.HasPrefix(data, bomUTF8) {
		bom, data = data[:len(bomUTF8)], data[len(bomUTF8):]
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return bom, nil, top, nil
	}
	if top, err = parseObject(data); err != nil {
		return nil, nil, top, refuse("%s: %w", name, err)
	}
	return bom, data, top, nil
}
