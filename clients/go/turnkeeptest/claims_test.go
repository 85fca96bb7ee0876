package turnkeeptest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	turnkeep "turnkeep.dev/go"
)

func emptyContext(s *session) {
	id := s.context()
	head, err := s.client.Head(s.ctx, id)
	s.must(err)
	equal(s, head, turnkeep.Head{Context: id})
	equal(s, s.last(id, 10), "")
}

func appendReadsBack(s *session) {
	id := s.context()
	before := time.Now().Add(-time.Minute)
	acks := s.append(id, "one", "two")
	equal(s, acks[0].Depth, 0)
	equal(s, acks[1].Depth, 1)
	turns, err := s.client.Last(s.ctx, id, 10, turnkeep.Read{Payload: true, Extended: true})
	s.must(err)
	equal(s, payloads(turns), "one two")
	got := turns[1]
	equal(s, got.ID, acks[1].Turn)
	equal(s, got.Parent, acks[0].Turn)
	equal(s, got.Type, turnkeep.TypeRef{ID: "com.example.Text", Version: 1})
	equal(s, got.Encoding, turnkeep.EncodingMsgpack)
	equal(s, got.Hash, turnkeep.HashOf([]byte("two")))
	equal(s, got.Size, 3)
	equal(s, got.FSRoot.IsZero(), true)
	if !got.CreatedAt.After(before) {
		s.Errorf("created at %v", got.CreatedAt)
	}
	bare, err := s.client.Last(s.ctx, id, 1, turnkeep.Read{})
	s.must(err)
	equal(s, len(bare[0].Payload), 0)
	equal(s, bare[0].CreatedAt.IsZero(), true)
}

func branchInPlace(s *session) {
	id := s.context()
	acks := s.append(id, "one", "two")
	ack, err := s.client.Append(s.ctx, turnkeep.Append{Context: id, Parent: acks[0].Turn, Turn: text("other")})
	s.must(err)
	equal(s, ack.Depth, 1)
	equal(s, s.last(id, 10), "one other")
}

func forkGoesOn(s *session) {
	id := s.context()
	acks := s.append(id, "one", "two")
	fork, err := s.client.ForkContext(s.ctx, turnkeep.NewContext{Base: acks[0].Turn})
	s.must(err)
	equal(s, fork.Turn, acks[0].Turn)
	equal(s, fork.Depth, 0)
	s.append(fork.Context, "three")
	equal(s, s.last(fork.Context, 10), "one three")
	equal(s, s.last(id, 10), "one two")
}

func keyRepeats(s *session) {
	id := s.context()
	write := turnkeep.Append{Context: id, Turn: text("one"), Key: "k\x00\xff", ExpectedHead: turnkeep.ExpectHead(0)}
	first, err := s.client.Append(s.ctx, write)
	s.must(err)
	s.append(id, "two")
	again, err := s.client.Append(s.ctx, write)
	s.must(err)
	equal(s, again, first)
	equal(s, s.last(id, 10), "one two")
	batch := turnkeep.Batch{Context: id, Turns: []turnkeep.NewTurn{text("three"), text("four")}, Key: "batch"}
	acks, err := s.client.AppendBatch(s.ctx, batch)
	s.must(err)
	same, err := s.client.AppendBatch(s.ctx, batch)
	s.must(err)
	equal(s, slices.Equal(acks, same), true)
	equal(s, s.last(id, 10), "one two three four")
}

func keyConflicts(s *session) {
	id := s.context()
	first := turnkeep.Append{Context: id, Turn: text("one"), Key: "k"}
	ack, err := s.client.Append(s.ctx, first)
	s.must(err)
	otherType, otherParent, otherPayload := first, first, first
	otherType.Turn.Type.Version = 2
	otherParent.Parent = ack.Turn
	otherPayload.Turn = text("two")
	for _, other := range []turnkeep.Append{otherType, otherParent, otherPayload} {
		_, err := s.client.Append(s.ctx, other)
		s.mustBe(err, turnkeep.ErrConflict)
	}
	_, err = s.client.AppendBatch(s.ctx, turnkeep.Batch{Context: id, Turns: []turnkeep.NewTurn{text("two")}, Key: "k"})
	s.mustBe(err, turnkeep.ErrConflict)
	first.Context = s.context()
	_, err = s.client.Append(s.ctx, first)
	s.must(err)
}

func contextKeyRepeats(s *session) {
	key := "create-" + s.Name()
	first, err := s.client.CreateContext(s.ctx, turnkeep.NewContext{Key: key})
	s.must(err)
	ack := s.append(first.Context, "one")[0]
	again, err := s.client.ForkContext(s.ctx, turnkeep.NewContext{Key: key})
	s.must(err)
	equal(s, again.Context, first.Context)
	_, err = s.client.CreateContext(s.ctx, turnkeep.NewContext{Key: key, Base: ack.Turn})
	s.mustBe(err, turnkeep.ErrConflict)
}

func expectedHead(s *session) {
	id := s.context()
	ack := s.append(id, "one")[0]
	write := turnkeep.Append{Context: id, Turn: text("two"), ExpectedHead: turnkeep.ExpectHead(0)}
	_, err := s.client.Append(s.ctx, write)
	s.mustBe(err, turnkeep.ErrConflict)
	var refused *turnkeep.APIError
	if !errors.As(err, &refused) || refused.Code != "Conflict" || turnkeep.IsRetryable(err) {
		s.Fatalf("got %#v", err)
	}
	actual, known := refused.ActualHead()
	equal(s, known, true)
	equal(s, actual, ack.Turn)
	write.ExpectedHead = turnkeep.ExpectHead(actual)
	_, err = s.client.Append(s.ctx, write)
	s.must(err)
}

func batchIsAtomic(s *session) {
	id, other := s.context(), s.context()
	for _, target := range []turnkeep.ContextID{id, other} {
		turns := []turnkeep.NewTurn{text("a"), text("b"), text("c")}
		acks, err := s.client.AppendBatch(s.ctx, turnkeep.Batch{Context: target, Turns: turns})
		s.must(err)
		equal(s, len(acks), 3)
		for depth, ack := range acks {
			equal(s, ack.Depth, uint32(depth))
			equal(s, ack.Context, target)
		}
		equal(s, s.last(target, 10), "a b c")
	}
	refused := turnkeep.Batch{Context: id, Turns: []turnkeep.NewTurn{text("d")}, ExpectedHead: turnkeep.ExpectHead(0)}
	_, err := s.client.AppendBatch(s.ctx, refused)
	s.mustBe(err, turnkeep.ErrConflict)
	_, err = s.client.AppendBatch(s.ctx, turnkeep.Batch{Context: id})
	if err == nil {
		s.Fatal("an empty batch is accepted")
	}
	equal(s, s.last(id, 10), "a b c")
}

func pages(s *session) {
	id := s.context()
	acks := s.append(id, "0", "1", "2", "3", "4")
	read := turnkeep.Read{Payload: true}
	before := func(turn turnkeep.TurnID, limit uint32) ([]turnkeep.Turn, error) {
		return s.client.Before(s.ctx, id, turn, limit, read)
	}
	depths := func(start, limit uint32) ([]turnkeep.Turn, error) {
		return s.client.Range(s.ctx, id, start, limit, read)
	}
	check := func(want string) func([]turnkeep.Turn, error) {
		return func(got []turnkeep.Turn, err error) {
			s.Helper()
			s.must(err)
			equal(s, payloads(got), want)
		}
	}
	equal(s, s.last(id, 2), "3 4")
	equal(s, s.last(id, 0), "")
	equal(s, s.last(id, 1<<31), "0 1 2 3 4")
	check("1 2")(before(acks[3].Turn, 2))
	check("")(before(acks[0].Turn, 2))
	check("4")(before(0, 1))
	check("1 2")(depths(1, 2))
	check("4")(depths(4, 10))
	check("")(depths(5, 10))
}

func history(s *session) {
	id := s.context()
	const count = 600
	var turns []turnkeep.NewTurn
	for i := range count {
		turns = append(turns, text(fmt.Sprint(i)))
	}
	_, err := s.client.AppendBatch(s.ctx, turnkeep.Batch{Context: id, Turns: turns})
	s.must(err)
	next := count
	for turn, err := range s.client.History(s.ctx, id, turnkeep.Read{Payload: true}) {
		s.must(err)
		next--
		equal(s, string(turn.Payload), fmt.Sprint(next))
		if next == 300 {
			s.append(id, "appended meanwhile")
		}
	}
	equal(s, next, 0)
	for turn := range s.client.History(s.ctx, id, turnkeep.Read{Payload: true}) {
		equal(s, string(turn.Payload), "appended meanwhile")
		break
	}
	for _, err := range s.client.History(s.ctx, 1<<40, turnkeep.Read{}) {
		s.mustBe(err, turnkeep.ErrNotFound)
	}
}

func notFound(s *session) {
	const nothing = 1 << 40
	id := s.context()
	ack := s.append(id, "one")[0]
	_, head := s.client.Head(s.ctx, nothing)
	_, zero := s.client.Head(s.ctx, 0)
	_, last := s.client.Last(s.ctx, nothing, 1, turnkeep.Read{})
	_, before := s.client.Before(s.ctx, id, nothing, 1, turnkeep.Read{})
	_, depth := s.client.Range(s.ctx, nothing, 0, 1, turnkeep.Read{})
	_, fork := s.client.ForkContext(s.ctx, turnkeep.NewContext{Base: nothing})
	_, parent := s.client.Append(s.ctx, turnkeep.Append{Context: id, Parent: nothing, Turn: text("x")})
	_, root := s.client.Append(s.ctx, turnkeep.Append{Context: id, Turn: text("x"), FSRoot: turnkeep.Hash{1}})
	_, blob := s.client.Blob(s.ctx, turnkeep.Hash{1})
	attach := s.client.AttachFS(s.ctx, ack.Turn, turnkeep.Hash{1})
	for _, err := range []error{head, zero, last, before, depth, fork, parent, root, blob, attach} {
		s.mustBe(err, turnkeep.ErrNotFound)
	}
	equal(s, s.last(id, 10), "one")
}

func payloadForms(s *session) {
	id := s.context()
	packing := s.dial(turnkeep.WithZstd(0))
	payloads := [][]byte{nil, {0}, bytes.Repeat([]byte("turn "), 100), bytes.Repeat([]byte{7}, 8<<20)}
	for _, payload := range payloads {
		for _, client := range []*turnkeep.Client{s.client, packing} {
			content := append(slices.Clone(payload), fmt.Sprintf("%p", client)...)
			if payload == nil {
				content = nil
			}
			_, err := client.Append(s.ctx, turnkeep.Append{Context: id, Turn: turnkeep.NewTurn{Payload: content}})
			s.must(err)
			for _, stored := range []bool{false, true} {
				turns, err := s.client.Last(s.ctx, id, 1, turnkeep.Read{Payload: true, Stored: stored})
				s.must(err)
				raw, err := turns[0].Raw()
				s.must(err)
				equal(s, bytes.Equal(raw, content), true)
				equal(s, turns[0].Encoding, 0)
				if client == packing && stored && len(payload) > 100 {
					equal(s, turns[0].Zstd, true)
				}
			}
		}
	}
}

func blobs(s *session) {
	content := []byte("blob of " + s.Name())
	hash, isNew, err := s.client.PutBlob(s.ctx, content)
	s.must(err)
	equal(s, isNew, true)
	_, isNew, err = s.client.PutBlob(s.ctx, content)
	s.must(err)
	equal(s, isNew, false)
	got, err := s.client.Blob(s.ctx, hash)
	s.must(err)
	equal(s, string(got), string(content))
	present, err := s.client.HasBlobs(s.ctx, []turnkeep.Hash{{1}, hash, {2}})
	s.must(err)
	equal(s, fmt.Sprint(present), "[false true false]")
	none, err := s.client.HasBlobs(s.ctx, nil)
	s.must(err)
	equal(s, len(none), 0)
}

func filesystemRoot(s *session) {
	first, _, err := s.client.PutBlob(s.ctx, []byte{0x90})
	s.must(err)
	second, _, err := s.client.PutBlob(s.ctx, []byte{0x91, 0xc0})
	s.must(err)
	id := s.context()
	ack := s.append(id, "one")[0]
	s.must(s.client.AttachFS(s.ctx, ack.Turn, first))
	s.must(s.client.AttachFS(s.ctx, ack.Turn, first))
	s.mustBe(s.client.AttachFS(s.ctx, ack.Turn, second), turnkeep.ErrConflict)
	_, err = s.client.Append(s.ctx, turnkeep.Append{Context: id, Turn: text("two"), FSRoot: second})
	s.must(err)
	turns, err := s.client.Last(s.ctx, id, 2, turnkeep.Read{Extended: true})
	s.must(err)
	equal(s, turns[0].FSRoot, first)
	equal(s, turns[1].FSRoot, second)
}

func bundles(s *session) {
	const bundle = `{"registry_version":1,"bundle_id":"conformance#1","types":{},"enums":{}}`
	isNew, err := s.client.PublishBundle(s.ctx, "conformance#1", []byte(bundle))
	s.must(err)
	equal(s, isNew, true)
	isNew, err = s.client.PublishBundle(s.ctx, "conformance#1", []byte(bundle))
	s.must(err)
	equal(s, isNew, false)
	other := strings.Replace(bundle, `"types":{}`, `"types":{},"note":"x"`, 1)
	_, err = s.client.PublishBundle(s.ctx, "conformance#1", []byte(other))
	s.mustBe(err, turnkeep.ErrConflict)
	_, err = s.client.PublishBundle(s.ctx, "conformance#2", []byte(bundle))
	s.mustBe(err, turnkeep.ErrUnprocessable)
}

func limits(s *session) {
	id := s.context()
	long := turnkeep.Append{Context: id, Turn: text("x"), Key: strings.Repeat("k", 1025)}
	_, err := s.client.Append(s.ctx, long)
	s.mustBe(err, turnkeep.ErrTooLarge)
	_, err = s.client.Append(s.ctx, turnkeep.Append{Context: id, Turn: turnkeep.Msgpack(strings.Repeat("t", 513), 1, nil)})
	s.mustBe(err, turnkeep.ErrTooLarge)
	_, err = s.client.Append(s.ctx, turnkeep.Append{Context: id, Turn: turnkeep.NewTurn{Payload: make([]byte, 32<<20+1)}})
	s.mustBe(err, turnkeep.ErrTooLarge)
	_, err = s.client.Append(s.ctx, turnkeep.Append{Context: id, Turn: turnkeep.NewTurn{Payload: make([]byte, 64<<20)}})
	s.mustBe(err, turnkeep.ErrTooLarge)
	_, err = s.client.AppendBatch(s.ctx, turnkeep.Batch{Context: id, Turns: make([]turnkeep.NewTurn, 1025)})
	s.mustBe(err, turnkeep.ErrTooLarge)
	equal(s, s.last(id, 10), "")
}

func subscription(s *session) {
	id, other := s.context(), s.context()
	s.append(id, "1", "2")
	s.append(other, "not this one")
	following := s.client.Subscribe(turnkeep.Subscribe{Context: id, Read: turnkeep.Read{Payload: true, Extended: true}})
	var got []string
	for event, err := range following.Events(s.ctx) {
		s.must(err)
		equal(s, event.Context, id)
		equal(s, event.Turn.CreatedAt.IsZero(), false)
		got = append(got, string(event.Turn.Payload))
		if event.CaughtUp && len(got) < 4 {
			equal(s, following.CaughtUp(), true)
			s.append(id, fmt.Sprint(len(got)+1))
		}
		if len(got) == 4 {
			break
		}
	}
	equal(s, strings.Join(got, " "), "1 2 3 4")
	s.append(id, "5")
	for event, err := range following.Events(s.ctx) {
		s.must(err)
		equal(s, string(event.Turn.Payload), "5")
		equal(s, following.Position(), event.Position)
		break
	}
	for _, err := range s.client.Subscribe(turnkeep.Subscribe{Context: 1 << 40}).Events(s.ctx) {
		s.mustBe(err, turnkeep.ErrNotFound)
	}
}

func onlyNew(s *session) {
	id := s.context()
	s.append(id, "old")
	following := s.client.Subscribe(turnkeep.Subscribe{Context: id, After: turnkeep.OnlyNew, Read: turnkeep.Read{Payload: true}})
	writer := s.dial()
	wrote := make(chan error, 1)
	stop, stopped := context.WithCancel(s.ctx)
	go func() { wrote <- keepAppending(stop, writer, id) }()
	for event, err := range following.Events(s.ctx) {
		s.must(err)
		equal(s, string(event.Turn.Payload), "new")
		break
	}
	stopped()
	s.must(<-wrote)
}

// keepAppending appends until it is stopped, because a test cannot know when a subscription has begun.
func keepAppending(ctx context.Context, client *turnkeep.Client, id turnkeep.ContextID) error {
	for {
		_, err := client.Append(ctx, turnkeep.Append{Context: id, Turn: text("new")})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func beyondTheEnd(s *session) {
	for _, err := range s.client.Subscribe(turnkeep.Subscribe{After: 1 << 50}).Events(s.ctx) {
		s.mustBe(err, turnkeep.ErrConflict)
	}
}
