package registry

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheCommittedBundleFollowsTheTypesOrTheRunFails(t *testing.T) {
	dir := t.TempDir()
	out, base := filepath.Join(dir, "registry.json"), filepath.Join(dir, "base.json")
	v1 := New("n").AddAs("n.Link", LinkV1{}, 1)
	v2 := New("n").AddAs("n.Link", Link{}, 2)
	changed := New("n").AddAs("n.Link", Link{}, 1)
	retyped := New("n").AddAs("n.Link", EverythingV1{}, 2)
	for _, step := range []struct {
		claim string
		types *Types
		args  []string
		code  int
		said  string
	}{
		{"a missing file is drift", v1, []string{"-check"}, 1, "run go generate"},
		{"it is written", v1, nil, 0, ""},
		{"it is what the types say", v1, []string{"-check"}, 0, ""},
		{"writing again changes nothing", v1, nil, 0, ""},
		{"a changed version is refused", changed, nil, 1, "publish a new version"},
		{"and in a check too", changed, []string{"-check"}, 1, "publish a new version"},
		{"a retyped tag is refused", retyped, nil, 1, "allocate a new tag"},
		{"a new version is drift", v2, []string{"-check"}, 1, "run go generate"},
		{"a new version is written", v2, nil, 0, ""},
		{"and is what the types say", v2, []string{"-check"}, 0, ""},
		{"earlier versions stay", v1, []string{"-check"}, 0, ""},
		{"a lost history is found by the published bundle", v2, []string{"-check", "-against", base}, 1, "run go generate"},
		{"which must be there", v2, []string{"-against", base + "x"}, 1, "base.jsonx"},
		{"an unknown flag", v2, []string{"-chekc"}, 2, "-chekc"},
		{"an argument too much", v2, []string{"x"}, 2, "unexpected argument"},
		{"help", v2, []string{"-h"}, 0, "-against"},
	} {
		if step.claim == "a lost history is found by the published bundle" {
			rename(t, out, base)
			if code := run(New("m").Add(Link{}, 1), []string{"-out", out}, new(bytes.Buffer)); code != 0 {
				t.Fatal("writing anew")
			}
		}
		before, _ := os.ReadFile(out)
		var said bytes.Buffer
		code := run(step.types, append(step.args, "-out", out), &said)
		if step.said == "unexpected argument" {
			code = run(step.types, step.args, &said)
		}
		if code != step.code || !strings.Contains(said.String(), step.said) {
			t.Fatalf("%s: %d %s", step.claim, code, &said)
		}
		if after, _ := os.ReadFile(out); code != 0 && !bytes.Equal(before, after) {
			t.Fatalf("%s: the file was changed", step.claim)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Fatalf("files were left behind: %v %v", left, err)
	}
}

func TestAFileThatIsNoBundleIsNotOverwritten(t *testing.T) {
	out := filepath.Join(t.TempDir(), "registry.json")
	if err := os.WriteFile(out, []byte("<<<<<<< HEAD"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := run(sampleTypes(), []string{"-out", out}, &said); code != 1 || !strings.Contains(said.String(), "registry.json") {
		t.Fatal(code, said.String())
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "<<<<<<< HEAD" {
		t.Fatalf("%s %v", text, err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
