// Following appends. Invariant: the position moves only when an event was handed out, or when the server says that
// there is something it cannot deliver; so whatever ends a subscription, the next one misses and repeats nothing.

package turnkeep

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"turnkeep.dev/go/internal/wire"
)

// OnlyNew is the position for Subscribe.After that skips everything that was there before.
const OnlyNew uint64 = math.MaxUint64

// beyondEveryEnd is a position that no feed reaches: its refusal says where the feed ends.
const beyondEveryEnd = math.MaxUint64 - 1

// Subscribe says which appends to follow.
type Subscribe struct {
	// Context is the one whose appends are meant, not the history that it inherited; 0 means all.
	Context ContextID
	// After is the position to go on after; 0 replays everything, OnlyNew nothing.
	After uint64
	Read  Read
}

// Event is an append.
type Event struct {
	// Position is its place in the feed: what to resume after.
	Position uint64
	// Context is the one that the turn was appended to.
	Context ContextID
	// CaughtUp says that the subscription had reached the end of the feed with this event or before.
	CaughtUp bool
	Turn     Turn
}

// Subscription follows appends, and survives lost connections and slow readers: whatever ends it on the
// way, it subscribes again after the last event that was handed out, so every event is seen once. It is
// for one goroutine at a time.
type Subscription struct {
	client   *Client
	request  wire.Subscribe
	read     Read
	caughtUp bool
	tries    backoff
	// acceptedAt is when the server accepted it last; zero while it has not.
	acceptedAt time.Time
}

// Subscribe prepares a subscription; Events starts it.
func (c *Client) Subscribe(s Subscribe) *Subscription {
	request := wire.Subscribe{Context: uint64(s.Context), After: s.After, Options: s.Read.options()}
	return &Subscription{client: c, request: request, read: s.Read, tries: backoff{policy: c.options.retry}}
}

// Position is where Events would go on: after the last event that was handed out.
func (s *Subscription) Position() uint64 { return s.request.After }

// CaughtUp says whether the last event, or the start, had reached the end of the feed.
func (s *Subscription) CaughtUp() bool { return s.caughtUp }

// Events gives appends as they happen, until the loop is left, the context ends, or an error comes for
// which trying again is useless or was tried often enough; the error is the last that it gives. Called
// again, it goes on after the last event, or behind one that the server cannot deliver.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s.tries.tries = 0
		for {
			left, err := s.follow(ctx, yield)
			if left {
				return
			}
			if s.lasted() {
				s.tries.tries = 0
			}
			if IsRetryable(err) {
				err = s.tries.retry(ctx, err)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// lasted says whether the server's acceptance held for so long that what ended it is a new misfortune, and not the
// last one again. So a quiet subscription outlives any number of restarts.
func (s *Subscription) lasted() bool {
	return !s.acceptedAt.IsZero() && time.Since(s.acceptedAt) >= s.tries.policy.Longest
}

// follow subscribes once and hands out what comes; left says that the caller has enough. It gives no error
// when this reader was too slow for its queue: then it is to be called again.
func (s *Subscription) follow(ctx context.Context, yield func(Event, error) bool) (left bool, err error) {
	s.acceptedAt = time.Time{}
	if s.request.After == OnlyNew {
		if err := s.findEnd(ctx); err != nil {
			return false, err
		}
	}
	current, err := s.client.connection(ctx)
	if err != nil {
		return false, err
	}
	frames := newStream(s.client.options.queueEvents, s.client.options.queueBytes)
	request := s.request
	id, err := current.follow(frames, &request)
	if err != nil {
		return false, err
	}
	defer current.unfollow(id)
	for {
		f, more, err := frames.next(ctx)
		if !more || err != nil {
			return false, err
		}
		event, isEvent, err := s.event(f)
		if err != nil {
			return false, err
		}
		if isEvent && !yield(event, nil) {
			return true, nil
		}
	}
}

// event makes an event of a frame; the acceptance is none.
func (s *Subscription) event(f frame) (event Event, isEvent bool, err error) {
	response, err := wire.DecodeResponse(f.header, f.payload, s.read.Extended)
	if err != nil {
		return Event{}, false, protocolError(err)
	}
	switch r := response.(type) {
	case *wire.Subscribed:
		s.caughtUp, s.acceptedAt = r.CaughtUp, time.Now()
		return Event{}, false, nil
	case *wire.Delivery:
		event, err = s.delivered(r)
		return event, err == nil, err
	case *wire.Failure:
		return Event{}, false, s.refused(r)
	}
	return Event{}, false, wrongAnswer(response.Type())
}

func (s *Subscription) delivered(d *wire.Delivery) (Event, error) {
	if d.Position <= s.request.After && s.request.After != OnlyNew {
		return Event{}, fmt.Errorf("%w: position %d after position %d", ErrProtocol, d.Position, s.request.After)
	}
	s.tries.tries = 0
	s.caughtUp = d.CaughtUp
	event := Event{Position: d.Position, Context: ContextID(d.Context), CaughtUp: d.CaughtUp}
	setTurn(&event.Turn, &d.Item)
	if err := s.client.check(&event.Turn, s.read); err != nil {
		return Event{}, err
	}
	s.request.After = d.Position
	return event, nil
}

// refused takes over the position that the server names for going on.
func (s *Subscription) refused(failure *wire.Failure) error {
	err := apiError(int(failure.Status), []byte(failure.Detail))
	if position, ok := err.number("resume_after"); ok && position < beyondEveryEnd {
		s.request.After = max(s.request.After, position)
	}
	return err
}

// findEnd learns where the feed ends now, so that losing the connection before the first event loses
// nothing. A server that does not tell is followed from whenever it accepts.
func (s *Subscription) findEnd(ctx context.Context) error {
	beyond := s.request
	beyond.After = beyondEveryEnd
	p, err := s.client.submit(ctx, &beyond)
	if err != nil {
		return err
	}
	if _, err = answer[*wire.Subscribed](ctx, p, &beyond); err == nil {
		return wrongAnswer(beyond.Type())
	}
	var refused *APIError
	if !errors.As(err, &refused) || refused.Status != 409 {
		return err
	}
	if position, ok := refused.number("last_position"); ok {
		s.request.After = position
	}
	return nil
}
