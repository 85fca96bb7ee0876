// Command snapshot keeps a directory, appends a turn that has it as its filesystem, and reads it back.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	turnkeep "turnkeep.dev/go"
)

func main() {
	ctx := context.Background()
	client, err := turnkeep.Dial(ctx, os.Getenv("TURNKEEP_ADDR"), turnkeep.WithToken(os.Getenv("TURNKEEP_TOKEN")))
	check(err)
	defer client.Close()

	dir, err := os.MkdirTemp("", "snapshot")
	check(err)
	defer os.RemoveAll(dir)
	check(os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n"), 0o644))

	snapshot, err := client.Snapshot(ctx, dir, turnkeep.SnapshotOptions{})
	check(err)
	head, err := client.CreateContext(ctx, turnkeep.NewContext{})
	check(err)
	turn := turnkeep.NewTurn{Payload: []byte("wrote main.go")}
	_, err = client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turn, FSRoot: snapshot.Root})
	check(err)

	entries, err := client.Tree(ctx, snapshot.Root)
	check(err)
	for _, entry := range entries {
		fmt.Printf("%s %o %d bytes\n", entry.Name, entry.Mode, entry.Size)
	}
	again, err := client.Snapshot(ctx, dir, turnkeep.SnapshotOptions{})
	check(err)
	fmt.Println("uploaded", snapshot.Blobs, "blobs, then", again.Blobs)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
