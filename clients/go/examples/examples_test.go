package examples_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnkeep.dev/go/internal/realserver"
)

// printed is what each example prints on a server of its own; an example that is not here fails the test.
var printed = map[string]string{
	"append":    "turn 1 at depth 0 is durable\nthe context is not empty any more: true\n",
	"attachfs":  "attached: true\n",
	"batch":     "3 turns, the last at depth 2\n",
	"before":    "before three: one\nbefore three: two\n",
	"create":    "context 1 is 1\n",
	"fork":      "hello\nanother way\n",
	"gateway":   "labels: map[agent:reviewer]\nnew: true\ncontexts: 1\n",
	"getblob":   "some bytes true\n",
	"hasblobs":  "[true false]\n",
	"head":      "head is turn 2 at depth 1\n",
	"history":   "three\ntwo\none\n",
	"last":      "1 two\n2 three\n",
	"pipeline":  "1000 turns are durable\n",
	"publish":   "new: true\n",
	"putblob":   "7e52aeb0d161c90714aca8a001c01e65c6ecdaf288681e4ba3d98f418259c175 true\nagain: false\n",
	"range":     "1 two true\n2 three true\n",
	"snapshot":  "main.go 644 13 bytes\nuploaded 2 blobs, then 0\n",
	"subscribe": "one\ntwo\nthree, live\n",
	"writer":    "turn 1 in context 1\nturn 2 in context 1\n",
}

const runTimeout = 60 * time.Second

func TestEveryExampleRuns(t *testing.T) {
	programs := t.TempDir()
	run(t, nil, "go", "build", "-o", programs+string(filepath.Separator), "./...")
	built, err := os.ReadDir(programs)
	if err != nil {
		t.Fatal(err)
	}
	if len(built) != len(printed) {
		t.Errorf("%d examples were built, %d are known", len(built), len(printed))
	}
	for _, program := range built {
		t.Run(program.Name(), func(t *testing.T) {
			server := realserver.Start(t)
			environment := []string{"TURNKEEP_ADDR=" + server.Addr, "TURNKEEP_HTTP=" + server.HTTP, "TURNKEEP_TOKEN=" + server.Token}
			got := run(t, environment, filepath.Join(programs, program.Name()))
			if got != printed[program.Name()] {
				t.Errorf("it prints\n%s, not\n%s", got, printed[program.Name()])
			}
		})
	}
}

// The server shows the writer's turns by field name, so the published types match the payloads.
func TestTheWritersTurnsAreShownTyped(t *testing.T) {
	server := realserver.Start(t)
	environment := []string{"TURNKEEP_ADDR=" + server.Addr, "TURNKEEP_TOKEN=" + server.Token}
	for range 2 {
		run(t, environment, "go", "run", "./writer")
	}
	address := strings.TrimPrefix(server.HTTP, "http://")
	shown := run(t, nil, realserver.Binary(t), "log", "1", "--server", address, "--token", server.Token, "--json")
	for _, want := range []string{`"assistant"`, `"More than 2^53."`, `"9007199254740993"`, `"2025-12-19T20:00:00.123Z"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("turnkeep log does not show %s:\n%s", want, shown)
		}
	}
	if turns := strings.Count(shown, `"decoded_as":{"type_id":"com.example.writer.Message"`); turns != 2 {
		t.Errorf("%d turns, not 2:\n%s", turns, shown)
	}
}

func run(t *testing.T, environment []string, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, stderr.String())
	}
	return string(output)
}
