// Keys of maps and the encoding of maps. Keys have one order, independent of the random order of Go's maps.

package payload

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// keyShownBytesMax is the most bytes of a key that a path shows.
const keyShownBytesMax = 64

// mapKey is a map's key in the order in which keys are written: bools, numbers by value, strings and
// bytes bytewise.
type mapKey struct {
	class    keyClass
	negative bool
	bits     uint64
	text     string
}

type keyClass uint8

const (
	keyBool keyClass = iota
	keyInt
	keyString
	keyBytes
)

func compareKeys(a, b mapKey) int {
	switch {
	case a.class != b.class:
		return cmp.Compare(a.class, b.class)
	case a.negative != b.negative && a.negative:
		return -1
	case a.negative != b.negative:
		return 1
	case a.bits != b.bits:
		return cmp.Compare(a.bits, b.bits)
	}
	return cmp.Compare(a.text, b.text)
}

// keyOf converts a Go key; ok is false if it cannot be a key of a payload.
func keyOf(v reflect.Value) (key mapKey, ok bool) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid() || v.Type() == durationType:
		return key, false
	case v.Kind() == reflect.Bool:
		key = mapKey{class: keyBool}
		if v.Bool() {
			key.bits = 1
		}
	case v.CanInt():
		key = mapKey{class: keyInt, negative: v.Int() < 0, bits: uint64(v.Int())}
	case v.CanUint() && v.Kind() != reflect.Uintptr:
		key = mapKey{class: keyInt, bits: v.Uint()}
	case v.Type() == byteStringType || isBytes(v.Type()):
		key = mapKey{class: keyBytes, text: string(bytesOf(v))}
	case v.Kind() == reflect.String:
		key = mapKey{class: keyString, text: v.String()}
	default:
		return key, false
	}
	return key, true
}

func (k mapKey) append(b []byte) []byte {
	switch {
	case k.class == keyBool:
		return appendBool(b, k.bits == 1)
	case k.class == keyInt && k.negative:
		return appendInt(b, int64(k.bits))
	case k.class == keyInt:
		return appendUint(b, k.bits)
	case k.class == keyString:
		return appendString(b, k.text)
	}
	return appendBytes(b, []byte(k.text))
}

// step is the key as part of a path.
func (k mapKey) step() string {
	switch {
	case k.class == keyBool:
		return "[" + strconv.FormatBool(k.bits == 1) + "]"
	case k.class == keyInt && k.negative:
		return "[" + strconv.FormatInt(int64(k.bits), 10) + "]"
	case k.class == keyInt:
		return "[" + strconv.FormatUint(k.bits, 10) + "]"
	}
	return fmt.Sprintf("[%q]", k.text[:min(len(k.text), keyShownBytesMax)])
}

// mapping writes a map with its keys sorted.
func (e *encoder) mapping(s *Shape, v reflect.Value) error {
	if err := checkLength(v.Len()); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	entries, err := sortedEntries(v)
	if err != nil {
		return err
	}
	e.buf = appendMap(e.buf, len(entries))
	for _, entry := range entries {
		if entry.key.class == keyString && !utf8.ValidString(entry.key.text) {
			return within(faultf(0, "the key is not UTF-8"), entry.key.step())
		}
		e.buf = entry.key.append(e.buf)
		if err := e.value(s.Items, entry.value); err != nil {
			return within(err, entry.key.step())
		}
	}
	return nil
}

type mapEntry struct {
	key   mapKey
	value reflect.Value
}

func sortedEntries(v reflect.Value) ([]mapEntry, error) {
	entries := make([]mapEntry, 0, v.Len())
	for each := v.MapRange(); each.Next(); {
		key, ok := keyOf(each.Key())
		if !ok {
			return nil, faultf(0, "a key is of type %v, which no key can be", dynamicType(each.Key()))
		}
		entries = append(entries, mapEntry{key, each.Value()})
	}
	slices.SortFunc(entries, func(a, b mapEntry) int { return compareKeys(a.key, b.key) })
	for i := 1; i < len(entries); i++ {
		if entries[i].key == entries[i-1].key {
			return nil, within(faultf(0, "two keys are the same on the wire"), entries[i].key.step())
		}
	}
	return entries, nil
}

func dynamicType(v reflect.Value) any {
	if v.Kind() == reflect.Interface && !v.IsNil() {
		return v.Elem().Type()
	}
	return v.Type()
}
