// Command getblob reads a blob by its hash and checks it.
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

	hash, _, err := client.PutBlob(ctx, []byte("some bytes"))
	check(err)
	blob, err := client.Blob(ctx, hash)
	check(err)
	fmt.Printf("%s %v\n", blob, turnkeep.HashOf(blob) == hash)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
