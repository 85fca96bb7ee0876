// Splits a stream of bytes into frames. A declared length alone never allocates more than trustedBytes.

package turnkeep

import (
	"bytes"
	"io"

	"turnkeep.dev/go/internal/wire"
)

const (
	// firstBytes is the size of the buffer until more than that arrives at once.
	firstBytes = 64 << 10
	// bufferBytes is its size from then on, for the life of the connection: more than a kernel usually queues for a
	// slow reader. Only the used part takes memory, mostly the first moveBytes. The garbage collector counts all of it
	// as live, so a program with a small heap runs it much less often.
	bufferBytes = 8 << 20
	moveBytes   = 1 << 20
	// runBytes is the least length of a frame that is copied out of the buffer together with the frames behind it, up
	// to runBytesMax. A shorter frame is copied alone, so that a caller that keeps it keeps no other memory alive.
	runBytes    = 32 << 10
	runBytesMax = 256 << 10
	// trustedBytes is the most that a declared length alone allocates. Beyond it, the bytes have to arrive first.
	trustedBytes = 1 << 20
)

// frame is one answer of the server.
type frame struct {
	header  wire.Header
	payload []byte
}

// frameReader splits a stream into frames. It reads into a buffer of its own, which no payload shares.
type frameReader struct {
	source io.Reader
	// buffer[start:end] was read from the stream and not yet returned.
	buffer     []byte
	start, end int
	// crowded says that more may have arrived than fits into the buffer.
	crowded bool
	// run is a copy of whole frames from the start of the buffer. Their payloads are slices of it.
	run []byte
}

// next reads a frame whose payload has at most bytesMax. The header is valid even if the frame is too long.
func (r *frameReader) next(bytesMax int) (frame, error) {
	if err := r.fill(wire.HeaderBytes); err != nil {
		return frame{}, err
	}
	header := r.headerAt(r.start)
	if err := wire.CheckLength(header, bytesMax); err != nil {
		return frame{header: header}, err
	}
	payload, err := r.payload(int(header.Len))
	return frame{header, payload}, err
}

func (r *frameReader) headerAt(at int) wire.Header {
	return wire.ParseHeader((*[wire.HeaderBytes]byte)(r.buffer[at:]))
}

func (r *frameReader) payload(n int) ([]byte, error) {
	length := wire.HeaderBytes + n
	if n > trustedBytes {
		return r.large(n)
	}
	if err := r.fill(length); err != nil {
		return nil, err
	}
	if len(r.run) == 0 {
		r.run = bytes.Clone(r.buffer[r.start : r.start+r.runLength(length)])
	}
	payload := r.run[wire.HeaderBytes:length:length]
	r.run = r.run[length:]
	r.start += length
	return payload, nil
}

// runLength returns how many bytes to copy out of the buffer, which starts with a whole frame of this length: that
// frame, and the whole frames behind it that may share memory with it.
func (r *frameReader) runLength(total int) int {
	there := r.end - r.start
	for total >= runBytes && total+wire.HeaderBytes <= there {
		next := wire.HeaderBytes + int(r.headerAt(r.start+total).Len)
		if next < runBytes || total+next > min(runBytesMax, there) {
			break
		}
		total += next
	}
	return total
}

// fill reads until the buffer holds n bytes, at most one trusted frame.
func (r *frameReader) fill(n int) error {
	for r.end-r.start < n {
		r.makeRoom(n)
		read, err := r.source.Read(r.buffer[r.end:])
		r.end += read
		r.crowded = read >= firstBytes/2 && r.end == len(r.buffer)
		if err != nil && r.end-r.start < n {
			return err
		}
	}
	return nil
}

// makeRoom makes room for n bytes from start on. It moves the unread bytes to the front of the buffer now and then,
// so that the same memory is used again, and once into the larger buffer.
func (r *frameReader) makeRoom(n int) {
	rest := r.buffer[r.start:r.end]
	switch {
	case r.buffer == nil:
		r.buffer = make([]byte, firstBytes)
	case len(r.buffer) == firstBytes && (r.crowded || n > firstBytes):
		r.buffer = make([]byte, bufferBytes)
	case len(rest) > 0 && r.start < moveBytes && r.start+n <= len(r.buffer):
		return
	}
	r.end = copy(r.buffer, rest)
	r.start = 0
}

// large reads a payload whose declared length is not trusted: memory grows with the bytes that arrive.
func (r *frameReader) large(n int) ([]byte, error) {
	r.start += wire.HeaderBytes
	payload := make([]byte, min(n, max(trustedBytes, r.end-r.start)))
	have := copy(payload, r.buffer[r.start:r.end])
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
