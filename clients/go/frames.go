// Takes frames out of a stream of bytes. No declared length is trusted with more memory than a bound.

package turnkeep

import (
	"bytes"
	"io"

	"turnkeep.dev/go/internal/wire"
)

const (
	// firstBytes is the buffer until more than that comes at once.
	firstBytes = 64 << 10
	// bufferBytes is the buffer from then on, for the life of the connection: more than a kernel usually holds for a
	// reader that is late. Only what is used of it takes memory, mostly the first moveBytes. All of it counts as live:
	// a program that keeps little else collects the garbage of its reads much less often.
	bufferBytes = 8 << 20
	moveBytes   = 1 << 20
	// runBytes is from where on a frame is copied out of the buffer together with those that have come behind it, up
	// to runBytesMax. A smaller one is copied alone, so that whoever keeps it keeps nothing else.
	runBytes    = 32 << 10
	runBytesMax = 256 << 10
	// trustedBytes is allocated on a declared length alone; beyond it the bytes have to come first.
	trustedBytes = 1 << 20
)

// frame is one answer of the server.
type frame struct {
	header  wire.Header
	payload []byte
}

// frameReader takes frames out of a stream. It reads into a buffer of its own, which no payload shares.
type frameReader struct {
	source io.Reader
	// buffer[start:end] was read and not yet taken.
	buffer     []byte
	start, end int
	// crowded says that more may have come than the buffer could take.
	crowded bool
	// run is a copy of the first bytes of that: whole frames, whose payloads are parts of it.
	run []byte
}

// next reads a frame whose payload has at most bytesMax. Its header is valid also when it is too long.
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

// runLength says how many bytes to copy out of the buffer, which starts with a whole frame of this length: those of
// that frame and of the whole frames behind it that may share memory with it.
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

// fill reads until n bytes, at most one trusted frame, are there to be taken.
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

// makeRoom makes room for n bytes from the start of what is there. It moves that to the front now and then, so that
// the same memory is used again and again, and once into the larger buffer.
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

// large reads a payload whose declared length is not trusted: memory grows with what comes.
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
