// The closed list of requests, and those that have no file of their own.

package wire

// DecodeRequest decodes the payload of a request's frame.
func DecodeRequest(header Header, payload []byte) (Request, error) {
	decode := requestDecoder(header.Type)
	if decode == nil {
		return nil, refuse(UnknownType, "there is no request of type %d", header.Type)
	}
	if undefined := header.Flags &^ definedFlags(header.Type); undefined != 0 {
		return nil, refuse(UndefinedFlags, "message type %d has no flags %#x", header.Type, undefined)
	}
	f := &fields{rest: payload}
	request := decode(header, f)
	if err := f.finish(); err != nil {
		return nil, err
	}
	return request, nil
}

func requestDecoder(msgType MsgType) func(Header, *fields) Request {
	switch msgType {
	case TypeHello:
		return decodeHello
	case TypeCtxCreate, TypeCtxFork:
		return decodeCreateContext
	case TypeGetHead:
		return decodeGetHead
	case TypeAppendTurn:
		return decodeAppendTurn
	case TypeGetLast:
		return decodeGetLast
	case TypeGetBefore:
		return decodeGetBefore
	case TypeGetRange:
		return decodeGetRange
	case TypeGetBlob:
		return decodeGetBlob
	case TypeAttachFS:
		return func(_ Header, f *fields) Request { return decodeAttachFS(f) }
	case TypePutBlob:
		return decodePutBlob
	case TypePutBundle:
		return decodePutBundle
	case TypeAppendBatch:
		return decodeAppendBatch
	case TypeSubscribe:
		return decodeSubscribe
	case TypeCancel:
		return func(_ Header, f *fields) Request { return &Cancel{ReqID: f.u64("req_id")} }
	case TypeHasBlobs:
		return decodeHasBlobs
	}
	return nil
}

func definedFlags(msgType MsgType) uint16 {
	switch msgType {
	case TypeCtxCreate, TypeCtxFork:
		return flagKey
	case TypeAppendTurn:
		return flagFSRoot | flagExpectedHead
	case TypeAppendBatch:
		return flagExpectedHead
	case TypeGetLast, TypeGetBefore, TypeGetRange, TypeSubscribe:
		return flagStored | flagExtended
	}
	return 0
}

// Hello identifies a client. Empty means an empty payload: version 1, no token.
type Hello struct {
	Empty   bool
	Version uint16
	Tag     string
	Meta    []byte
}

func decodeHello(_ Header, f *fields) Request {
	if len(f.rest) == 0 {
		return &Hello{Empty: true}
	}
	hello := &Hello{Version: f.u16("version")}
	hello.Tag = f.toText("tag", f.take("tag", int(f.u16("tag"))))
	hello.Meta = f.bytes("meta_json")
	return hello
}

// Type is TypeHello.
func (*Hello) Type() MsgType { return TypeHello }
func (*Hello) flags() uint16 { return 0 }
func (h *Hello) appendPayload(b []byte) []byte {
	if h.Empty {
		return b
	}
	b = appendU16(appendU16(b, h.Version), uint16(len(h.Tag)))
	return appendBytes(append(b, h.Tag...), h.Meta)
}

// CreateContext makes a context whose head is Base; Fork chooses the message, the meaning is the same.
type CreateContext struct {
	Fork bool
	Base uint64
	// Key is sent when WithKey is set.
	WithKey bool
	Key     string
}

func decodeCreateContext(header Header, f *fields) Request {
	create := &CreateContext{Fork: header.Type == TypeCtxFork, Base: f.u64("base_turn_id")}
	if header.Flags&flagKey != 0 {
		create.WithKey, create.Key = true, string(f.bytes("key"))
	}
	return create
}

// Type is TypeCtxFork or TypeCtxCreate.
func (c *CreateContext) Type() MsgType {
	if c.Fork {
		return TypeCtxFork
	}
	return TypeCtxCreate
}

func (c *CreateContext) flags() uint16 {
	if c.WithKey {
		return flagKey
	}
	return 0
}

func (c *CreateContext) appendPayload(b []byte) []byte {
	b = appendU64(b, c.Base)
	if c.WithKey {
		b = appendBytes(b, c.Key)
	}
	return b
}

// GetHead asks for a context's head.
type GetHead struct{ Context uint64 }

func decodeGetHead(_ Header, f *fields) Request { return &GetHead{Context: f.id("context_id")} }

// Type is TypeGetHead.
func (*GetHead) Type() MsgType                   { return TypeGetHead }
func (*GetHead) flags() uint16                   { return 0 }
func (g *GetHead) appendPayload(b []byte) []byte { return appendU64(b, g.Context) }

// Subscribe asks for appends as they happen.
type Subscribe struct {
	Context uint64
	After   uint64
	Options ReadOptions
}

func decodeSubscribe(header Header, f *fields) Request {
	return &Subscribe{
		Context: f.u64("context_id"),
		After:   f.u64("after_position"),
		Options: decodeReadOptions(header.Flags, f),
	}
}

// Type is TypeSubscribe.
func (*Subscribe) Type() MsgType   { return TypeSubscribe }
func (s *Subscribe) flags() uint16 { return s.Options.flags() }
func (s *Subscribe) appendPayload(b []byte) []byte {
	return appendBool(appendU64(appendU64(b, s.Context), s.After), s.Options.Payload)
}

// Cancel ends the subscription that was made by request ReqID.
type Cancel struct{ ReqID uint64 }

// Type is TypeCancel.
func (*Cancel) Type() MsgType                   { return TypeCancel }
func (*Cancel) flags() uint16                   { return 0 }
func (c *Cancel) appendPayload(b []byte) []byte { return appendU64(b, c.ReqID) }

// PutBundle publishes a registry bundle.
type PutBundle struct {
	ID   string
	JSON []byte
}

func decodePutBundle(_ Header, f *fields) Request {
	return &PutBundle{ID: f.text("bundle_id"), JSON: f.bytes("bundle_json")}
}

// Type is TypePutBundle.
func (*PutBundle) Type() MsgType { return TypePutBundle }
func (*PutBundle) flags() uint16 { return 0 }
func (p *PutBundle) appendPayload(b []byte) []byte {
	return appendBytes(appendBytes(b, p.ID), p.JSON)
}

// RequestBytes is the length of the parts of a request that may be large: nearly all of its memory.
func RequestBytes(request Request) int {
	switch r := request.(type) {
	case *CreateContext:
		return len(r.Key)
	case *AppendTurn:
		return r.Turn.bytes() + len(r.Key)
	case *AppendBatch:
		sum := len(r.Key)
		for i := range r.Turns {
			sum += r.Turns[i].bytes()
		}
		return sum
	case *PutBlob:
		return len(r.Bytes)
	case *PutBundle:
		return len(r.ID) + len(r.JSON)
	case *HasBlobs:
		return len(r.Hashes) * HashBytes
	}
	return 0
}

func (t *SentTurn) bytes() int { return len(t.TypeID) + len(t.Payload) }
