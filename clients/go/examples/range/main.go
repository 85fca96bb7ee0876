// Command range reads turns by their depth.
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

	turns, err := client.Range(ctx, head.Context, 1, 2, turnkeep.Read{Payload: true, Extended: true})
	check(err)
	for _, turn := range turns {
		fmt.Printf("%d %s %v\n", turn.Depth, turn.Payload, turn.CreatedAt.Year() > 2000)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
