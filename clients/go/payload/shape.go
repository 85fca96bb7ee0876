// Shapes: how values of a Go type become payloads. A shape is made once from a type, and then encodes and
// decodes its values. A type that cannot be a payload fails here, whatever its values.

package payload

import (
	"reflect"
	"slices"
	"sync"
	"time"
)

// Kind is the type of a value as descriptors have it.
type Kind uint8

// The kinds of values.
const (
	KindBool Kind = iota
	KindI8
	KindI16
	KindI32
	KindI64
	KindU8
	KindU16
	KindU32
	KindU64
	KindF32
	KindF64
	KindString
	KindBytes
	KindArray
	KindMap
	KindTypedBlob
	KindAny
	KindObject // a struct: an object of another type
)

var kindNames = [...]string{"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64",
	"string", "bytes", "array", "map", "typed_blob", "any", "object"}

// String is the name by which descriptors name the kind; an object is named by its type instead.
func (k Kind) String() string { return kindNames[k] }

// Object is the shape of a struct. It is immutable.
type Object struct {
	Type       reflect.Type
	Fields     []Field  // by tag ascending
	Tombstones []uint64 // tags that are reserved because they were used once
	unknown    int      // the index of the field of type Unknown, or -1
}

// Field is one field of a struct.
type Field struct {
	Tag       uint64
	Name      string // the name in JSON
	Doc       string
	OmitEmpty bool
	Shape     *Shape
	index     int
	key       []byte // the tag, encoded
}

// Shape says how values of a Go type become payloads. It is immutable.
type Shape struct {
	Kind     Kind
	Type     reflect.Type // without the pointer
	Pointer  bool         // the Go type is a pointer to Type; nil pointers are nil
	Semantic Semantic
	Key      *Shape  // of a map
	Items    *Shape  // of an array, or the values of a map
	Object   *Object // of an object or a typed blob
}

var (
	timeType       = reflect.TypeFor[time.Time]()
	durationType   = reflect.TypeFor[time.Duration]()
	unknownType    = reflect.TypeFor[Unknown]()
	rawType        = reflect.TypeFor[Raw]()
	extType        = reflect.TypeFor[Ext]()
	byteStringType = reflect.TypeFor[ByteString]()
	typedBlobType  = reflect.TypeFor[TypedBlob]()
	byteType       = reflect.TypeFor[byte]()
	anyType        = reflect.TypeFor[any]()
)

// shapes caches the *Shape or the error of each Go type that was described. Every entry is complete.
var shapes sync.Map

// Describe returns the shape of a struct type. The result is cached.
func Describe(t reflect.Type) (*Object, error) {
	if t == nil {
		return nil, &TypeError{Reason: "a payload is a struct"}
	}
	shape, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	if shape.Object == nil || shape.Pointer {
		return nil, &TypeError{Type: t, Reason: "a payload is a struct"}
	}
	return shape.Object, nil
}

func shapeOf(t reflect.Type) (*Shape, error) {
	if known, ok := shapes.Load(t); ok {
		if err, failed := known.(error); failed {
			return nil, err
		}
		return known.(*Shape), nil
	}
	a := analysis{objects: map[reflect.Type]*Object{}, open: map[reflect.Type]bool{}}
	shape, err := a.shape(t, fieldTag{})
	if err != nil {
		shapes.Store(t, err)
		return nil, err
	}
	shapes.Store(t, shape)
	return shape, nil
}

// analysis reads Go types. A struct may contain itself, so those that were begun are known; a list or a
// map of itself has no descriptor, so those that are open are refused.
type analysis struct {
	objects map[reflect.Type]*Object
	open    map[reflect.Type]bool
}

// scalarKinds has the kinds of Go types that have no parts.
var scalarKinds = map[reflect.Kind]Kind{
	reflect.Bool: KindBool, reflect.String: KindString, reflect.Float32: KindF32, reflect.Float64: KindF64,
	reflect.Int8: KindI8, reflect.Int16: KindI16, reflect.Int32: KindI32, reflect.Int64: KindI64, reflect.Int: KindI64,
	reflect.Uint8: KindU8, reflect.Uint16: KindU16, reflect.Uint32: KindU32, reflect.Uint64: KindU64, reflect.Uint: KindU64,
}

// shape reads a type whose field has the given options; arrays hand them to their items.
func (a analysis) shape(t reflect.Type, tag fieldTag) (*Shape, error) {
	if t.Kind() == reflect.Pointer {
		return a.pointer(t, tag)
	}
	shape := &Shape{Type: t, Semantic: tag.semantic}
	kind, scalar := scalarKinds[t.Kind()]
	var err error
	switch {
	case t == timeType || t == durationType:
		err = shape.setTime(tag)
	case t == rawType || t == anyType || t == extType:
		shape.Kind = KindAny
	case t == byteStringType || isBytes(t):
		shape.Kind = KindBytes
	case scalar:
		shape.Kind = kind
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map:
		err = a.setContainer(shape, tag)
	case t.Kind() == reflect.Struct:
		err = a.setObject(shape)
	default:
		err = &TypeError{Type: t, Reason: "there is no payload type for it"}
	}
	if err == nil && tag.unsigned && !shape.isTime() {
		err = &TypeError{Type: t, Reason: "unsigned is only for time.Time and time.Duration"}
	}
	return shape, err
}

func isBytes(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem() == byteType
}

// isTime reports whether the values are times or durations, perhaps in arrays.
func (s *Shape) isTime() bool {
	if s.Kind == KindArray {
		return s.Items.isTime()
	}
	return s.Type == timeType || s.Type == durationType
}

func (a analysis) pointer(t reflect.Type, tag fieldTag) (*Shape, error) {
	if elem := t.Elem(); elem.Kind() == reflect.Pointer || elem == anyType || elem == rawType {
		return nil, &TypeError{Type: t, Reason: "a pointer to what can be nil by itself"}
	}
	shape, err := a.shape(t.Elem(), tag)
	if err != nil {
		return nil, err
	}
	shape.Pointer = true
	return shape, nil
}

func (s *Shape) setTime(tag fieldTag) error {
	s.Kind = KindI64
	if tag.unsigned {
		s.Kind = KindU64
	}
	if s.Type == durationType {
		s.Semantic = DurationMs
	} else if s.Semantic == "" {
		s.Semantic = UnixMs
	}
	if s.Type == timeType && s.Semantic != UnixMs && s.Semantic != UnixS || s.Type == durationType && tag.semantic != "" && tag.semantic != DurationMs {
		return &TypeError{Type: s.Type, Reason: "a time is unix_ms or unix_s, a duration duration_ms"}
	}
	return nil
}

func (a analysis) setContainer(shape *Shape, tag fieldTag) (err error) {
	if a.open[shape.Type] {
		return &TypeError{Type: shape.Type, Reason: "it contains itself; only a struct may"}
	}
	a.open[shape.Type] = true
	defer delete(a.open, shape.Type)
	if shape.Type.Kind() == reflect.Map {
		return a.setMap(shape)
	}
	shape.Kind = KindArray
	shape.Items, err = a.shape(shape.Type.Elem(), tag)
	return err
}

func (a analysis) setMap(shape *Shape) (err error) {
	shape.Kind = KindMap
	if shape.Key, err = a.shape(shape.Type.Key(), fieldTag{}); err != nil {
		return err
	}
	if !shape.Key.isKey() {
		return &TypeError{Type: shape.Type, Reason: "a key is a bool, an integer, a string, bytes of fixed length, ByteString or any"}
	}
	shape.Items, err = a.shape(shape.Type.Elem(), fieldTag{})
	return err
}

func (s *Shape) isKey() bool {
	switch s.Kind {
	case KindF32, KindF64, KindArray, KindMap, KindTypedBlob, KindObject:
		return false
	case KindAny:
		return s.Type == anyType
	}
	return !s.Pointer && !s.isTime()
}

func (a analysis) setObject(shape *Shape) error {
	shape.Kind = KindObject
	if shape.Type == typedBlobType {
		shape.Kind = KindTypedBlob
	}
	if object, begun := a.objects[shape.Type]; begun {
		shape.Object = object
		return nil
	}
	shape.Object = &Object{Type: shape.Type, unknown: -1}
	a.objects[shape.Type] = shape.Object
	return a.readFields(shape.Object)
}

func (a analysis) readFields(object *Object) error {
	for i := range object.Type.NumField() {
		if err := a.readField(object, i, object.Type.Field(i)); err != nil {
			return err
		}
	}
	slices.SortFunc(object.Fields, func(a, b Field) int {
		if a.Tag < b.Tag {
			return -1
		}
		return 1
	})
	return object.refuseTwice()
}

func (a analysis) readField(object *Object, index int, field reflect.StructField) error {
	text, tagged := field.Tag.Lookup("turnkeep")
	refuse := func(reason string) error {
		return &TypeError{Type: object.Type, Field: field.Name, Reason: reason}
	}
	switch {
	case text == "-":
		return nil
	case !tagged && !field.IsExported() && embedsFields(field):
		return refuse("its fields would be lost: make it an exported field with a tag, or `turnkeep:\"-\"` to leave it out")
	case !tagged && !field.IsExported():
		return nil
	case field.Type == unknownType && !tagged && object.unknown < 0:
		object.unknown = index
		return nil
	case field.Type == unknownType:
		return refuse("a struct has one Unknown, without a tag")
	case !tagged:
		return refuse("it has no tag: give it a number, or `turnkeep:\"-\"` to leave it out")
	}
	tag, err := parseTag(text)
	if err != nil {
		return refuse(err.Error())
	}
	if tag.tombstone != (field.Name == "_") {
		return refuse("a tombstone is a field named _, and only that")
	}
	if tag.tombstone {
		object.Tombstones = append(object.Tombstones, tag.number)
		return nil
	}
	if !field.IsExported() {
		return refuse("it has a tag and is not exported")
	}
	shape, err := a.shape(field.Type, tag)
	if err != nil {
		return err
	}
	object.Fields = append(object.Fields, newField(tag, field, index, shape))
	return nil
}

// embedsFields reports whether a field is an embedded struct whose fields Go promotes to its owner.
func embedsFields(field reflect.StructField) bool {
	embedded := field.Type
	if embedded.Kind() == reflect.Pointer {
		embedded = embedded.Elem()
	}
	if !field.Anonymous || embedded.Kind() != reflect.Struct {
		return false
	}
	return slices.ContainsFunc(reflect.VisibleFields(embedded), reflect.StructField.IsExported)
}

func newField(tag fieldTag, field reflect.StructField, index int, shape *Shape) Field {
	name := tag.name
	if name == "" {
		name = snakeCase(field.Name)
	}
	return Field{Tag: tag.number, Name: name, Doc: field.Tag.Get("doc"), OmitEmpty: tag.omitEmpty,
		Shape: shape, index: index, key: appendUint(nil, tag.number)}
}

// refuseTwice refuses a tag or a name that two fields have.
func (o *Object) refuseTwice() error {
	tags, names := map[uint64]bool{}, map[string]bool{}
	for _, tag := range o.Tombstones {
		tags[tag] = true
	}
	for _, field := range o.Fields {
		goName := o.Type.Field(field.index).Name
		if tags[field.Tag] {
			return &TypeError{Type: o.Type, Field: goName, Reason: "another field has its tag"}
		}
		if names[field.Name] {
			return &TypeError{Type: o.Type, Field: goName, Reason: "another field has its name `" + field.Name + "`"}
		}
		tags[field.Tag], names[field.Name] = true, true
	}
	return nil
}
