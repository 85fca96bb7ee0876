// Command append appends a turn with an idempotency key, on the condition that the context is still empty.
package main

import (
	"context"
	"errors"
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
	write := turnkeep.Append{
		Context:      head.Context,
		Turn:         turnkeep.Msgpack("com.example.Note", 1, []byte{0x81, 0x01, 0xa2, 'h', 'i'}),
		Key:          "note-1",
		ExpectedHead: turnkeep.ExpectHead(0),
	}
	ack, err := client.Append(ctx, write)
	check(err)
	fmt.Println("turn", ack.Turn, "at depth", ack.Depth, "is durable")

	write.Key = "note-2"
	_, err = client.Append(ctx, write)
	fmt.Println("the context is not empty any more:", errors.Is(err, turnkeep.ErrConflict))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
