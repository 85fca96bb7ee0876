package turnkeep_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"turnkeep.dev/go/internal/realserver"
)

// blocks are the fenced blocks of a language in docs/clients/go.md.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "clients", "go.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		found = append(found, block)
	}
	return found
}

func goTool(t *testing.T, environment []string, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, output)
	}
	return string(output)
}

func TestTheDocumentsProgramWorksWhenPasted(t *testing.T) {
	server := realserver.Start(t)
	program := strings.Replace(blocks(t, "go")[0], "127.0.0.1:9009", server.Addr, 1)
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	goTool(t, nil, "go", "build", "-o", binary, source)
	want := blocks(t, "text")[0]
	for range 2 {
		if got := goTool(t, []string{"TURNKEEP_TOKEN=" + server.Token}, binary); got != want {
			t.Errorf("it prints\n%s, not\n%s", got, want)
		}
	}
}

const snippetHeader = `package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/turnkeeptest"
)

var _ = errors.Is
var _ fs.DirEntry
var _ = turnkeeptest.Start
var _ = fmt.Sprint

func main() {}
`

func TestTheDocumentsSnippetsCompile(t *testing.T) {
	program := snippetHeader
	for n, snippet := range blocks(t, "go")[1:] {
		program += fmt.Sprintf(`
func snippet%d(ctx context.Context, client *turnkeep.Client, t *testing.T, head turnkeep.Head, turn turnkeep.NewTurn) (err error) {
	var ack turnkeep.Ack
	_ = ack
	{
		%s
		_ = err
	}
	return err
}
`, n, strings.Replace(snippet, "ack, err := client.Append", "ack, err = client.Append", 1))
	}
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	goTool(t, nil, "go", "build", "-o", os.DevNull, source)
}
