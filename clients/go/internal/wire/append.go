// Appends and their acks.

package wire

// SentTurn is a turn's content on its way to the server.
type SentTurn struct {
	TypeID      string
	TypeVersion uint32
	Encoding    uint32
	Compression uint32
	// RawLen and Hash are those of the uncompressed payload.
	RawLen uint32
	Hash   Hash
	// Payload is as sent.
	Payload []byte
}

const sentTurnBytesMin = 4 + 4 + 4 + 4 + 4 + HashBytes + 4

func decodeSentTurn(f *fields) SentTurn {
	return SentTurn{
		TypeID:      f.text("declared_type_id"),
		TypeVersion: f.u32("declared_type_version"),
		Encoding:    f.u32("encoding"),
		Compression: f.compression(),
		RawLen:      f.u32("uncompressed_len"),
		Hash:        f.hash("content_hash_b3_256"),
		Payload:     f.bytes("payload_bytes"),
	}
}

func (t *SentTurn) append(b []byte) []byte {
	b = appendBytes(b, t.TypeID)
	b = appendU32(b, t.TypeVersion)
	b = appendU32(b, t.Encoding)
	b = appendU32(b, t.Compression)
	b = appendU32(b, t.RawLen)
	b = append(b, t.Hash[:]...)
	return appendBytes(b, t.Payload)
}

// ExpectedHead is a condition on a context's head; Turn 0 means that the context must be empty.
type ExpectedHead struct {
	Set  bool
	Turn uint64
}

func decodeExpectedHead(header Header, f *fields) ExpectedHead {
	if header.Flags&flagExpectedHead == 0 {
		return ExpectedHead{}
	}
	return ExpectedHead{Set: true, Turn: f.u64("expected_head_turn_id")}
}

func (e ExpectedHead) flags() uint16 {
	if e.Set {
		return flagExpectedHead
	}
	return 0
}

func (e ExpectedHead) append(b []byte) []byte {
	if e.Set {
		return appendU64(b, e.Turn)
	}
	return b
}

// AppendTurn appends one turn.
type AppendTurn struct {
	Context uint64
	Parent  uint64
	Turn    SentTurn
	Key     string
	// FSRoot is sent when WithFSRoot is set.
	WithFSRoot bool
	FSRoot     Hash
	Expected   ExpectedHead
}

func decodeAppendTurn(header Header, f *fields) Request {
	a := &AppendTurn{
		Context: f.id("context_id"),
		Parent:  f.u64("parent_turn_id"),
		Turn:    decodeSentTurn(f),
		Key:     string(f.bytes("idempotency_key")),
	}
	if header.Flags&flagFSRoot != 0 {
		a.WithFSRoot, a.FSRoot = true, f.hash("fs_root_hash")
	}
	a.Expected = decodeExpectedHead(header, f)
	return a
}

// Type is TypeAppendTurn.
func (*AppendTurn) Type() MsgType { return TypeAppendTurn }

func (a *AppendTurn) flags() uint16 {
	flags := a.Expected.flags()
	if a.WithFSRoot {
		flags |= flagFSRoot
	}
	return flags
}

func (a *AppendTurn) appendPayload(b []byte) []byte {
	b = appendU64(appendU64(b, a.Context), a.Parent)
	b = appendBytes(a.Turn.append(b), a.Key)
	if a.WithFSRoot {
		b = append(b, a.FSRoot[:]...)
	}
	return a.Expected.append(b)
}

// AppendBatch appends turns, each the child of the one before, all or none.
type AppendBatch struct {
	Context  uint64
	Parent   uint64
	Turns    []SentTurn
	Key      string
	Expected ExpectedHead
}

func decodeAppendBatch(header Header, f *fields) Request {
	a := &AppendBatch{Context: f.id("context_id"), Parent: f.u64("parent_turn_id")}
	a.Turns = make([]SentTurn, f.count("count", sentTurnBytesMin, BatchTurnsMax))
	for i := range a.Turns {
		a.Turns[i] = decodeSentTurn(f)
	}
	a.Key = string(f.bytes("idempotency_key"))
	a.Expected = decodeExpectedHead(header, f)
	return a
}

// Type is TypeAppendBatch.
func (*AppendBatch) Type() MsgType   { return TypeAppendBatch }
func (a *AppendBatch) flags() uint16 { return a.Expected.flags() }
func (a *AppendBatch) appendPayload(b []byte) []byte {
	b = appendU64(appendU64(b, a.Context), a.Parent)
	b = appendU32(b, uint32(len(a.Turns)))
	for i := range a.Turns {
		b = a.Turns[i].append(b)
	}
	return a.Expected.append(appendBytes(b, a.Key))
}

// TurnAck says that a turn is durable.
type TurnAck struct {
	Context uint64
	Turn    uint64
	Depth   uint32
	Hash    Hash
}

func decodeTurnAck(_ Header, f *fields, _ bool) Response {
	return &TurnAck{
		Context: f.id("context_id"),
		Turn:    f.id("new_turn_id"),
		Depth:   f.u32("new_depth"),
		Hash:    f.hash("content_hash_b3_256"),
	}
}

// Type is TypeAppendTurn.
func (*TurnAck) Type() MsgType { return TypeAppendTurn }
func (*TurnAck) flags() uint16 { return 0 }
func (a *TurnAck) appendPayload(b []byte) []byte {
	b = appendU32(appendU64(appendU64(b, a.Context), a.Turn), a.Depth)
	return append(b, a.Hash[:]...)
}

// BatchAck says that a batch is durable.
type BatchAck struct {
	Context uint64
	Turns   []BatchAckTurn
}

// BatchAckTurn is one turn of a batch.
type BatchAckTurn struct {
	Turn  uint64
	Depth uint32
	Hash  Hash
}

func decodeBatchAck(_ Header, f *fields, _ bool) Response {
	a := &BatchAck{Context: f.id("context_id")}
	a.Turns = make([]BatchAckTurn, f.count("count", 8+4+HashBytes, BatchTurnsMax))
	for i := range a.Turns {
		a.Turns[i] = BatchAckTurn{Turn: f.id("turn_id"), Depth: f.u32("depth"), Hash: f.hash("hash")}
	}
	return a
}

// Type is TypeAppendBatch.
func (*BatchAck) Type() MsgType { return TypeAppendBatch }
func (*BatchAck) flags() uint16 { return 0 }
func (a *BatchAck) appendPayload(b []byte) []byte {
	b = appendU32(appendU64(b, a.Context), uint32(len(a.Turns)))
	for _, turn := range a.Turns {
		b = append(appendU32(appendU64(b, turn.Turn), turn.Depth), turn.Hash[:]...)
	}
	return b
}
