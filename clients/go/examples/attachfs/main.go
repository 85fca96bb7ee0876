// Command attachfs gives a filesystem root to a turn that has none; it is set once.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	turnkeep "turnkeep.dev/go"
)

func main() {
	ctx := context.Background()
	client, err := turnkeep.Dial(ctx, os.Getenv("TURNKEEP_ADDR"), turnkeep.WithToken(os.Getenv("TURNKEEP_TOKEN")))
	check(err)
	defer client.Close()

	head, err := client.CreateContext(ctx, turnkeep.NewContext{})
	check(err)
	ack, err := client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turnkeep.NewTurn{Payload: []byte("done")}})
	check(err)
	tree, err := turnkeep.EncodeTree(nil)
	check(err)
	root, _, err := client.PutBlob(ctx, tree)
	check(err)
	check(client.AttachFS(ctx, ack.Turn, root))
	turns, err := client.Last(ctx, head.Context, 1, turnkeep.Read{Extended: true})
	check(err)
	fmt.Println("attached:", turns[0].FSRoot == root)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
