package registry

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"turnkeep.dev/go/payload"
)

type Role uint8

type Signed int64

type LinkV1 struct {
	Label string  `turnkeep:"1"`
	Size  uint64  `turnkeep:"2"`
	Next  *LinkV1 `turnkeep:"3"`
}

type Link struct {
	Title string `turnkeep:"1"`
	Size  uint64 `turnkeep:"2"`
	Next  *Link  `turnkeep:"3,omitempty"`
}

type EverythingV1 struct {
	Flag bool   `turnkeep:"1"`
	Old  string `turnkeep:"2"`
}

type Everything struct {
	Flag       bool                       `turnkeep:"1"`
	_          string                     `turnkeep:"2,tombstone"`
	I8         int8                       `turnkeep:"3"`
	I16        int16                      `turnkeep:"4"`
	I32        int32                      `turnkeep:"5"`
	I64        int64                      `turnkeep:"6"`
	U8         uint8                      `turnkeep:"7"`
	U16        uint16                     `turnkeep:"8"`
	U32        uint32                     `turnkeep:"9"`
	U64        uint64                     `turnkeep:"10"`
	F32        float32                    `turnkeep:"11"`
	F64        float64                    `turnkeep:"12"`
	Text       string                     `turnkeep:"13,semantic=markdown"`
	Bytes      []byte                     `turnkeep:"14"`
	U64s       []uint64                   `turnkeep:"15"`
	Links      []Link                     `turnkeep:"16"`
	ByName     map[string]Link            `turnkeep:"17"`
	ByNumber   map[int64][][]byte         `turnkeep:"18"`
	Blob       payload.TypedBlob          `turnkeep:"19"`
	Any        any                        `turnkeep:"20"`
	Link       Link                       `turnkeep:"21"`
	Role       Role                       `turnkeep:"22"`
	Roles      []Role                     `turnkeep:"23"`
	AtMs       time.Time                  `turnkeep:"24,unsigned"`
	AtS        time.Time                  `turnkeep:"25,semantic=unix_s"`
	Took       time.Duration              `turnkeep:"26,unsigned"`
	Home       string                     `turnkeep:"27,semantic=url"`
	Blobs      []payload.TypedBlob        `turnkeep:"28"`
	ByFlag     map[bool]uint64            `turnkeep:"29"`
	ByBytes    map[payload.ByteString]any `turnkeep:"30"`
	SignedRole Signed                     `turnkeep:"31"`
	Rest       payload.Unknown
}

func sampleTypes() *Types {
	return New("test").
		Enum(map[Role]string{1: "system", 2: "user", 3: "assistant", 4: "tool"}).
		Enum(map[Signed]string{-1: "below", 0: "even", 1: "above"}).
		AddAs("test.Link", LinkV1{}, 1).Add(Link{}, 2).
		AddAs("test.Everything", EverythingV1{}, 1).Add(Everything{}, 2)
}

func mustBundle(t *testing.T, types *Types, earlier *Bundle) *Bundle {
	t.Helper()
	b, err := types.Bundle(earlier)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoTypesGiveTheSampleBundle(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "payloads", "sample-bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	sample, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	ours := mustBundle(t, sampleTypes(), nil)
	want := strings.Replace(string(sample.JSON()), `"sample"`, `"`+ours.ID()+`"`, 1)
	if got := string(ours.JSON()); got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
	extended := mustBundle(t, sampleTypes(), sample)
	if err := Check(sample, extended); err != nil || extended.ID() != ours.ID() {
		t.Fatal("extending what is complete adds nothing", err)
	}
}

func TestDescriptorsSayWhatFieldsAre(t *testing.T) {
	type Shapes struct {
		Documented string                  `turnkeep:"1,name=text" doc:"What was \"said\" <b>."`
		Maybe      *int16                  `turnkeep:"2"`
		Times      []time.Time             `turnkeep:"3"`
		RoleKeys   map[Role]time.Duration  `turnkeep:"4"`
		Deep       []map[string][]Role     `turnkeep:"5"`
		Hash       [32]byte                `turnkeep:"6,omitempty"`
		Raw        payload.Raw             `turnkeep:"7"`
		Number     int                     `turnkeep:"8"`
		Urls       [][]string              `turnkeep:"20,semantic=url"`
		ByHash     map[[4]byte]payload.Raw `turnkeep:"100"`
		Structs    map[uint]*LinkV1        `turnkeep:"101,omitempty"`
	}
	types := New("n").Enum(map[Role]string{1: "one"}).Add(Shapes{}, 1).Add(LinkV1{}, 7)
	want := `          "fields": {
            "1": { "name": "text", "type": "string", "doc": "What was \"said\" <b>." },
            "2": { "name": "maybe", "type": "i16", "optional": true },
            "3": { "name": "times", "type": "array", "items": "i64", "semantic": "unix_ms" },
            "4": { "name": "role_keys", "type": "map", "key_type": { "type": "u8", "enum": "n.Role" }, "value_type": { "type": "i64", "semantic": "duration_ms" } },
            "5": { "name": "deep", "type": "array", "items": { "type": "map", "key_type": "string", "value_type": { "type": "array", "items": "u8", "enum": "n.Role" } } },
            "6": { "name": "hash", "type": "bytes", "optional": true },
            "7": { "name": "raw", "type": "any" },
            "8": { "name": "number", "type": "i64" },
            "20": { "name": "urls", "type": "array", "items": { "type": "array", "items": "string", "semantic": "url" } },
            "100": { "name": "by_hash", "type": "map", "key_type": "bytes", "value_type": "any" },
            "101": { "name": "structs", "type": "map", "key_type": "u64", "value_type": "n.LinkV1", "optional": true }
          }
`
	if got := string(mustBundle(t, types, nil).JSON()); !strings.Contains(got, want) {
		t.Fatalf("got %s\nwant %s", got, want)
	}
}

// otherLower returns labels of a Go type with the name of another one.
func otherLower() any {
	type lower uint8
	return map[lower]string{1: "b"}
}

func TestMistakesInRegisteredTypesAreReported(t *testing.T) {
	type lower int
	type Untagged struct{ A int }
	type Uses struct {
		A Link `turnkeep:"1"`
	}
	for claim, c := range map[string]struct {
		types  *Types
		reason string
	}{
		"nil":                      {New("n").Add(nil, 1), "a payload is a struct"},
		"no struct":                {New("n").Add(5, 1), "a payload is a struct"},
		"a field without a tag":    {New("n").Add(Untagged{}, 1), "no tag"},
		"version 0":                {New("n").Add(Link{}, 0), "from 1 on"},
		"a Go type twice":          {New("n").Add(Link{}, 1).Add(Link{}, 2), "registered as n.Link version 1 already"},
		"a version twice":          {New("n").Add(Link{}, 1).AddAs("n.Link", LinkV1{}, 1), "registered with registry.Link already"},
		"a struct that is used":    {New("n").Add(Uses{}, 1), "field a: registry.Link is not registered"},
		"an enum without labels":   {New("n").Enum(3), "an enum is a map"},
		"an enum of plain ints":    {New("n").Enum(map[int]string{1: "a"}), "an enum is a map"},
		"an enum of strings":       {New("n").Enum(map[string]string{"a": "a"}), "an enum is a map"},
		"an enum twice":            {New("n").Enum(map[lower]string{}).Enum(map[lower]string{}), "registered already"},
		"two enums of one name":    {New("n").Enum(map[lower]string{1: "a"}).Enum(otherLower()), "n.lower is registered with"},
		"an enum's label is empty": {New("n").Enum(map[lower]string{1: ""}), "1 to 512 bytes"},
		"a built-in name":          {New("n").AddAs("u64", Link{}, 1), "built-in"},
	} {
		t.Run(claim, func(t *testing.T) {
			if _, err := c.types.Bundle(nil); err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Fatalf("got %v, want %s", err, c.reason)
			}
		})
	}
}

func TestABundleKeepsWhatIsThereAndAddsWhatIsNew(t *testing.T) {
	first := mustBundle(t, New("n").AddAs("n.Link", LinkV1{}, 1), nil)
	second := mustBundle(t, New("n").Add(Link{}, 2).AddAs("n.Other", EverythingV1{}, 1), first)
	if len(second.types["n.Link"]) != 2 || len(second.types["n.Other"]) != 1 || second.ID() == first.ID() {
		t.Fatalf("%s", second.JSON())
	}
	if len(first.types["n.Link"]) != 1 || strings.Contains(string(first.JSON()), "n.Other") {
		t.Fatal("the earlier bundle was changed")
	}
	_, err := New("n").AddAs("n.Link", Link{}, 1).Bundle(first)
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "publish a new version") {
		t.Fatal(err)
	}
	type Link struct {
		Label []byte `turnkeep:"1"`
	}
	_, err = New("n").Add(Link{}, 3).Bundle(second)
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "tag 1") {
		t.Fatal(err)
	}
}

func TestTheSameTypesGiveTheSameBundleAThousandTimes(t *testing.T) {
	first := string(mustBundle(t, sampleTypes(), nil).JSON())
	for range 1000 {
		if string(mustBundle(t, sampleTypes(), nil).JSON()) != first {
			t.Fatal("got another bundle")
		}
	}
}

func TestValuesAreNamedAndDecodedByTheirVersion(t *testing.T) {
	types := sampleTypes()
	for _, value := range []any{&LinkV1{Label: "old"}, &Link{Title: "new"}} {
		ref, err := types.Ref(value)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := payload.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		back, err := types.Decode(ref, raw)
		if err != nil || !reflect.DeepEqual(back, value) {
			t.Fatalf("%v: %+v %v", ref, back, err)
		}
	}
	if ref, err := types.Ref(Link{}); err != nil || ref != (Ref{"test.Link", 2}) {
		t.Fatal(ref, err)
	}
	if _, err := types.Decode(Ref{"test.Link", 3}, nil); !errors.Is(err, ErrUnknownType) {
		t.Fatal(err)
	}
	for _, stranger := range []any{nil, 5, struct{}{}} {
		if _, err := types.Ref(stranger); err == nil {
			t.Fatalf("%v has a type", stranger)
		}
	}
}
