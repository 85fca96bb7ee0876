// The fake server's state, and every request that is not an append, a read or a subscription.

package turnkeeptest

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"turnkeep.dev/go/internal/wire"
)

const (
	payloadBytesMax = 32 << 20
	typeIDBytesMax  = 512
	keyBytesMax     = 1 << 10
)

// store is what the fake server keeps: turns, contexts and blobs in memory, under one lock. Ids are dense
// and start at 1, so a turn's or context's place is its id minus 1.
type store struct {
	mu          sync.Mutex
	turns       []*turn
	contexts    []*contextState
	createKeys  map[string]createdContext
	blobs       map[wire.Hash]blob
	bundles     map[string][]byte
	appends     []appended
	position    uint64
	changed     chan struct{}
	lastCreated uint64
}

type turn struct {
	item    wire.Item
	parent  *turn
	context uint64
}

type contextState struct {
	id   uint64
	head *turn
	keys map[string]boundKey
}

// boundKey is the record of a successful append with a key.
type boundKey struct {
	request wire.Request
	ack     wire.Response
}

type createdContext struct {
	base uint64
	head wire.ContextHead
}

type blob struct {
	raw         []byte
	stored      []byte
	compression uint32
}

// appended is an append's place in the feed.
type appended struct {
	position uint64
	turn     *turn
}

func newStore() *store {
	return &store{
		createKeys: make(map[string]createdContext),
		blobs:      make(map[wire.Hash]blob),
		bundles:    make(map[string][]byte),
		changed:    make(chan struct{}),
	}
}

// carryOut answers one request.
func (s *store) carryOut(request wire.Request) wire.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	response, refused := s.dispatch(request)
	if refused != nil {
		return refused
	}
	return response
}

func (s *store) dispatch(request wire.Request) (wire.Response, *wire.Failure) {
	switch r := request.(type) {
	case *wire.CreateContext:
		return s.createContext(r)
	case *wire.GetHead:
		return s.getHead(r)
	case *wire.AppendTurn:
		return s.appendTurn(r)
	case *wire.AppendBatch:
		return s.appendBatch(r)
	case *wire.GetLast:
		return s.getLast(r)
	case *wire.GetBefore:
		return s.getBefore(r)
	case *wire.GetRange:
		return s.getRange(r)
	case *wire.GetBlob:
		return s.getBlob(r)
	case *wire.PutBlob:
		return s.putBlob(r)
	case *wire.HasBlobs:
		return s.hasBlobs(r)
	case *wire.AttachFS:
		return s.attachFS(r)
	case *wire.PutBundle:
		return s.putBundle(r)
	}
	return nil, refuse(400, "message type %d is not served here", request.Type())
}

func (s *store) context(id uint64) (*contextState, *wire.Failure) {
	if id == 0 || id > uint64(len(s.contexts)) {
		return nil, refuse(404, "context %d does not exist", id)
	}
	return s.contexts[id-1], nil
}

// turn returns the turn with this id, and nil for 0, which means no turn.
func (s *store) turn(id uint64) (*turn, *wire.Failure) {
	if id == 0 {
		return nil, nil
	}
	if id > uint64(len(s.turns)) {
		return nil, refuse(404, "turn %d does not exist", id)
	}
	return s.turns[id-1], nil
}

func (s *store) createContext(r *wire.CreateContext) (wire.Response, *wire.Failure) {
	if len(r.Key) > keyBytesMax {
		return nil, tooLarge(keyBytesMax, len(r.Key))
	}
	if bound, used := s.createKeys[r.Key]; used && r.Key != "" {
		if bound.base != r.Base {
			return nil, refuse(409, "the key was used for another base turn")
		}
		bound.head.Asked = r.Type()
		return &bound.head, nil
	}
	base, refused := s.turn(r.Base)
	if refused != nil {
		return nil, refused
	}
	made := &contextState{id: uint64(len(s.contexts)) + 1, head: base, keys: make(map[string]boundKey)}
	s.contexts = append(s.contexts, made)
	s.advance()
	answer := made.answer(r.Type())
	if r.Key != "" {
		s.createKeys[r.Key] = createdContext{base: r.Base, head: *answer}
	}
	return answer, nil
}

func (s *store) getHead(r *wire.GetHead) (wire.Response, *wire.Failure) {
	context, refused := s.context(r.Context)
	if refused != nil {
		return nil, refused
	}
	return context.answer(r.Type()), nil
}

func (c *contextState) answer(asked wire.MsgType) *wire.ContextHead {
	head := &wire.ContextHead{Asked: asked, Context: c.id}
	if c.head != nil {
		head.Turn, head.Depth = c.head.item.Turn, c.head.item.Depth
	}
	return head
}

func (s *store) getBlob(r *wire.GetBlob) (wire.Response, *wire.Failure) {
	found, there := s.blobs[r.Hash]
	if !there {
		return nil, refuse(404, "blob %x does not exist", r.Hash)
	}
	return &wire.Blob{Bytes: found.raw}, nil
}

func (s *store) putBlob(r *wire.PutBlob) (wire.Response, *wire.Failure) {
	if refused := checkContent(r.Hash, r.Bytes); refused != nil {
		return nil, refused
	}
	isNew := s.keep(r.Hash, blob{raw: r.Bytes, stored: r.Bytes})
	return &wire.BlobPut{Hash: r.Hash, WasNew: isNew}, nil
}

// keep stores a blob unless it is there, and says whether it is new.
func (s *store) keep(hash wire.Hash, b blob) bool {
	if _, there := s.blobs[hash]; there {
		return false
	}
	s.blobs[hash] = b
	return true
}

func (s *store) hasBlobs(r *wire.HasBlobs) (wire.Response, *wire.Failure) {
	present := make([]bool, len(r.Hashes))
	for i, hash := range r.Hashes {
		_, present[i] = s.blobs[hash]
	}
	return &wire.Presence{Present: present}, nil
}

func (s *store) attachFS(r *wire.AttachFS) (wire.Response, *wire.Failure) {
	turn, refused := s.turn(r.Turn)
	if refused != nil {
		return nil, refused
	}
	if _, there := s.blobs[r.Root]; !there {
		return nil, refuse(404, "blob %x does not exist", r.Root)
	}
	switch turn.item.FSRoot {
	case r.Root:
	case wire.Hash{}:
		turn.item.FSRoot = r.Root
		s.advance()
	default:
		return nil, refuse(409, "turn %d has another filesystem root", r.Turn)
	}
	return r, nil
}

func (s *store) putBundle(r *wire.PutBundle) (wire.Response, *wire.Failure) {
	var body struct {
		ID string `json:"bundle_id"`
	}
	if json.Unmarshal(r.JSON, &body) != nil || body.ID != r.ID || r.ID == "" {
		return nil, refuse(422, "the bundle is not JSON with the bundle_id %q", r.ID)
	}
	if known, there := s.bundles[r.ID]; there {
		if !bytes.Equal(known, r.JSON) {
			return nil, refuse(409, "bundle %q was published with other content", r.ID)
		}
		return &wire.BundlePut{Status: wire.StatusNoContent}, nil
	}
	s.bundles[r.ID] = r.JSON
	s.advance()
	return &wire.BundlePut{Status: wire.StatusCreated}, nil
}

// advance returns the next position in the feed and wakes the subscriptions.
func (s *store) advance() uint64 {
	s.position++
	close(s.changed)
	s.changed = make(chan struct{})
	return s.position
}

// now is the time of creation in unix milliseconds, never below the one before.
func (s *store) now() uint64 {
	s.lastCreated = max(s.lastCreated, uint64(time.Now().UnixMilli()))
	return s.lastCreated
}
