package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const chatV1 = `// Package chat has the types of a chat.
package chat

import "turnkeep.dev/go/registry"

//go:generate go run turnkeep.dev/go/cmd/turnkeep-go-registry -types Types -out registry.json

type Message struct {
	Text string ` + "`turnkeep:\"1\" doc:\"What was said.\"`" + `
}

var Types = registry.New("com.example").Add(Message{}, 1)
`

// module makes a module with the package internal/chat that uses this one as it is here.
func module(t *testing.T) (dir string) {
	t.Helper()
	here, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(here, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/chat\n\ngo 1.24.0\n\nrequire turnkeep.dev/go v0.0.0\n\nreplace turnkeep.dev/go => "+here+"\n")
	write(t, filepath.Join(dir, "go.sum"), string(sums))
	write(t, filepath.Join(dir, "internal", "chat", "chat.go"), chatV1)
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// goTool runs the go command in a directory and returns what it said.
func goTool(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	said, err := command.CombinedOutput()
	return string(said), err
}

func TestGoGenerateWritesTheBundleAndTheCheckFailsOnDrift(t *testing.T) {
	dir := module(t)
	chat := filepath.Join(dir, "internal", "chat")
	out := filepath.Join(chat, "registry.json")
	check := func() (string, error) {
		return goTool(t, dir, "run", "turnkeep.dev/go/cmd/turnkeep-go-registry", "-package", "internal/chat", "-out", "internal/chat/registry.json", "-check")
	}
	if said, err := check(); err == nil || !strings.Contains(said, "run go generate") {
		t.Fatalf("without a file: %v %s", err, said)
	}
	if said, err := goTool(t, dir, "generate", "./..."); err != nil {
		t.Fatalf("%v %s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), `"1": { "name": "text", "type": "string", "doc": "What was said." }`) {
		t.Fatalf("%s %v", text, err)
	}
	if said, err := check(); err != nil {
		t.Fatalf("%v %s", err, said)
	}
	illegal := strings.Replace(chatV1, "Text string", "Text []byte", 1)
	write(t, filepath.Join(chat, "chat.go"), strings.Replace(illegal, "Add(Message{}, 1)", "Add(Message{}, 2)", 1))
	if said, err := goTool(t, dir, "generate", "./..."); err == nil || !strings.Contains(said, "allocate a new tag") {
		t.Fatalf("an illegal evolution: %v %s", err, said)
	}
	if after, err := os.ReadFile(out); err != nil || !bytes.Equal(after, text) {
		t.Fatalf("the refused bundle was written: %s %v", after, err)
	}
	if left, err := os.ReadDir(chat); err != nil || len(left) != 2 {
		t.Fatalf("files were left behind: %v %v", left, err)
	}
}

func TestWrongUseIsSaid(t *testing.T) {
	for args, want := range map[string]struct {
		code int
		said string
	}{
		"-types types":      {2, "not an exported variable"},
		"-types Types;x":    {2, "not an exported variable"},
		"-nonsense":         {2, "-nonsense"},
		"more":              {2, "unexpected argument"},
		"-h":                {0, "-types"},
		"-package .":        {1, "cannot be imported"},
		"-package nowhere/": {1, "nowhere"},
	} {
		var said bytes.Buffer
		if code := run(strings.Split(args, " "), &said); code != want.code || !strings.Contains(said.String(), want.said) {
			t.Errorf("%s: %d %s", args, code, &said)
		}
	}
}
