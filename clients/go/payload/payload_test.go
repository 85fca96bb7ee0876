package payload

import (
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

type role uint8

type link struct {
	Label string `turnkeep:"1,omitempty"`
	Size  uint64 `turnkeep:"2,omitempty"`
	Next  *link  `turnkeep:"3,omitempty"`
	Rest  Unknown
}

// everything has a field of every kind, all of which may be left out.
type everything struct {
	Flag     bool               `turnkeep:"1,omitempty"`
	_        struct{}           `turnkeep:"2,tombstone"`
	I8       int8               `turnkeep:"3,omitempty"`
	I16      int16              `turnkeep:"4,omitempty"`
	I32      int32              `turnkeep:"5,omitempty"`
	I64      int64              `turnkeep:"6,omitempty"`
	U8       uint8              `turnkeep:"7,omitempty"`
	U16      uint16             `turnkeep:"8,omitempty"`
	U32      uint32             `turnkeep:"9,omitempty"`
	U64      uint64             `turnkeep:"10,omitempty"`
	F32      float32            `turnkeep:"11,omitempty"`
	F64      float64            `turnkeep:"12,omitempty"`
	Text     string             `turnkeep:"13,omitempty,semantic=markdown"`
	Bytes    []byte             `turnkeep:"14,omitempty"`
	Numbers  []uint64           `turnkeep:"15,omitempty"`
	Links    []link             `turnkeep:"16,omitempty"`
	ByName   map[string]link    `turnkeep:"17,omitempty"`
	ByNumber map[int64][][]byte `turnkeep:"18,omitempty"`
	Blob     *TypedBlob         `turnkeep:"19,omitempty"`
	Any      any                `turnkeep:"20,omitempty"`
	Link     *link              `turnkeep:"21,omitempty"`
	Role     role               `turnkeep:"22,omitempty"`
	Roles    []role             `turnkeep:"23,omitempty"`
	AtMs     time.Time          `turnkeep:"24,omitempty,unsigned"`
	AtS      time.Time          `turnkeep:"25,omitempty,semantic=unix_s"`
	Took     time.Duration      `turnkeep:"26,omitempty"`
	Hash     [4]byte            `turnkeep:"27,omitempty"`
	Pair     [2]int             `turnkeep:"28,omitempty"`
	ByFlag   map[bool]uint64    `turnkeep:"29,omitempty"`
	ByBytes  map[ByteString]any `turnkeep:"30,omitempty"`
	Raw      Raw                `turnkeep:"31,omitempty"`
	ByHash   map[[2]byte]role   `turnkeep:"32,omitempty"`
	ByAny    map[any]int        `turnkeep:"33,omitempty"`
	Maybe    *int32             `turnkeep:"34,omitempty"`
	Times    []time.Time        `turnkeep:"35,omitempty"`
	Rest     Unknown
	Ignored  int `turnkeep:"-"`
}

func pointer[T any](v T) *T { return &v }

// roundTrips has values with the bytes that each must give.
var roundTrips = []struct {
	claim string
	value everything
	bytes string
}{
	{"nothing is an empty map", everything{}, "80"},
	{"a bool", everything{Flag: true}, "81 01c3"},
	{"small integers take one byte", everything{I8: -32, U8: 127}, "82 03e0 077f"},
	{"i8", everything{I8: -128}, "81 03d080"},
	{"i16", everything{I16: -32768}, "81 04d18000"},
	{"i32", everything{I32: math.MinInt32}, "81 05d280000000"},
	{"i64", everything{I64: math.MinInt64}, "81 06d38000000000000000"},
	{"a small number in a wide field", everything{I64: 5}, "81 0605"},
	{"positive signed numbers are unsigned on the wire", everything{I16: 200}, "81 04ccc8"},
	{"u8", everything{U8: 255}, "81 07ccff"},
	{"u16", everything{U16: 65535}, "81 08cdffff"},
	{"u32", everything{U32: math.MaxUint32}, "81 09ceffffffff"},
	{"u64", everything{U64: math.MaxUint64}, "81 0acfffffffffffffffff"},
	{"f32", everything{F32: 1.5}, "81 0bca3fc00000"},
	{"f64", everything{F64: -0.1}, "81 0ccbbfb999999999999a"},
	{"negative zero is not empty", everything{F64: math.Copysign(0, -1)}, "81 0ccb8000000000000000"},
	{"text", everything{Text: "é"}, "81 0da2c3a9"},
	{"bytes", everything{Bytes: []byte{0, 255}}, "81 0ec40200ff"},
	{"an array", everything{Numbers: []uint64{0, 1 << 63}}, "81 0f9200cf8000000000000000"},
	{"structs in an array", everything{Links: []link{{}, {Label: "a"}}}, "81 10928081 01a161"},
	{"map keys are sorted by their bytes", everything{ByName: map[string]link{"b": {}, "aa": {}, "": {}}}, "81 11 83 a080 a2616180 a16280"},
	{"number keys are sorted by value", everything{ByNumber: map[int64][][]byte{-1: nil, 1: {{7}}, -200: {}}}, "81 12 83 d1ff3890 ff90 0191c40107"},
	{"a typed blob", everything{Blob: &TypedBlob{TypeID: "t", Version: 2, Payload: []byte{0x80}}}, "81 13 83 01a174 0202 03c40180"},
	{"any value", everything{Any: []any{nil, true, int64(-1), uint64(math.MaxUint64), 1.5, float32(1.5), "s", []byte{1}, map[string]any{"k": int64(1)}, map[any]any{false: "x", int64(2): nil}}},
		"81 14 9a c0 c3 ff cfffffffffffffffff cb3ff8000000000000 ca3fc00000 a173 c40101 81a16b01 82c2a17802c0"},
	{"an extension", everything{Any: []any{Ext{-1, []byte{1, 2, 3, 4}}, Ext{5, []byte{9, 9, 9}}}}, "81 14 92 d6ff01020304 c70305090909"},
	{"a nested struct", everything{Link: &link{Size: 1, Next: &link{Label: "x"}}}, "81 15 82 0201 03 81 01a178"},
	{"an enum", everything{Role: 3}, "81 1603"},
	{"enums in an array are numbers and not bytes", everything{Roles: []role{1, 4}}, "81 17 920104"},
	{"a time in ms", everything{AtMs: time.UnixMilli(1700000000123).UTC()}, "81 18cf0000018bcfe5687b"},
	{"a time in s", everything{AtS: time.Unix(-1, 0).UTC()}, "81 19ff"},
	{"a duration in ms", everything{Took: 90 * time.Second}, "81 1ace00015f90"},
	{"bytes of fixed length", everything{Hash: [4]byte{1, 2, 3, 4}}, "81 1bc40401020304"},
	{"an array of fixed length", everything{Pair: [2]int{1, -1}}, "81 1c9201ff"},
	{"bool keys", everything{ByFlag: map[bool]uint64{true: 1, false: 0}}, "81 1d82c200c301"},
	{"bytes as keys", everything{ByBytes: map[ByteString]any{"\xff": nil, "\x00": "x"}}, "81 1e82c40100a178c401ffc0"},
	{"raw", everything{Raw: Raw{0x92, 0x01, 0xcc, 0x01}}, "81 1f9201cc01"},
	{"tags and lengths beyond one byte", everything{ByHash: map[[2]byte]role{{1, 2}: 3}}, "81 2081c402010203"},
	{"keys of any kind: bools, numbers, strings, bytes", everything{ByAny: map[any]int{"s": 3, int64(1): 2, true: 1, ByteString("b"): 4, int64(-1): 0}}, "81 2185c301ff000102a17303c4016204"},
	{"a pointer tells zero from absent", everything{Maybe: pointer(int32(0))}, "81 2200"},
	{"times in an array", everything{Times: []time.Time{time.UnixMilli(1).UTC()}}, "81 239101"},
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestValuesEncodeToTheseBytesAndBack(t *testing.T) {
	for _, c := range roundTrips {
		t.Run(c.claim, func(t *testing.T) {
			want := unhex(t, c.bytes)
			got, err := Marshal(c.value)
			if err != nil || string(got) != string(want) {
				t.Fatalf("got %x (%v), want %x", got, err, want)
			}
			var back everything
			if err := Unmarshal(want, &back); err != nil {
				t.Fatal(err)
			}
			again, err := Marshal(&back)
			if err != nil || string(again) != string(want) {
				t.Fatalf("again %x (%v), want %x", again, err, want)
			}
			if !reflect.DeepEqual(normal(back), normal(c.value)) {
				t.Fatalf("decoded %+v, want %+v", back, c.value)
			}
		})
	}
}

// normal makes nil and empty lists alike, which are one value on the wire.
func normal(v everything) everything {
	for key, lists := range v.ByNumber {
		if len(lists) == 0 {
			v.ByNumber[key] = [][]byte{}
		}
	}
	return v
}

func TestOneValueEncodesToTheSameBytesAThousandTimes(t *testing.T) {
	value := everything{ByName: map[string]link{}, ByNumber: map[int64][][]byte{}, ByAny: map[any]int{}}
	for i := range 100 {
		value.ByName[strings.Repeat("k", i)] = link{Size: uint64(i)}
		value.ByNumber[int64(i-50)] = [][]byte{{byte(i)}}
		value.ByAny[i%2 == 0], value.ByAny[uint16(i)] = i, i
	}
	value.Any = map[string]any{"a": 1, "b": map[any]any{1: 2, "x": 3, true: 4}}
	first, err := Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if again, err := Marshal(value); err != nil || string(again) != string(first) {
			t.Fatalf("got other bytes (%v)", err)
		}
	}
}

func TestPlansAreSharedByGoroutines(t *testing.T) {
	type fresh struct {
		Links []*link `turnkeep:"1"`
	}
	var all sync.WaitGroup
	for range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			raw, err := Marshal(fresh{Links: []*link{{Size: 1}, nil}})
			var back fresh
			if err != nil || Unmarshal(raw, &back) != nil || back.Links[0].Size != 1 || back.Links[1] != nil {
				t.Errorf("%x %v %+v", raw, err, back)
			}
		}()
	}
	all.Wait()
}

func TestNotANumberHasOneEncoding(t *testing.T) {
	for _, bits := range []uint64{0x7ff8000000000001, 0xfff8000000000000, 0x7ff0000000000001} {
		number := math.Float64frombits(bits)
		raw, err := Marshal(everything{F32: float32(number), F64: number, Any: number})
		if want := unhex(t, "83 0bca7fc00000 0ccb7ff8000000000000 14cb7ff8000000000000"); err != nil || string(raw) != string(want) {
			t.Fatalf("%x (%v), want %x", raw, err, want)
		}
	}
}

func TestUnknownFieldsComeBackByteForByte(t *testing.T) {
	type older struct {
		Size uint64 `turnkeep:"2"`
		Rest Unknown
	}
	type embedding struct {
		Unknown
		Size uint64 `turnkeep:"2"`
	}
	for claim, text := range map[string]string{
		"before, between and after": "84 01a161 0205 03c0 cc8093010203",
		"in a long form":            "83 01cd0001 0205 ce0000000393ca00000000c7000180",
		"with digits as a key":      "83 a13192c0c0 0205 d9023130 dd00000001c2",
		"with keys that are no tag": "85 0205 0301 a4 6e616d65 a161 ff 01 91 01 02",
	} {
		t.Run(claim, func(t *testing.T) {
			raw := unhex(t, text)
			for _, place := range []any{&older{}, &embedding{}} {
				if err := Unmarshal(raw, place); err != nil {
					t.Fatal(err)
				}
				again, err := Marshal(place)
				if err != nil || string(again) != string(raw) {
					t.Fatalf("got %x (%v), want %x", again, err, raw)
				}
			}
		})
	}
}

func TestUnknownFieldsAreFoundByTag(t *testing.T) {
	var v link
	if err := Unmarshal(unhex(t, "83 09a178 04c0 a16b01"), &v); err != nil {
		t.Fatal(err)
	}
	if v.Rest.Len() != 3 || string(v.Rest.Get(9)) != "\xa1x" || string(v.Rest.Get(4)) != "\xc0" || v.Rest.Get(1) != nil {
		t.Fatalf("%+v", v.Rest)
	}
	again, err := Marshal(v)
	if want := unhex(t, "83 04c0 09a178 a16b01"); err != nil || string(again) != string(want) {
		t.Fatalf("tags ascend: got %x (%v), want %x", again, err, want)
	}
}

func TestAStructWithoutUnknownPassesOverWhatItDoesNotKnow(t *testing.T) {
	type small struct {
		Size uint64 `turnkeep:"2"`
	}
	var v small
	if err := Unmarshal(unhex(t, "83 0192c081c0c0 0205 a16b01"), &v); err != nil || v.Size != 5 {
		t.Fatalf("%+v %v", v, err)
	}
}

func TestWhatOtherLanguagesWriteIsRead(t *testing.T) {
	for claim, c := range map[string]struct {
		bytes string
		want  everything
	}{
		"digits as tags":                     {"81 a137 05", everything{U8: 5}},
		"integers in a long form":            {"81 07cf0000000000000005", everything{U8: 5}},
		"a positive number in a signed form": {"81 07d005", everything{U8: 5}},
		"whole floats as integers":           {"82 0b01 0cff", everything{F32: 1, F64: -1}},
		"singles as doubles":                 {"81 0bcb3ff8000000000000", everything{F32: 1.5}},
		"nil is the zero value":              {"85 01c0 0dc0 0ec0 10c0 15c0", everything{}},
		"tags in any order":                  {"82 0805 0701", everything{U8: 1, U16: 5}},
	} {
		t.Run(claim, func(t *testing.T) {
			var got everything
			if err := Unmarshal(unhex(t, c.bytes), &got); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("got %+v (%v)", got, err)
			}
		})
	}
}

func TestEmptyListsAndMapsAreNotNil(t *testing.T) {
	type lists struct {
		Items []int          `turnkeep:"1"`
		Map   map[string]int `turnkeep:"2"`
		Bytes []byte         `turnkeep:"3"`
	}
	raw, err := Marshal(lists{})
	if want := unhex(t, "83 0190 0280 03c400"); err != nil || string(raw) != string(want) {
		t.Fatalf("%x %v", raw, err)
	}
	var back lists
	if err := Unmarshal(raw, &back); err != nil || back.Items == nil || back.Map == nil || back.Bytes == nil {
		t.Fatalf("%+v %v", back, err)
	}
}

func TestTimesAreRoundedDownAndComeBackInUTC(t *testing.T) {
	at := time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("x", 3600))
	type times struct {
		At   time.Time     `turnkeep:"1"`
		Took time.Duration `turnkeep:"2"`
		Zero time.Time     `turnkeep:"3"`
	}
	raw, err := Marshal(times{At: at, Took: -1})
	if err != nil {
		t.Fatal(err)
	}
	var back times
	if err := Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if !back.At.Equal(at.Truncate(time.Millisecond)) || back.At.Location() != time.UTC || back.Took != -time.Millisecond || !back.Zero.IsZero() {
		t.Fatalf("%+v", back)
	}
}
