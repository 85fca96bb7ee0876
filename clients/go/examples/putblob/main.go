// Command putblob keeps a blob, once.
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

	hash, isNew, err := client.PutBlob(ctx, []byte("some bytes"))
	check(err)
	fmt.Println(hash, isNew)
	_, isNew, err = client.PutBlob(ctx, []byte("some bytes"))
	check(err)
	fmt.Println("again:", isNew)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
