// Command writer publishes its types and appends typed turns, which every reader can then show by name.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/payload"
	"turnkeep.dev/go/registry"
)

type Role uint8

type Message struct {
	Role   Role      `turnkeep:"1"`
	Text   string    `turnkeep:"2"`
	SentAt time.Time `turnkeep:"3"`
	Tokens uint64    `turnkeep:"4,omitempty"`
}

var types = registry.New("com.example.writer").Enum(map[Role]string{1: "user", 2: "assistant"}).Add(Message{}, 1)

func main() {
	ctx := context.Background()
	client, err := turnkeep.Dial(ctx, os.Getenv("TURNKEEP_ADDR"), turnkeep.WithToken(os.Getenv("TURNKEEP_TOKEN")))
	check(err)
	defer client.Close()

	bundle, err := types.Bundle(nil)
	check(err)
	_, err = client.PublishBundle(ctx, bundle.ID(), bundle.JSON())
	check(err)
	head, err := client.CreateContext(ctx, turnkeep.NewContext{Key: "writer"})
	check(err)
	sent := time.UnixMilli(1766174400123)
	for n, m := range []Message{
		{Role: 1, Text: "How many are there?", SentAt: sent},
		{Role: 2, Text: "More than 2^53.", SentAt: sent.Add(time.Second), Tokens: 1<<53 + 1},
	} {
		bytes, err := payload.Marshal(m)
		check(err)
		ref, err := types.Ref(m)
		check(err)
		turn := turnkeep.Msgpack(ref.ID, ref.Version, bytes)
		ack, err := client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turn, Key: fmt.Sprint("message-", n)})
		check(err)
		fmt.Println("turn", ack.Turn, "in context", ack.Context)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
