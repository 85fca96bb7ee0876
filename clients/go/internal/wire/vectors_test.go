package wire

import (
	"bytes"
	"encoding/json"
	"testing"
)

// goldenFields holds the fields of every message by their names in the protocol; a message uses its own.
type goldenFields struct {
	goldenSent
	Count         int          `json:"count"`
	RawLength     uint32       `json:"raw_len"`
	SessionID     number       `json:"session_id"`
	Version       uint16       `json:"version"`
	Tag           string       `json:"tag"`
	MetaJSON      *string      `json:"meta_json"`
	BaseTurnID    number       `json:"base_turn_id"`
	Key           hexBytes     `json:"key"`
	ContextID     number       `json:"context_id"`
	HeadTurnID    number       `json:"head_turn_id"`
	HeadDepth     uint32       `json:"head_depth"`
	ParentTurnID  number       `json:"parent_turn_id"`
	NewTurnID     number       `json:"new_turn_id"`
	NewDepth      uint32       `json:"new_depth"`
	Idempotency   hexBytes     `json:"idempotency_key"`
	FSRootHash    hexHash      `json:"fs_root_hash"`
	ExpectedHead  *number      `json:"expected_head_turn_id"`
	Limit         uint32       `json:"limit"`
	Include       uint32       `json:"include_payload"`
	BeforeTurnID  number       `json:"before_turn_id"`
	StartDepth    uint32       `json:"start_depth"`
	Bytes         hexBytes     `json:"bytes"`
	WasNew        int          `json:"was_new"`
	BundleID      string       `json:"bundle_id"`
	BundleJSON    string       `json:"bundle_json"`
	Status        uint32       `json:"status"`
	Turns         []goldenSent `json:"turns"`
	Items         []goldenItem `json:"items"`
	Item          *goldenItem  `json:"item"`
	AfterPosition number       `json:"after_position"`
	Position      number       `json:"position"`
	ReqID         number       `json:"req_id"`
	Hashes        []hexHash    `json:"hashes"`
	Present       []int        `json:"present"`
	Code          uint32       `json:"code"`
	Detail        string       `json:"detail"`
}

type goldenSent struct {
	TypeID      string   `json:"declared_type_id"`
	TypeVersion uint32   `json:"declared_type_version"`
	Encoding    uint32   `json:"encoding"`
	Compression uint32   `json:"compression"`
	RawLen      uint32   `json:"uncompressed_len"`
	ContentHash hexHash  `json:"content_hash_b3_256"`
	Payload     hexBytes `json:"payload_bytes"`
	// The acks of a batch share the key "turns".
	TurnID number  `json:"turn_id"`
	Depth  uint32  `json:"depth"`
	Hash   hexHash `json:"hash"`
}

func (s goldenSent) sent() SentTurn {
	return SentTurn{s.TypeID, s.TypeVersion, s.Encoding, s.Compression, s.RawLen, Hash(s.ContentHash), s.Payload}
}

type goldenItem struct {
	goldenSent
	ParentTurnID number  `json:"parent_turn_id"`
	ItemHash     hexHash `json:"content_hash"`
	CreatedAt    *number `json:"created_at"`
	FSRootHash   hexHash `json:"fs_root_hash"`
}

func (i goldenItem) item() Item {
	item := Item{
		Turn: uint64(i.TurnID), Parent: uint64(i.ParentTurnID), Depth: i.Depth,
		TypeID: i.TypeID, TypeVersion: i.TypeVersion, Encoding: i.Encoding, Compression: i.Compression,
		RawLen: i.RawLen, Hash: Hash(i.ItemHash), Payload: i.Payload,
	}
	if i.CreatedAt != nil {
		item.Extended, item.CreatedAt, item.FSRoot = true, uint64(*i.CreatedAt), Hash(i.FSRootHash)
	}
	return item
}

// parse reads a vector's fields, and refuses names that this test does not know.
func parse(t *testing.T, v vector, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(v.Fields))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
}

func (v vector) read(f *goldenFields) ReadOptions {
	return ReadOptions{Payload: f.Include == 1, Stored: v.Flags&flagStored != 0, Extended: v.Flags&flagExtended != 0}
}

func (f *goldenFields) expected() ExpectedHead {
	if f.ExpectedHead == nil {
		return ExpectedHead{}
	}
	return ExpectedHead{Set: true, Turn: uint64(*f.ExpectedHead)}
}

func (f *goldenFields) hello() *Hello {
	if f.MetaJSON == nil {
		return &Hello{Empty: true}
	}
	return &Hello{Version: f.Version, Tag: f.Tag, Meta: []byte(*f.MetaJSON)}
}

func (f *goldenFields) hashes() []Hash {
	hashes := make([]Hash, len(f.Hashes))
	for i, hash := range f.Hashes {
		hashes[i] = Hash(hash)
	}
	return hashes
}

func (f *goldenFields) batch() []SentTurn {
	turns := make([]SentTurn, len(f.Turns))
	for i, turn := range f.Turns {
		turns[i] = turn.sent()
	}
	return turns
}

// requestOf makes the message that a vector describes.
func requestOf(t *testing.T, v vector) Request {
	t.Helper()
	var f goldenFields
	parse(t, v, &f)
	options := v.read(&f)
	switch v.MsgType {
	case TypeHello:
		return f.hello()
	case TypeCtxCreate, TypeCtxFork:
		withKey := v.Flags&flagKey != 0
		return &CreateContext{v.MsgType == TypeCtxFork, uint64(f.BaseTurnID), withKey, string(f.Key)}
	case TypeGetHead:
		return &GetHead{uint64(f.ContextID)}
	case TypeAppendTurn:
		return &AppendTurn{uint64(f.ContextID), uint64(f.ParentTurnID), f.sent(), string(f.Idempotency),
			v.Flags&flagFSRoot != 0, Hash(f.FSRootHash), f.expected()}
	case TypeGetLast:
		return &GetLast{uint64(f.ContextID), f.Limit, options}
	case TypeGetBefore:
		return &GetBefore{uint64(f.ContextID), uint64(f.BeforeTurnID), f.Limit, options}
	case TypeGetRange:
		return &GetRange{uint64(f.ContextID), f.StartDepth, f.Limit, options}
	case TypeGetBlob:
		return &GetBlob{Hash(f.Hash)}
	case TypeAttachFS:
		return &AttachFS{uint64(f.TurnID), Hash(f.FSRootHash)}
	case TypePutBlob:
		return &PutBlob{Hash(f.Hash), f.Bytes}
	case TypePutBundle:
		return &PutBundle{f.BundleID, []byte(f.BundleJSON)}
	case TypeAppendBatch:
		return &AppendBatch{uint64(f.ContextID), uint64(f.ParentTurnID), f.batch(), string(f.Key), f.expected()}
	case TypeSubscribe:
		return &Subscribe{uint64(f.ContextID), uint64(f.AfterPosition), options}
	case TypeCancel:
		return &Cancel{uint64(f.ReqID)}
	case TypeHasBlobs:
		return &HasBlobs{f.hashes()}
	}
	t.Fatalf("no request has type %d", v.MsgType)
	return nil
}

// responseOf makes the message that a vector describes.
func responseOf(t *testing.T, v vector) Response {
	t.Helper()
	var f goldenFields
	parse(t, v, &f)
	switch v.MsgType {
	case TypeHello:
		return &Welcome{uint64(f.SessionID), f.Version}
	case TypeCtxCreate, TypeCtxFork, TypeGetHead:
		return &ContextHead{v.MsgType, uint64(f.ContextID), uint64(f.HeadTurnID), f.HeadDepth}
	case TypeAppendTurn:
		return &TurnAck{uint64(f.ContextID), uint64(f.NewTurnID), f.NewDepth, Hash(f.ContentHash)}
	case TypeGetLast, TypeGetBefore, TypeGetRange:
		return &Page{v.MsgType, f.page()}
	case TypeGetBlob:
		return &Blob{f.Bytes}
	case TypeAttachFS:
		return &AttachFS{uint64(f.TurnID), Hash(f.FSRootHash)}
	case TypePutBlob:
		return &BlobPut{Hash(f.Hash), f.WasNew == 1}
	case TypePutBundle:
		return &BundlePut{f.Status}
	case TypeAppendBatch:
		return &BatchAck{uint64(f.ContextID), f.acks()}
	case TypeSubscribe:
		return f.subscription(v.Flags&flagCaughtUp != 0)
	case TypeCancel:
		return &Cancelled{}
	case TypeHasBlobs:
		return &Presence{f.present()}
	case TypeError:
		return &Failure{f.Code, f.Detail}
	}
	t.Fatalf("no response has type %d", v.MsgType)
	return nil
}

func (f *goldenFields) page() []Item {
	items := make([]Item, len(f.Items))
	for i, item := range f.Items {
		items[i] = item.item()
	}
	return items
}

func (f *goldenFields) acks() []BatchAckTurn {
	acks := make([]BatchAckTurn, len(f.Turns))
	for i, turn := range f.Turns {
		acks[i] = BatchAckTurn{uint64(turn.TurnID), turn.Depth, Hash(turn.Hash)}
	}
	return acks
}

func (f *goldenFields) subscription(caughtUp bool) Response {
	if f.Item == nil {
		return &Subscribed{caughtUp}
	}
	return &Delivery{caughtUp, uint64(f.Position), uint64(f.ContextID), f.Item.item()}
}

func (f *goldenFields) present() []bool {
	present := make([]bool, len(f.Present))
	for i, there := range f.Present {
		present[i] = there == 1
	}
	return present
}
