// Contexts: creating and forking them, and reading their heads.

package turnkeep

import (
	"context"

	"turnkeep.dev/go/internal/wire"
)

// NewContext describes a context to create.
type NewContext struct {
	// Base is the turn at its head; 0 creates an empty context.
	Base TurnID
	// Key makes the request safe to repeat; its scope is the whole store.
	Key string
}

// Head is the head of a context.
type Head struct {
	Context ContextID
	// Turn is 0 in an empty context, and so is Depth.
	Turn  TurnID
	Depth uint32
}

// CreateContext creates a context. With a key it is repeated safely.
func (c *Client) CreateContext(ctx context.Context, n NewContext) (Head, error) {
	return c.head(ctx, n.request(false), withKey(n.Key))
}

// ForkContext creates a context that continues from a turn; nothing is copied. With a key it is repeated
// safely.
func (c *Client) ForkContext(ctx context.Context, n NewContext) (Head, error) {
	return c.head(ctx, n.request(true), withKey(n.Key))
}

// Head reads a context's head.
func (c *Client) Head(ctx context.Context, id ContextID) (Head, error) {
	return c.head(ctx, &wire.GetHead{Context: uint64(id)}, safe)
}

func (n NewContext) request(fork bool) *wire.CreateContext {
	return &wire.CreateContext{Fork: fork, Base: uint64(n.Base), WithKey: n.Key != "", Key: n.Key}
}

func (c *Client) head(ctx context.Context, request wire.Request, r repeat) (Head, error) {
	head, err := exchange[*wire.ContextHead](ctx, c, request, r)
	if err != nil {
		return Head{}, err
	}
	return Head{Context: ContextID(head.Context), Turn: TurnID(head.Turn), Depth: head.Depth}, nil
}
