// The three errors of the package, and the fault that becomes one of them when it reaches the top.

package payload

import (
	"fmt"
	"reflect"
	"strconv"
)

// TypeError says why a Go type cannot be a payload. It is a mistake in the program, whatever the value.
type TypeError struct {
	Type   reflect.Type
	Field  string // empty if it concerns the whole type
	Reason string
}

func (e *TypeError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("payload: %v: %s", e.Type, e.Reason)
	}
	return fmt.Sprintf("payload: %v.%s: %s", e.Type, e.Field, e.Reason)
}

// EncodeError says which value has no encoding.
type EncodeError struct {
	Path   string // the path to the value by field names, such as `links[3].size`
	Reason string
}

func (e *EncodeError) Error() string {
	return "payload: encoding" + at(e.Path) + ": " + e.Reason
}

// DecodeError says where bytes are not the payload of a type.
type DecodeError struct {
	Path   string // the path to the value by field names, such as `links[3].size`; empty for the payload itself
	Offset int    // where in the bytes the value begins
	Reason string
}

func (e *DecodeError) Error() string {
	return "payload: decoding" + at(e.Path) + ": " + e.Reason + " (byte " + strconv.Itoa(e.Offset) + ")"
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return " " + path
}

// fault is an error while it is returned; every level puts its step before the path.
type fault struct {
	path   string
	offset int
	reason string
}

func (f *fault) Error() string { return f.path + ": " + f.reason }

func faultf(offset int, format string, args ...any) error {
	return &fault{offset: offset, reason: fmt.Sprintf(format, args...)}
}

// within puts a step, a field's name or a part in brackets, before the path of a fault.
func within(err error, step string) error {
	if f, ok := err.(*fault); ok {
		if f.path != "" && f.path[0] != '[' {
			step += "."
		}
		f.path = step + f.path
	}
	return err
}

func indexStep(index int) string { return "[" + strconv.Itoa(index) + "]" }
