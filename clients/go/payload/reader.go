// Reads msgpack from a slice. The slice's length bounds time and memory. It fails with the offset of the
// value that is wrong.

package payload

import (
	"encoding/binary"
	"math"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenNil tokenKind = iota
	tokenBool
	tokenInt
	tokenFloat32
	tokenFloat64
	tokenString
	tokenBytes
	tokenExt
	tokenArray
	tokenMap
)

var tokenNames = [...]string{"nil", "a bool", "an integer", "a float", "a float", "a string", "bytes",
	"an extension", "an array", "a map"}

func (k tokenKind) String() string { return tokenNames[k] }

// token is one unit of msgpack: a scalar, or the head of a container whose parts follow.
type token struct {
	kind     tokenKind
	flag     bool   // of a bool
	negative bool   // of an integer: bits is an int64
	ext      int8   // of an extension
	count    int    // of an array or a map
	bits     uint64 // of an integer or a float
	data     []byte // of a string, bytes or an extension; part of the input
}

// reader reads tokens from a slice. It rejects a declared length that is longer than the remaining bytes.
type reader struct {
	data []byte
	at   int
}

func (r *reader) take(count uint64, begun int) ([]byte, error) {
	if count > uint64(len(r.data)-r.at) {
		return nil, faultf(begun, "the payload ends inside a value")
	}
	taken := r.data[r.at : r.at+int(count)]
	r.at += int(count)
	return taken, nil
}

// number reads a big-endian unsigned number of 1, 2, 4 or 8 bytes.
func (r *reader) number(size int, begun int) (uint64, error) {
	raw, err := r.take(uint64(size), begun)
	if err != nil {
		return 0, err
	}
	switch size {
	case 1:
		return uint64(raw[0]), nil
	case 2:
		return uint64(binary.BigEndian.Uint16(raw)), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(raw)), nil
	}
	return binary.BigEndian.Uint64(raw), nil
}

func (r *reader) next() (token, error) {
	begun := r.at
	raw, err := r.take(1, begun)
	if err != nil {
		return token{}, err
	}
	switch m := raw[0]; {
	case m < 0x80:
		return token{kind: tokenInt, bits: uint64(m)}, nil
	case m < 0x90:
		return r.container(tokenMap, uint64(m&0x0f), begun)
	case m < 0xa0:
		return r.container(tokenArray, uint64(m&0x0f), begun)
	case m < 0xc0:
		return r.sized(tokenString, uint64(m&0x1f), begun)
	case m >= 0xe0:
		return integer(int64(int8(m))), nil
	default:
		return r.marked(m, begun)
	}
}

// marked reads the rest of a token whose marker is from 0xc0 to 0xdf.
func (r *reader) marked(m byte, begun int) (token, error) {
	switch {
	case m == 0xc0:
		return token{kind: tokenNil}, nil
	case m == 0xc1:
		return token{}, faultf(begun, "the reserved byte 0xc1")
	case m <= 0xc3:
		return token{kind: tokenBool, flag: m == 0xc3}, nil
	case m <= 0xc6:
		return r.lengthThen(tokenBytes, 1<<(m-0xc4), begun)
	case m <= 0xc9:
		return r.lengthThen(tokenExt, 1<<(m-0xc7), begun)
	case m <= 0xcb:
		bits, err := r.number(4<<(m-0xca), begun)
		return token{kind: tokenFloat32 + tokenKind(m-0xca), bits: bits}, err
	case m <= 0xcf:
		bits, err := r.number(1<<(m-0xcc), begun)
		return token{kind: tokenInt, bits: bits}, err
	case m <= 0xd3:
		return r.signed(1<<(m-0xd0), begun)
	case m <= 0xd8:
		return r.sized(tokenExt, 1<<(m-0xd4), begun)
	case m <= 0xdb:
		return r.lengthThen(tokenString, 1<<(m-0xd9), begun)
	case m <= 0xdd:
		return r.lengthThen(tokenArray, 2<<(m-0xdc), begun)
	default:
		return r.lengthThen(tokenMap, 2<<(m-0xde), begun)
	}
}

func (r *reader) signed(size, begun int) (token, error) {
	bits, err := r.number(size, begun)
	shift := 64 - 8*size
	return integer(int64(bits<<shift) >> shift), err
}

func integer(n int64) token {
	return token{kind: tokenInt, negative: n < 0, bits: uint64(n)}
}

// lengthThen reads a length of the given size, then that many bytes or parts.
func (r *reader) lengthThen(kind tokenKind, size, begun int) (token, error) {
	count, err := r.number(size, begun)
	if err != nil {
		return token{}, err
	}
	if kind == tokenArray || kind == tokenMap {
		return r.container(kind, count, begun)
	}
	return r.sized(kind, count, begun)
}

func (r *reader) sized(kind tokenKind, count uint64, begun int) (token, error) {
	t := token{kind: kind}
	if kind == tokenExt {
		number, err := r.number(1, begun)
		if err != nil {
			return t, err
		}
		t.ext = int8(number)
	}
	var err error
	t.data, err = r.take(count, begun)
	return t, err
}

// container refuses a count that the rest of the input cannot hold, each part being a byte at least.
func (r *reader) container(kind tokenKind, count uint64, begun int) (token, error) {
	parts := count
	if kind == tokenMap {
		parts *= 2
	}
	if parts > uint64(len(r.data)-r.at) {
		return token{}, faultf(begun, "it claims %d parts and %d bytes are left", parts, len(r.data)-r.at)
	}
	return token{kind: kind, count: int(count)}, nil
}

// skip reads over a whole value that is inside a container at depth.
func (r *reader) skip(depth int) error {
	begun := r.at
	t, err := r.next()
	if err != nil {
		return err
	}
	return r.skipParts(t, begun, depth)
}

// skipParts reads over the parts of a token that was just read inside a container at depth.
func (r *reader) skipParts(t token, begun, depth int) error {
	parts := t.count
	if t.kind == tokenMap {
		parts *= 2
	}
	if t.kind != tokenArray && t.kind != tokenMap {
		return nil
	}
	if depth >= NestingMax {
		return tooDeep(begun)
	}
	for range parts {
		if err := r.skip(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func tooDeep(offset int) error {
	return faultf(offset, "it nests deeper than %d levels", NestingMax)
}

// signedValue is the number if an int64 holds it.
func (t token) signedValue() (int64, bool) {
	return int64(t.bits), t.negative || t.bits <= math.MaxInt64
}

// tag is the token as a field's tag: a whole number, or its digits.
func (t token) tag() (uint64, bool) {
	switch {
	case t.kind == tokenInt:
		return t.bits, !t.negative
	case t.kind == tokenString && len(t.data) > 0 && len(t.data) <= 20 && (t.data[0] != '0' || len(t.data) == 1):
		return parseDigits(t.data)
	}
	return 0, false
}

func parseDigits(digits []byte) (uint64, bool) {
	var number uint64
	for _, digit := range digits {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		value := uint64(digit - '0')
		if number > (math.MaxUint64-value)/10 {
			return 0, false
		}
		number = number*10 + value
	}
	return number, true
}
