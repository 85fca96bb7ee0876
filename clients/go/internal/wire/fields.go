// Reads a payload field by field, and reports why it is not a message.

package wire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Class says in which way bytes are not a message.
type Class string

// The classes, named as in testdata/frames.
const (
	UnknownType    Class = "unknown_type"
	UndefinedFlags Class = "undefined_flags"
	Truncated      Class = "truncated"
	LeftOver       Class = "left_over"
	BadValue       Class = "bad_value"
	NotUTF8        Class = "not_utf8"
	ZeroID         Class = "zero_id"
	TooMany        Class = "too_many"
	FrameTooLong   Class = "frame_too_long"
)

// DecodeError says why bytes are not a message.
type DecodeError struct {
	Class Class
	What  string
}

func (e *DecodeError) Error() string { return e.What }

func refuse(class Class, format string, args ...any) *DecodeError {
	return &DecodeError{Class: class, What: fmt.Sprintf(format, args...)}
}

// CheckLength refuses a frame whose declared payload is longer than max.
func CheckLength(header Header, max int) error {
	if uint64(header.Len) > uint64(max) {
		return refuse(FrameTooLong, "a frame of %d bytes is over the limit of %d", header.Len, max)
	}
	return nil
}

// fields reads a payload's fields one after another, never past the end. After the first failure every read
// returns zero, and finish reports the failure.
type fields struct {
	rest []byte
	err  *DecodeError
	// lastText is the text read last: items of one page mostly share their type.
	lastText string
}

func (f *fields) fail(err *DecodeError) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) take(name string, n int) []byte {
	if f.err != nil {
		return nil
	}
	if n > len(f.rest) {
		f.fail(refuse(Truncated, "%s needs %d bytes, and %d are left", name, n, len(f.rest)))
		return nil
	}
	taken := f.rest[:n:n]
	f.rest = f.rest[n:]
	return taken
}

func (f *fields) u8(name string) uint8 {
	if b := f.take(name, 1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) u16(name string) uint16 {
	if b := f.take(name, 2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (f *fields) u32(name string) uint32 {
	if b := f.take(name, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (f *fields) u64(name string) uint64 {
	if b := f.take(name, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// id reads an id, which must not be 0.
func (f *fields) id(name string) uint64 {
	id := f.u64(name)
	if id == 0 && f.err == nil {
		f.fail(refuse(ZeroID, "%s is 0, which names nothing", name))
	}
	return id
}

func (f *fields) hash(name string) (hash Hash) {
	copy(hash[:], f.take(name, HashBytes))
	return hash
}

// bytes reads a length and that many bytes.
func (f *fields) bytes(name string) []byte {
	n := f.u32(name)
	if uint64(n) > uint64(len(f.rest)) {
		f.fail(refuse(Truncated, "%s needs %d bytes, and %d are left", name, n, len(f.rest)))
		return nil
	}
	return f.take(name, int(n))
}

func (f *fields) text(name string) string { return f.toText(name, f.bytes(name)) }

func (f *fields) toText(name string, bytes []byte) string {
	if string(bytes) == f.lastText {
		return f.lastText
	}
	if !utf8.Valid(bytes) {
		f.fail(refuse(NotUTF8, "%s is not UTF-8", name))
		return ""
	}
	f.lastText = string(bytes)
	return f.lastText
}

// flag reads a number that is 0 or 1.
func (f *fields) flag(name string, value uint32) bool {
	if value > 1 {
		f.fail(refuse(BadValue, "%s is %d, and may be 0 or 1", name, value))
	}
	return value == 1
}

func (f *fields) compression() uint32 {
	form := f.u32("compression")
	if form > CompressionZstd {
		f.fail(refuse(BadValue, "there is no compression %d", form))
	}
	return form
}

// count reads the number of entries that follow, each of at least entryBytes. It rejects a number that the
// remaining bytes cannot hold, so that the caller may allocate for it.
func (f *fields) count(name string, entryBytes, max int) int {
	n := uint64(f.u32(name))
	switch {
	case f.err != nil:
		return 0
	case n > uint64(max):
		f.fail(refuse(TooMany, "%s is %d, and may be at most %d", name, n, max))
	case n*uint64(entryBytes) > uint64(len(f.rest)):
		f.fail(refuse(Truncated, "%d entries are declared, and %d bytes are left", n, len(f.rest)))
	default:
		return int(n)
	}
	return 0
}

func (f *fields) finish() error {
	if f.err == nil && len(f.rest) > 0 {
		f.fail(refuse(LeftOver, "%d bytes are left over", len(f.rest)))
	}
	if f.err != nil {
		return f.err
	}
	return nil
}
