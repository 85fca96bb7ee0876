// Pages and the feed.

package turnkeeptest

import (
	"math"
	"slices"
	"sort"
	"strconv"

	"turnkeep.dev/go/internal/wire"
)

const (
	pageTurnsMax = 10_000
	pageBytesMax = 64 << 20
)

func (s *store) getLast(r *wire.GetLast) (wire.Response, *wire.Failure) {
	context, refused := s.context(r.Context)
	if refused != nil {
		return nil, refused
	}
	return s.page(r.Type(), ancestors(context.head, r.Limit), r.Options), nil
}

func (s *store) getBefore(r *wire.GetBefore) (wire.Response, *wire.Failure) {
	context, refused := s.context(r.Context)
	if refused != nil {
		return nil, refused
	}
	before, refused := s.turn(r.Before)
	if refused != nil {
		return nil, refused
	}
	newest := context.head
	if before != nil {
		newest = before.parent
	}
	return s.page(r.Type(), ancestors(newest, r.Limit), r.Options), nil
}

func (s *store) getRange(r *wire.GetRange) (wire.Response, *wire.Failure) {
	context, refused := s.context(r.Context)
	if refused != nil {
		return nil, refused
	}
	end := uint64(r.Start) + uint64(min(r.Limit, pageTurnsMax))
	var found []*turn
	for t := context.head; t != nil && t.item.Depth >= r.Start; t = t.parent {
		if uint64(t.item.Depth) < end {
			found = append(found, t)
		}
	}
	// A page keeps the turns that it gets first. Those of a range are its oldest, unlike those of the other reads.
	slices.Reverse(found)
	page := s.page(r.Type(), found, r.Options)
	slices.Reverse(page.Items)
	return page, nil
}

// ancestors are the turns from newest towards its root.
func ancestors(newest *turn, limit uint32) (found []*turn) {
	for t := newest; t != nil && uint32(len(found)) < min(limit, pageTurnsMax); t = t.parent {
		found = append(found, t)
	}
	return found
}

// page takes turns newest first and returns as many as fit, at least one, oldest first.
func (s *store) page(read wire.MsgType, nearest []*turn, options wire.ReadOptions) *wire.Page {
	page := &wire.Page{Read: read, Items: make([]wire.Item, 0, len(nearest))}
	bytes := 0
	for _, t := range nearest {
		item := s.item(t, options)
		if bytes += len(item.Payload); bytes > pageBytesMax && len(page.Items) > 0 {
			break
		}
		page.Items = append(page.Items, item)
	}
	slices.Reverse(page.Items)
	return page
}

func (s *store) item(t *turn, options wire.ReadOptions) wire.Item {
	item := t.item
	item.Extended = options.Extended
	if !options.Payload {
		return item
	}
	content := s.blobs[item.Hash]
	item.Payload = content.raw
	if options.Stored {
		item.Payload, item.Compression = content.stored, content.compression
	}
	return item
}

// startFeed checks a subscription, and returns the position that it starts after.
func (s *store) startFeed(r *wire.Subscribe) (after uint64, caughtUp bool, refused *wire.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Context != 0 {
		if _, refused := s.context(r.Context); refused != nil {
			return 0, false, refused
		}
	}
	after = r.After
	if after == math.MaxUint64 {
		after = s.position
	}
	if after > s.position {
		details := map[string]any{"last_position": strconv.FormatUint(s.position, 10)}
		return 0, false, failure(409, "Conflict", "the position is beyond the end of the feed", details)
	}
	return after, len(s.since(r, after)) == 0, nil
}

// feed returns the appends after a position, the position of the last one, and a channel that signals more.
func (s *store) feed(r *wire.Subscribe, after uint64) ([]*wire.Delivery, uint64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.since(r, after)
	deliveries := make([]*wire.Delivery, len(found))
	for i, a := range found {
		deliveries[i] = &wire.Delivery{
			CaughtUp: i == len(found)-1,
			Position: a.position,
			Context:  a.turn.context,
			Item:     s.item(a.turn, r.Options),
		}
	}
	return deliveries, s.position, s.changed
}

func (s *store) since(r *wire.Subscribe, after uint64) []appended {
	first := sort.Search(len(s.appends), func(i int) bool { return s.appends[i].position > after })
	var found []appended
	for _, a := range s.appends[first:] {
		if r.Context == 0 || r.Context == a.turn.context {
			found = append(found, a)
		}
	}
	return found
}
