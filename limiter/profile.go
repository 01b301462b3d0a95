// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

const (
	// MaxParts is the most parts that a GPU can be cut into by a profile.
	MaxParts = 64

	// slice4G is the name of the profile of sliceBytes.
	slice4G = "slice-4g"
	// sliceBytes are decimal: eight of them fit on a card that calls itself 32 GB.
	sliceBytes = 4_000_000_000

	partsPrefix = "1of"

	// profileChoices is what to write, for messages.
	profileChoices = "1of2, 1of4, 1of6 (any 1ofN, N from 1 to 64) or slice-4g"
)

// Profile is a share by name. What it means depends on the GPU; as many as its
// name says always fit on an empty one. The zero Profile is none.
type Profile struct {
	name  string
	parts uint32 // 1ofN: N
	bytes uint64 // of a fixed size; 0 for 1ofN
}

// ParseProfile reads the name of a profile: 1of1 to 1of64, or slice-4g.
func ParseProfile(text string) (Profile, error) {
	if text == slice4G {
		return Profile{name: text, bytes: sliceBytes}, nil
	}
	if digits, ok := strings.CutPrefix(text, partsPrefix); ok && len(digits) <= 2 {
		n, err := strconv.ParseUint(digits, 10, 32)
		if err == nil && n >= 1 && n <= MaxParts && strconv.FormatUint(n, 10) == digits {
			return Profile{name: text, parts: uint32(n)}, nil
		}
	}
	return Profile{}, fmt.Errorf("%.40q is no profile: write %s", text, profileChoices)
}

// String returns the profile's name, empty for none.
func (p Profile) String() string { return p.name }

// IsZero reports whether there is no profile.
func (p Profile) IsZero() bool { return p.name == "" }

// On returns the limit that the profile means on a GPU whose limits may add up to
// usable bytes. Everything is rounded down, so that all shares of a GPU fit; the
// remainder stays free. The guarantee is the ceiling too. It returns a
// *ProfileError for a GPU of which it is no share.
func (p Profile) On(usable uint64) (Limit, error) {
	bytes, milli := p.bytes, uint64(0)
	if p.parts != 0 {
		bytes, milli = usable/uint64(p.parts), region.MilliGPU/uint64(p.parts)
	} else if usable >= bytes {
		milli = region.MilliGPU * bytes / usable
	}
	if bytes == 0 || milli == 0 || bytes > usable {
		return Limit{}, &ProfileError{Profile: p.name, Bytes: bytes, Usable: usable}
	}
	return Limit{MemoryBytes: bytes, ComputeMilli: uint32(milli), CeilingMilli: uint32(milli)}, nil
}

// ProfileError says that a profile is no share of a GPU.
type ProfileError struct {
	Profile       string
	Bytes, Usable uint64 // what the profile takes, what the GPU has
}

func (e *ProfileError) Error() string {
	if e.Bytes > e.Usable {
		return fmt.Sprintf("profile %s is %s, the whole GPU has %s to give (%d of %d bytes)",
			e.Profile, quantity.FormatBytes(e.Bytes), quantity.FormatBytes(e.Usable), e.Usable, e.Bytes)
	}
	return fmt.Sprintf("profile %s is less than one byte or 0.1%% of a GPU with %d bytes to give", e.Profile, e.Usable)
}
