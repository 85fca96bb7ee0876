package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// bundle is a bundle's text. In all ids a ~ stands for what keeps the cases on one server apart.
func bundle(id, types, enums string) string {
	return fmt.Sprintf(`{"registry_version":1,"bundle_id":"~%s","types":{%s},"enums":{%s}}`, id, types, enums)
}

// versions is a bundle with one type ~T that has these versions.
func versions(id, versions string) string {
	return bundle(id, `"~T":{"versions":{`+versions+`}}`, "")
}

// fields is a bundle with a version of the type ~T that has these fields.
func fields(id string, version int, fields string) string {
	return versions(id, fmt.Sprintf(`"%d":{"fields":{%s}}`, version, fields))
}

// one is a bundle with version 1 of ~T that has one field.
func one(descriptor string) []string { return []string{fields("b", 1, `"1":`+descriptor)} }

func labels(id, labels string) string { return bundle(id, "", `"~E":{`+labels+`}`) }

const (
	added     = 201
	identical = 204
	illegal   = 409
	deep      = 413
	broken    = 422
)

// evolution is a sequence of bundles, all of which but the last are legal, and the last one's verdict.
type evolution struct {
	claim   string
	bundles []string
	status  int
	words   string // in the message, separated by |
}

const (
	a   = `"1":{"name":"a","type":"string"}`
	arr = `"5":{"name":"a","type":"array","items":"u8"}`
	mp  = `"5":{"name":"a","type":"map","key_type":"string","value_type":"u8"}`
)

var other = bundle("b0", `"~U":{"versions":{"1":{"fields":{}}}}`, `"~E":{"1":"one"}`)

var evolutions = []evolution{
	{"a bundle is added", []string{fields("b", 1, a)}, added, ""},
	{"a bundle without types is added", []string{`{"registry_version":1.0,"bundle_id":"~b","x":[1]}`}, added, ""},
	{"the same content in another spelling is identical", []string{`{"registry_version":1,"bundle_id":"~b","types":{},"x":[1,2]}`, ` { "x":[1.0,2e0], "types":{}, "bundle_id":"~\u0062", "registry_version":1.0 } `}, identical, ""},
	{"other content under an id", []string{fields("b", 1, ""), fields("b", 1, a)}, illegal, "bundle `~b`|other content"},
	{"a bundle stays identical after later ones", []string{fields("b1", 1, a), fields("b2", 2, ""), fields("b1", 1, a)}, identical, ""},
	{"types that are not named stay", []string{fields("b1", 1, a), other, fields("b2", 2, a)}, added, ""},
	{"fields are added, renamed and removed", []string{fields("b1", 1, a+`,"2":{"name":"b","type":"u8"}`), fields("b2", 2, `"1":{"name":"renamed","type":"string","optional":true,"semantic":"url"},"3":{"name":"b","type":"u8"}`)}, added, ""},
	{"versions may leap", []string{fields("b1", 3, ""), fields("b2", 40, ""), fields("b3", 41, "")}, added, ""},
	{"versions never fall back", []string{fields("b1", 3, ""), fields("b2", 2, "")}, illegal, "type ~T version 2|version 3|`~b1`"},
	{"not even beside a higher one", []string{fields("b1", 3, ""), versions("b2", `"4":{"fields":{}},"2":{"fields":{}}`)}, illegal, "version 2"},
	{"versions of one bundle come in any order", []string{versions("b", `"2":{"fields":{"1":{"tombstone":true}}},"1":{"fields":{`+a+`}}`)}, added, ""},
	{"a version may be repeated", []string{fields("b1", 1, a), versions("b2", `"1":{"fields":{"1":{"type":"string","name":"a"}}},"2":{"fields":{}}`)}, added, ""},
	{"a version's field is changed", []string{fields("b1", 1, a), fields("b2", 1, `"1":{"name":"b","type":"string"}`)}, illegal, "type ~T version 1|`~b1`"},
	{"a version's field is lost", []string{fields("b1", 1, a), fields("b2", 1, "")}, illegal, "type ~T version 1"},
	{"a version's field becomes optional", []string{fields("b1", 1, a), fields("b2", 1, `"1":{"name":"a","type":"string","optional":true}`)}, illegal, "type ~T version 1"},
	{"a version's field gets a note", []string{fields("b1", 1, a), fields("b2", 1, `"1":{"name":"a","type":"string","doc":"x"}`)}, illegal, "type ~T version 1"},
	{"a version gets a note", []string{fields("b1", 1, a), versions("b2", `"1":{"fields":{`+a+`},"note":1}`)}, illegal, "type ~T version 1"},
	{"a type gets a note", []string{fields("b1", 1, a), bundle("b2", `"~T":{"note":1,"versions":{"1":{"fields":{`+a+`}}}}`, "")}, added, ""},
	{"an integer is widened", []string{fields("b1", 1, `"5":{"name":"a","type":"u32"}`), fields("b2", 2, `"5":{"name":"a","type":"u64"}`)}, illegal, "type ~T version 2 tag 5|`~b1`|new tag"},
	{"an array's items change", []string{fields("b1", 1, arr), fields("b2", 2, `"5":{"name":"a","type":"array","items":"u16"}`)}, illegal, "tag 5"},
	{"an array's items are described otherwise", []string{fields("b1", 1, arr), fields("b2", 2, `"5":{"name":"a","type":"array","items":{"type":"u8","semantic":"url"}}`)}, illegal, "tag 5"},
	{"an array becomes a map", []string{fields("b1", 1, arr), fields("b2", 2, mp)}, illegal, "tag 5"},
	{"a map's keys change", []string{fields("b1", 1, mp), fields("b2", 2, `"5":{"name":"a","type":"map","key_type":"u8","value_type":"u8"}`)}, illegal, "tag 5"},
	{"a map's values change", []string{fields("b1", 1, mp), fields("b2", 2, `"5":{"name":"a","type":"map","key_type":"string","value_type":"any"}`)}, illegal, "tag 5"},
	{"the frozen part is remembered", []string{fields("b1", 1, a), fields("b2", 2, a), fields("b3", 3, `"1":{"name":"a","type":"bytes"}`)}, illegal, "`~b1`"},
	{"a tag comes back after it was left out", []string{fields("b1", 1, a), fields("b2", 2, ""), fields("b3", 3, a)}, illegal, "type ~T version 3 tag 1|retired in version 2|`~b2`"},
	{"a tag comes back after a tombstone", []string{fields("b1", 1, a), fields("b2", 2, `"1":{"tombstone":true}`), fields("b3", 3, a)}, illegal, "retired in version 2"},
	{"a retired tag comes back as a tombstone", []string{fields("b1", 1, a), fields("b2", 2, ""), fields("b3", 3, `"1":{"tombstone":true}`)}, added, ""},
	{"a tag that was only a tombstone comes to life", []string{fields("b1", 1, `"1":{"tombstone":true}`), fields("b2", 2, a)}, illegal, "retired in version 1"},
	{"a tag is reused within one bundle", []string{versions("b", `"1":{"fields":{`+a+`}},"2":{"fields":{}},"3":{"fields":{`+a+`}}`)}, illegal, "version 3 tag 1"},
	{"a tombstone repeats its type", []string{fields("b1", 1, a), fields("b2", 2, `"1":{"name":"a","type":"string","tombstone":true}`)}, added, ""},
	{"a tombstone repeats another type", []string{fields("b1", 1, a), fields("b2", 2, `"1":{"name":"a","type":"u8","tombstone":true}`)}, illegal, "tag 1"},
	{"a tombstone freezes the type that it has", []string{fields("b1", 1, `"1":{"tombstone":true}`), fields("b2", 2, `"1":{"type":"u8","tombstone":true}`), fields("b3", 3, `"1":{"type":"u16","tombstone":true}`)}, illegal, "`~b2`"},
	{"a tombstone's type need not resolve", []string{fields("b1", 1, `"1":{"type":"~Nobody","tombstone":true}`)}, added, ""},
	{"a tombstone's name is free", []string{fields("b", 1, `"1":{"name":"a","type":"u64","tombstone":true},"2":{"name":"a","type":"u8"}`)}, added, ""},
	{"two fields have one name", []string{fields("b", 1, a+`,"2":{"name":"a","type":"u8"}`)}, illegal, "tags 1 and 2|`a`"},
	{"a tag has a leading zero", []string{fields("b", 1, `"01":{"name":"a","type":"u8"}`)}, illegal, "`01`"},
	{"a tag is zeros", []string{fields("b", 1, `"00":{"name":"a","type":"u8"}`)}, illegal, "`00`"},
	{"tag 0 is a tag", []string{fields("b", 1, `"0":{"name":"a","type":"u8"}`)}, added, ""},
	{"a key occurs twice", []string{fields("b", 1, a+","+a)}, illegal, "`1` occurs twice"},
	{"a key occurs twice in another spelling", []string{`{"registry_version":1,"bundle_id":"~b","x":[{"a":1,"\u0061":2}]}`}, illegal, "`a`"},
	{"a type of an earlier bundle", []string{other, fields("b", 1, `"1":{"name":"a","type":"~U"}`)}, added, ""},
	{"a type of this bundle", []string{fields("b", 1, `"1":{"name":"a","type":"~T"}`)}, added, ""},
	{"a type of nobody", []string{fields("b", 1, `"1":{"name":"a","type":"~U"}`)}, illegal, "type ~T version 1 tag 1|`~U`|neither"},
	{"items of nobody", []string{fields("b", 1, `"1":{"name":"a","type":"array","items":{"type":"array","items":"~U"}}`)}, illegal, "`~U`"},
	{"map values of nobody", []string{fields("b", 1, `"1":{"name":"a","type":"map","key_type":"string","value_type":"~U"}`)}, illegal, "`~U`"},
	{"an enum of an earlier bundle", []string{other, fields("b", 1, `"1":{"name":"a","type":"u8","enum":"~E"}`)}, added, ""},
	{"an enum of this bundle, though empty", []string{bundle("b", `"~T":{"versions":{"1":{"fields":{"1":{"name":"a","type":"u8","enum":"~E"}}}}}`, `"~E":{}`)}, added, ""},
	{"an enum of nobody", []string{fields("b", 1, `"1":{"name":"a","type":"u8","enum":"~E"}`)}, illegal, "the enum `~E`"},
	{"an item's enum of nobody", []string{fields("b", 1, `"1":{"name":"a","type":"array","items":{"type":"u8","enum":"~E"}}`)}, illegal, "the enum `~E`"},
	{"semantic and enum are free with a version", []string{other, fields("b1", 1, `"1":{"name":"a","type":"u64"}`), fields("b2", 2, `"1":{"name":"a","type":"u64","semantic":"unix_ms","enum":"~E"}`)}, added, ""},
	{"an enum gains numbers", []string{labels("b1", `"1":"one","-2":"minus two"`), labels("b2", `"1":"one","-2":"minus two","3":"three"`)}, added, ""},
	{"a label changes", []string{labels("b1", `"1":"one","-2":"minus two"`), labels("b2", `"1":"uno","-2":"minus two"`)}, illegal, "enum ~E number 1|`uno`|`one`|`~b1`"},
	{"a label is lost", []string{labels("b1", `"1":"one","-2":"minus two"`), labels("b2", `"1":"one"`)}, illegal, "enum ~E|-2|`minus two`|`~b1`"},
	{"a gained label is lost", []string{labels("b1", `"1":"one"`), labels("b2", `"1":"one","2":"two"`), labels("b3", `"1":"one"`)}, illegal, "`two`|`~b2`"},
	{"two numbers share a label", []string{labels("b1", `"1":"one","2":"one"`)}, added, ""},
	{"the largest numbers", []string{labels("b1", `"18446744073709551615":"max","-9223372036854775808":"min"`)}, added, ""},
	{"a refused bundle leaves no trace", []string{fields("b1", 1, a), fields("b2", 2, a)}, added, ""},

	{"nothing", []string{""}, broken, "not JSON"},
	{"an array", []string{"[]"}, broken, "an object"},
	{"an object cut off", []string{"{"}, broken, "not JSON"},
	{"bytes after it", []string{bundle("b", "", "") + " x"}, broken, "after the document"},
	{"a trailing comma", []string{`{"registry_version":1,"bundle_id":"~b",}`}, broken, "not JSON"},
	{"not UTF-8", []string{"{\"registry_version\":1,\"bundle_id\":\"~b\",\"x\":\"\xff\"}"}, broken, "UTF-8"},
	{"a lone surrogate", []string{`{"registry_version":1,"bundle_id":"~b","x":"\ud800"}`}, broken, "surrogate"},
	{"a replacement character", []string{`{"registry_version":1,"bundle_id":"~b","x":"\ufffd` + "\ufffd" + `"}`}, added, ""},
	{"a number out of range", []string{`{"registry_version":1,"bundle_id":"~b","x":1e999}`}, broken, "out of range"},
	{"no registry_version", []string{`{"bundle_id":"~b"}`}, broken, "registry_version"},
	{"another registry_version", []string{`{"registry_version":2,"bundle_id":"~b"}`}, broken, "registry_version"},
	{"registry_version as text", []string{`{"registry_version":"1","bundle_id":"~b"}`}, broken, "registry_version"},
	{"no id", []string{`{"registry_version":1}`}, broken, "bundle_id"},
	{"an id that is a number", []string{`{"registry_version":1,"bundle_id":7}`}, broken, "bundle_id"},
	{"types as an array", []string{`{"registry_version":1,"bundle_id":"~b","types":[]}`}, broken, "types"},
	{"types as null", []string{`{"registry_version":1,"bundle_id":"~b","types":null}`}, broken, "types"},
	{"a type that is a number", []string{bundle("b", `"~T":1`, "")}, broken, "versions"},
	{"a type without versions", []string{versions("b", "")}, broken, "versions"},
	{"a version without fields", []string{versions("b", `"1":{}`)}, broken, "fields"},
	{"a type without a name", []string{bundle("b", `"":{"versions":{"1":{"fields":{}}}}`, "")}, broken, "1 to 512"},
	{"a type with a built-in name", []string{bundle("b", `"u64":{"versions":{"1":{"fields":{}}}}`, "")}, broken, "built-in"},
	{"a type called map", []string{bundle("b", `"map":{"versions":{"1":{"fields":{}}}}`, "")}, broken, "built-in"},
	{"an enum as an array", []string{bundle("b", "", `"~E":[]`)}, broken, "enum ~E"},
	{"an enum's number is a word", []string{labels("b", `"x":"a"`)}, broken, "`x`"},
	{"an enum's number has a leading zero", []string{labels("b", `"01":"a"`)}, broken, "`01`"},
	{"an enum's number is minus zero", []string{labels("b", `"-0":"a"`)}, broken, "`-0`"},
	{"an enum's number is too small", []string{labels("b", `"-9223372036854775809":"a"`)}, broken, "64 bits"},
	{"an enum's number has a plus", []string{labels("b", `"+1":"a"`)}, broken, "`+1`"},
	{"a label is a number", []string{labels("b", `"1":1`)}, broken, "number 1"},
	{"a label is empty", []string{labels("b", `"1":""`)}, broken, "number 1"},
	{"version 0", []string{fields("b", 0, "")}, broken, "from 1 on"},
	{"version 01", []string{versions("b", `"01":{"fields":{}}`)}, broken, "`01`"},
	{"a version beyond 32 bits", []string{versions("b", `"4294967296":{"fields":{}}`)}, broken, "`4294967296`"},
	{"the largest version and tag", []string{versions("b", `"4294967295":{"fields":{"18446744073709551615":{"name":"a","type":"u8"}}}`)}, added, ""},
	{"a tag that is a word", []string{fields("b", 1, `"x":{"name":"a","type":"u8"}`)}, broken, "`x`"},
	{"a tag below 0", []string{fields("b", 1, `"-1":{"name":"a","type":"u8"}`)}, broken, "`-1`"},
	{"a tag beyond 64 bits", []string{fields("b", 1, `"18446744073709551616":{"name":"a","type":"u8"}`)}, broken, "is not a tag"},
	{"an empty tag", []string{fields("b", 1, `"":{"name":"a","type":"u8"}`)}, broken, "is not a tag"},
	{"a descriptor that is a number", one(`1`), broken, "an object"},
	{"no name", one(`{"type":"string"}`), broken, "name"},
	{"an empty name", one(`{"name":"","type":"string"}`), broken, "name"},
	{"a name too long", one(`{"name":"` + strings.Repeat("n", 513) + `","type":"string"}`), broken, "name"},
	{"no type", one(`{"name":"a"}`), broken, "type"},
	{"a type that is no text", one(`{"name":"a","type":1}`), broken, "type"},
	{"optional as a number", one(`{"name":"a","type":"u8","optional":1}`), broken, "optional"},
	{"optional as null", one(`{"name":"a","type":"u8","optional":null}`), broken, "optional"},
	{"tombstone as text", one(`{"name":"a","type":"u8","tombstone":"yes"}`), broken, "tombstone"},
	{"a tombstone with a name that is none", one(`{"name":"","tombstone":true}`), broken, "name"},
	{"a tombstone with a type that is none", one(`{"type":"array","tombstone":true}`), broken, "items"},
	{"an unknown semantic", one(`{"name":"a","type":"u64","semantic":"parsec"}`), broken, "semantic"},
	{"a semantic that is null", one(`{"name":"a","type":"u64","semantic":null}`), broken, "semantic"},
	{"an enum that is a number", one(`{"name":"a","type":"u8","enum":1}`), broken, "enum"},
	{"an array without items", one(`{"name":"a","type":"array"}`), broken, "items"},
	{"items that are a number", one(`{"name":"a","type":"array","items":1}`), broken, "items"},
	{"items that are an array by name", one(`{"name":"a","type":"array","items":"array"}`), broken, "parts of their own"},
	{"items without a type", one(`{"name":"a","type":"array","items":{"items":"u8"}}`), broken, "type"},
	{"a map without values", one(`{"name":"a","type":"map","key_type":"string"}`), broken, "value_type"},
	{"a map without keys", one(`{"name":"a","type":"map","value_type":"string"}`), broken, "key_type"},
	{"a struct as a key", one(`{"name":"a","type":"map","key_type":"~T","value_type":"u8"}`), broken, "key_type"},
	{"a float as a key", one(`{"name":"a","type":"map","key_type":"f64","value_type":"u8"}`), broken, "key_type"},
	{"a described key", one(`{"name":"a","type":"map","key_type":{"type":"u8"},"value_type":"u8"}`), added, ""},
	{"an array as a key", one(`{"name":"a","type":"map","key_type":{"type":"array","items":"u8"},"value_type":"u8"}`), broken, "key_type"},
	{"as deep as allowed", []string{`{"registry_version":1,"bundle_id":"~b","x":` + strings.Repeat("[", 127) + strings.Repeat("]", 127) + `}`}, added, ""},
	{"too deep", []string{`{"registry_version":1,"bundle_id":"~b","x":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`}, deep, "128"},
}

// verdict is the status that the server would answer with, by our own rules.
func (h *History) verdict(text string) (int, error) {
	b, err := Parse([]byte(text))
	isNew := false
	if err == nil {
		isNew, err = h.Put(b)
	}
	switch {
	case errors.Is(err, ErrMalformed):
		return broken, err
	case errors.Is(err, ErrConflict):
		return illegal, err
	case errors.Is(err, ErrTooDeep):
		return deep, err
	case err != nil:
		return 0, err
	case isNew:
		return added, nil
	}
	return identical, nil
}

func TestEveryRuleOfEvolution(t *testing.T) {
	for _, c := range evolutions {
		t.Run(c.claim, func(t *testing.T) {
			var history History
			last := len(c.bundles) - 1
			for _, text := range c.bundles[:last] {
				if status, err := history.verdict(text); status != added {
					t.Fatalf("%s: %d %v", text, status, err)
				}
			}
			types, enums := len(history.types), len(history.enums)
			status, err := history.verdict(c.bundles[last])
			if status != c.status {
				t.Fatalf("%d %v, want %d", status, err, c.status)
			}
			for _, word := range strings.Split(c.words, "|") {
				if c.words != "" && !strings.Contains(err.Error(), word) {
					t.Errorf("`%v` lacks `%s`", err, word)
				}
			}
			if err != nil && (len(history.types) != types || len(history.enums) != enums) {
				t.Error("a refused bundle left a trace")
			}
		})
	}
}

func TestCheckComparesTwoBundles(t *testing.T) {
	parse := func(text string) *Bundle {
		b, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first, second, retyped := parse(fields("b1", 1, a)), parse(fields("b2", 2, a)), parse(fields("b3", 2, `"1":{"name":"a","type":"u8"}`))
	if err := errors.Join(Check(nil, first), Check(first, first), Check(first, second)); err != nil {
		t.Fatal(err)
	}
	if err := Check(first, retyped); !errors.Is(err, ErrConflict) {
		t.Fatal(err)
	}
	if err := Check(parse(one(`{"name":"a","type":"~Nobody"}`)[0]), second); !errors.Is(err, ErrConflict) {
		t.Fatalf("an old bundle that is illegal by itself: %v", err)
	}
}

// FuzzParse asserts that all bytes get one verdict, and that a printed bundle parses to the same bundle.
func FuzzParse(f *testing.F) {
	for _, c := range evolutions {
		f.Add([]byte(c.bundles[0]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Parse(text)
		if err != nil {
			if !errors.As(err, new(*Refusal)) {
				t.Fatal(err)
			}
			return
		}
		again, err := Parse(b.JSON())
		if err != nil || Check(nil, b) == nil && Check(b, again) != nil {
			t.Fatalf("%s was printed as %s: %v", text, b.JSON(), err)
		}
	})
}
