// Reading turns: pages by head, by turn or by depth, and whole histories.

package turnkeep

import (
	"context"
	"fmt"
	"iter"
	"time"

	"turnkeep.dev/go/internal/packed"
	"turnkeep.dev/go/internal/wire"
)

// historyPageTurns is how many turns History fetches at a time.
const historyPageTurns = 256

// Read selects the fields of each turn that a read returns.
type Read struct {
	// Payload asks for payloads.
	Payload bool
	// Stored asks for them in the form in which the server stores them; Turn.Raw decompresses it.
	Stored bool
	// Extended asks for CreatedAt and FSRoot.
	Extended bool
}

func (r Read) options() wire.ReadOptions { return wire.ReadOptions(r) }

// Turn is a turn of the store. The payloads of one page share memory.
type Turn struct {
	ID TurnID
	// Parent is 0 for a root.
	Parent   TurnID
	Depth    uint32
	Type     TypeRef
	Encoding uint32
	// Zstd says that Payload is compressed, which it is only if Read.Stored asked for it.
	Zstd bool
	// Size and Hash are those of the uncompressed payload.
	Size uint32
	Hash Hash
	// Payload is empty unless Read.Payload asked for it.
	Payload []byte
	// CreatedAt and FSRoot are zero unless Read.Extended asked for them; a turn may have no FSRoot.
	CreatedAt time.Time
	FSRoot    Hash
}

// Raw returns the uncompressed payload.
func (t *Turn) Raw() ([]byte, error) {
	if !t.Zstd {
		return t.Payload, nil
	}
	raw, err := packed.Unpack(t.Payload, t.Size)
	if err != nil {
		return nil, fmt.Errorf("%w: turn %v: %w", ErrBadPayload, t.ID, err)
	}
	return raw, nil
}

// Verify checks the payload against its hash. A turn that was read without its payload fails.
func (t *Turn) Verify() error {
	raw, err := t.Raw()
	if err != nil {
		return err
	}
	return verify(t.Hash, raw)
}

func verify(hash Hash, raw []byte) error {
	if actual := HashOf(raw); actual != hash {
		return fmt.Errorf("%w: expected %v, found %v", ErrHashMismatch, hash, actual)
	}
	return nil
}

// Last returns the turns nearest to a context's head, oldest first. A page has at most 10 000 turns and
// 64 MiB; a larger limit is cut.
func (c *Client) Last(ctx context.Context, id ContextID, limit uint32, r Read) ([]Turn, error) {
	return c.page(ctx, &wire.GetLast{Context: uint64(id), Limit: limit, Options: r.options()}, r)
}

// Before returns the nearest ancestors of a turn, oldest first. With before 0 it reads like Last.
func (c *Client) Before(ctx context.Context, id ContextID, before TurnID, limit uint32, r Read) ([]Turn, error) {
	request := &wire.GetBefore{Context: uint64(id), Before: uint64(before), Limit: limit, Options: r.options()}
	return c.page(ctx, request, r)
}

// Range returns the turns from depth start on, on the path to the head, oldest first.
func (c *Client) Range(ctx context.Context, id ContextID, start, limit uint32, r Read) ([]Turn, error) {
	request := &wire.GetRange{Context: uint64(id), Start: start, Limit: limit, Options: r.options()}
	return c.page(ctx, request, r)
}

// History returns all turns of a context from its head back to its root, a page at a time. The first page
// fixes the path, so later appends do not change it. An error ends it. A page that does not lead to smaller ids is an
// error, because History would never end.
func (c *Client) History(ctx context.Context, id ContextID, r Read) iter.Seq2[Turn, error] {
	return func(yield func(Turn, error) bool) {
		before := TurnID(0)
		for {
			page, err := c.Before(ctx, id, before, historyPageTurns, r)
			if err == nil && before != 0 && len(page) > 0 && page[0].ID >= before {
				err = fmt.Errorf("%w: turn %v is no ancestor of turn %v", ErrProtocol, page[0].ID, before)
			}
			if err != nil {
				yield(Turn{}, err)
				return
			}
			for i := len(page) - 1; i >= 0; i-- {
				if !yield(page[i], nil) {
					return
				}
			}
			if len(page) == 0 || page[0].Parent == 0 {
				return
			}
			before = page[0].ID
		}
	}
}

func (c *Client) page(ctx context.Context, request wire.Request, r Read) ([]Turn, error) {
	turns, err := exchangeAs(ctx, c, request, safe, func(f frame, request wire.Request) ([]Turn, error) {
		return decodePage(f, request, r.Extended)
	})
	if err != nil {
		return nil, err
	}
	for i := range turns {
		if err := c.check(&turns[i], r); err != nil {
			return nil, err
		}
	}
	return turns, nil
}

// decodePage decodes a page straight into turns.
func decodePage(f frame, request wire.Request, extended bool) ([]Turn, error) {
	if f.header.Type != request.Type() {
		_, err := decodeAnswer[*wire.Page](f, request)
		return nil, err
	}
	turns, err := wire.DecodePage(f.header, f.payload, extended, setTurn)
	if err != nil {
		return nil, protocolError(err)
	}
	return turns, nil
}

func setTurn(turn *Turn, item *wire.Item) {
	turn.ID, turn.Parent, turn.Depth = TurnID(item.Turn), TurnID(item.Parent), item.Depth
	turn.Type = TypeRef{ID: item.TypeID, Version: item.TypeVersion}
	turn.Encoding = item.Encoding
	turn.Zstd = item.Compression == wire.CompressionZstd
	turn.Size, turn.Hash, turn.Payload = item.RawLen, item.Hash, item.Payload
	if item.Extended {
		turn.CreatedAt, turn.FSRoot = time.UnixMilli(int64(item.CreatedAt)).UTC(), item.FSRoot
	}
}

// check verifies the payload if the options ask for that and the read included payloads.
func (c *Client) check(turn *Turn, r Read) error {
	if !c.options.verify || !r.Payload {
		return nil
	}
	return turn.Verify()
}
