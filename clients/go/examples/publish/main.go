// Command publish publishes a registry bundle over the binary protocol.
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

	bundle := []byte(`{
		"registry_version": 1,
		"bundle_id": "example-1",
		"types": {"com.example.Note": {"versions": {"1": {"fields": {"1": {"name": "text", "type": "string"}}}}}},
		"enums": {}
	}`)
	isNew, err := client.PublishBundle(ctx, "example-1", bundle)
	check(err)
	fmt.Println("new:", isNew)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
