// Command head says where a context stands.
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

	now, err := client.Head(ctx, head.Context)
	check(err)
	fmt.Println("head is turn", now.Turn, "at depth", now.Depth)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
