package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABundleOfAnotherProgramIsLegal(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "interop", "bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if isNew, err := new(History).Put(bundle); err != nil || !isNew {
		t.Fatal(isNew, err)
	}
}

func TestATypeMayChangeFromOneSpellingToTheOther(t *testing.T) {
	bundle := func(id, version, descriptor string) *Bundle {
		t.Helper()
		text := `{"registry_version":1,"bundle_id":"` + id + `","types":{"T":{"versions":{"` + version +
			`":{"fields":{"1":{"name":"n",` + descriptor + `}}}}}}}`
		parsed, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for _, c := range []struct{ old, new, refused string }{
		{`"type":"i32"`, `"type":"int32"`, ""},
		{`"type":"int64"`, `"type":"i64"`, ""},
		{`"type":"ref","ref":"T"`, `"type":"T"`, ""},
		{`"type":"array","items":"T"`, `"type":"array","items":"T"`, ""},
		{`"type":"i64"`, `"type":"int32"`, "tag 1"},
		{`"type":"T"`, `"type":"ref","ref":"nobody"`, "nobody"},
	} {
		var history History
		if _, err := history.Put(bundle("a", "1", c.old)); err != nil {
			t.Fatal(c.old, err)
		}
		_, err := history.Put(bundle("b", "2", c.new))
		if (err != nil) != (c.refused != "") || (err != nil && !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s, then %s: %v", c.old, c.new, err)
		}
	}
}
