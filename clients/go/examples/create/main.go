// Command create makes a context. With a key it can be repeated: the second request finds the first one's context.
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

	first, err := client.CreateContext(ctx, turnkeep.NewContext{Key: "chat-1"})
	check(err)
	again, err := client.CreateContext(ctx, turnkeep.NewContext{Key: "chat-1"})
	check(err)
	fmt.Println("context", first.Context, "is", again.Context)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
