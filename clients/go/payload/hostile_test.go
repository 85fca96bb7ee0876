package payload

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestBytesThatAreNoPayloadAreRefusedWithTheirPath(t *testing.T) {
	deep := strings.Repeat("91", 200)
	for claim, c := range map[string]struct{ bytes, path, reason string }{
		"empty":                          {"", "", "empty"},
		"not a map":                      {"91c0", "", "not a map but an array"},
		"trailing bytes":                 {"80c0", "", "1 bytes follow"},
		"a cut key":                      {"8101", "", "claims 2 parts and 1 bytes"},
		"a cut value":                    {"81 0dd9ff61", "text", "ends inside"},
		"a cut number":                   {"81 06d3ff", "i64", "ends inside"},
		"the reserved byte":              {"81 14c1", "any", "0xc1"},
		"a map longer than the input":    {"df ffffffff 01", "", "claims"},
		"an array longer than the input": {"81 0fdd ffffffff 01", "numbers", "claims"},
		"a string longer than the input": {"81 0ddb ffffffff 61", "text", "ends inside"},
		"bytes longer than the input":    {"81 0ec6 ffffffff 61", "bytes", "ends inside"},
		"unknown longer than the input":  {"81 7fc9 ffffffff 61", "", "ends inside"},
		"a tag twice":                    {"82 0701 0702", "", "tag 7 occurs twice"},
		"a tag twice as digits":          {"82 0701 a13702", "", "tag 7 occurs twice"},
		"an unknown tag twice":           {"83 7f01 01c2 7f01", "", "tag 127 occurs twice"},
		"a nested tag twice":             {"81 1091 82 0201 0201", "links[0]", "tag 2 occurs twice"},
		"a key twice":                    {"81 1182 a16180 a16180", `by_name["a"]`, "occurs twice"},
		"a key twice in any":             {"81 1482 a161c0 a161c0", `any["a"]`, "occurs twice"},
		"a number too large":             {"81 1091 81 02 ff", "links[0].size", "-1 does not fit u64"},
		"a number beyond its field":      {"81 07cd0100", "u8", "256 does not fit u8"},
		"a u64 in an i64":                {"81 06cfffffffffffffffff", "i64", "does not fit i64"},
		"a double in a single":           {"81 0bcb3fb999999999999a", "f32", "does not fit f32"},
		"an integer no float holds":      {"81 0ccfffffffffffffffff", "f64", "does not fit f64"},
		"a string for a number":          {"81 07a135", "u8", "must be u8, not a string"},
		"a number for a string":          {"81 0d05", "text", "must be string, not an integer"},
		"bytes for a string":             {"81 0dc40161", "text", "must be string, not bytes"},
		"a string for bytes":             {"81 0ea161", "bytes", "must be bytes, not a string"},
		"an array for a struct":          {"81 1590", "link", "must be object, not an array"},
		"a map for an array":             {"81 0f80", "numbers", "must be array, not a map"},
		"an array for a map":             {"81 1190", "by_name", "must be map, not an array"},
		"a float for an integer":         {"81 06cb0000000000000000", "i64", "must be i64, not a float"},
		"a wrong key":                    {"81 12 81 a13190", "by_number[key]", "must be i64, not a string"},
		"an item of the wrong kind":      {"81 0f92 01c3", "numbers[1]", "must be u64, not a bool"},
		"a value of the wrong kind":      {"81 11 81 a16101", `by_name["a"]`, "must be object"},
		"a deep item of the wrong kind":  {"81 15 81 03 81 01c3", "link.next.label", "must be string"},
		"invalid UTF-8":                  {"81 0da1ff", "text", "not UTF-8"},
		"invalid UTF-8 in any":           {"81 1491a1ff", "any[0]", "not UTF-8"},
		"invalid UTF-8 in a key":         {"81 11 81 a1ff80", "by_name[key]", "not UTF-8"},
		"a time before 1970, unsigned":   {"81 18ff", "at_ms", "does not fit"},
		"a time too far away":            {"81 19cf7fffffffffffffff", "at_s", "too far away"},
		"a duration too long":            {"81 1acf7fffffffffffffff", "took", "do not fit"},
		"bytes of another length":        {"81 1bc40101", "hash", "1 bytes, not 4"},
		"an array of another length":     {"81 1c9101", "pair", "1 items, not 2"},
		"a float as a key in any":        {"81 1481cb0000000000000000c0", "any", "a key is a float"},
		"too deep in any":                {"81 14" + deep + "c0", "any" + strings.Repeat("[0]", 127), "deeper than 128"},
		"too deep in an unknown field":   {"81 7f" + deep + "c0", "", "deeper than 128"},
		"too deep in raw":                {"81 1f" + deep + "c0", "raw", "deeper than 128"},
		"too deep in structs":            {"81 15" + strings.Repeat("8103", 200) + "c0", "link" + strings.Repeat(".next", 127), "deeper than 128"},
	} {
		t.Run(claim, func(t *testing.T) {
			got := everything{Flag: true}
			err := Unmarshal(unhex(t, c.bytes), &got)
			var refused *DecodeError
			if !errors.As(err, &refused) || refused.Path != c.path || !strings.Contains(refused.Reason, c.reason) {
				t.Fatalf("got %v, want %q: %s", err, c.path, c.reason)
			}
			if !reflect.DeepEqual(got, everything{}) {
				t.Fatalf("after an error it is %+v", got)
			}
		})
	}
}

func TestNestingUpToTheLimitIsRead(t *testing.T) {
	raw := unhex(t, "81 14"+strings.Repeat("91", NestingMax-1)+"c0")
	var v everything
	if err := Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if again, err := Marshal(v); err != nil || string(again) != string(raw) {
		t.Fatal(err)
	}
}

func TestAFewBytesCannotAskForMuchMemory(t *testing.T) {
	type large struct {
		Block [1 << 20][8]byte `turnkeep:"1"`
	}
	type many struct {
		Items []large          `turnkeep:"1"`
		ByKey map[uint16]large `turnkeep:"2"`
	}
	for _, text := range []string{"81 01dc 0100" + strings.Repeat("80", 256), "81 02de 0100" + strings.Repeat("00", 512)} {
		var refused *DecodeError
		if err := Unmarshal(unhex(t, text), &many{}); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "decodes to more") {
			t.Fatal(err)
		}
	}
}

func TestValuesThatHaveNoEncodingAreRefusedWithTheirPath(t *testing.T) {
	cycle := &link{}
	cycle.Next = cycle
	deep := any(nil)
	for range 200 {
		deep = []any{deep}
	}
	var unknown everything
	if err := Unmarshal([]byte{0x81, 0x7f, 0x01}, &unknown); err != nil {
		t.Fatal(err)
	}
	type newer struct {
		Field int `turnkeep:"127"`
		Rest  Unknown
	}
	for claim, c := range map[string]struct {
		value        any
		path, reason string
	}{
		"a pointer into itself":          {everything{Link: cycle}, "link" + strings.Repeat(".next", 127), "deeper"},
		"any too deep":                   {everything{Any: deep}, "any" + strings.Repeat("[0]", 127), "deeper"},
		"a string that is not UTF-8":     {everything{Links: []link{{Label: "\xff"}}}, "links[0].label", "not UTF-8"},
		"a key that is not UTF-8":        {everything{ByName: map[string]link{"\xff": {}}}, `by_name["\xff"]`, "not UTF-8"},
		"a time before 1970, unsigned":   {everything{AtMs: time.Unix(-1, 0)}, "at_ms", "below 0"},
		"a time too far away":            {everything{Times: []time.Time{time.Unix(math.MaxInt64/2, 0)}}, "times[0]", "too far away"},
		"raw that is no msgpack":         {everything{Raw: Raw{0x92, 0x01}}, "raw", "claims"},
		"raw with more than a value":     {everything{Raw: Raw{0x01, 0x01}}, "raw", "followed by 1 bytes"},
		"raw without a value":            {everything{Raw: Raw{}}, "", ""},
		"a float as a key":               {everything{ByAny: map[any]int{1.5: 1}}, "by_any", "float64"},
		"nil as a key":                   {everything{ByAny: map[any]int{nil: 1}}, "by_any", "which no key can be"},
		"two keys that are one":          {everything{ByAny: map[any]int{int8(1): 1, uint(1): 2}}, "by_any[1]", "same on the wire"},
		"a tag as a field and unknown":   {newer{Rest: unknown.Rest}, "field", "in Unknown as well"},
		"the key's path is not endless":  {everything{ByName: map[string]link{strings.Repeat("k", 1000): {Label: "\xff"}}}, `by_name["` + strings.Repeat("k", 64) + `"].label`, "not UTF-8"},
		"a value inside any, not UTF-8":  {everything{Any: map[string]any{"a": []any{"\xff"}}}, `any["a"][0]`, "not UTF-8"},
		"raw nested deeper than allowed": {everything{Raw: Raw(strings.Repeat("\x91", 128) + "\xc0")}, "raw", "deeper"},
	} {
		t.Run(claim, func(t *testing.T) {
			raw, err := Marshal(c.value)
			if c.reason == "" {
				if err != nil || string(raw) != "\x80" {
					t.Fatalf("an empty field is left out: %x %v", raw, err)
				}
				return
			}
			var refused *EncodeError
			if !errors.As(err, &refused) || refused.Path != c.path || !strings.Contains(refused.Reason, c.reason) {
				t.Fatalf("got %v, want %q: %s", err, c.path, c.reason)
			}
		})
	}
}

type selfList []selfList

func TestTypesThatCannotBePayloadsAreRefused(t *testing.T) {
	type bad[T any] struct {
		Field T `turnkeep:"1"`
	}
	for claim, c := range map[string]struct {
		value  any
		reason string
	}{
		"nil":                   {nil, "a payload is a struct"},
		"a nil pointer":         {(*link)(nil), "a payload is a struct"},
		"a number":              {5, "a payload is a struct"},
		"a time":                {time.Time{}, "a payload is a struct"},
		"a field without a tag": {struct{ A int }{}, "no tag"},
		"a tag that is no number": {struct {
			A int `turnkeep:"x"`
		}{}, "number from 1 on"},
		"tag 0": {struct {
			A int `turnkeep:"0"`
		}{}, "number from 1 on"},
		"a leading zero": {struct {
			A int `turnkeep:"01"`
		}{}, "number from 1 on"},
		"an unknown option": {struct {
			A int `turnkeep:"1,omitemtpy"`
		}{}, "omitemtpy"},
		"an unknown semantic": {struct {
			A int `turnkeep:"1,semantic=parsec"`
		}{}, "semantic must be"},
		"a tag twice": {struct {
			A int `turnkeep:"1"`
			B int `turnkeep:"1"`
		}{}, "has its tag"},
		"a tombstone's tag": {struct {
			A int `turnkeep:"1"`
			_ int `turnkeep:"1,tombstone"`
		}{}, "has its tag"},
		"a name twice": {struct {
			A int `turnkeep:"1"`
			B int `turnkeep:"2,name=a"`
		}{}, "has its name `a`"},
		"a named tombstone": {struct {
			A int `turnkeep:"1,tombstone"`
		}{}, "named _"},
		"a tagged private field": {struct {
			a int `turnkeep:"1"`
		}{}, "not exported"},
		"an embedded private struct": {struct{ link }{}, "would be lost"},
		"a pointer to one":           {struct{ *link }{}, "would be lost"},
		"two Unknowns":               {struct{ A, B Unknown }{}, "one Unknown"},
		"a tagged Unknown": {struct {
			A Unknown `turnkeep:"1"`
		}{}, "one Unknown"},
		"unsigned without a time": {struct {
			A int `turnkeep:"1,unsigned"`
		}{}, "only for time"},
		"a time that is a url": {struct {
			A time.Time `turnkeep:"1,semantic=url"`
		}{}, "unix_ms or unix_s"},
		"a duration since 1970": {struct {
			A time.Duration `turnkeep:"1,semantic=unix_ms"`
		}{}, "duration_ms"},
		"a function":              {bad[func()]{}, "no payload type"},
		"a channel":               {bad[chan int]{}, "no payload type"},
		"a complex number":        {bad[complex128]{}, "no payload type"},
		"an interface of methods": {bad[error]{}, "no payload type"},
		"a pointer to a pointer":  {bad[**int]{}, "nil by itself"},
		"a float as a key":        {bad[map[float64]int]{}, "a key is"},
		"a struct as a key":       {bad[map[time.Time]int]{}, "a key is"},
		"a duration as a key":     {bad[map[time.Duration]int]{}, "a key is"},
		"a list of itself":        {bad[selfList]{}, "contains itself"},
		"a bad type inside any":   {everything{Any: make(chan int)}, "no payload type"},
	} {
		t.Run(claim, func(t *testing.T) {
			_, err := Marshal(c.value)
			var refused *TypeError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.reason) {
				t.Fatalf("got %v, want %s", err, c.reason)
			}
		})
	}
	for _, place := range []any{nil, link{}, (*link)(nil), new(int)} {
		var refused *TypeError
		if err := Unmarshal([]byte{0x80}, place); !errors.As(err, &refused) {
			t.Fatalf("%T: %v", place, err)
		}
	}
}

func TestNamesAreSnakeCase(t *testing.T) {
	for name, want := range map[string]string{"Text": "text", "ToolCallID": "tool_call_id", "HTTPStatus": "http_status",
		"U64s": "u64s", "Already_Snake": "already_snake", "SHA256": "sha256", "A": "a", "Été": "été"} {
		if got := snakeCase(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// FuzzUnmarshal asserts what holds for all bytes: decoding does not panic, and what was decoded encodes
// to bytes that decode to the same bytes again.
func FuzzUnmarshal(f *testing.F) {
	for _, c := range roundTrips {
		f.Add(unhex(f, c.bytes))
	}
	for _, seed := range []string{"", "\x91", "\x81\x14\xc1", "\xdf\xff\xff\xff\xff\x01", "\x82\x07\x01\x07\x02", "\x81\xa1\x31\xc3", "\x82\xa1k\x01\x7f\x92\x01\x02"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var first, second everything
		if Unmarshal(raw, &first) != nil {
			return
		}
		once, err := Marshal(first)
		if err != nil {
			t.Fatalf("what was decoded from %x does not encode: %v", raw, err)
		}
		if err := Unmarshal(once, &second); err != nil {
			t.Fatalf("%x does not decode: %v", once, err)
		}
		if twice, err := Marshal(second); err != nil || string(twice) != string(once) {
			t.Fatalf("%x became %x (%v)", once, twice, err)
		}
	})
}

func benchmarkValue() *everything {
	return &everything{Role: 2, Text: strings.Repeat("All work and no play. ", 20), AtMs: time.UnixMilli(1700000000123),
		Links: []link{{Label: "a", Size: 1}, {Label: "b", Size: 1 << 40}}, Numbers: []uint64{1, 2, 3}, U64: 1 << 60,
		ByName: map[string]link{"one": {Size: 1}, "two": {Size: 2}}}
}

func BenchmarkMarshal(b *testing.B) {
	value := benchmarkValue()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	raw, err := Marshal(benchmarkValue())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		var value everything
		if err := Unmarshal(raw, &value); err != nil {
			b.Fatal(err)
		}
	}
}
