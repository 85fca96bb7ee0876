// The queue between a connection and the reader of a subscription.

package turnkeep

import (
	"context"
	"sync"
)

// stream holds a subscription's frames on their way from the connection to the reader. It is bounded in
// frames and in bytes, and the connection never waits for it: a frame that does not fit is rejected. Invariant:
// an empty stream accepts any one frame, so a reader that resumes after every rejection makes progress.
type stream struct {
	framesMax int
	bytesMax  int
	wake      chan struct{}

	mu     sync.Mutex
	frames []frame
	bytes  int
	ended  bool
	reason error
}

func newStream(framesMax, bytesMax int) *stream {
	// One more frame, for the server's acceptance.
	return &stream{framesMax: framesMax + 1, bytesMax: bytesMax, wake: make(chan struct{}, 1)}
}

// put queues a frame if it fits.
func (s *stream) put(f frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := len(s.frames) >= s.framesMax || s.bytes > 0 && s.bytes+len(f.payload) > s.bytesMax
	if s.ended || full {
		return false
	}
	s.frames = append(s.frames, f)
	s.bytes += len(f.payload)
	s.signal()
	return true
}

// end says that no more frames come, because the connection was lost or, with nil, because of an overrun.
func (s *stream) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended, s.reason = true, reason
		s.signal()
	}
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next waits for a frame. More is false when the stream has ended and is empty.
func (s *stream) next(ctx context.Context) (f frame, more bool, err error) {
	for {
		if f, more, done := s.poll(); done {
			return f, more, s.reason
		} else if more {
			return f, true, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return frame{}, false, ctx.Err()
		}
	}
}

// poll returns a queued frame, if any. done says that the stream has ended and is empty.
func (s *stream) poll() (f frame, more, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.frames) == 0 {
		return frame{}, false, s.ended
	}
	f = s.frames[0]
	s.frames[0] = frame{}
	s.frames = s.frames[1:]
	s.bytes -= len(f.payload)
	return f, true, false
}
