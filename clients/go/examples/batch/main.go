// Command batch appends several turns at once, all or none.
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
	turns := []turnkeep.NewTurn{{Payload: []byte("question")}, {Payload: []byte("call")}, {Payload: []byte("answer")}}
	acks, err := client.AppendBatch(ctx, turnkeep.Batch{Context: head.Context, Turns: turns, Key: "exchange-1"})
	check(err)
	fmt.Println(len(acks), "turns, the last at depth", acks[len(acks)-1].Depth)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
