// Takes frames out of a stream of bytes. No declared length is trusted with more memory than a bound.

package turnkeep

import (
	"bytes"
	"io"

	"turnkeep.dev/go/internal/wire"
)

const (
	// chunkBytesMin and chunkBytesMax bound what is read into at a time: the more is handed out, the more.
	chunkBytesMin = 64 << 10
	chunkBytesMax = 1 << 20
	// sharedBytes is from where on a payload may share a chunk with others. A smaller one is copied, so
	// that whoever keeps it does not keep much more.
	sharedBytes = 32 << 10
	// trustedBytes is allocated on a declared length alone; beyond it the bytes have to come first.
	trustedBytes = 1 << 20
)

// frame is one answer of the server.
type frame struct {
	header  wire.Header
	payload []byte
}

// frameReader takes frames out of a stream. Payloads of middling size are handed out as parts of the chunk
// that they were read into, which is then never written again: no byte is copied twice.
type frameReader struct {
	source io.Reader
	// chunk[start:end] was read and not yet taken.
	chunk      []byte
	start, end int
	// handedOut says that somebody holds a part of the chunk.
	handedOut bool
}

// next reads a frame whose payload has at most bytesMax. Its header is valid also when it is too long.
func (r *frameReader) next(bytesMax int) (frame, error) {
	if err := r.fill(wire.HeaderBytes); err != nil {
		return frame{}, err
	}
	header := wire.ParseHeader((*[wire.HeaderBytes]byte)(r.chunk[r.start:]))
	if err := wire.CheckLength(header, bytesMax); err != nil {
		return frame{header: header}, err
	}
	r.start += wire.HeaderBytes
	payload, err := r.payload(int(header.Len))
	return frame{header, payload}, err
}

func (r *frameReader) payload(n int) ([]byte, error) {
	if n > chunkBytesMax {
		return r.large(n)
	}
	if err := r.fill(n); err != nil {
		return nil, err
	}
	payload := r.chunk[r.start : r.start+n : r.start+n]
	r.start += n
	if n < sharedBytes {
		return bytes.Clone(payload), nil
	}
	r.handedOut = true
	return payload, nil
}

// fill reads until n bytes, at most chunkBytesMax, are there to be taken.
func (r *frameReader) fill(n int) error {
	if r.start+n > len(r.chunk) {
		r.makeRoom(n)
	}
	for r.end-r.start < n {
		read, err := r.source.Read(r.chunk[r.end:])
		r.end += read
		if err != nil && r.end-r.start < n {
			return err
		}
	}
	return nil
}

// makeRoom moves what was not taken to the front of a chunk with room for n bytes: the same one if nobody
// holds a part of it, else a larger one.
func (r *frameReader) makeRoom(n int) {
	rest := r.chunk[r.start:r.end]
	if r.handedOut || n > len(r.chunk) {
		size := min(max(2*len(r.chunk), chunkBytesMin, n), chunkBytesMax)
		r.chunk, r.handedOut = make([]byte, size), false
	}
	r.end = copy(r.chunk, rest)
	r.start = 0
}

// large reads a payload that is longer than a chunk. Its declared length is not trusted: memory grows with
// what comes.
func (r *frameReader) large(n int) ([]byte, error) {
	payload := make([]byte, min(n, trustedBytes))
	have := copy(payload, r.chunk[r.start:r.end])
	r.start += have
	for {
		if _, err := io.ReadFull(r.source, payload[have:]); err != nil {
			return nil, err
		}
		if have = len(payload); have == n {
			return payload, nil
		}
		grown := make([]byte, min(n, 2*have))
		copy(grown, payload)
		payload = grown
	}
}
