// Subscriptions. Invariant: the position moves only when the caller got an event, or when the server names an event that
// it cannot deliver. So a subscription that resumes skips no event and repeats none.

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

// OnlyNew is the position for Subscribe.After that skips all earlier appends.
const OnlyNew uint64 = math.MaxUint64

// beyondEveryEnd is a position that no feed reaches. The server rejects it and names the end of the feed.
const beyondEveryEnd = math.MaxUint64 - 1

// Subscribe says which appends to follow.
type Subscribe struct {
	// Context selects the appends to one context, without the history that it inherited; 0 means all contexts.
	Context ContextID
	// After is the position to start after; 0 replays everything, OnlyNew nothing.
	After uint64
	Read  Read
}

// Event is an append.
type Event struct {
	// Position is its position in the feed, to resume after.
	Position uint64
	// Context is the context that the turn was appended to.
	Context ContextID
	// CaughtUp says that the subscription had reached the end of the feed with this event or before.
	CaughtUp bool
	Turn     Turn
}

// Subscription follows appends. It survives lost connections and slow readers: it subscribes again after the
// last event that the caller got, so the caller sees every event once. It is for one goroutine at a time.
type Subscription struct {
	client   *Client
	request  wire.Subscribe
	read     Read
	caughtUp bool
	tries    backoff
	// acceptedAt is when the server last accepted it; zero before that.
	acceptedAt time.Time
}

// Subscribe prepares a subscription; Events starts it.
func (c *Client) Subscribe(s Subscribe) *Subscription {
	request := wire.Subscribe{Context: uint64(s.Context), After: s.After, Options: s.Read.options()}
	return &Subscription{client: c, request: request, read: s.Read, tries: backoff{policy: c.options.retry}}
}

// Position is the position of the last event that the caller got. Events would resume after it.
func (s *Subscription) Position() uint64 { return s.request.After }

// CaughtUp says whether the last event, or the start, had reached the end of the feed.
func (s *Subscription) CaughtUp() bool { return s.caughtUp }

// Events yields appends as they happen, until the caller leaves the loop, the context ends, or an error occurs
// that a retry cannot help or that all retries met. The error is the last value. A further call continues
// after the last event, or after one that the server cannot deliver.
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

// lasted reports whether the subscription lasted so long that its end counts as a new failure and not as a repetition of
// the last one. So a quiet subscription survives any number of restarts.
func (s *Subscription) lasted() bool {
	return !s.acceptedAt.IsZero() && time.Since(s.acceptedAt) >= s.tries.policy.Longest
}

// follow subscribes once and yields events; left says that the caller left the loop. If the reader was too slow
// for its queue, follow returns no error, and Events calls it again.
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

// event decodes a frame. isEvent is false for the server's acceptance, which has no event.
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

// refused moves to the position that the server names to resume after.
func (s *Subscription) refused(failure *wire.Failure) error {
	err := apiError(int(failure.Status), []byte(failure.Detail))
	if position, ok := err.number("resume_after"); ok && position < beyondEveryEnd {
		s.request.After = max(s.request.After, position)
	}
	return err
}

// findEnd asks for the end of the feed, so that a connection that is lost before the first event skips nothing.
// If the server does not name the end, the subscription starts when the server accepts it.
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
