// Command hasblobs asks which blobs the server has.
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

	there, _, err := client.PutBlob(ctx, []byte("some bytes"))
	check(err)
	present, err := client.HasBlobs(ctx, []turnkeep.Hash{there, turnkeep.HashOf([]byte("other bytes"))})
	check(err)
	fmt.Println(present)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
