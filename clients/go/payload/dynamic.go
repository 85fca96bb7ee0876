// What an interface holds after decoding: nil, bool, int64 (uint64 above its range), float32, float64,
// string, []byte, [Ext], []any, and map[string]any, or map[any]any if a key is not a string. Keys are bool,
// int64, uint64, string or [ByteString].

package payload

import (
	"math"
	"reflect"
	"slices"
	"unicode/utf8"
)

// valueBytes is the approximate memory of an interface value, with the value that it points to.
const valueBytes = 32

// any reads a value of any kind, whose head t began at begun, into an interface, a Raw or an Ext.
func (d *decoder) any(v reflect.Value, t token, begun int) error {
	if v.Type() == rawType {
		if err := d.skipParts(t, begun, d.depth); err != nil {
			return err
		}
		v.SetBytes(slices.Clone(d.data[begun:d.at]))
		return nil
	}
	value, err := d.dynamic(t, begun)
	if err != nil {
		return err
	}
	if _, isExt := value.(Ext); v.Type() == extType && !isExt {
		return faultf(begun, "it must be an extension, not %v", t.kind)
	}
	v.Set(reflect.ValueOf(value))
	return nil
}

func (d *decoder) dynamic(t token, begun int) (any, error) {
	if err := d.charge(1, valueBytes, begun); err != nil {
		return nil, err
	}
	switch t.kind {
	case tokenNil:
		return nil, nil
	case tokenFloat32:
		return math.Float32frombits(uint32(t.bits)), nil
	case tokenFloat64:
		return math.Float64frombits(t.bits), nil
	case tokenBytes:
		return append([]byte{}, t.data...), nil
	case tokenExt:
		return Ext{Type: t.ext, Data: append([]byte{}, t.data...)}, nil
	case tokenArray:
		return d.dynamicArray(t, begun)
	case tokenMap:
		return d.dynamicMap(t, begun)
	}
	return dynamicKey(t, begun)
}

// dynamicKey is a value that can also be a key.
func dynamicKey(t token, begun int) (any, error) {
	switch t.kind {
	case tokenBool:
		return t.flag, nil
	case tokenInt:
		if number, fits := t.signedValue(); fits {
			return number, nil
		}
		return t.bits, nil
	case tokenString:
		if !utf8.Valid(t.data) {
			return nil, faultf(begun, "the string is not UTF-8")
		}
		return string(t.data), nil
	case tokenBytes:
		return ByteString(t.data), nil
	}
	return nil, faultf(begun, "a key is %v; only Raw holds such a map", t.kind)
}

func (d *decoder) dynamicNext() (any, error) {
	begun := d.at
	t, err := d.next()
	if err != nil {
		return nil, err
	}
	return d.dynamic(t, begun)
}

func (d *decoder) dynamicArray(t token, begun int) (any, error) {
	if err := d.enter(begun); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := d.charge(t.count, valueBytes, begun); err != nil {
		return nil, err
	}
	items := make([]any, t.count)
	for i := range items {
		var err error
		if items[i], err = d.dynamicNext(); err != nil {
			return nil, within(err, indexStep(i))
		}
	}
	return items, nil
}

func (d *decoder) dynamicMap(t token, begun int) (any, error) {
	if err := d.enter(begun); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := d.charge(t.count, 2*valueBytes+mapEntryBytes, begun); err != nil {
		return nil, err
	}
	entries := make(map[any]any, t.count)
	for range t.count {
		if err := d.dynamicEntry(entries); err != nil {
			return nil, err
		}
	}
	return named(entries), nil
}

func (d *decoder) dynamicEntry(entries map[any]any) error {
	begun := d.at
	t, err := d.next()
	if err != nil {
		return err
	}
	key, err := dynamicKey(t, begun)
	if err != nil {
		return err
	}
	step := func() string {
		known, _ := keyOf(reflect.ValueOf(key))
		return known.step()
	}
	if _, twice := entries[key]; twice {
		return within(faultf(begun, "the key occurs twice"), step())
	}
	if entries[key], err = d.dynamicNext(); err != nil {
		return within(err, step())
	}
	return nil
}

// named returns a map with string keys if all keys are strings.
func named(entries map[any]any) any {
	texts := make(map[string]any, len(entries))
	for key, value := range entries {
		text, ok := key.(string)
		if !ok {
			return entries
		}
		texts[text] = value
	}
	return texts
}
