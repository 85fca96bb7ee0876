// Package packed turns payloads into one zstd frame and back.
//
// Unpack fails if the frame has more bytes than the payload's declared length, whatever the frame's own header
// claims. The declared length has a limit too: a few bytes can claim gigabytes.
package packed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// windowBytesMax bounds the memory that a frame may ask for.
	windowBytesMax = 64 << 20
	// RawBytesMax is the longest payload that is unpacked, far above a server's default limit.
	RawBytesMax = 128 << 20
)

// ErrLength says that a frame does not have the declared length.
var ErrLength = errors.New("the length is wrong")

// WithZeroFrames makes a frame of an empty payload too: the server expects exactly one.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithZeroFrames(true),
		zstd.WithEncoderConcurrency(2))
})

var decoders sync.Pool

// Pack compresses bytes into one frame.
func Pack(raw []byte) ([]byte, error) {
	encoder, err := encoder()
	if err != nil {
		return nil, err
	}
	return encoder.EncodeAll(raw, nil), nil
}

// Unpack decompresses a frame, which must have exactly size bytes.
func Unpack(frame []byte, size uint32) ([]byte, error) {
	if size > RawBytesMax {
		return nil, fmt.Errorf("%w: %d bytes are over the limit of %d", ErrLength, size, RawBytesMax)
	}
	decoder, err := takeDecoder(frame)
	if err != nil {
		return nil, err
	}
	defer giveBack(decoder)
	// One byte beyond the declared length is enough to know that the frame is too long.
	raw, err := io.ReadAll(io.LimitReader(decoder, int64(size)+1))
	if err != nil {
		return nil, err
	}
	if len(raw) != int(size) {
		return nil, fmt.Errorf("%w: expected %d bytes, found %d or more", ErrLength, size, len(raw))
	}
	return raw, nil
}

func takeDecoder(frame []byte) (*zstd.Decoder, error) {
	if decoder, ok := decoders.Get().(*zstd.Decoder); ok {
		return decoder, decoder.Reset(bytes.NewReader(frame))
	}
	return zstd.NewReader(bytes.NewReader(frame), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(windowBytesMax))
}

// giveBack keeps a decoder for the next payload, without a reference to the bytes that it read.
func giveBack(decoder *zstd.Decoder) {
	if decoder.Reset(nil) == nil {
		decoders.Put(decoder)
	}
}
