// Command before reads the page before a turn, as an interface does that scrolls back.
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

	page, err := client.Last(ctx, head.Context, 1, turnkeep.Read{Payload: true})
	check(err)
	older, err := client.Before(ctx, head.Context, page[0].ID, 10, turnkeep.Read{Payload: true})
	check(err)
	for _, turn := range older {
		fmt.Printf("before %s: %s\n", page[0].Payload, turn.Payload)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
