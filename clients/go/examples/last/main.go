// Command last reads the turns nearest to a context's head, oldest first.
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

	turns, err := client.Last(ctx, head.Context, 2, turnkeep.Read{Payload: true})
	check(err)
	for _, turn := range turns {
		fmt.Printf("%d %s\n", turn.Depth, turn.Payload)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
