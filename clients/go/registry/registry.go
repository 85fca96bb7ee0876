// Package registry publishes Go types: it reflects registered structs into a bundle of descriptors that
// the server accepts, and refuses an illegal evolution before it is published.
//
//	var Types = registry.New("com.example").
//		Enum(map[Role]string{System: "system", User: "user"}).
//		Add(Message{}, 1)
//
// A bundle is committed as JSON and extended, never rewritten: it has every version that ever was, so
// that [Check] sees the whole history. The command turnkeep-go-registry writes it and fails in CI when
// it is not what the types say.
//
// Mistakes in registered types are collected and reported by [Types.Bundle]; what the server would
// refuse is a [*Refusal].
package registry

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"turnkeep.dev/go/payload"
)

// Ref names one version of a type.
type Ref struct {
	ID      string
	Version uint32
}

func (r Ref) String() string { return r.ID + " version " + strconv.FormatUint(uint64(r.Version), 10) }

// Types are the Go types that a program writes and reads. Make them at start; they are safe to share
// once all are added.
type Types struct {
	namespace string
	refs      map[reflect.Type]Ref
	structs   map[Ref]reflect.Type
	enums     map[reflect.Type]enum
	faults    []error
}

type enum struct {
	id     string
	labels map[string]any // by number
}

// New begins with no types. The namespace is put before the names of types and enums, with a dot.
func New(namespace string) *Types {
	return &Types{namespace: namespace, refs: map[reflect.Type]Ref{}, structs: map[Ref]reflect.Type{}, enums: map[reflect.Type]enum{}}
}

// Add registers the struct type of a value as a version of the type that has its name. Raise the version
// with every change that a descriptor shows.
func (t *Types) Add(sample any, version uint32) *Types {
	name := ""
	if goType := reflect.TypeOf(sample); goType != nil {
		name = goType.Name()
	}
	return t.AddAs(t.namespace+"."+name, sample, version)
}

// AddAs registers a struct type under another id than that of its name, such as a struct that is kept
// to read an earlier version.
func (t *Types) AddAs(id string, sample any, version uint32) *Types {
	goType, ref := reflect.TypeOf(sample), Ref{id, version}
	_, err := payload.Describe(goType)
	switch {
	case err != nil:
		t.faults = append(t.faults, err)
	case version == 0:
		t.fault("%v: versions are whole numbers from 1 on", ref)
	case t.refs[goType] != Ref{}:
		t.fault("%v is registered as %v already", goType, t.refs[goType])
	case t.structs[ref] != nil:
		t.fault("%v is registered with %v already", ref, t.structs[ref])
	default:
		t.refs[goType], t.structs[ref] = ref, goType
	}
	return t
}

// Enum registers the labels of a named integer type, given as a map from numbers to labels. Fields of
// that type are shown by label.
func (t *Types) Enum(labels any) *Types {
	goType := reflect.TypeOf(labels)
	if goType == nil || goType.Kind() != reflect.Map || goType.Key().Name() == "" || goType.Key().PkgPath() == "" ||
		goType.Elem().Kind() != reflect.String || !isInteger(goType.Key()) {
		t.fault("%v: an enum is a map from a named integer type to strings", goType)
		return t
	}
	key := goType.Key()
	if _, known := t.enums[key]; known {
		t.fault("%v: the enum is registered already", key)
		return t
	}
	known := enum{id: t.namespace + "." + key.Name(), labels: map[string]any{}}
	for other, taken := range t.enums {
		if taken.id == known.id {
			t.fault("%v: the enum %s is registered with %v already", key, known.id, other)
			return t
		}
	}
	for each := reflect.ValueOf(labels).MapRange(); each.Next(); {
		known.labels[number(each.Key())] = each.Value().String()
	}
	t.enums[key] = known
	return t
}

// Ref returns the type and version that a value is registered as, for the turn that carries it.
func (t *Types) Ref(v any) (Ref, error) {
	goType := reflect.TypeOf(v)
	if goType != nil && goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	ref, known := t.refs[goType]
	if !known {
		return Ref{}, fmt.Errorf("registry: %T is not registered", v)
	}
	return ref, nil
}

// ErrUnknownType says that no Go type is registered for a type and version.
var ErrUnknownType = errors.New("no Go type is registered")

// Decode decodes a payload into a new struct of the Go type that is registered for its type and
// version, and gives a pointer to it.
func (t *Types) Decode(ref Ref, data []byte) (any, error) {
	goType, known := t.structs[ref]
	if !known {
		return nil, fmt.Errorf("registry: %v: %w", ref, ErrUnknownType)
	}
	v := reflect.New(goType).Interface()
	return v, payload.Unmarshal(data, v)
}

func (t *Types) fault(format string, args ...any) {
	t.faults = append(t.faults, fmt.Errorf("registry: "+format, args...))
}

func isInteger(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
}

func number(v reflect.Value) string {
	if v.CanInt() {
		return strconv.FormatInt(v.Int(), 10)
	}
	return strconv.FormatUint(v.Uint(), 10)
}
