// Appends: checked against their hash, then against their key, then placed. A refused append leaves nothing.

package turnkeeptest

import (
	"errors"
	"slices"
	"strconv"

	"github.com/zeebo/blake3"

	"turnkeep.dev/go/internal/packed"
	"turnkeep.dev/go/internal/wire"
)

func (s *store) appendTurn(r *wire.AppendTurn) (wire.Response, *wire.Failure) {
	blobs, refused := s.checkTurns([]wire.SentTurn{r.Turn}, r.Key)
	if refused != nil {
		return nil, refused
	}
	context, parent, ack, refused := s.place(r.Context, r.Parent, r.Key, r.Expected, r)
	if ack != nil || refused != nil {
		return ack, refused
	}
	if _, there := s.blobs[r.FSRoot]; r.WithFSRoot && !there {
		return nil, refuse(404, "blob %x does not exist", r.FSRoot)
	}
	added := s.add(context, parent, &r.Turn, blobs[0])
	added.item.FSRoot = r.FSRoot
	context.head = added
	ack = &wire.TurnAck{Context: context.id, Turn: added.item.Turn, Depth: added.item.Depth, Hash: r.Turn.Hash}
	context.bind(r.Key, r, ack)
	return ack, nil
}

func (s *store) appendBatch(r *wire.AppendBatch) (wire.Response, *wire.Failure) {
	if len(r.Turns) == 0 {
		return nil, refuse(400, "a batch has at least one turn")
	}
	blobs, refused := s.checkTurns(r.Turns, r.Key)
	if refused != nil {
		return nil, refused
	}
	context, parent, ack, refused := s.place(r.Context, r.Parent, r.Key, r.Expected, r)
	if ack != nil || refused != nil {
		return ack, refused
	}
	acks := &wire.BatchAck{Context: context.id}
	for i := range r.Turns {
		parent = s.add(context, parent, &r.Turns[i], blobs[i])
		item := &parent.item
		acks.Turns = append(acks.Turns, wire.BatchAckTurn{Turn: item.Turn, Depth: item.Depth, Hash: item.Hash})
	}
	context.head = parent
	context.bind(r.Key, r, acks)
	return acks, nil
}

// checkTurns verifies lengths and hashes, and returns the blobs to keep.
func (s *store) checkTurns(turns []wire.SentTurn, key string) ([]blob, *wire.Failure) {
	if len(key) > keyBytesMax {
		return nil, tooLarge(keyBytesMax, len(key))
	}
	blobs := make([]blob, len(turns))
	for i := range turns {
		var refused *wire.Failure
		if blobs[i], refused = checkTurn(&turns[i]); refused != nil {
			return nil, refused
		}
	}
	return blobs, nil
}

func checkTurn(sent *wire.SentTurn) (blob, *wire.Failure) {
	if len(sent.TypeID) > typeIDBytesMax {
		return blob{}, tooLarge(typeIDBytesMax, len(sent.TypeID))
	}
	if sent.RawLen > payloadBytesMax {
		return blob{}, tooLarge(payloadBytesMax, int(sent.RawLen))
	}
	checked := blob{raw: sent.Payload, stored: sent.Payload, compression: sent.Compression}
	if sent.Compression == wire.CompressionZstd {
		raw, err := packed.Unpack(sent.Payload, sent.RawLen)
		if errors.Is(err, packed.ErrLength) {
			return blob{}, refuse(409, "the payload contradicts its length: %v", err)
		}
		if err != nil {
			return blob{}, failure(422, "DecodeError", "the payload does not decompress: "+err.Error(), nil)
		}
		checked.raw = raw
	}
	if len(checked.raw) != int(sent.RawLen) {
		return blob{}, refuse(409, "the payload has %d bytes, not %d", len(checked.raw), sent.RawLen)
	}
	return checked, checkContent(sent.Hash, checked.raw)
}

func checkContent(hash wire.Hash, raw []byte) *wire.Failure {
	if len(raw) > payloadBytesMax {
		return tooLarge(payloadBytesMax, len(raw))
	}
	if actual := blake3.Sum256(raw); actual != hash {
		return refuse(409, "the bytes hash to %x, not to %x", actual, hash)
	}
	return nil
}

// place finds the parent of an append. It returns an ack if the key was used for the same append before.
func (s *store) place(
	contextID, parentID uint64, key string, expected wire.ExpectedHead, request wire.Request,
) (*contextState, *turn, wire.Response, *wire.Failure) {
	context, refused := s.context(contextID)
	if refused != nil {
		return nil, nil, nil, refused
	}
	if bound, used := context.keys[key]; used {
		if !sameAppend(bound.request, request) {
			return nil, nil, nil, refuse(409, "the key was used for another append")
		}
		return context, nil, bound.ack, nil
	}
	parent, refused := s.turn(parentID)
	if refused != nil {
		return nil, nil, nil, refused
	}
	head := context.answer(request.Type()).Turn
	if expected.Set && expected.Turn != head {
		details := map[string]any{"actual_head_turn_id": strconv.FormatUint(head, 10)}
		return nil, nil, nil, failure(409, "Conflict", "the context has another head", details)
	}
	if parent == nil {
		parent = context.head
	}
	return context, parent, nil, nil
}

func (c *contextState) bind(key string, request wire.Request, ack wire.Response) {
	if key != "" {
		c.keys[key] = boundKey{request: request, ack: ack}
	}
}

// sameAppend compares what a repeated key must repeat: not compression, not the expected head.
func sameAppend(a, b wire.Request) bool {
	switch a := a.(type) {
	case *wire.AppendTurn:
		b, same := b.(*wire.AppendTurn)
		return same && a.Parent == b.Parent && a.FSRoot == b.FSRoot && sameTurn(a.Turn, b.Turn)
	case *wire.AppendBatch:
		b, same := b.(*wire.AppendBatch)
		return same && a.Parent == b.Parent && slices.EqualFunc(a.Turns, b.Turns, sameTurn)
	}
	return false
}

func sameTurn(a, b wire.SentTurn) bool {
	return a.Hash == b.Hash && a.TypeID == b.TypeID && a.TypeVersion == b.TypeVersion && a.Encoding == b.Encoding
}

func (s *store) add(context *contextState, parent *turn, sent *wire.SentTurn, content blob) *turn {
	s.keep(sent.Hash, content)
	added := &turn{context: context.id, parent: parent, item: wire.Item{
		Turn:        uint64(len(s.turns)) + 1,
		TypeID:      sent.TypeID,
		TypeVersion: sent.TypeVersion,
		Encoding:    sent.Encoding,
		RawLen:      sent.RawLen,
		Hash:        sent.Hash,
		CreatedAt:   s.now(),
	}}
	if parent != nil {
		added.item.Parent, added.item.Depth = parent.item.Turn, parent.item.Depth+1
	}
	s.turns = append(s.turns, added)
	s.appends = append(s.appends, appended{position: s.advance(), turn: added})
	return added
}
