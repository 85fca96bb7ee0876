// Encoding by shape. It writes only shortest forms, in an order that depends on the value alone. It fails with
// the path of a value that has no encoding, and then returns no bytes.

package payload

import (
	"math"
	"reflect"
	"time"
	"unicode/utf8"
)

// encoder writes values by their shapes. Its buffer holds whole values whenever a method returns nil.
type encoder struct {
	buf   []byte
	depth int // of the containers that are open
}

// enter opens a container. The caller must leave every container that it entered without an error.
func (e *encoder) enter() error {
	if e.depth >= NestingMax {
		return tooDeep(0)
	}
	e.depth++
	return nil
}

func (e *encoder) leave() { e.depth-- }

func checkLength(n int) error {
	if uint64(n) > math.MaxUint32 {
		return faultf(0, "it has %d parts, more than msgpack counts", n)
	}
	return nil
}

// object writes a struct: its fields by tag ascending, with the unknown ones in their places.
func (e *encoder) object(object *Object, v reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	unknown := object.unknownOf(v)
	count := len(unknown)
	for i := range object.Fields {
		if !object.Fields[i].omitted(v) {
			count++
		}
	}
	e.buf = appendMap(e.buf, count)
	for i := range object.Fields {
		field := &object.Fields[i]
		var err error
		if unknown, err = e.unknownBefore(unknown, field.Tag); err != nil {
			return within(err, field.Name)
		}
		if field.omitted(v) {
			continue
		}
		e.buf = append(e.buf, field.key...)
		if err := e.value(field.Shape, v.Field(field.index)); err != nil {
			return within(err, field.Name)
		}
	}
	return e.unknown(unknown)
}

func (o *Object) unknownOf(v reflect.Value) []unknownField {
	switch {
	case o.unknown < 0:
		return nil
	case v.CanAddr():
		return v.Field(o.unknown).Addr().Interface().(*Unknown).fields
	}
	return v.Field(o.unknown).Interface().(Unknown).fields
}

// omitted reports whether a field is empty and need not be written.
func (f *Field) omitted(object reflect.Value) bool {
	if !f.OmitEmpty {
		return false
	}
	v := object.Field(f.index)
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(v.Float()) == 0 // negative zero is not the empty value
	case reflect.Struct:
		if f.Shape.Type == timeType {
			return v.Interface().(time.Time).IsZero()
		}
	}
	return v.IsZero()
}

// unknownBefore writes the unknown fields below a tag and returns those that remain.
func (e *encoder) unknownBefore(unknown []unknownField, tag uint64) ([]unknownField, error) {
	n := 0
	for n < len(unknown) && unknown[n].isTag && unknown[n].tag < tag {
		n++
	}
	if n < len(unknown) && unknown[n].isTag && unknown[n].tag == tag {
		return nil, faultf(0, "tag %d is this field's and in Unknown as well", tag)
	}
	return unknown[n:], e.unknown(unknown[:n])
}

func (e *encoder) unknown(fields []unknownField) error {
	for _, field := range fields {
		r := reader{data: field.raw, at: field.keySize}
		if err := r.skip(e.depth); err != nil {
			return err
		}
		e.buf = append(e.buf, field.raw...)
	}
	return nil
}

func (e *encoder) value(s *Shape, v reflect.Value) error {
	if s.Pointer {
		if v.IsNil() {
			e.buf = appendNil(e.buf)
			return nil
		}
		v = v.Elem()
	}
	switch s.Kind {
	case KindBool:
		e.buf = appendBool(e.buf, v.Bool())
	case KindI8, KindI16, KindI32, KindI64, KindU8, KindU16, KindU32, KindU64:
		return e.integer(s, v)
	case KindF32:
		e.buf = appendFloat32(e.buf, float32(v.Float()))
	case KindF64:
		e.buf = appendFloat64(e.buf, v.Float())
	case KindString:
		return e.text(v.String())
	case KindBytes:
		return e.bytes(v)
	case KindArray:
		return e.array(s, v)
	case KindMap:
		return e.mapping(s, v)
	case KindAny:
		return e.any(v)
	default:
		return e.object(s.Object, v)
	}
	return nil
}

func (e *encoder) integer(s *Shape, v reflect.Value) error {
	if s.Type == timeType || s.Type == durationType {
		return e.time(s, v)
	}
	if v.CanInt() {
		e.buf = appendInt(e.buf, v.Int())
	} else {
		e.buf = appendUint(e.buf, v.Uint())
	}
	return nil
}

// time writes a time or a duration as a number, rounded down to whole units.
func (e *encoder) time(s *Shape, v reflect.Value) error {
	var number int64
	switch t, isTime := v.Interface().(time.Time); {
	case !isTime:
		number = floorMilliseconds(time.Duration(v.Int()))
	case time.UnixMilli(t.UnixMilli()).Unix() != t.Unix():
		return faultf(0, "the time is too far away to count in milliseconds")
	case s.Semantic == UnixS:
		number = t.Unix()
	default:
		number = t.UnixMilli()
	}
	if number < 0 && s.Kind == KindU64 {
		return faultf(0, "%d is below 0 and the field is unsigned", number)
	}
	e.buf = appendInt(e.buf, number)
	return nil
}

func floorMilliseconds(d time.Duration) int64 {
	number := int64(d / time.Millisecond)
	if d%time.Millisecond < 0 {
		number--
	}
	return number
}

func (e *encoder) text(text string) error {
	if !utf8.ValidString(text) {
		return faultf(0, "the string is not UTF-8")
	}
	if err := checkLength(len(text)); err != nil {
		return err
	}
	e.buf = appendString(e.buf, text)
	return nil
}

func (e *encoder) bytes(v reflect.Value) error {
	data := bytesOf(v)
	if err := checkLength(len(data)); err != nil {
		return err
	}
	e.buf = appendBytes(e.buf, data)
	return nil
}

// bytesOf returns the bytes of a slice, an array or a ByteString.
func bytesOf(v reflect.Value) []byte {
	switch {
	case v.Kind() == reflect.String:
		return []byte(v.String())
	case v.Kind() == reflect.Array && !v.CanAddr():
		addressable := reflect.New(v.Type()).Elem()
		addressable.Set(v)
		v = addressable
	}
	return v.Bytes()
}

func (e *encoder) array(s *Shape, v reflect.Value) error {
	if err := checkLength(v.Len()); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.buf = appendArray(e.buf, v.Len())
	for i := range v.Len() {
		if err := e.value(s.Items, v.Index(i)); err != nil {
			return within(err, indexStep(i))
		}
	}
	return nil
}

// any writes what an interface, a Raw or an Ext holds.
func (e *encoder) any(v reflect.Value) error {
	switch {
	case v.Type() == rawType:
		return e.raw(v.Interface().(Raw))
	case v.Type() == extType:
		return e.ext(v.Interface().(Ext))
	case v.IsNil():
		e.buf = appendNil(e.buf)
		return nil
	}
	shape, err := shapeOf(v.Elem().Type())
	if err != nil {
		return err
	}
	return e.value(shape, v.Elem())
}

func (e *encoder) ext(ext Ext) error {
	if err := checkLength(len(ext.Data)); err != nil {
		return err
	}
	e.buf = appendExt(e.buf, ext)
	return nil
}

func (e *encoder) raw(raw Raw) error {
	if raw == nil {
		e.buf = appendNil(e.buf)
		return nil
	}
	r := reader{data: raw}
	if err := r.skip(e.depth); err != nil {
		return err
	}
	if r.at != len(raw) {
		return faultf(0, "the raw value is followed by %d bytes", len(raw)-r.at)
	}
	e.buf = append(e.buf, raw...)
	return nil
}
