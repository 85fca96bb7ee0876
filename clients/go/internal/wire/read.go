// Reads, and the pages that answer them.

package wire

import "math"

// ReadOptions says what a read's items hold.
type ReadOptions struct {
	// Payload asks for payloads.
	Payload bool
	// Stored asks for them in the form in which they are kept.
	Stored bool
	// Extended asks for the time of creation and the filesystem root.
	Extended bool
}

func decodeReadOptions(flags uint16, f *fields) ReadOptions {
	return ReadOptions{
		Payload:  f.flag("include_payload", f.u32("include_payload")),
		Stored:   flags&flagStored != 0,
		Extended: flags&flagExtended != 0,
	}
}

func (o ReadOptions) flags() (flags uint16) {
	if o.Stored {
		flags |= flagStored
	}
	if o.Extended {
		flags |= flagExtended
	}
	return flags
}

// GetLast asks for the turns nearest to a head.
type GetLast struct {
	Context uint64
	Limit   uint32
	Options ReadOptions
}

func decodeGetLast(header Header, f *fields) Request {
	return &GetLast{f.id("context_id"), f.u32("limit"), decodeReadOptions(header.Flags, f)}
}

// Type is TypeGetLast.
func (*GetLast) Type() MsgType   { return TypeGetLast }
func (g *GetLast) flags() uint16 { return g.Options.flags() }
func (g *GetLast) appendPayload(b []byte) []byte {
	return appendBool(appendU32(appendU64(b, g.Context), g.Limit), g.Options.Payload)
}

// GetBefore asks for the nearest ancestors of a turn.
type GetBefore struct {
	Context uint64
	Before  uint64
	Limit   uint32
	Options ReadOptions
}

func decodeGetBefore(header Header, f *fields) Request {
	return &GetBefore{
		Context: f.id("context_id"),
		Before:  f.u64("before_turn_id"),
		Limit:   f.u32("limit"),
		Options: decodeReadOptions(header.Flags, f),
	}
}

// Type is TypeGetBefore.
func (*GetBefore) Type() MsgType   { return TypeGetBefore }
func (g *GetBefore) flags() uint16 { return g.Options.flags() }
func (g *GetBefore) appendPayload(b []byte) []byte {
	b = appendU64(appendU64(b, g.Context), g.Before)
	return appendBool(appendU32(b, g.Limit), g.Options.Payload)
}

// GetRange asks for a range of depths on the way to the head.
type GetRange struct {
	Context uint64
	Start   uint32
	Limit   uint32
	Options ReadOptions
}

func decodeGetRange(header Header, f *fields) Request {
	return &GetRange{
		Context: f.id("context_id"),
		Start:   f.u32("start_depth"),
		Limit:   f.u32("limit"),
		Options: decodeReadOptions(header.Flags, f),
	}
}

// Type is TypeGetRange.
func (*GetRange) Type() MsgType   { return TypeGetRange }
func (g *GetRange) flags() uint16 { return g.Options.flags() }
func (g *GetRange) appendPayload(b []byte) []byte {
	b = appendU32(appendU64(b, g.Context), g.Start)
	return appendBool(appendU32(b, g.Limit), g.Options.Payload)
}

// Item is a turn as a read gives it.
type Item struct {
	Turn        uint64
	Parent      uint64
	Depth       uint32
	TypeID      string
	TypeVersion uint32
	Encoding    uint32
	Compression uint32
	RawLen      uint32
	Hash        Hash
	Payload     []byte
	// Extended items have the last two as well.
	Extended  bool
	CreatedAt uint64
	FSRoot    Hash
}

const itemBytesMin = 8 + 8 + 4 + 4 + 4 + 4 + 4 + 4 + HashBytes + 4

func (f *fields) item(item *Item, extended bool) {
	item.Turn = f.id("turn_id")
	item.Parent = f.u64("parent_turn_id")
	item.Depth = f.u32("depth")
	item.TypeID = f.text("declared_type_id")
	item.TypeVersion = f.u32("declared_type_version")
	item.Encoding = f.u32("encoding")
	item.Compression = f.compression()
	item.RawLen = f.u32("uncompressed_len")
	item.Hash = f.hash("content_hash")
	item.Payload = f.bytes("payload_bytes")
	if extended {
		item.Extended = true
		item.CreatedAt = f.u64("created_at")
		item.FSRoot = f.hash("fs_root_hash")
	}
}

func (i *Item) append(b []byte) []byte {
	b = appendU32(appendU64(appendU64(b, i.Turn), i.Parent), i.Depth)
	b = appendU32(appendBytes(b, i.TypeID), i.TypeVersion)
	b = appendU32(appendU32(appendU32(b, i.Encoding), i.Compression), i.RawLen)
	b = appendBytes(append(b, i.Hash[:]...), i.Payload)
	if i.Extended {
		b = append(appendU64(b, i.CreatedAt), i.FSRoot[:]...)
	}
	return b
}

// Page answers a read, oldest turn first.
type Page struct {
	Read  MsgType
	Items []Item
}

func decodePage(header Header, f *fields, extended bool) Response {
	items := decodeItems(f, extended, func(kept, item *Item) { *kept = *item })
	return &Page{Read: header.Type, Items: items}
}

// DecodePage decodes a page's payload into values of the caller's own kind: set makes one of an item, which it must
// not keep.
func DecodePage[T any](header Header, payload []byte, extended bool, set func(value *T, item *Item)) ([]T, error) {
	if err := checkAnswerFlags(header); err != nil {
		return nil, err
	}
	f := &fields{rest: payload}
	values := decodeItems(f, extended, set)
	if err := f.finish(); err != nil {
		return nil, err
	}
	return values, nil
}

func decodeItems[T any](f *fields, extended bool, set func(value *T, item *Item)) []T {
	values := make([]T, f.count("count", itemBytesMin, math.MaxInt32))
	var item Item
	for i := range values {
		f.item(&item, extended)
		set(&values[i], &item)
	}
	return values
}

// Type is that of the read.
func (p *Page) Type() MsgType { return p.Read }
func (*Page) flags() uint16   { return 0 }
func (p *Page) appendPayload(b []byte) []byte {
	b = appendU32(b, uint32(len(p.Items)))
	for i := range p.Items {
		b = p.Items[i].append(b)
	}
	return b
}
