package turnkeep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/realserver"
	"turnkeep.dev/go/internal/wire"
	"turnkeep.dev/go/turnkeeptest"
)

func TestTwoHundredGoroutinesOnOneConnection(t *testing.T) {
	const goroutines, appends = 200, 10
	ctx := testContext(t)
	client := dial(t, realserver.Start(t), turnkeep.WithVerify())
	var running sync.WaitGroup
	for n := range goroutines {
		running.Add(1)
		go func() {
			defer running.Done()
			if err := writeAndReadBack(ctx, client, n, appends); err != nil {
				t.Error(err)
			}
		}()
	}
	running.Wait()
}

// writeAndReadBack fills a context of its own and finds exactly that in it.
func writeAndReadBack(ctx context.Context, client *turnkeep.Client, n, appends int) error {
	head, err := client.CreateContext(ctx, turnkeep.NewContext{})
	if err != nil {
		return err
	}
	for i := range appends {
		payload := bytes.Repeat(fmt.Appendf(nil, "%d/%d ", n, i), 1+n*i)
		ack, err := client.Append(ctx, turnkeep.Append{Context: head.Context, Turn: turnkeep.Msgpack("t", 1, payload)})
		if err != nil {
			return err
		}
		if ack.Depth != uint32(i) || ack.Hash != turnkeep.HashOf(payload) {
			return fmt.Errorf("goroutine %d got the ack %+v for append %d", n, ack, i)
		}
	}
	turns, err := client.Last(ctx, head.Context, 1000, turnkeep.Read{Payload: true})
	if err != nil || len(turns) != appends {
		return fmt.Errorf("goroutine %d reads %d turns: %w", n, len(turns), err)
	}
	for i, turn := range turns {
		if !bytes.HasPrefix(turn.Payload, fmt.Appendf(nil, "%d/%d ", n, i)) {
			return fmt.Errorf("goroutine %d finds another payload at %d", n, i)
		}
	}
	return nil
}

// goroutinesReturnTo waits until no more goroutines run than before.
func goroutinesReturnTo(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines run, %d did before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}

func TestCancelledContextsLeakNoGoroutine(t *testing.T) {
	received := make(chan wire.Request, 1000)
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		for {
			id, request := p.request()
			if id == 0 {
				return
			}
			received <- request
		}
	})
	requests := map[string]func(context.Context, *turnkeep.Client) error{
		"head": func(ctx context.Context, c *turnkeep.Client) error { _, err := c.Head(ctx, 1); return err },
		"append": func(ctx context.Context, c *turnkeep.Client) error {
			_, err := c.Append(ctx, turnkeep.Append{Context: 1, Key: "k"})
			return err
		},
		"history": func(ctx context.Context, c *turnkeep.Client) (err error) {
			for _, err = range c.History(ctx, 1, turnkeep.Read{}) {
			}
			return err
		},
		"subscription": func(ctx context.Context, c *turnkeep.Client) (err error) {
			for _, err = range c.Subscribe(turnkeep.Subscribe{After: 1}).Events(ctx) {
			}
			return err
		},
		"snapshot": func(ctx context.Context, c *turnkeep.Client) error {
			_, err := c.Snapshot(ctx, ".", turnkeep.SnapshotOptions{})
			return err
		},
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			client := dialAddr(t, addr)
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(testContext(t))
			ended := make(chan error, 20)
			for range cap(ended) {
				go func() { ended <- request(ctx, client) }()
			}
			for range cap(ended) {
				<-received
			}
			cancel()
			for range cap(ended) {
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			}
			goroutinesReturnTo(t, before)
			_ = client.Close()
			goroutinesReturnTo(t, before-2)
		})
	}
}

func TestACancelledWriteWithoutKeyMayHaveHappened(t *testing.T) {
	received := make(chan struct{})
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		p.request()
		close(received)
		p.untilGone()
	})
	client := dialAddr(t, addr)
	ctx, cancel := context.WithCancel(testContext(t))
	go func() {
		<-received
		cancel()
	}()
	_, err := client.Append(ctx, turnkeep.Append{Context: 1})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, turnkeep.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	_, err = client.Append(ctx, turnkeep.Append{Context: 1})
	if errors.Is(err, turnkeep.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("an append that was never sent: %v", err)
	}
}

func TestCloseFailsWhatIsInFlight(t *testing.T) {
	received := make(chan struct{})
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		p.request()
		close(received)
		p.untilGone()
	})
	before := runtime.NumGoroutine()
	client := dialAddr(t, addr)
	failed := make(chan error)
	go func() {
		_, err := client.Head(testContext(t), 1)
		failed <- err
	}()
	<-received
	_ = client.Close()
	if err := <-failed; !errors.Is(err, turnkeep.ErrClosed) || turnkeep.IsRetryable(err) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Head(testContext(t), 1); !errors.Is(err, turnkeep.ErrClosed) {
		t.Errorf("after it: %v", err)
	}
	goroutinesReturnTo(t, before)
}

func TestWhatIsInFlightIsBounded(t *testing.T) {
	answer := make(chan struct{})
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		for {
			id, _ := p.request()
			if id == 0 {
				return
			}
			<-answer
			p.answer(id, &wire.TurnAck{Context: 1, Turn: 1})
		}
	})
	ctx := testContext(t)
	cases := []struct {
		name              string
		requests, bytes   int
		payload, inFlight int
	}{
		{"by requests", 3, 1 << 20, 10, 3},
		{"by bytes", 100, 1000, 400, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client := dialAddr(t, addr, turnkeep.WithInFlight(c.requests, c.bytes))
			write := turnkeep.Append{Context: 1, Key: "k", Turn: turnkeep.NewTurn{Payload: make([]byte, c.payload)}}
			var pending []*turnkeep.PendingAppend
			for range c.inFlight {
				p, err := client.SubmitAppend(ctx, write)
				if err != nil {
					t.Fatal(err)
				}
				pending = append(pending, p)
			}
			short, cancel := context.WithTimeout(ctx, timeShort)
			defer cancel()
			if _, err := client.SubmitAppend(short, write); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("one more is sent: %v", err)
			}
			for _, p := range pending {
				answer <- struct{}{}
				if _, err := p.Wait(ctx); err != nil {
					t.Fatal(err)
				}
			}
			last, err := client.SubmitAppend(ctx, write)
			if err != nil {
				t.Fatal(err)
			}
			answer <- struct{}{}
			if _, err := last.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			write.Turn.Payload = make([]byte, c.bytes+1)
			if _, err := client.Append(ctx, write); !errors.Is(err, turnkeep.ErrTooLarge) {
				t.Errorf("a request that can never be sent: %v", err)
			}
		})
	}
}

func TestASlowReaderMissesNothing(t *testing.T) {
	const events = 500
	ctx := testContext(t)
	server := turnkeeptest.Start(t)
	client := server.Client(t, turnkeep.WithQueue(2, 1<<20), quick)
	head, err := client.CreateContext(ctx, turnkeep.NewContext{})
	if err != nil {
		t.Fatal(err)
	}
	turns := make([]turnkeep.NewTurn, events)
	acks, err := client.AppendBatch(ctx, turnkeep.Batch{Context: head.Context, Turns: turns})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for event, err := range client.Subscribe(turnkeep.Subscribe{Context: head.Context}).Events(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Turn.ID != acks[seen].Turn {
			t.Fatalf("event %d is turn %v", seen, event.Turn.ID)
		}
		if seen++; seen == events {
			break
		}
		if seen%100 == 0 {
			server.Disconnect()
		}
	}
}
