package payload_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"turnkeep.dev/go/payload"
	"turnkeep.dev/go/registry"
)

// The types of the shared vectors, as a Go program has them.

type Role uint8

type Side int64

type Scalars struct {
	Flag  bool    `turnkeep:"1"`
	I8    int8    `turnkeep:"2"`
	I16   int16   `turnkeep:"3"`
	I32   int32   `turnkeep:"4"`
	I64   int64   `turnkeep:"5"`
	U8    uint8   `turnkeep:"6"`
	U16   uint16  `turnkeep:"7"`
	U32   uint32  `turnkeep:"8"`
	U64   uint64  `turnkeep:"9"`
	F32   float32 `turnkeep:"10"`
	F64   float64 `turnkeep:"11"`
	Text  string  `turnkeep:"12"`
	Bytes []byte  `turnkeep:"13"`
}

type Optional struct {
	Flag   bool              `turnkeep:"1,omitempty"`
	Count  uint64            `turnkeep:"2,omitempty"`
	Change int64             `turnkeep:"3,omitempty"`
	Ratio  float64           `turnkeep:"4,omitempty"`
	Text   string            `turnkeep:"5,omitempty"`
	Bytes  []byte            `turnkeep:"6,omitempty"`
	Tags   []string          `turnkeep:"7,omitempty"`
	Counts map[string]uint64 `turnkeep:"8,omitempty"`
	Point  *Point            `turnkeep:"9,omitempty"`
	At     time.Time         `turnkeep:"10,omitempty"`
	Role   Role              `turnkeep:"11,omitempty"`
}

// Meanings has a number for its duration, since one of the vectors is longer than a time.Duration.
type Meanings struct {
	AtMs   time.Time   `turnkeep:"1"`
	AtS    time.Time   `turnkeep:"2,semantic=unix_s"`
	Took   uint64      `turnkeep:"3,semantic=duration_ms"`
	Home   string      `turnkeep:"4,semantic=url"`
	Notes  string      `turnkeep:"5,semantic=markdown"`
	SeenMs []time.Time `turnkeep:"6,unsigned"`
}

type Enums struct {
	Role  Role   `turnkeep:"1"`
	Side  Side   `turnkeep:"2"`
	Roles []Role `turnkeep:"3"`
}

type Arrays struct {
	U64s   []uint64  `turnkeep:"1"`
	I64s   []int64   `turnkeep:"2"`
	Texts  []string  `turnkeep:"3"`
	Blobs  [][]byte  `turnkeep:"4"`
	Points []Point   `turnkeep:"5"`
	Grid   [][]int32 `turnkeep:"6"`
}

type Maps struct {
	ByText map[string]uint64   `turnkeep:"1"`
	ByI64  map[int64]string    `turnkeep:"2"`
	ByU8   map[uint8][]byte    `turnkeep:"3"`
	ByFlag map[bool]float64    `turnkeep:"4"`
	Points map[string]Point    `turnkeep:"5"`
	Lists  map[string][]uint64 `turnkeep:"6"`
}

type ByteKeys struct {
	ByBytes map[payload.ByteString]string `turnkeep:"1"`
}

type Point struct {
	X    int32 `turnkeep:"1"`
	Y    int32 `turnkeep:"2"`
	Rest payload.Unknown
}

type Tree struct {
	Label    string `turnkeep:"1"`
	Point    Point  `turnkeep:"2"`
	Children []Tree `turnkeep:"3,omitempty"`
	Next     *Tree  `turnkeep:"4,omitempty"`
	Rest     payload.Unknown
}

type DocumentV1 struct {
	Title string `turnkeep:"1"`
	Draft bool   `turnkeep:"2,omitempty"`
	Size  uint64 `turnkeep:"3"`
	Rest  payload.Unknown
}

type DocumentV2 struct {
	Heading string `turnkeep:"1"`
	_       bool   `turnkeep:"2,tombstone"`
	Size    uint64 `turnkeep:"3"`
	Body    string `turnkeep:"4,omitempty,semantic=markdown"`
	Rest    payload.Unknown
}

type DocumentV5 struct {
	Heading string      `turnkeep:"1"`
	Size    uint64      `turnkeep:"3"`
	Body    string      `turnkeep:"4,omitempty,semantic=markdown"`
	Author  *DocumentV5 `turnkeep:"6,omitempty"`
	Rest    payload.Unknown
}

type WideTags struct {
	First     uint8 `turnkeep:"1"`
	Fixint    uint8 `turnkeep:"127"`
	OneByte   uint8 `turnkeep:"128"`
	TwoBytes  uint8 `turnkeep:"256"`
	FourBytes uint8 `turnkeep:"65536"`
}

type Loose struct {
	Anything    any                 `turnkeep:"1"`
	Attached    *payload.TypedBlob  `turnkeep:"2,omitempty"`
	Attachments []payload.TypedBlob `turnkeep:"3,omitempty"`
}

func vectorTypes() *registry.Types {
	return registry.New("vectors").
		Enum(map[Role]string{1: "system", 2: "user", 3: "assistant", 4: "tool"}).
		Enum(map[Side]string{-1: "left", 0: "middle", 1: "right"}).
		Add(Scalars{}, 1).Add(Optional{}, 1).Add(Meanings{}, 1).Add(Enums{}, 1).Add(Arrays{}, 1).Add(Maps{}, 1).
		Add(ByteKeys{}, 1).Add(Point{}, 1).Add(Tree{}, 1).Add(WideTags{}, 1).Add(Loose{}, 1).
		AddAs("vectors.Document", DocumentV1{}, 1).AddAs("vectors.Document", DocumentV2{}, 2).AddAs("vectors.Document", DocumentV5{}, 5)
}

// vector is an entry of any of the files.
type vector struct {
	Name     string `json:"name"`
	TypeID   string `json:"type_id"`
	Version  uint32 `json:"version"`
	Value    any    `json:"value"`
	Msgpack  string `json:"msgpack"`
	Warnings []any  `json:"warnings"`
}

func (v vector) ref() registry.Ref { return registry.Ref{ID: v.TypeID, Version: v.Version} }

func (v vector) bytes(t *testing.T) []byte {
	t.Helper()
	raw, err := hex.DecodeString(v.Msgpack)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func readTestdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "payloads", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readVectors(t *testing.T, name string) (vectors []vector) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(readTestdata(t, name)))
	decoder.UseNumber()
	if err := decoder.Decode(&vectors); err != nil || len(vectors) == 0 {
		t.Fatal("no vectors", err)
	}
	return vectors
}

func TestGoTypesGiveTheBundleOfTheVectors(t *testing.T) {
	shared, err := registry.Parse([]byte(readTestdata(t, "vectors-bundle.json")))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := vectorTypes().Bundle(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(shared.JSON()), shared.ID(), ours.ID(), 1)
	if got := string(ours.JSON()); got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
}

func TestVectorsEncodeToTheirBytesAndDecodeToTheirValues(t *testing.T) {
	types := vectorTypes()
	for _, v := range readVectors(t, "vectors.json") {
		t.Run(v.Name, func(t *testing.T) {
			raw := v.bytes(t)
			decoded, err := types.Decode(v.ref(), raw)
			if err != nil {
				t.Fatal(err)
			}
			built := reflect.New(reflect.TypeOf(decoded).Elem())
			build(t, built.Elem(), v.Value)
			for _, value := range []any{built.Interface(), decoded} {
				if got, err := payload.Marshal(value); err != nil || string(got) != string(raw) {
					t.Errorf("%+v encodes to\n%x (%v), want\n%x", value, got, err, raw)
				}
			}
			if !equal(built.Elem(), reflect.ValueOf(decoded).Elem()) {
				t.Errorf("decoded %+v\nwant %+v", decoded, built)
			}
		})
	}
}

// tolerated has the values that stand in the tolerated vectors, by name.
var tolerated = map[string]any{
	"tags as digits":                           &Point{X: 5, Y: -5},
	"tags descending":                          &Point{X: -5, Y: 5},
	"integers longer than they need be":        &Point{X: -5, Y: 5},
	"a map head longer than it need be":        &Point{X: 5, Y: -5},
	"a text head longer than it need be":       &DocumentV1{Title: "a", Size: 1},
	"a whole number where a float is declared": &Optional{Ratio: 7},
	"a single where a double is declared":      &Optional{Ratio: 1.5},
	"nil in place of a value":                  &Optional{},
	"map keys unsorted": &Maps{ByText: map[string]uint64{"b": 1, "a": 2}, ByI64: map[int64]string{}, ByU8: map[uint8][]byte{},
		ByFlag: map[bool]float64{}, Points: map[string]Point{}, Lists: map[string][]uint64{}},
	"a tag as digits with a leading zero is no tag": &Point{X: 5, Y: 6},
	"a negative key is no tag":                      &Point{X: 5, Y: 6},
	"a key that is a word":                          &Point{X: 5, Y: 6},
}

func TestToleratedVectorsAreReadUnlessTheyContradictTheirType(t *testing.T) {
	types := vectorTypes()
	for _, v := range readVectors(t, "tolerated.json") {
		t.Run(v.Name, func(t *testing.T) {
			decoded, err := types.Decode(v.ref(), v.bytes(t))
			if len(v.Warnings) > 0 {
				if refused := new(payload.DecodeError); !errors.As(err, &refused) {
					t.Fatalf("a contradiction was read as %+v (%v)", decoded, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if point, ok := decoded.(*Point); ok {
				point.Rest = payload.Unknown{}
			}
			if want := tolerated[v.Name]; !reflect.DeepEqual(decoded, want) {
				t.Fatalf("decoded %+v, want %+v", decoded, want)
			}
		})
	}
}

func TestMalformedVectorsAreRefusedWhateverTheTypeIs(t *testing.T) {
	type nothing struct{}
	for _, v := range readVectors(t, "malformed.json") {
		raw := v.bytes(t)
		for _, place := range []any{&nothing{}, &Scalars{}, &Optional{}, &Maps{}, &Tree{}, &DocumentV5{}, &Loose{}} {
			if refused := new(payload.DecodeError); !errors.As(payload.Unmarshal(raw, place), &refused) {
				t.Errorf("%s: a %T was read", v.Name, place)
			}
		}
	}
}
