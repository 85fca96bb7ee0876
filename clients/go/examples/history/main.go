// Command history walks a context from its head back to its root, a page at a time.
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
	for _, text := range []string{"one", "two", "three"} {
		turn := turnkeep.NewTurn{Payload: []byte(text)}
		_, err := client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turn})
		check(err)
	}

	for turn, err := range client.History(ctx, head.Context, turnkeep.Read{Payload: true}) {
		check(err)
		fmt.Printf("%s\n", turn.Payload)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
