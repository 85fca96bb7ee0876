// Package turnkeep is the Go client of Turnkeep's binary protocol.
//
// A [Client] is safe for any number of goroutines and multiplexes them over one connection: requests are
// pipelined, writes coalesced, answers matched by request id. A lost connection is dialled again with
// growing pauses. The client repeats a lost request if that is safe: reads, writes that are idempotent by
// their content, and writes with an idempotency key. Any other write fails with [ErrOutcomeUnknown]. Every
// wait ends with its context, and the options of [Dial] limit everything in flight.
//
// [Gateway] has labels, statistics and other features that only HTTP offers. Tests of programs that use this
// package can run against the in-process server of package turnkeeptest.
package turnkeep

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"turnkeep.dev/go/internal/wire"
)

// Client is a client of one server. Close it when it is no longer needed.
type Client struct {
	dialer  *dialer
	options options
	budget  *budget
	// dialling is full while a goroutine makes the connection.
	dialling chan struct{}

	mu      sync.Mutex
	current *connection
	closed  bool
}

// Dial connects to a server's binary port, such as 127.0.0.1:9009, and sends HELLO. It does not retry.
func Dial(ctx context.Context, addr string, changes ...Option) (*Client, error) {
	c := &Client{options: newOptions(changes), dialling: make(chan struct{}, 1)}
	c.budget = newBudget(c.options.requestsMax, c.options.bytesMax)
	var err error
	if c.dialer, err = newDialer(addr, &c.options); err != nil {
		return nil, err
	}
	if _, err := c.connection(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the connection. Requests in flight fail with ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	current := c.current
	c.closed, c.current = true, nil
	c.mu.Unlock()
	if current != nil {
		current.close(ErrClosed)
	}
	return nil
}

// repeat says whether a request with an unknown outcome may be sent again.
type repeat bool

const (
	safe  repeat = true
	risky repeat = false
)

// withKey is safe for a write that has an idempotency key.
func withKey(key string) repeat { return repeat(key != "") }

// explain converts the error of a request that was sent into the error for the caller. A server that answers
// 503 may have stored the write before it failed.
func (r repeat) explain(err error) error {
	unknown := errors.Is(err, ErrConnectionLost) || errors.Is(err, ErrClosed) || errors.Is(err, ErrUnavailable) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if r == risky && unknown {
		return fmt.Errorf("%w, for it was sent without an idempotency key: %w", ErrOutcomeUnknown, err)
	}
	return err
}

// exchange sends a request and returns its answer. It repeats the request while that is safe and may help.
func exchange[T wire.Response](ctx context.Context, c *Client, request wire.Request, r repeat) (T, error) {
	return exchangeAs(ctx, c, request, r, decodeAnswer[T])
}

// exchangeAs is exchange with the caller's own decoder for the answer.
func exchangeAs[T any](
	ctx context.Context, c *Client, request wire.Request, r repeat, decode func(frame, wire.Request) (T, error),
) (T, error) {
	tries := backoff{policy: c.options.retry}
	for {
		answer, err := exchangeOnce(ctx, c, request, r, decode)
		if err == nil || !IsRetryable(err) {
			return answer, err
		}
		if err := tries.retry(ctx, err); err != nil {
			return answer, err
		}
	}
}

func exchangeOnce[T any](
	ctx context.Context, c *Client, request wire.Request, r repeat, decode func(frame, wire.Request) (T, error),
) (answer T, err error) {
	p, err := c.submit(ctx, request)
	if err != nil {
		return answer, err
	}
	f, err := p.wait(ctx)
	if err == nil {
		answer, err = decode(f, request)
	}
	return answer, r.explain(err)
}

// submit sends a request once, as soon as the budget admits it.
func (c *Client) submit(ctx context.Context, request wire.Request) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bytes := wire.RequestBytes(request)
	if limit := c.options.requestBytesMax(); bytes > limit {
		return nil, requestTooLarge(bytes, limit)
	}
	if err := c.budget.take(ctx, bytes); err != nil {
		return nil, err
	}
	p := newCall(c.budget, bytes)
	current, err := c.connection(ctx)
	if err == nil {
		err = current.call(p, request)
	}
	if err != nil {
		// No connection took the call, so none will finish it and return its part.
		c.budget.giveBack(bytes)
		return nil, err
	}
	return p, nil
}

// connection returns the live connection. The first caller that finds none dials; the others wait for it.
func (c *Client) connection(ctx context.Context) (*connection, error) {
	if current, err := c.live(); current != nil || err != nil {
		return current, err
	}
	select {
	case c.dialling <- struct{}{}:
		defer func() { <-c.dialling }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// Another caller may have dialled while this one waited for its turn.
	if current, err := c.live(); current != nil || err != nil {
		return current, err
	}
	fresh, err := c.dialer.dial(ctx)
	if err != nil {
		return nil, err
	}
	return fresh, c.adopt(fresh)
}

func (c *Client) live() (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if c.current == nil || c.current.lostBy() != nil {
		return nil, nil
	}
	return c.current, nil
}

// adopt makes a connection the current one, unless the client was closed meanwhile.
func (c *Client) adopt(fresh *connection) error {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.current = fresh
	}
	c.mu.Unlock()
	if closed {
		fresh.close(ErrClosed)
		return ErrClosed
	}
	return nil
}
