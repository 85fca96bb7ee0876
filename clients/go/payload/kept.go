// Types for values that Go has no other type for: unknown fields, raw values, extensions, bytes as keys
// and typed blobs. Encoding writes their content unchanged.

package payload

import "slices"

// Unknown keeps the fields of a payload that a struct does not have, so that decoding and encoding
// again loses nothing. A struct has it as a field without a tag, or embeds it. Encoding writes its fields
// byte for byte, each in the order of its tag; keys that are not tags come last.
type Unknown struct {
	fields []unknownField // by tag ascending; keys that are not tags at the end, in the order of the payload
}

type unknownField struct {
	tag     uint64
	isTag   bool
	keySize int
	raw     []byte // the key and the value
}

// Len is the number of fields that it keeps.
func (u Unknown) Len() int { return len(u.fields) }

// Get returns the value with this tag, or nil.
func (u Unknown) Get(tag uint64) Raw {
	for _, field := range u.fields {
		if field.isTag && field.tag == tag {
			return Raw(slices.Clone(field.raw[field.keySize:]))
		}
	}
	return nil
}

// sort puts tags in ascending order before other keys. Equal keys keep their order.
func (u *Unknown) sort() {
	slices.SortStableFunc(u.fields, func(a, b unknownField) int {
		switch {
		case a.isTag != b.isTag && a.isTag, a.isTag && b.isTag && a.tag < b.tag:
			return -1
		case a.isTag != b.isTag, a.isTag && a.tag > b.tag:
			return 1
		}
		return 0
	})
}

// Raw is one msgpack value as it is on the wire; nil is msgpack's nil. Its type is `any`.
type Raw []byte

// Ext is a msgpack extension value, which occurs only inside `any`.
type Ext struct {
	Type int8
	Data []byte
}

// ByteString is bytes that can be the key of a map. Its type is `bytes`.
type ByteString string

// TypedBlob is a payload inside a payload, with its type beside it. Its type is `typed_blob`.
type TypedBlob struct {
	TypeID  string `turnkeep:"1"`
	Version uint32 `turnkeep:"2"`
	Payload []byte `turnkeep:"3"`
	Rest    Unknown
}
