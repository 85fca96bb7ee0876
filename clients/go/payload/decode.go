// Decoding by shape. Every destination is zero before it is written, so that nil needs no write. It
// fails with path and offset of the first value that contradicts its shape.

package payload

import (
	"math"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

// decoder reads values by their shapes. It charges every allocation to its budget first.
type decoder struct {
	reader
	depth  int // of the containers that are open
	budget uint64
	tags   []uint64 // of the objects that are open, to find a tag that occurs twice
}

func (d *decoder) payload(object *Object, v reflect.Value) error {
	if len(d.data) == 0 {
		return faultf(0, "the payload is empty")
	}
	t, err := d.next()
	if err != nil {
		return err
	}
	if t.kind != tokenMap {
		return faultf(0, "the payload is not a map but %v", t.kind)
	}
	if err := d.object(object, v, t, 0); err != nil {
		return err
	}
	if d.at != len(d.data) {
		return faultf(d.at, "%d bytes follow the payload's map", len(d.data)-d.at)
	}
	return nil
}

func (d *decoder) enter(begun int) error {
	if d.depth >= NestingMax {
		return tooDeep(begun)
	}
	d.depth++
	return nil
}

func (d *decoder) leave() { d.depth-- }

// charge fails if the payload would take more memory than DecodedBytesMax.
func (d *decoder) charge(count int, size uintptr, begun int) error {
	if size == 0 {
		return nil
	}
	if uint64(count) > d.budget/uint64(size) {
		return faultf(begun, "it decodes to more than %d bytes", DecodedBytesMax)
	}
	d.budget -= uint64(count) * uint64(size)
	return nil
}

// object reads the entries of a map whose head t began at begun.
func (d *decoder) object(object *Object, v reflect.Value, t token, begun int) error {
	if err := d.enter(begun); err != nil {
		return err
	}
	defer d.leave()
	base, ascending := len(d.tags), true
	var unknown Unknown
	for range t.count {
		entry := d.at
		key, err := d.next()
		if err != nil {
			return err
		}
		tag, isTag := key.tag()
		if isTag {
			ascending = ascending && (len(d.tags) == base || d.tags[len(d.tags)-1] < tag)
			d.tags = append(d.tags, tag)
		}
		if field := object.field(tag); isTag && field != nil {
			if err := d.value(field.Shape, v.Field(field.index)); err != nil {
				return within(err, field.Name)
			}
			continue
		}
		if err := d.unknown(object, &unknown, key, entry); err != nil {
			return err
		}
	}
	if err := d.refuseTwice(base, ascending, begun); err != nil {
		return err
	}
	if len(unknown.fields) > 0 {
		unknown.sort()
		v.Field(object.unknown).Set(reflect.ValueOf(unknown))
	}
	return nil
}

func (o *Object) field(tag uint64) *Field {
	// The fields of most structs are numbered from 1 on without gaps.
	if at := tag - 1; at < uint64(len(o.Fields)) && o.Fields[at].Tag == tag {
		return &o.Fields[at]
	}
	at, found := slices.BinarySearchFunc(o.Fields, tag, func(field Field, tag uint64) int {
		switch {
		case field.Tag < tag:
			return -1
		case field.Tag > tag:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &o.Fields[at]
}

// unknown keeps or skips an entry that no field has the tag of. Its key was just read.
func (d *decoder) unknown(object *Object, unknown *Unknown, key token, entry int) error {
	if err := d.skipParts(key, entry, d.depth); err != nil {
		return err
	}
	keySize := d.at - entry
	if err := d.skip(d.depth); err != nil {
		return err
	}
	if object.unknown < 0 {
		return nil
	}
	if err := d.charge(1, reflect.TypeFor[unknownField]().Size(), entry); err != nil {
		return err
	}
	tag, isTag := key.tag()
	raw := slices.Clone(d.data[entry:d.at])
	unknown.fields = append(unknown.fields, unknownField{tag: tag, isTag: isTag, keySize: keySize, raw: raw})
	return nil
}

// refuseTwice refuses a tag that occurs twice in the object whose tags begin at base, and removes them.
func (d *decoder) refuseTwice(base int, ascending bool, begun int) error {
	tags := d.tags[base:]
	d.tags = d.tags[:base]
	// Most writers sort their tags, and then nothing has to be searched.
	if ascending {
		return nil
	}
	slices.Sort(tags)
	for i := 1; i < len(tags); i++ {
		if tags[i] == tags[i-1] {
			return faultf(begun, "tag %d occurs twice", tags[i])
		}
	}
	return nil
}

func (d *decoder) value(s *Shape, v reflect.Value) error {
	begun := d.at
	t, err := d.next()
	if err != nil {
		return err
	}
	if t.kind == tokenNil {
		return nil // the destination is zero already
	}
	if s.Pointer {
		if err := d.charge(1, s.Type.Size(), begun); err != nil {
			return err
		}
		v.Set(reflect.New(s.Type))
		v = v.Elem()
	}
	switch s.Kind {
	case KindArray:
		return d.array(s, v, t, begun)
	case KindMap:
		return d.mapping(s, v, t, begun)
	case KindTypedBlob, KindObject:
		if t.kind != tokenMap {
			return contradiction(s, t, begun)
		}
		return d.object(s.Object, v, t, begun)
	case KindAny:
		return d.any(v, t, begun)
	}
	return d.scalar(s, v, t, begun)
}

func contradiction(s *Shape, t token, begun int) error {
	return faultf(begun, "it must be %v, not %v", s.Kind, t.kind)
}

func (d *decoder) scalar(s *Shape, v reflect.Value, t token, begun int) error {
	switch {
	case s.Kind == KindBool && t.kind == tokenBool:
		v.SetBool(t.flag)
	case s.Kind >= KindI8 && s.Kind <= KindU64 && t.kind == tokenInt:
		return setInteger(s, v, t, begun)
	case (s.Kind == KindF32 || s.Kind == KindF64) && t.kind >= tokenInt && t.kind <= tokenFloat64:
		return setFloat(s, v, t, begun)
	case s.Kind == KindString && t.kind == tokenString:
		if !utf8.Valid(t.data) {
			return faultf(begun, "the string is not UTF-8")
		}
		v.SetString(string(t.data))
	case s.Kind == KindBytes && t.kind == tokenBytes:
		return setBytes(v, t.data, begun)
	default:
		return contradiction(s, t, begun)
	}
	return nil
}

func setInteger(s *Shape, v reflect.Value, t token, begun int) error {
	signed, isSigned := t.signedValue()
	switch {
	case s.Type == timeType || s.Type == durationType:
		return setTime(s, v, t, begun)
	case v.CanInt() && isSigned && !v.OverflowInt(signed):
		v.SetInt(signed)
	case v.CanUint() && !t.negative && !v.OverflowUint(t.bits):
		v.SetUint(t.bits)
	case t.negative:
		return faultf(begun, "%d does not fit %v", signed, s.Kind)
	default:
		return faultf(begun, "%d does not fit %v", t.bits, s.Kind)
	}
	return nil
}

func setTime(s *Shape, v reflect.Value, t token, begun int) error {
	number, fits := t.signedValue()
	if !fits || t.negative && s.Kind == KindU64 {
		return faultf(begun, "the number does not fit a %v", s.Type)
	}
	const milliseconds = int64(time.Millisecond)
	switch {
	case s.Type == durationType && (number > math.MaxInt64/milliseconds || number < math.MinInt64/milliseconds):
		return faultf(begun, "%d milliseconds do not fit a time.Duration", number)
	case s.Type == durationType:
		v.SetInt(number * milliseconds)
	case s.Semantic == UnixS && (number > math.MaxInt64/1000 || number < math.MinInt64/1000):
		return faultf(begun, "%d seconds are too far away", number)
	case s.Semantic == UnixS:
		v.Set(reflect.ValueOf(time.Unix(number, 0).UTC()))
	default:
		v.Set(reflect.ValueOf(time.UnixMilli(number).UTC()))
	}
	return nil
}

// setFloat accepts every number that the field can hold exactly, integers included: some languages have only one
// kind of number.
func setFloat(s *Shape, v reflect.Value, t token, begun int) error {
	var number float64
	exact := true
	switch t.kind {
	case tokenFloat32:
		number = float64(math.Float32frombits(uint32(t.bits)))
	case tokenFloat64:
		number = math.Float64frombits(t.bits)
	default:
		number = float64(t.bits)
		exact = t.bits <= 1<<53
		if t.negative {
			number = float64(int64(t.bits))
			exact = int64(t.bits) >= -(1 << 53)
		}
	}
	if s.Kind == KindF32 && !math.IsNaN(number) {
		exact = exact && float64(float32(number)) == number
	}
	if !exact {
		return faultf(begun, "the number does not fit %v", s.Kind)
	}
	v.SetFloat(number)
	return nil
}

func setBytes(v reflect.Value, data []byte, begun int) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(data))
	case reflect.Slice:
		v.SetBytes(append(make([]byte, 0, len(data)), data...))
	default:
		if len(data) != v.Len() {
			return faultf(begun, "it has %d bytes, not %d", len(data), v.Len())
		}
		reflect.Copy(v, reflect.ValueOf(data))
	}
	return nil
}

func (d *decoder) array(s *Shape, v reflect.Value, t token, begun int) error {
	if t.kind != tokenArray {
		return contradiction(s, t, begun)
	}
	if v.Kind() == reflect.Array && v.Len() != t.count {
		return faultf(begun, "it has %d items, not %d", t.count, v.Len())
	}
	if err := d.enter(begun); err != nil {
		return err
	}
	defer d.leave()
	if v.Kind() == reflect.Slice {
		if err := d.charge(t.count, s.Type.Elem().Size(), begun); err != nil {
			return err
		}
		v.Set(reflect.MakeSlice(s.Type, t.count, t.count))
	}
	for i := range t.count {
		if err := d.value(s.Items, v.Index(i)); err != nil {
			return within(err, indexStep(i))
		}
	}
	return nil
}

// mapEntryBytes is the approximate memory of an entry of a Go map, without its key and value.
const mapEntryBytes = 16

func (d *decoder) mapping(s *Shape, v reflect.Value, t token, begun int) error {
	if t.kind != tokenMap {
		return contradiction(s, t, begun)
	}
	if err := d.enter(begun); err != nil {
		return err
	}
	defer d.leave()
	size := s.Type.Key().Size() + s.Type.Elem().Size() + mapEntryBytes
	if err := d.charge(t.count, size, begun); err != nil {
		return err
	}
	v.Set(reflect.MakeMapWithSize(s.Type, t.count))
	// SetMapIndex copies both, so one pair serves for all entries.
	key, item := reflect.New(s.Type.Key()).Elem(), reflect.New(s.Type.Elem()).Elem()
	for range t.count {
		key.SetZero()
		item.SetZero()
		if err := d.entry(s, v, key, item); err != nil {
			return err
		}
	}
	return nil
}

// entry reads one key and its value into destinations that are zero.
func (d *decoder) entry(s *Shape, v, key, item reflect.Value) error {
	begun := d.at
	if err := d.key(s.Key, key); err != nil {
		return err
	}
	// Only an error needs the key as text.
	step := func() string {
		known, _ := keyOf(key)
		return known.step()
	}
	if v.MapIndex(key).IsValid() {
		return within(faultf(begun, "the key occurs twice"), step())
	}
	if err := d.value(s.Items, item); err != nil {
		return within(err, step())
	}
	v.SetMapIndex(key, item)
	return nil
}

func (d *decoder) key(s *Shape, v reflect.Value) error {
	begun := d.at
	t, err := d.next()
	if err != nil {
		return err
	}
	if s.Kind == KindAny {
		key, err := dynamicKey(t, begun)
		if err == nil {
			v.Set(reflect.ValueOf(key))
		}
		return err
	}
	return within(d.scalar(s, v, t, begun), "[key]")
}
