// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// criHandlers asks containerd's CRI plugin which runtime handlers it runs with. It is
// one call of the CRI API, over HTTP/2 as gRPC has it; a gRPC library and the generated
// API would add 5 MB to this program for it.
func criHandlers(ctx context.Context, socket string) (map[string]criHandler, error) {
	text, err := criConfig(ctx, socket)
	if err != nil {
		return nil, err
	}
	var c struct {
		Containerd struct {
			Runtimes map[string]criHandler `json:"runtimes"`
		} `json:"containerd"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("read the CRI plugin's configuration: %w", err)
	}
	return c.Containerd.Runtimes, nil
}

// criHandler is a runtime handler as the CRI plugin shows it.
type criHandler struct {
	Type string `json:"runtimeType"`
	Path string `json:"runtimePath"`
}

// criConfig returns info["config"] of the verbose CRI Status.
func criConfig(ctx context.Context, socket string) ([]byte, error) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols: &protocols,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}
	defer transport.CloseIdleConnections()
	// A message of five bytes' head (not compressed, length 2): field 1, verbose, is true.
	body := []byte{0, 0, 0, 0, 2, 0x08, 0x01}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://containerd/runtime.v1.RuntimeService/Status", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	for _, h := range []http.Header{resp.Header, resp.Trailer} {
		if code := h.Get("Grpc-Status"); code != "" && code != "0" {
			return nil, fmt.Errorf("status %s: %.200s", code, h.Get("Grpc-Message"))
		}
	}
	if len(data) < 5 || data[0] != 0 || int(binary.BigEndian.Uint32(data[1:5])) != len(data)-5 {
		return nil, errors.New("an answer that is no CRI Status")
	}
	var config []byte
	// StatusResponse.info, field 2, is a map: entries with a key (1) and a value (2).
	err = fields(data[5:], func(number uint64, entry []byte) error {
		if number != 2 {
			return nil
		}
		var key, value []byte
		if err := fields(entry, func(n uint64, v []byte) error {
			switch n {
			case 1:
				key = v
			case 2:
				value = v
			}
			return nil
		}); err != nil {
			return err
		}
		if string(key) == "config" {
			config = value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if config == nil {
		return nil, errors.New("the CRI plugin does not show its configuration")
	}
	return config, nil
}

var errWire = errors.New("an answer that cannot be decoded")

// fields calls each with every length-delimited field of a protobuf message.
func fields(data []byte, each func(number uint64, value []byte) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return errWire
		}
		data = data[n:]
		switch tag & 7 {
		case 0:
			if _, n = binary.Uvarint(data); n <= 0 {
				return errWire
			}
			data = data[n:]
		case 1:
			if len(data) < 8 {
				return errWire
			}
			data = data[8:]
		case 2:
			size, n := binary.Uvarint(data)
			if n <= 0 || size > uint64(len(data)-n) {
				return errWire
			}
			if err := each(tag>>3, data[n:n+int(size)]); err != nil {
				return err
			}
			data = data[n+int(size):]
		case 5:
			if len(data) < 4 {
				return errWire
			}
			data = data[4:]
		default:
			return errWire
		}
	}
	return nil
}
