package turnkeep_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/realserver"
)

const (
	restartWriters = 8
	restartAppends = 60
	restartKills   = 3
)

// The server is killed and started again while writers append with keys and a reader follows: nothing is
// lost, nothing doubled, and every order is kept.
func TestNothingIsLostOrDoubledWhenTheServerIsKilled(t *testing.T) {
	ctx := testContext(t)
	server := realserver.Start(t)
	client := dial(t, server, quick)
	contexts := make([]turnkeep.ContextID, restartWriters)
	for n := range contexts {
		head, err := client.CreateContext(ctx, turnkeep.NewContext{Key: fmt.Sprintf("context %d", n)})
		if err != nil {
			t.Fatal(err)
		}
		contexts[n] = head.Context
	}
	followed := make(chan map[turnkeep.ContextID][]string, 1)
	go func() { followed <- follow(ctx, t, client) }()
	appendThroughKills(ctx, t, server, client, contexts)
	events := <-followed
	for n, id := range contexts {
		turns, err := client.Last(ctx, id, 10_000, turnkeep.Read{Payload: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(turns) != restartAppends || len(events[id]) != restartAppends {
			t.Fatalf("context %v has %d turns and %d events, not %d", id, len(turns), len(events[id]), restartAppends)
		}
		for i := range restartAppends {
			want := fmt.Sprintf("%d/%d", n, i)
			if string(turns[i].Payload) != want || events[id][i] != want {
				t.Fatalf("turn %d is %q, event %d is %q, not %q", i, turns[i].Payload, i, events[id][i], want)
			}
		}
	}
}

// appendThroughKills lets writers append, half of them in batches, and kills the server whenever another
// part of the appends was acked.
func appendThroughKills(
	ctx context.Context, t *testing.T, server *realserver.Server, client *turnkeep.Client, contexts []turnkeep.ContextID,
) {
	t.Helper()
	const every = restartWriters * restartAppends / (restartKills + 1)
	var acked atomic.Int64
	kill := make(chan struct{}, restartKills)
	count := func(appended int) {
		after := acked.Add(int64(appended))
		if after/every > (after-int64(appended))/every && after/every <= restartKills {
			kill <- struct{}{}
		}
	}
	var writers sync.WaitGroup
	for n, id := range contexts {
		writers.Add(1)
		go func() {
			defer writers.Done()
			if err := appendAll(ctx, client, n, id, count); err != nil {
				t.Error(err)
			}
		}()
	}
	finished := make(chan struct{})
	go func() {
		writers.Wait()
		close(finished)
	}()
	for kills := 0; kills < restartKills; kills++ {
		select {
		case <-kill:
			server.Kill()
			server.Restart()
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
	<-finished
}

func appendAll(ctx context.Context, client *turnkeep.Client, n int, id turnkeep.ContextID, count func(int)) error {
	step := 1 + n%2*4
	for i := 0; i < restartAppends; i += step {
		turns := make([]turnkeep.NewTurn, step)
		for k := range turns {
			turns[k] = turnkeep.Msgpack("t", 1, fmt.Appendf(nil, "%d/%d", n, i+k))
		}
		key := fmt.Sprintf("append %d", i)
		var err error
		if step == 1 {
			_, err = client.Append(ctx, turnkeep.Append{Context: id, Turn: turns[0], Key: key})
		} else {
			_, err = client.AppendBatch(ctx, turnkeep.Batch{Context: id, Turns: turns, Key: key})
		}
		if err != nil {
			return err
		}
		count(step)
	}
	return nil
}

// follow gathers all payloads by their context, until all have come.
func follow(ctx context.Context, t *testing.T, client *turnkeep.Client) map[turnkeep.ContextID][]string {
	seen := make(map[turnkeep.ContextID][]string)
	total := 0
	for event, err := range client.Subscribe(turnkeep.Subscribe{Read: turnkeep.Read{Payload: true}}).Events(ctx) {
		if err != nil {
			t.Error(err)
			return seen
		}
		seen[event.Context] = append(seen[event.Context], string(event.Turn.Payload))
		if total++; total == restartWriters*restartAppends {
			return seen
		}
	}
	return seen
}
