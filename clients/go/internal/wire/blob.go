// Blobs and filesystem roots.

package wire

import "math"

// GetBlob asks for a blob's bytes.
type GetBlob struct{ Hash Hash }

func decodeGetBlob(_ Header, f *fields) Request { return &GetBlob{Hash: f.hash("hash")} }

// Type is TypeGetBlob.
func (*GetBlob) Type() MsgType                   { return TypeGetBlob }
func (*GetBlob) flags() uint16                   { return 0 }
func (g *GetBlob) appendPayload(b []byte) []byte { return append(b, g.Hash[:]...) }

// Blob is a blob's uncompressed bytes.
type Blob struct{ Bytes []byte }

func decodeBlob(_ Header, f *fields, _ bool) Response { return &Blob{Bytes: f.bytes("bytes")} }

// Type is TypeGetBlob.
func (*Blob) Type() MsgType                      { return TypeGetBlob }
func (*Blob) flags() uint16                      { return 0 }
func (blob *Blob) appendPayload(b []byte) []byte { return appendBytes(b, blob.Bytes) }

// PutBlob keeps a blob.
type PutBlob struct {
	Hash  Hash
	Bytes []byte
}

func decodePutBlob(_ Header, f *fields) Request {
	return &PutBlob{Hash: f.hash("hash"), Bytes: f.bytes("bytes")}
}

// Type is TypePutBlob.
func (*PutBlob) Type() MsgType { return TypePutBlob }
func (*PutBlob) flags() uint16 { return 0 }
func (p *PutBlob) appendPayload(b []byte) []byte {
	return appendBytes(append(b, p.Hash[:]...), p.Bytes)
}

// BlobPut says that a blob is kept.
type BlobPut struct {
	Hash   Hash
	WasNew bool
}

func decodeBlobPut(_ Header, f *fields, _ bool) Response {
	return &BlobPut{Hash: f.hash("hash"), WasNew: f.flag("was_new", uint32(f.u8("was_new")))}
}

// Type is TypePutBlob.
func (*BlobPut) Type() MsgType { return TypePutBlob }
func (*BlobPut) flags() uint16 { return 0 }
func (p *BlobPut) appendPayload(b []byte) []byte {
	return append(append(b, p.Hash[:]...), boolByte(p.WasNew))
}

// HasBlobs asks which blobs are there.
type HasBlobs struct{ Hashes []Hash }

func decodeHasBlobs(_ Header, f *fields) Request {
	has := &HasBlobs{Hashes: make([]Hash, f.count("count", HashBytes, HasBlobsMax))}
	for i := range has.Hashes {
		has.Hashes[i] = f.hash("hashes")
	}
	return has
}

// Type is TypeHasBlobs.
func (*HasBlobs) Type() MsgType { return TypeHasBlobs }
func (*HasBlobs) flags() uint16 { return 0 }
func (h *HasBlobs) appendPayload(b []byte) []byte {
	b = appendU32(b, uint32(len(h.Hashes)))
	for i := range h.Hashes {
		b = append(b, h.Hashes[i][:]...)
	}
	return b
}

// Presence answers HasBlobs in its order.
type Presence struct{ Present []bool }

func decodePresence(_ Header, f *fields, _ bool) Response {
	presence := &Presence{Present: make([]bool, f.count("count", 1, math.MaxInt32))}
	for i := range presence.Present {
		presence.Present[i] = f.flag("present", uint32(f.u8("present")))
	}
	return presence
}

// Type is TypeHasBlobs.
func (*Presence) Type() MsgType { return TypeHasBlobs }
func (*Presence) flags() uint16 { return 0 }
func (p *Presence) appendPayload(b []byte) []byte {
	b = appendU32(b, uint32(len(p.Present)))
	for _, present := range p.Present {
		b = append(b, boolByte(present))
	}
	return b
}

// AttachFS sets a turn's filesystem root; its answer is the same message.
type AttachFS struct {
	Turn uint64
	Root Hash
}

func decodeAttachFS(f *fields) *AttachFS {
	return &AttachFS{Turn: f.id("turn_id"), Root: f.hash("fs_root_hash")}
}

// Type is TypeAttachFS.
func (*AttachFS) Type() MsgType { return TypeAttachFS }
func (*AttachFS) flags() uint16 { return 0 }
func (a *AttachFS) appendPayload(b []byte) []byte {
	return append(appendU64(b, a.Turn), a.Root[:]...)
}

func boolByte(set bool) byte {
	if set {
		return 1
	}
	return 0
}
