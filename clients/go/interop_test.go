package turnkeep_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	turnkeep "turnkeep.dev/go"
)

// shownEntry is an entry as testdata/interop/trees.json has it.
type shownEntry struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Mode uint32 `json:"mode"`
	Size string `json:"size"`
	Hash string `json:"hash"`
}

func show(entries []turnkeep.Entry) []shownEntry {
	kinds := []string{"file", "directory", "symlink"}
	shown := []shownEntry{}
	for _, entry := range entries {
		size := strconv.FormatUint(entry.Size, 10)
		shown = append(shown, shownEntry{entry.Name, kinds[entry.Kind], entry.Mode, size, hex.EncodeToString(entry.Hash[:])})
	}
	return shown
}

func TestDirectoriesOfOtherProgramsAreRead(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "interop", "trees.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name    string       `json:"name"`
		Tree    string       `json:"tree"`
		Entries []shownEntry `json:"entries"`
		Error   bool         `json:"error"`
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		tree, err := hex.DecodeString(c.Tree)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := turnkeep.DecodeTree(tree)
		switch {
		case c.Error && !errors.Is(err, turnkeep.ErrBadTree):
			t.Errorf("%s: %v", c.Name, err)
		case !c.Error && (err != nil || !reflect.DeepEqual(show(entries), c.Entries)):
			t.Errorf("%s: %v %v", c.Name, show(entries), err)
		}
	}
}
