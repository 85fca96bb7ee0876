// The limit on requests in flight. Invariant: every request returns its part of the budget exactly once, also if its
// caller stopped waiting.

package turnkeep

import (
	"container/list"
	"context"
	"sync"
)

// budget limits the requests in flight, by number and by bytes. A request that does not fit waits. Waiting
// requests proceed in their order, so small ones do not starve a large one.
type budget struct {
	mu       sync.Mutex
	requests int
	bytes    int
	waiting  list.List
}

type ticket struct {
	bytes int
	ready chan struct{}
}

func newBudget(requests, bytes int) *budget { return &budget{requests: requests, bytes: bytes} }

func (b *budget) take(ctx context.Context, bytes int) error {
	b.mu.Lock()
	if b.waiting.Len() == 0 && b.fits(bytes) {
		b.spend(bytes)
		b.mu.Unlock()
		return nil
	}
	asked := &ticket{bytes: bytes, ready: make(chan struct{})}
	place := b.waiting.PushBack(asked)
	b.mu.Unlock()
	select {
	case <-asked.ready:
		return nil
	case <-ctx.Done():
		b.leave(place)
		return ctx.Err()
	}
}

// leave removes a request from the queue, or returns its part if it was admitted at the same moment.
func (b *budget) leave(place *list.Element) {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := place.Value.(*ticket)
	select {
	case <-asked.ready:
		b.requests++
		b.bytes += asked.bytes
	default:
		b.waiting.Remove(place)
	}
	// A large request that leaves the front of the queue may have held back smaller ones.
	b.serve()
}

func (b *budget) giveBack(bytes int) {
	b.mu.Lock()
	b.requests++
	b.bytes += bytes
	b.serve()
	b.mu.Unlock()
}

func (b *budget) serve() {
	for next := b.waiting.Front(); next != nil; next = b.waiting.Front() {
		asked := next.Value.(*ticket)
		if !b.fits(asked.bytes) {
			return
		}
		b.spend(asked.bytes)
		b.waiting.Remove(next)
		close(asked.ready)
	}
}

func (b *budget) fits(bytes int) bool { return b.requests > 0 && bytes <= b.bytes }

func (b *budget) spend(bytes int) {
	b.requests--
	b.bytes -= bytes
}
