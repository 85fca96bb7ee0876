// Package wire owns the bytes of the binary protocol: frames, requests and responses, both ways.
//
// It does no I/O and knows no policy. Encoding appends to a buffer and cannot fail; decoding checks every
// declared length against the remaining bytes before it allocates or slices, and fails with a *DecodeError.
// Decoded values share memory with the payload.
package wire

import "encoding/binary"

const (
	// HeaderBytes is the length of every frame's header.
	HeaderBytes = 16
	// FrameBytesMax is the longest payload of a request.
	FrameBytesMax = 64 << 20
	// HashBytes is the length of a BLAKE3-256 hash.
	HashBytes = 32
	// BatchTurnsMax is how many turns one APPEND_BATCH may hold.
	BatchTurnsMax = 1024
	// HasBlobsMax is how many hashes one HAS_BLOBS may ask for.
	HasBlobsMax = 65536
	// Version is the protocol's version.
	Version = 1
)

// MsgType says which message a frame holds.
type MsgType uint16

// The messages of the protocol.
const (
	TypeHello       MsgType = 1
	TypeCtxCreate   MsgType = 2
	TypeCtxFork     MsgType = 3
	TypeGetHead     MsgType = 4
	TypeAppendTurn  MsgType = 5
	TypeGetLast     MsgType = 6
	TypeGetBefore   MsgType = 7
	TypeGetRange    MsgType = 8
	TypeGetBlob     MsgType = 9
	TypeAttachFS    MsgType = 10
	TypePutBlob     MsgType = 11
	TypePutBundle   MsgType = 12
	TypeAppendBatch MsgType = 13
	TypeSubscribe   MsgType = 14
	TypeCancel      MsgType = 15
	TypeHasBlobs    MsgType = 16
	TypeError       MsgType = 255
)

// The flag bits; what a bit means depends on the message.
const (
	flagFSRoot       uint16 = 1 << 0
	flagCaughtUp     uint16 = 1 << 0
	flagStored       uint16 = 1 << 1
	flagExtended     uint16 = 1 << 2
	flagExpectedHead uint16 = 1 << 2
	flagKey          uint16 = 1 << 3
)

// The forms in which payload bytes travel.
const (
	CompressionNone uint32 = 0
	CompressionZstd uint32 = 1
)

// Hash is a BLAKE3-256 hash.
type Hash = [HashBytes]byte

// Header precedes every payload.
type Header struct {
	Len   uint32
	Type  MsgType
	Flags uint16
	ReqID uint64
}

// ParseHeader reads a header from exactly HeaderBytes bytes.
func ParseHeader(b *[HeaderBytes]byte) Header {
	return Header{
		Len:   binary.LittleEndian.Uint32(b[0:]),
		Type:  MsgType(binary.LittleEndian.Uint16(b[4:])),
		Flags: binary.LittleEndian.Uint16(b[6:]),
		ReqID: binary.LittleEndian.Uint64(b[8:]),
	}
}

// Request is a message from a client.
type Request interface {
	Type() MsgType
	flags() uint16
	appendPayload(b []byte) []byte
}

// Response is a message from a server.
type Response interface {
	Type() MsgType
	flags() uint16
	appendPayload(b []byte) []byte
}

// AppendRequest appends a request's frame to b.
func AppendRequest(b []byte, reqID uint64, request Request) []byte {
	start := len(b)
	b = appendHeader(b, request.Type(), request.flags(), reqID)
	return closeFrame(request.appendPayload(b), start)
}

// AppendResponse appends a response's frame to b.
func AppendResponse(b []byte, reqID uint64, response Response) []byte {
	start := len(b)
	b = appendHeader(b, response.Type(), response.flags(), reqID)
	return closeFrame(response.appendPayload(b), start)
}

func appendHeader(b []byte, msgType MsgType, flags uint16, reqID uint64) []byte {
	b = append(b, 0, 0, 0, 0)
	b = appendU16(b, uint16(msgType))
	b = appendU16(b, flags)
	return appendU64(b, reqID)
}

// closeFrame writes the length of the payload that now follows the header at start.
func closeFrame(b []byte, start int) []byte {
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-HeaderBytes))
	return b
}

func appendU16(b []byte, n uint16) []byte { return binary.LittleEndian.AppendUint16(b, n) }
func appendU32(b []byte, n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
func appendU64(b []byte, n uint64) []byte { return binary.LittleEndian.AppendUint64(b, n) }

func appendBool(b []byte, set bool) []byte {
	if set {
		return appendU32(b, 1)
	}
	return appendU32(b, 0)
}

// appendBytes appends a length and that many bytes.
func appendBytes[T ~string | ~[]byte](b []byte, bytes T) []byte {
	return append(appendU32(b, uint32(len(bytes))), bytes...)
}
