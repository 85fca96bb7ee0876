// Command fork lets a context go on from an older turn of another one; nothing is copied.
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
	first, err := client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turnkeep.NewTurn{Payload: []byte("hello")}})
	check(err)
	_, err = client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turnkeep.NewTurn{Payload: []byte("one way")}})
	check(err)

	fork, err := client.ForkContext(ctx, turnkeep.NewContext{Base: first.Turn})
	check(err)
	_, err = client.Append(ctx, turnkeep.Append{Context: fork.Context, Turn: turnkeep.NewTurn{Payload: []byte("another way")}})
	check(err)
	turns, err := client.Last(ctx, fork.Context, 10, turnkeep.Read{Payload: true})
	check(err)
	for _, turn := range turns {
		fmt.Printf("%s\n", turn.Payload)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
