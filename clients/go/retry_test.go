package turnkeep_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/wire"
)

// timeShort is a time-out that a test waits for on purpose.
const timeShort = 50 * time.Millisecond

// quick tries again soon, often enough for every test.
var quick = turnkeep.WithRetry(turnkeep.Retry{Attempts: 1000, First: time.Millisecond, Longest: 20 * time.Millisecond})

// losing is a server that loses the connection after each request until it was asked often enough.
func losing(t *testing.T, losses int, asked *atomic.Int64) string {
	return scripted(t, func(_ int, p *scriptedPeer) {
		for {
			id, request := p.request()
			if id == 0 {
				return
			}
			if asked.Add(1) <= int64(losses) {
				return
			}
			if _, isAppend := request.(*wire.AppendTurn); isAppend {
				p.answer(id, &wire.TurnAck{Context: 1, Turn: 1})
			} else {
				p.answer(id, &wire.ContextHead{Asked: request.Type(), Context: 1})
			}
		}
	})
}

func TestOnlyWhatIsSafeIsRepeated(t *testing.T) {
	write := turnkeep.Append{Context: 1, Turn: turnkeep.Msgpack("t", 1, []byte{0x80})}
	keyed := write
	keyed.Key = "k"
	cases := []struct {
		name    string
		request func(context.Context, *turnkeep.Client) error
		asked   int64
		want    error
	}{
		{"a read", func(ctx context.Context, c *turnkeep.Client) error {
			_, err := c.Head(ctx, 1)
			return err
		}, 4, nil},
		{"an append with a key", func(ctx context.Context, c *turnkeep.Client) error {
			_, err := c.Append(ctx, keyed)
			return err
		}, 4, nil},
		{"an append without a key", func(ctx context.Context, c *turnkeep.Client) error {
			_, err := c.Append(ctx, write)
			return err
		}, 1, turnkeep.ErrOutcomeUnknown},
		{"a context with a key", func(ctx context.Context, c *turnkeep.Client) error {
			_, err := c.CreateContext(ctx, turnkeep.NewContext{Key: "k"})
			return err
		}, 4, nil},
		{"a fork without a key", func(ctx context.Context, c *turnkeep.Client) error {
			_, err := c.ForkContext(ctx, turnkeep.NewContext{Base: 1})
			return err
		}, 1, turnkeep.ErrOutcomeUnknown},
		{"a submitted append", func(ctx context.Context, c *turnkeep.Client) error {
			pending, err := c.SubmitAppend(ctx, keyed)
			if err != nil {
				return err
			}
			_, err = pending.Wait(ctx)
			return err
		}, 1, turnkeep.ErrConnectionLost},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int64
			client := dialAddr(t, losing(t, 3, &asked), quick)
			err := c.request(testContext(t), client)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, not %v", err, c.want)
			}
			if asked.Load() != c.asked {
				t.Errorf("it was asked %d times, not %d", asked.Load(), c.asked)
			}
			if errors.Is(c.want, turnkeep.ErrOutcomeUnknown) && turnkeep.IsRetryable(err) {
				t.Errorf("%v is retryable", err)
			}
		})
	}
}

func TestAnUnavailableServerMayHaveKeptAWrite(t *testing.T) {
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		for n := 0; ; n++ {
			id, _ := p.request()
			if id == 0 {
				return
			}
			if n < 2 {
				p.answer(id, &wire.Failure{Status: 503, Detail: `{"code":"Unavailable","message":"poisoned"}`})
			} else {
				p.answer(id, &wire.TurnAck{Context: 1, Turn: 1})
			}
		}
	})
	client := dialAddr(t, addr, quick)
	_, err := client.Append(testContext(t), turnkeep.Append{Context: 1})
	if !errors.Is(err, turnkeep.ErrOutcomeUnknown) || !errors.Is(err, turnkeep.ErrUnavailable) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := client.Append(testContext(t), turnkeep.Append{Context: 1, Key: "k"}); err != nil {
		t.Errorf("with a key: %v", err)
	}
}

func TestRetriesEndWithTheirNumberOrTheirContext(t *testing.T) {
	refusing := func(asked *atomic.Int64) string {
		return scripted(t, func(_ int, p *scriptedPeer) {
			for {
				id, _ := p.request()
				if id == 0 {
					return
				}
				asked.Add(1)
				p.answer(id, &wire.Failure{Status: 429, Detail: "later"})
			}
		})
	}
	var asked atomic.Int64
	few := turnkeep.WithRetry(turnkeep.Retry{Attempts: 2, First: time.Millisecond, Longest: time.Millisecond})
	_, err := dialAddr(t, refusing(&asked), few).Head(testContext(t), 1)
	if !errors.Is(err, turnkeep.ErrTooManyRequests) || asked.Load() != 3 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	patient := turnkeep.WithRetry(turnkeep.Retry{Attempts: 1, First: time.Hour, Longest: time.Hour})
	client := dialAddr(t, refusing(new(atomic.Int64)), patient)
	err = headWithinAPause(testContext(t), client)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, turnkeep.ErrTooManyRequests) || turnkeep.IsRetryable(err) {
		t.Errorf("got %v", err)
	}
}

// headWithinAPause asks for a head with a deadline that passes while the client pauses, and returns the error. A
// deadline that passes before the server has answered shows nothing about pauses, so the next one is later.
func headWithinAPause(ctx context.Context, client *turnkeep.Client) error {
	for timeout := timeShort; ; timeout *= 2 {
		limited, cancel := context.WithTimeout(ctx, timeout)
		_, err := client.Head(limited, 1)
		cancel()
		passedTooEarly := errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, turnkeep.ErrTooManyRequests)
		if !passedTooEarly || ctx.Err() != nil {
			return err
		}
	}
}

// A subscription goes on behind what it cannot have, from where the server says.
func TestSubscriptionResumesWhereTheServerSays(t *testing.T) {
	positions := make(chan uint64, 10)
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		for {
			id, request := p.request()
			if id == 0 {
				return
			}
			subscribe, isSubscribe := request.(*wire.Subscribe)
			if !isSubscribe {
				p.answer(id, &wire.Cancelled{})
				continue
			}
			positions <- subscribe.After
			p.answer(id, &wire.Subscribed{})
			switch subscribe.After {
			case 0:
				p.answer(id, &wire.Delivery{Position: 5, Context: 1, Item: wire.Item{Turn: 1}})
				p.answer(id, &wire.Failure{Status: 429, Detail: `{"message":"behind","details":{"resume_after":"17"}}`})
			case 17:
				p.answer(id, &wire.Failure{Status: 500, Detail: `{"code":"DecodeError","message":"damaged","details":{"resume_after":"20"}}`})
			case 20:
				p.answer(id, &wire.Delivery{Position: 21, Context: 1, Item: wire.Item{Turn: 2}})
			}
		}
	})
	client := dialAddr(t, addr, quick)
	following := client.Subscribe(turnkeep.Subscribe{})
	var turns []turnkeep.TurnID
	for range 2 {
		for event, err := range following.Events(testContext(t)) {
			if err != nil {
				if !errors.Is(err, turnkeep.ErrInternal) {
					t.Fatal(err)
				}
				continue
			}
			if turns = append(turns, event.Turn.ID); len(turns) == 2 {
				break
			}
		}
	}
	close(positions)
	var asked []uint64
	for position := range positions {
		asked = append(asked, position)
	}
	if len(turns) != 2 || turns[0] != 1 || turns[1] != 2 || len(asked) != 3 || asked[1] != 17 || asked[2] != 20 {
		t.Errorf("turns %v, asked after %v", turns, asked)
	}
}

// Losses are counted in a row: one that was accepted before it was lost again does not use the tries up.
func TestAQuietSubscriptionOutlivesAnyNumberOfLosses(t *testing.T) {
	const losses = 20
	addr := scripted(t, func(n int, p *scriptedPeer) {
		id, _ := p.request()
		p.answer(id, &wire.Subscribed{CaughtUp: true})
		if n < losses {
			return
		}
		p.answer(id, &wire.Delivery{Position: 1, Context: 1, Item: wire.Item{Turn: 1}})
		p.untilGone()
	})
	client := dialAddr(t, addr, turnkeep.WithRetry(turnkeep.Retry{Attempts: 2}))
	for event, err := range client.Subscribe(turnkeep.Subscribe{}).Events(testContext(t)) {
		if err != nil || event.Turn.ID != 1 {
			t.Errorf("got %v, %v", event, err)
		}
		break
	}
}

func TestVerifyRefusesBytesThatAreNotTheirHash(t *testing.T) {
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		for {
			id, request := p.request()
			switch request.(type) {
			case *wire.GetBlob:
				p.answer(id, &wire.Blob{Bytes: []byte("other")})
			case *wire.GetLast:
				bomb := wire.Item{Turn: 1, RawLen: 3, Compression: wire.CompressionZstd,
					Payload: []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x07, 0x39, 0x00, 0x00, 0x82, 0x01, 0x02, 0x02, 0xa2, 0x68, 0x69}}
				p.answer(id, &wire.Page{Read: wire.TypeGetLast, Items: []wire.Item{bomb}})
			case *wire.GetBefore:
				p.answer(id, &wire.Page{Read: wire.TypeGetBefore, Items: []wire.Item{{Turn: 1, Payload: []byte("x")}}})
			default:
				return
			}
		}
	})
	ctx := testContext(t)
	read := turnkeep.Read{Payload: true}
	verifying := dialAddr(t, addr, never, turnkeep.WithVerify())
	if _, err := verifying.Blob(ctx, turnkeep.Hash{1}); !errors.Is(err, turnkeep.ErrHashMismatch) {
		t.Errorf("a blob: %v", err)
	}
	if _, err := verifying.Last(ctx, 1, 1, read); !errors.Is(err, turnkeep.ErrBadPayload) {
		t.Errorf("a payload that is longer than it says: %v", err)
	}
	if _, err := verifying.Before(ctx, 1, 0, 1, read); !errors.Is(err, turnkeep.ErrHashMismatch) {
		t.Errorf("a payload: %v", err)
	}
	if _, err := dialAddr(t, addr, never).Blob(ctx, turnkeep.Hash{1}); err != nil {
		t.Errorf("without verification: %v", err)
	}
}
