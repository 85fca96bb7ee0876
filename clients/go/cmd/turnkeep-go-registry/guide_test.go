package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// block returns the first block of the guide in a language.
func block(t *testing.T, guide, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(guide, "```"+language+"\n")
	text, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("the guide has no block in %s", language)
	}
	return text
}

func TestTheGuidesProgramPrintsWhatTheGuideSays(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "clients", "go-types.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := module(t)
	write(t, filepath.Join(dir, "main.go"), block(t, string(guide), "go"))
	said, err := goTool(t, dir, "run", ".")
	if want := block(t, string(guide), "text"); err != nil || said != want {
		t.Fatalf("it prints (%v)\n%s\nand not\n%s", err, said, want)
	}
}
