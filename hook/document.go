// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// object is a JSON object whose unknown members are carried along untouched.
// Numbers are json.Number, so that none changes on its way through.
type object map[string]any

// Bounds of a document: OCI specs need about ten levels of nesting and some
// thousand values. Without them a crafted one of 16 MiB takes 800 MiB to read.
const (
	maxDepth  = 64
	maxValues = 1 << 20
)

// reader is a JSON decoder that counts.
type reader struct {
	*json.Decoder
	values int
}

// decode reads exactly one JSON object. It refuses a name that occurs twice in
// an object: readers differ on which one counts, and the low-level runtime must
// not see another spec than the one that was judged.
func decode(data []byte) (object, error) {
	dec := &reader{Decoder: json.NewDecoder(bytes.NewReader(data))}
	dec.UseNumber()
	v, err := dec.value(0)
	if err != nil {
		return nil, err
	}
	root, ok := v.(object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return root, nil
}

func (dec *reader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if dec.values++; dec.values > maxValues {
		return nil, fmt.Errorf("has more than %d values", maxValues)
	}
	token, err := dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	switch delim {
	case '{':
		return dec.object(depth)
	case '[':
		list := []any{}
		for dec.More() {
			v, err := dec.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return nil, fmt.Errorf("unexpected %q", delim.String())
}

func (dec *reader) object(depth int) (any, error) {
	o := object{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("unexpected %v for a name", token)
		}
		if _, twice := o[name]; twice {
			return nil, fmt.Errorf("the name %q occurs twice in one object", name)
		}
		if o[name], err = dec.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return o, err
}

// encode writes o with its names sorted, so equal documents give equal bytes.
func encode(o object) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return nil, fmt.Errorf("write spec: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// onlyExact refuses a member that differs from one of names only by case. Go's
// JSON reader, and so runc, takes "Linux" for "linux"; crun does not.
func (o object) onlyExact(where string, names ...string) error {
	for key := range o {
		for _, name := range names {
			if key != name && strings.EqualFold(key, name) {
				return fmt.Errorf("%s has %q where the specification has %q", where, key, name)
			}
		}
	}
	return nil
}

func wrongType(key, want string, got any) error {
	return fmt.Errorf("%q is not %s but %T", key, want, got)
}

// The readers below return the zero value for an absent or null member.

func (o object) object(key string) (object, error) {
	switch v := o[key].(type) {
	case nil:
		return nil, nil
	case object:
		return v, nil
	default:
		return nil, wrongType(key, "an object", v)
	}
}

func (o object) list(key string) ([]any, error) {
	switch v := o[key].(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	default:
		return nil, wrongType(key, "an array", v)
	}
}

func (o object) objects(key string) ([]object, error) {
	list, err := o.list(key)
	if err != nil {
		return nil, err
	}
	objects := make([]object, 0, len(list))
	for _, v := range list {
		entry, ok := v.(object)
		if !ok {
			return nil, wrongType(key+"[]", "an object", v)
		}
		objects = append(objects, entry)
	}
	return objects, nil
}

func (o object) text(key string) (string, error) {
	switch v := o[key].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		return "", wrongType(key, "a string", v)
	}
}

func (o object) texts(key string) ([]string, error) {
	list, err := o.list(key)
	if err != nil {
		return nil, err
	}
	texts := make([]string, 0, len(list))
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil, wrongType(key+"[]", "a string", v)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func (o object) boolean(key string) (bool, error) {
	switch v := o[key].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	default:
		return false, wrongType(key, "a boolean", v)
	}
}

// integer returns absent for a missing or null member.
func (o object) integer(key string, absent int64) (int64, error) {
	switch v := o[key].(type) {
	case nil:
		return absent, nil
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return 0, fmt.Errorf("%q is not an integer: %w", key, err)
		}
		return n, nil
	default:
		return 0, wrongType(key, "a number", v)
	}
}

// child returns the object under key, made if absent.
func (o object) child(key string) (object, error) {
	c, err := o.object(key)
	if err == nil && c == nil {
		c = object{}
		o[key] = c
	}
	return c, err
}

// setObjects puts list under key; an empty list takes the member out, so that
// editing twice gives the same bytes as editing once.
func (o object) setObjects(key string, list []object) {
	if len(list) == 0 {
		delete(o, key)
		return
	}
	raw := make([]any, len(list))
	for i, entry := range list {
		raw[i] = entry
	}
	o[key] = raw
}

func (o object) setTexts(key string, list []string) {
	raw := make([]any, len(list))
	for i, text := range list {
		raw[i] = text
	}
	o[key] = raw
}
