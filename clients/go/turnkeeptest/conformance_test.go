package turnkeeptest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/realserver"
	"turnkeep.dev/go/turnkeeptest"
)

// claims are what both servers must do. Each runs in contexts of its own.
var claims = []struct {
	name  string
	check func(*session)
}{
	{"an empty context has head 0", emptyContext},
	{"an append moves the head and reads back", appendReadsBack},
	{"an append onto a parent branches in place", branchInPlace},
	{"a fork goes on from its base", forkGoesOn},
	{"a key gives the first ack again", keyRepeats},
	{"a key for something else is a conflict", keyConflicts},
	{"a key of a context is remembered", contextKeyRepeats},
	{"another head than expected is a conflict that names it", expectedHead},
	{"a batch is one chain, all or none", batchIsAtomic},
	{"pages keep the turns nearest to their start", pages},
	{"history walks from the head to the root", history},
	{"what does not exist is not found", notFound},
	{"payloads come back whatever their form", payloadForms},
	{"blobs are kept once", blobs},
	{"a filesystem root is set once", filesystemRoot},
	{"a bundle is published once", bundles},
	{"limits are refused with their sentinel", limits},
	{"a subscription replays, follows and resumes", subscription},
	{"only new appends can be followed", onlyNew},
	{"positions beyond the end are a conflict", beyondTheEnd},
}

func TestFakeAndRealServerDoTheSame(t *testing.T) {
	servers := map[string]string{
		"fake": turnkeeptest.Start(t).Addr(),
		"real": realserver.Start(t, "--no-auth").Addr,
	}
	for name, addr := range servers {
		t.Run(name, func(t *testing.T) {
			for _, claim := range claims {
				t.Run(claim.name, func(t *testing.T) { claim.check(newSession(t, addr)) })
			}
		})
	}
}

// session is one client for one claim.
type session struct {
	*testing.T
	ctx    context.Context
	addr   string
	client *turnkeep.Client
}

func newSession(t *testing.T, addr string) *session {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	s := &session{T: t, ctx: ctx, addr: addr}
	s.client = s.dial(turnkeep.WithVerify())
	return s
}

func (s *session) dial(options ...turnkeep.Option) *turnkeep.Client {
	s.Helper()
	client, err := turnkeep.Dial(s.ctx, s.addr, options...)
	s.must(err)
	s.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *session) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *session) mustBe(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Fatalf("got %v, not %v", err, target)
	}
}

func equal[T comparable](s *session, got, want T) {
	s.Helper()
	if got != want {
		s.Fatalf("got %v, not %v", got, want)
	}
}

func (s *session) context() turnkeep.ContextID {
	s.Helper()
	head, err := s.client.CreateContext(s.ctx, turnkeep.NewContext{})
	s.must(err)
	return head.Context
}

func text(content string) turnkeep.NewTurn {
	return turnkeep.Msgpack("com.example.Text", 1, []byte(content))
}

func (s *session) append(id turnkeep.ContextID, contents ...string) (acks []turnkeep.Ack) {
	s.Helper()
	for _, content := range contents {
		ack, err := s.client.Append(s.ctx, turnkeep.Append{Context: id, Turn: text(content)})
		s.must(err)
		acks = append(acks, ack)
	}
	return acks
}

// last is the payloads nearest to the head, joined.
func (s *session) last(id turnkeep.ContextID, limit uint32) string {
	s.Helper()
	turns, err := s.client.Last(s.ctx, id, limit, turnkeep.Read{Payload: true})
	s.must(err)
	return payloads(turns)
}

func payloads(turns []turnkeep.Turn) string {
	var all []string
	for _, turn := range turns {
		all = append(all, string(turn.Payload))
	}
	return strings.Join(all, " ")
}
