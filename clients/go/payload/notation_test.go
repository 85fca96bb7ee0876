package payload_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnkeep.dev/go/payload"
)

// The notation of the shared vectors, read into Go values without the decoder that is tested.

// build sets a place to a value in the notation.
func build(t *testing.T, v reflect.Value, value any) {
	t.Helper()
	switch {
	case value == nil:
		v.SetZero()
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		build(t, v.Elem(), value)
	case v.Type() == reflect.TypeFor[time.Time]():
		t.Fatal("times are set by their field, which knows the unit")
	case v.Kind() == reflect.Struct:
		buildStruct(t, v, value.(map[string]any))
	case v.Kind() == reflect.Map:
		buildMap(t, v, value.(map[string]any)["map"].([]any))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8, v.Type() == reflect.TypeFor[[]Role]():
		items := value.([]any)
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			build(t, v.Index(i), item)
		}
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf(dynamic(t, value)))
	default:
		v.Set(reflect.ValueOf(dynamic(t, value)).Convert(v.Type()))
	}
}

func buildStruct(t *testing.T, v reflect.Value, members map[string]any) {
	t.Helper()
	fields := map[string]int{}
	for i := range v.NumField() {
		number, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("turnkeep"), ",")
		if v.Type().Field(i).IsExported() {
			fields[number] = i
		}
	}
	unknown := map[any]any{}
	for tag, value := range members {
		index, known := fields[tag]
		switch {
		case !known:
			number, err := strconv.ParseUint(tag, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			unknown[number] = dynamic(t, value)
		case v.Type().Field(index).Type == reflect.TypeFor[time.Time]():
			v.Field(index).Set(reflect.ValueOf(timeOf(t, value, v.Type().Field(index).Tag.Get("turnkeep"))))
		case v.Type().Field(index).Type == reflect.TypeFor[[]time.Time]():
			times := []time.Time{}
			for _, item := range value.([]any) {
				times = append(times, timeOf(t, item, ""))
			}
			v.Field(index).Set(reflect.ValueOf(times))
		default:
			build(t, v.Field(index), value)
		}
	}
	if len(unknown) > 0 {
		v.FieldByName("Rest").Set(reflect.ValueOf(unknownOf(t, unknown)))
	}
}

func timeOf(t *testing.T, value any, tag string) time.Time {
	number := dynamic(t, value).(int64)
	if strings.Contains(tag, "unix_s") {
		return time.Unix(number, 0).UTC()
	}
	return time.UnixMilli(number).UTC()
}

// unknownOf keeps entries as a payload that has nothing else would have them.
func unknownOf(t *testing.T, entries map[any]any) payload.Unknown {
	t.Helper()
	var keeps struct{ Rest payload.Unknown }
	if err := payload.Unmarshal(encoded(t, entries), &keeps); err != nil {
		t.Fatal(err)
	}
	for tag, value := range entries {
		if got, want := keeps.Rest.Get(tag.(uint64)), encoded(t, value); string(got) != string(want) {
			t.Fatalf("unknown tag %v is %x, want %x", tag, got, want)
		}
	}
	return keeps.Rest
}

// encoded is one value as msgpack.
func encoded(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := payload.Marshal(struct {
		Value any `turnkeep:"1"`
	}{value})
	if err != nil {
		t.Fatal(err)
	}
	return raw[2:]
}

func buildMap(t *testing.T, v reflect.Value, entries []any) {
	t.Helper()
	v.Set(reflect.MakeMap(v.Type()))
	for _, entry := range entries {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		build(t, key, entry.([]any)[0])
		build(t, value, entry.([]any)[1])
		v.SetMapIndex(key, value)
	}
}

// dynamic is a value in the notation as an interface holds it.
func dynamic(t *testing.T, value any) any {
	t.Helper()
	switch value := value.(type) {
	case json.Number:
		return integer(t, string(value))
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = dynamic(t, item)
		}
		return items
	case map[string]any:
		return marked(t, value)
	}
	return value
}

func integer(t *testing.T, digits string) any {
	t.Helper()
	if number, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return number
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// marked reads an object of the notation: a value with its kind, a map, or an object with tags.
func marked(t *testing.T, members map[string]any) any {
	t.Helper()
	for kind, value := range members {
		switch kind {
		case "int":
			return integer(t, value.(string))
		case "f32":
			return float32(float(t, value))
		case "f64":
			return float(t, value)
		case "bytes":
			return unhex(t, value)
		case "raw":
			return payload.Raw(unhex(t, value))
		case "map":
			return texts(t, value.([]any))
		}
	}
	object := map[any]any{}
	for tag, value := range members {
		object[integer(t, tag)] = dynamic(t, value)
	}
	return object
}

func texts(t *testing.T, entries []any) map[string]any {
	t.Helper()
	named := map[string]any{}
	for _, entry := range entries {
		named[entry.([]any)[0].(string)] = dynamic(t, entry.([]any)[1])
	}
	return named
}

func float(t *testing.T, value any) float64 {
	t.Helper()
	text, ok := value.(string)
	if number, isNumber := value.(json.Number); isNumber {
		text, ok = string(number), true
	}
	number, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil {
		t.Fatalf("%v is no float: %v", value, err)
	}
	return number
}

func unhex(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := hex.DecodeString(value.(string))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// equal compares two structs as values: by depth, but not a number is equal to itself.
func equal(a, b reflect.Value) bool {
	for i := range a.NumField() {
		x, y := a.Field(i), b.Field(i)
		switch {
		case !a.Type().Field(i).IsExported():
		case x.CanFloat():
			if math.Float64bits(x.Float()) != math.Float64bits(y.Float()) && !(math.IsNaN(x.Float()) && math.IsNaN(y.Float())) {
				return false
			}
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			return false
		}
	}
	return true
}
