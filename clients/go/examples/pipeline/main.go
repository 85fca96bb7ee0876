// Command pipeline keeps many appends in flight from one goroutine, and waits for their acks afterwards.
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
	var pending []*turnkeep.PendingAppend
	for n := range 1000 {
		turn := turnkeep.NewTurn{Payload: fmt.Appendf(nil, "turn %d", n)}
		p, err := client.SubmitAppend(ctx, turnkeep.Append{Context: head.Context, Turn: turn})
		check(err)
		pending = append(pending, p)
	}
	for _, p := range pending {
		_, err := p.Wait(ctx)
		check(err)
	}
	fmt.Println(len(pending), "turns are durable")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
