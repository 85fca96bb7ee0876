// Appends: one turn, several as one, or many in flight. The client hashes a payload, and compresses it where that
// helps, before it sends anything. A turn that cannot be sent fails here.

package turnkeep

import (
	"context"
	"fmt"
	"math"

	"turnkeep.dev/go/internal/packed"
	"turnkeep.dev/go/internal/wire"
)

// EncodingMsgpack says that a payload is msgpack, as all typed payloads are.
const EncodingMsgpack = 1

// NewTurn is the content of a turn to be appended.
type NewTurn struct {
	Type TypeRef
	// Encoding is EncodingMsgpack for payloads that are to be read typed; the server does not interpret it.
	Encoding uint32
	// Payload must not change before the append returns.
	Payload []byte
}

// Msgpack is a turn whose payload is msgpack of a declared type.
func Msgpack(typeID string, version uint32, payload []byte) NewTurn {
	return NewTurn{Type: TypeRef{ID: typeID, Version: version}, Encoding: EncodingMsgpack, Payload: payload}
}

// Append describes an append of one turn.
type Append struct {
	Context ContextID
	// Parent is the turn to append to; 0 is the context's head. The head moves to the new turn.
	Parent TurnID
	Turn   NewTurn
	// Key makes the append safe to repeat, for ever: the same key in the same context returns the first ack.
	Key string
	// FSRoot is the turn's filesystem root, if it has one; see Client.Snapshot.
	FSRoot Hash
	// ExpectedHead, if not nil, refuses the append with ErrConflict when the context's head is another.
	ExpectedHead *TurnID
}

// Batch describes an append of up to 1024 turns to one context, each the child of the one before, all or
// none.
type Batch struct {
	Context ContextID
	// Parent is the parent of the first turn; 0 is the context's head.
	Parent       TurnID
	Turns        []NewTurn
	Key          string
	ExpectedHead *TurnID
}

// ExpectHead is a condition for Append and Batch; 0 expects an empty context.
func ExpectHead(turn TurnID) *TurnID { return &turn }

// Ack says that a turn is durable.
type Ack struct {
	Context ContextID
	Turn    TurnID
	Depth   uint32
	Hash    Hash
}

// Append appends a turn and waits until it is durable. With a key it is repeated safely.
func (c *Client) Append(ctx context.Context, a Append) (Ack, error) {
	request, err := c.appendRequest(&a)
	if err != nil {
		return Ack{}, err
	}
	ack, err := exchange[*wire.TurnAck](ctx, c, request, withKey(a.Key))
	return toAck(ack, err)
}

// PendingAppend is an append that is on its way.
type PendingAppend struct {
	call    *call
	request *wire.AppendTurn
}

// SubmitAppend sends an append and does not wait for its ack, which PendingAppend.Wait returns. It waits only
// while too many requests are in flight, and never repeats. Appends that one goroutine submits to one
// context are applied in their order. The payload may change when it returns.
func (c *Client) SubmitAppend(ctx context.Context, a Append) (*PendingAppend, error) {
	request, err := c.appendRequest(&a)
	if err != nil {
		return nil, err
	}
	p, err := c.submit(ctx, request)
	if err != nil {
		return nil, err
	}
	// submit has copied the payload into the outbox. Without this line, a pipeline would hold every payload until its ack.
	request.Turn.Payload = nil
	return &PendingAppend{call: p, request: request}, nil
}

// Wait waits until the turn is durable. It is called once; giving up does not undo the append.
func (p *PendingAppend) Wait(ctx context.Context) (Ack, error) {
	ack, err := answer[*wire.TurnAck](ctx, p.call, p.request)
	return toAck(ack, withKey(p.request.Key).explain(err))
}

// AppendBatch appends turns and waits until they are durable. With a key it is repeated safely.
func (c *Client) AppendBatch(ctx context.Context, b Batch) ([]Ack, error) {
	request := &wire.AppendBatch{Context: uint64(b.Context), Parent: uint64(b.Parent), Key: b.Key}
	request.Expected = expected(b.ExpectedHead)
	request.Turns = make([]wire.SentTurn, len(b.Turns))
	for i := range b.Turns {
		if err := c.compose(&request.Turns[i], &b.Turns[i]); err != nil {
			return nil, err
		}
	}
	answer, err := exchange[*wire.BatchAck](ctx, c, request, withKey(b.Key))
	if err != nil {
		return nil, err
	}
	if len(answer.Turns) != len(b.Turns) {
		return nil, fmt.Errorf("%w: %d acks for %d turns", ErrProtocol, len(answer.Turns), len(b.Turns))
	}
	acks := make([]Ack, len(answer.Turns))
	for i, turn := range answer.Turns {
		acks[i] = Ack{Context: ContextID(answer.Context), Turn: TurnID(turn.Turn), Depth: turn.Depth, Hash: turn.Hash}
	}
	return acks, nil
}

func (c *Client) appendRequest(a *Append) (*wire.AppendTurn, error) {
	request := &wire.AppendTurn{
		Context:    uint64(a.Context),
		Parent:     uint64(a.Parent),
		Key:        a.Key,
		WithFSRoot: !a.FSRoot.IsZero(),
		FSRoot:     a.FSRoot,
		Expected:   expected(a.ExpectedHead),
	}
	return request, c.compose(&request.Turn, &a.Turn)
}

// compose hashes a turn's payload, and compresses it if the options ask for that and it becomes smaller.
func (c *Client) compose(sent *wire.SentTurn, turn *NewTurn) error {
	if uint64(len(turn.Payload)) > math.MaxUint32 {
		return requestTooLarge(len(turn.Payload), c.options.requestBytesMax())
	}
	sent.TypeID, sent.TypeVersion, sent.Encoding = turn.Type.ID, turn.Type.Version, turn.Encoding
	sent.RawLen, sent.Hash, sent.Payload = uint32(len(turn.Payload)), HashOf(turn.Payload), turn.Payload
	if c.options.zstdFrom < 0 || len(turn.Payload) < c.options.zstdFrom {
		return nil
	}
	frame, err := packed.Pack(turn.Payload)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadPayload, err)
	}
	if len(frame) < len(turn.Payload) {
		sent.Compression, sent.Payload = wire.CompressionZstd, frame
	}
	return nil
}

func expected(head *TurnID) wire.ExpectedHead {
	if head == nil {
		return wire.ExpectedHead{}
	}
	return wire.ExpectedHead{Set: true, Turn: uint64(*head)}
}

func toAck(ack *wire.TurnAck, err error) (Ack, error) {
	if err != nil {
		return Ack{}, err
	}
	return Ack{Context: ContextID(ack.Context), Turn: TurnID(ack.Turn), Depth: ack.Depth, Hash: ack.Hash}, nil
}
