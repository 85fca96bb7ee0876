package turnkeep_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/realserver"
	"turnkeep.dev/go/turnkeeptest"
)

// writeTree fills a directory with every kind of entry and with names that are hard to handle.
func writeTree(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "src", "empty"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "src", "main.go"), []byte("package main\n"), 0o644))
	must(os.WriteFile(filepath.Join(dir, "copy.go"), []byte("package main\n"), 0o600))
	must(os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o755))
	must(os.Chmod(filepath.Join(dir, "run"), 0o755|fs.ModeSetgid))
	must(os.WriteFile(filepath.Join(dir, "nothing"), nil, 0o644))
	for _, name := range []string{"\xff\xfe", "new\nline", "-rf", "é", "..."} {
		must(os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
	}
	must(os.Symlink("src/main.go", filepath.Join(dir, "link")))
	must(os.Symlink("/nowhere/\xff", filepath.Join(dir, "dangling")))
	must(os.Symlink(".", filepath.Join(dir, "src", "loop")))
}

func TestSnapshotKeepsADirectoryAndUploadsOnlyWhatIsMissing(t *testing.T) {
	ctx := testContext(t)
	server := realserver.Start(t)
	client := dial(t, server, turnkeep.WithVerify())
	dir, other := t.TempDir(), t.TempDir()
	writeTree(t, dir)
	writeTree(t, other)
	first, err := client.Snapshot(ctx, dir, turnkeep.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := turnkeep.Snapshot{Root: first.Root, Files: 9, Directories: 3, Symlinks: 3, Blobs: 14, Bytes: first.Bytes}
	if first != want || first.Bytes == 0 {
		t.Errorf("got %+v, not %+v", first, want)
	}
	again, err := client.Snapshot(ctx, other, turnkeep.SnapshotOptions{})
	if err != nil || again.Root != first.Root || again.Blobs != 0 {
		t.Errorf("the same content again: %+v, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "main.go"), []byte("package other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	changed, err := client.Snapshot(ctx, dir, turnkeep.SnapshotOptions{})
	if err != nil || changed.Root == first.Root || changed.Blobs != 3 {
		t.Errorf("one file and two directories changed: %+v, %v", changed, err)
	}
	attachAndCompare(t, server, client, first.Root)
}

// attachAndCompare puts the root on a turn and reads the tree back, also through the server.
func attachAndCompare(t *testing.T, server *realserver.Server, client *turnkeep.Client, root turnkeep.Hash) {
	t.Helper()
	ctx := testContext(t)
	head, err := client.CreateContext(ctx, turnkeep.NewContext{})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turnkeep.Msgpack("t", 1, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.AttachFS(ctx, ack.Turn, root); err != nil {
		t.Fatal(err)
	}
	var lines []string
	walk(t, client, root, "", &lines)
	want := []string{
		`"-rf" 0 644 3`, `"..." 0 644 3`, `"copy.go" 0 600 13`, `"dangling" 2 777 10`, `"link" 2 777 11`,
		`"new\nline" 0 644 8`, `"nothing" 0 644 0`, `"run" 0 2755 10`, `"src" 1 755 0`, `"src/empty" 1 755 0`,
		`"src/loop" 2 777 1`, `"src/main.go" 0 644 13`, `"é" 0 644 2`, `"\xff\xfe" 0 644 2`,
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nnot\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	status, body := httpGet(t, server, fmt.Sprintf("/v1/turns/%v/fs/src/main.go", ack.Turn))
	if status != 200 || body != "package main\n" {
		t.Errorf("the server shows %d %q", status, body)
	}
}

func walk(t *testing.T, client *turnkeep.Client, hash turnkeep.Hash, path string, lines *[]string) {
	t.Helper()
	entries, err := client.Tree(testContext(t), hash)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		below := strings.TrimPrefix(path+"/"+entry.Name, "/")
		*lines = append(*lines, fmt.Sprintf("%q %d %o %d", below, entry.Kind, entry.Mode, entry.Size))
		if entry.Kind == turnkeep.EntryDirectory {
			walk(t, client, entry.Hash, below, lines)
			continue
		}
		content, err := client.Blob(testContext(t), entry.Hash)
		if err != nil || uint64(len(content)) != entry.Size {
			t.Errorf("%s has %d bytes: %v", below, len(content), err)
		}
	}
}

func TestSnapshotRefusesWhatItCannotKeep(t *testing.T) {
	ctx := testContext(t)
	client := dial(t, realserver.Start(t))
	dir := t.TempDir()
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if _, err := client.Snapshot(ctx, dir, turnkeep.SnapshotOptions{}); !errors.Is(err, turnkeep.ErrUnsupportedFile) {
		t.Errorf("a socket: %v", err)
	}
	skip := turnkeep.SnapshotOptions{Skip: func(path string, _ fs.DirEntry) bool { return path == "socket" }}
	if got, err := client.Snapshot(ctx, dir, skip); err != nil || got.Directories != 1 {
		t.Errorf("a skipped socket: %+v, %v", got, err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 32<<20+1); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Snapshot(ctx, dir, skip); !errors.Is(err, turnkeep.ErrTooLarge) {
		t.Errorf("a file over the limit: %v", err)
	}
	if _, err := client.Snapshot(ctx, large, skip); err == nil {
		t.Error("a file is taken for a directory")
	}
}

func TestACancelledSnapshotReadsNoFurther(t *testing.T) {
	client := turnkeeptest.Start(t).Client(t)
	dir := t.TempDir()
	writeTree(t, dir)
	ctx, cancel := context.WithCancel(testContext(t))
	visited := 0
	skip := func(string, fs.DirEntry) bool {
		cancel()
		visited++
		return false
	}
	_, err := client.Snapshot(ctx, dir, turnkeep.SnapshotOptions{Skip: skip})
	if !errors.Is(err, context.Canceled) || visited != 1 {
		t.Errorf("%d entries were visited: %v", visited, err)
	}
}

func TestTreesAreDeterministicToTheByte(t *testing.T) {
	entries := []turnkeep.Entry{
		{Name: "b", Kind: turnkeep.EntryDirectory, Mode: 0o40755, Hash: turnkeep.Hash{2}},
		{Name: "\xff", Kind: turnkeep.EntrySymlink, Mode: 0o777, Size: 300, Hash: turnkeep.Hash{3}},
		{Name: "a", Mode: 0o644, Size: 70000, Hash: turnkeep.Hash{1}},
	}
	zeros := strings.Repeat("00", 31)
	want := "93" +
		"8501a161" + "0200" + "03cd01a4" + "04ce00011170" + "05c42001" + zeros +
		"8501a162" + "0201" + "03cd01ed" + "0400" + "05c42002" + zeros +
		"8501c401ff" + "0202" + "03cd01ff" + "04cd012c" + "05c42003" + zeros
	for range 1000 {
		got, err := turnkeep.EncodeTree(entries)
		if err != nil || hex.EncodeToString(got) != want {
			t.Fatalf("got %x, %v, not %s", got, err, want)
		}
		entries[0], entries[1], entries[2] = entries[1], entries[2], entries[0]
	}
}

func TestHostileTreesAreRefused(t *testing.T) {
	named := func(names ...string) []byte {
		tree := []byte{0x90 + byte(len(names))}
		for _, name := range names {
			tree = append(tree, 0x82, 0x01, 0xa0+byte(len(name)))
			tree = append(append(tree, name...), 0x05, 0xc4, 0x20)
			tree = append(tree, make([]byte, 32)...)
		}
		return tree
	}
	for _, good := range [][]byte{named(), named("a"), named("a", "b")} {
		if _, err := turnkeep.DecodeTree(good); err != nil {
			t.Errorf("%x: %v", good, err)
		}
		for cut := range good {
			if _, err := turnkeep.DecodeTree(good[:cut]); !errors.Is(err, turnkeep.ErrBadTree) {
				t.Errorf("%x cut to %d bytes: %v", good, cut, err)
			}
		}
	}
	bad := map[string][]byte{
		"no bytes": nil, "no array": {0x80}, "nil": {0xc0}, "bytes after it": append(named("a"), 0),
		"2^32 entries": {0xdd, 0xff, 0xff, 0xff, 0xff}, "an entry that is no map": {0x91, 0x01},
		"no hash": {0x91, 0x81, 0x01, 0xa1, 'a'}, "no name": {0x91, 0x80},
		"a name of 4 GiB": {0x91, 0x81, 0x01, 0xdb, 0xff, 0xff, 0xff, 0xff},
		"a nil name":      bytes.Replace(named("a"), []byte{0xa1, 'a'}, []byte{0xc0}, 1),
		"tag 6":           bytes.Replace(named("a"), []byte{0x82, 0x01}, []byte{0x82, 0x06}, 1),
		"a tag twice":     {0x91, 0x82, 0x01, 0xa1, 'a', 0x01, 0xa1, 'a'},
		"kind 3":          {0x91, 0x81, 0x02, 0x03}, "negative kind": {0x91, 0x81, 0x02, 0xff},
		"a short hash":  {0x91, 0x82, 0x01, 0xa1, 'a', 0x05, 0xc4, 0x01, 0x00},
		"an empty name": named(""), "this directory": named("."), "the parent": named(".."),
		"a path": named("a/b"), "a zero byte": named("a\x00b"), "twice the same": named("a", "a"),
		"not in order": named("b", "a"),
	}
	for name, tree := range bad {
		if _, err := turnkeep.DecodeTree(tree); !errors.Is(err, turnkeep.ErrBadTree) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := turnkeep.EncodeTree([]turnkeep.Entry{{Name: "../a"}}); !errors.Is(err, turnkeep.ErrBadTree) {
		t.Errorf("encoding a path: %v", err)
	}
}

func FuzzDecodeTree(f *testing.F) {
	f.Add([]byte{0x90})
	f.Fuzz(func(t *testing.T, tree []byte) {
		entries, err := turnkeep.DecodeTree(tree)
		if err != nil {
			return
		}
		if _, err := turnkeep.EncodeTree(entries); err != nil {
			t.Errorf("a tree that was read cannot be written: %v", err)
		}
	})
}
