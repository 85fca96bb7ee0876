// Command gateway uses what only HTTP has: labels and statistics; and publishes a bundle there.
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
	gateway := turnkeep.NewGateway(os.Getenv("TURNKEEP_HTTP"), os.Getenv("TURNKEEP_TOKEN"), nil)
	shown, err := gateway.SetLabels(ctx, head.Context, map[string]string{"agent": "reviewer"})
	check(err)
	fmt.Println("labels:", shown.Labels)
	bundle := []byte(`{"registry_version": 1, "bundle_id": "example-2", "types": {}, "enums": {}}`)
	isNew, err := gateway.PublishBundle(ctx, "example-2", bundle)
	check(err)
	fmt.Println("new:", isNew)
	stats, err := gateway.Stats(ctx)
	check(err)
	fmt.Println("contexts:", stats.Contexts)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
