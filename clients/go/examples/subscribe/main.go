// Command subscribe follows a context: first what is there, then what comes.
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
	for _, text := range []string{"one", "two"} {
		turn := turnkeep.NewTurn{Payload: []byte(text)}
		_, err := client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turn})
		check(err)
	}

	following := client.Subscribe(turnkeep.Subscribe{Context: head.Context, Read: turnkeep.Read{Payload: true}})
	for event, err := range following.Events(ctx) {
		check(err)
		fmt.Printf("%s\n", event.Turn.Payload)
		if event.Turn.Depth == 1 {
			turn := turnkeep.NewTurn{Payload: []byte("three, live")}
			_, err := client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turn})
			check(err)
		}
		if event.Turn.Depth == 2 {
			break
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
