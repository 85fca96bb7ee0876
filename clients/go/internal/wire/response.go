// The closed list of responses, and those that have no file of their own.

package wire

// DecodeResponse decodes the payload of a response's frame. The request decided whether items are extended,
// so the caller says it.
func DecodeResponse(header Header, payload []byte, extended bool) (Response, error) {
	decode := responseDecoder(header.Type)
	if decode == nil {
		return nil, refuse(UnknownType, "there is no message type %d", header.Type)
	}
	if err := checkAnswerFlags(header); err != nil {
		return nil, err
	}
	f := &fields{rest: payload}
	response := decode(header, f, extended)
	if err := f.finish(); err != nil {
		return nil, err
	}
	return response, nil
}

func checkAnswerFlags(header Header) error {
	var defined uint16
	if header.Type == TypeSubscribe {
		defined = flagCaughtUp
	}
	if undefined := header.Flags &^ defined; undefined != 0 {
		return refuse(UndefinedFlags, "an answer of type %d has no flags %#x", header.Type, undefined)
	}
	return nil
}

func responseDecoder(msgType MsgType) func(Header, *fields, bool) Response {
	switch msgType {
	case TypeHello:
		return decodeWelcome
	case TypeCtxCreate, TypeCtxFork, TypeGetHead:
		return decodeContextHead
	case TypeAppendTurn:
		return decodeTurnAck
	case TypeGetLast, TypeGetBefore, TypeGetRange:
		return decodePage
	case TypeGetBlob:
		return decodeBlob
	case TypeAttachFS:
		return func(_ Header, f *fields, _ bool) Response { return decodeAttachFS(f) }
	case TypePutBlob:
		return decodeBlobPut
	case TypePutBundle:
		return decodeBundlePut
	case TypeAppendBatch:
		return decodeBatchAck
	case TypeSubscribe:
		return decodeSubscription
	case TypeCancel:
		return func(Header, *fields, bool) Response { return &Cancelled{} }
	case TypeHasBlobs:
		return decodePresence
	case TypeError:
		return decodeFailure
	}
	return nil
}

// Welcome answers HELLO.
type Welcome struct {
	SessionID uint64
	Version   uint16
}

func decodeWelcome(_ Header, f *fields, _ bool) Response {
	return &Welcome{SessionID: f.u64("session_id"), Version: f.u16("version")}
}

// Type is TypeHello.
func (*Welcome) Type() MsgType { return TypeHello }
func (*Welcome) flags() uint16 { return 0 }
func (w *Welcome) appendPayload(b []byte) []byte {
	return appendU16(appendU64(b, w.SessionID), w.Version)
}

// ContextHead is a context's head. It answers three requests.
type ContextHead struct {
	Asked   MsgType
	Context uint64
	Turn    uint64
	Depth   uint32
}

func decodeContextHead(header Header, f *fields, _ bool) Response {
	return &ContextHead{
		Asked:   header.Type,
		Context: f.id("context_id"),
		Turn:    f.u64("head_turn_id"),
		Depth:   f.u32("head_depth"),
	}
}

// Type is that of the request.
func (h *ContextHead) Type() MsgType { return h.Asked }
func (*ContextHead) flags() uint16   { return 0 }
func (h *ContextHead) appendPayload(b []byte) []byte {
	return appendU32(appendU64(appendU64(b, h.Context), h.Turn), h.Depth)
}

// The two answers to PutBundle.
const (
	StatusCreated   = 201
	StatusNoContent = 204
)

// BundlePut says that a bundle is published: StatusCreated if it is new, else StatusNoContent.
type BundlePut struct{ Status uint32 }

func decodeBundlePut(_ Header, f *fields, _ bool) Response {
	status := f.u32("status")
	if f.err == nil && status != StatusCreated && status != StatusNoContent {
		f.fail(refuse(BadValue, "a bundle's status is %d", status))
	}
	return &BundlePut{Status: status}
}

// Type is TypePutBundle.
func (*BundlePut) Type() MsgType                   { return TypePutBundle }
func (*BundlePut) flags() uint16                   { return 0 }
func (p *BundlePut) appendPayload(b []byte) []byte { return appendU32(b, p.Status) }

// Subscribed accepts a subscription.
type Subscribed struct{ CaughtUp bool }

// Delivery is one append that a subscription reports.
type Delivery struct {
	CaughtUp bool
	Position uint64
	Context  uint64
	Item     Item
}

func decodeSubscription(header Header, f *fields, extended bool) Response {
	caughtUp := header.Flags&flagCaughtUp != 0
	if len(f.rest) == 0 {
		return &Subscribed{CaughtUp: caughtUp}
	}
	d := &Delivery{CaughtUp: caughtUp, Position: f.u64("position"), Context: f.id("context_id")}
	f.item(&d.Item, extended)
	return d
}

func caughtUpFlag(caughtUp bool) uint16 {
	if caughtUp {
		return flagCaughtUp
	}
	return 0
}

// Type is TypeSubscribe.
func (*Subscribed) Type() MsgType                 { return TypeSubscribe }
func (s *Subscribed) flags() uint16               { return caughtUpFlag(s.CaughtUp) }
func (*Subscribed) appendPayload(b []byte) []byte { return b }

// Type is TypeSubscribe.
func (*Delivery) Type() MsgType   { return TypeSubscribe }
func (d *Delivery) flags() uint16 { return caughtUpFlag(d.CaughtUp) }
func (d *Delivery) appendPayload(b []byte) []byte {
	return d.Item.append(appendU64(appendU64(b, d.Position), d.Context))
}

// Cancelled says that a subscription has ended.
type Cancelled struct{}

// Type is TypeCancel.
func (*Cancelled) Type() MsgType                 { return TypeCancel }
func (*Cancelled) flags() uint16                 { return 0 }
func (*Cancelled) appendPayload(b []byte) []byte { return b }

// Failure is the ERROR frame.
type Failure struct {
	Status uint32
	// Detail is JSON. Servers of other implementations may send any text.
	Detail string
}

func decodeFailure(_ Header, f *fields, _ bool) Response {
	return &Failure{Status: f.u32("code"), Detail: f.text("detail")}
}

// Type is TypeError.
func (*Failure) Type() MsgType { return TypeError }
func (*Failure) flags() uint16 { return 0 }
func (e *Failure) appendPayload(b []byte) []byte {
	return appendBytes(appendU32(b, e.Status), e.Detail)
}
