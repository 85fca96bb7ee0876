// Package payload turns Go structs into turn payloads and back.
//
// A payload is a msgpack map from numeric tags to values. Fields get their tags from struct tags:
//
//	type Message struct {
//		Role   Role      `turnkeep:"1"`
//		Text   string    `turnkeep:"2,semantic=markdown"`
//		SentAt time.Time `turnkeep:"3,omitempty"`
//		Rest   payload.Unknown
//	}
//
// The same value always encodes to the same bytes: tags ascend, map keys are sorted, integers and
// lengths take the fewest bytes. Fields that a reader does not know are kept in [Unknown] and written
// again byte for byte.
//
// [Marshal] and [Unmarshal] fail with a [*TypeError] if the Go type cannot be a payload, with an
// [*EncodeError] or a [*DecodeError] if the value cannot; the latter two name the path. Bytes may come
// from anyone: depth, lengths and memory are bounded, and nothing panics.
package payload

import (
	"errors"
	"reflect"
)

// NestingMax is the deepest nesting of maps and arrays, the payload's own map included.
const NestingMax = 128

// DecodedBytesMax limits the memory that one [Unmarshal] allocates for slices, maps and pointers: a few bytes
// of payload can declare very large ones.
const DecodedBytesMax = 1 << 30

// Marshal encodes a struct or a pointer to a struct.
func Marshal(v any) ([]byte, error) {
	value := reflect.ValueOf(v)
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return nil, &TypeError{Type: reflect.TypeOf(v), Reason: "a payload is a struct or a pointer to one"}
	}
	object, err := Describe(value.Type())
	if err != nil {
		return nil, err
	}
	e := encoder{buf: make([]byte, 0, 128)}
	if err := e.object(object, value); err != nil {
		return nil, encodeFault(err)
	}
	return e.buf, nil
}

// Unmarshal decodes a payload into the struct that v points to. Fields that are not in the payload
// become zero; after an error the whole struct is zero. Nothing in v refers to data afterwards.
func Unmarshal(data []byte, v any) error {
	pointer := reflect.ValueOf(v)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() || pointer.Elem().Kind() != reflect.Struct {
		return &TypeError{Type: reflect.TypeOf(v), Reason: "decoding needs a pointer to a struct that is not nil"}
	}
	value := pointer.Elem()
	object, err := Describe(value.Type())
	if err != nil {
		return err
	}
	d := decoder{reader: reader{data: data}, budget: DecodedBytesMax}
	value.SetZero()
	if err := d.payload(object, value); err != nil {
		value.SetZero()
		return decodeFault(err)
	}
	return nil
}

func encodeFault(err error) error {
	if f := new(fault); errors.As(err, &f) {
		return &EncodeError{Path: f.path, Reason: f.reason}
	}
	return err
}

func decodeFault(err error) error {
	if f := new(fault); errors.As(err, &f) {
		return &DecodeError{Path: f.path, Offset: f.offset, Reason: f.reason}
	}
	return err
}
