package turnkeep_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/wire"
)

// scripted runs a server that does what the test says on each connection, counted from 0, after HELLO was
// answered. It ends with the test.
func scripted(t *testing.T, serve func(n int, p *scriptedPeer)) (addr string) {
	return scriptedRaw(t, func(n int, p *scriptedPeer) {
		if id, _ := p.request(); id != 0 {
			p.answer(id, &wire.Welcome{SessionID: 1, Version: wire.Version})
			serve(n, p)
		}
	})
}

// scriptedRaw is scripted without an answer to HELLO.
func scriptedRaw(t *testing.T, serve func(n int, p *scriptedPeer)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var sockets []net.Conn
	running.Add(1)
	go func() {
		defer running.Done()
		for n := 0; ; n++ {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			sockets = append(sockets, socket)
			mu.Unlock()
			running.Add(1)
			go func() {
				defer running.Done()
				defer socket.Close()
				serve(n, &scriptedPeer{Conn: socket})
			}()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, socket := range sockets {
			_ = socket.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return listener.Addr().String()
}

type scriptedPeer struct{ net.Conn }

// request reads the next request; id 0 means that the client is gone.
func (p *scriptedPeer) request() (id uint64, request wire.Request) {
	var head [wire.HeaderBytes]byte
	if _, err := io.ReadFull(p, head[:]); err != nil {
		return 0, nil
	}
	header := wire.ParseHeader(&head)
	payload := make([]byte, header.Len)
	if _, err := io.ReadFull(p, payload); err != nil {
		return 0, nil
	}
	request, err := wire.DecodeRequest(header, payload)
	if err != nil {
		panic(err)
	}
	return header.ReqID, request
}

func (p *scriptedPeer) answer(id uint64, response wire.Response) {
	p.send(wire.AppendResponse(nil, id, response))
}

func (p *scriptedPeer) send(bytes []byte) { _, _ = p.Write(bytes) }

// untilGone waits until the client hangs up.
func (p *scriptedPeer) untilGone() {
	for {
		if id, _ := p.request(); id == 0 {
			return
		}
	}
}

// never returns up at the first failure.
var never = turnkeep.WithRetry(turnkeep.Retry{})

// frameWithLength is a header that declares so many bytes.
func frameWithLength(id uint64, msgType wire.MsgType, length uint32) []byte {
	frame := wire.AppendResponse(nil, id, &wire.Cancelled{})
	frame[0], frame[1], frame[2], frame[3] = byte(length), byte(length>>8), byte(length>>16), byte(length>>24)
	frame[4] = byte(msgType)
	return frame
}

// Every kind of bad answer gives its error, and none is tried again.
func TestBadAnswersGiveTypedErrors(t *testing.T) {
	head := &wire.ContextHead{Asked: wire.TypeGetHead, Context: 7, Turn: 9, Depth: 2}
	whole := wire.AppendResponse(nil, 2, head)
	cases := []struct {
		name      string
		bytes     []byte
		want      error
		retryable bool
	}{
		{"half a header", whole[:7], turnkeep.ErrConnectionLost, true},
		{"half a frame", whole[:len(whole)-1], turnkeep.ErrConnectionLost, true},
		{"nothing", nil, turnkeep.ErrConnectionLost, true},
		{"another message", wire.AppendResponse(nil, 2, &wire.Blob{Bytes: []byte("x")}), turnkeep.ErrProtocol, false},
		{"the same fields for another message",
			wire.AppendResponse(nil, 2, &wire.ContextHead{Asked: wire.TypeCtxCreate, Context: 1}), turnkeep.ErrProtocol, false},
		{"an unknown message", frameWithLength(2, 99, 0), turnkeep.ErrProtocol, false},
		{"a message that is too short", frameWithLength(2, wire.TypeGetHead, 0), turnkeep.ErrProtocol, false},
		{"context 0", wire.AppendResponse(nil, 2, &wire.ContextHead{Asked: wire.TypeGetHead}), turnkeep.ErrProtocol, false},
		{"a frame over the limit", frameWithLength(2, wire.TypeGetHead, 1<<20+1), turnkeep.ErrProtocol, false},
		{"an HTTP answer", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), turnkeep.ErrConnectionLost, true},
		{"an error in plain text", wire.AppendResponse(nil, 2, &wire.Failure{Status: 500, Detail: "oops"}), turnkeep.ErrInternal, false},
		{"an unknown error", wire.AppendResponse(nil, 2, &wire.Failure{Status: 418, Detail: `{"message":"tea"}`}), nil, false},
		{"an error that may pass", wire.AppendResponse(nil, 2, &wire.Failure{Status: 507, Detail: "full"}), turnkeep.ErrInsufficientStorage, true},
		{"an error for nobody", wire.AppendResponse(nil, 0, &wire.Failure{Status: 503, Detail: "full"}), turnkeep.ErrUnavailable, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			addr := scripted(t, func(_ int, p *scriptedPeer) {
				p.request()
				p.send(c.bytes)
			})
			client := dialAddr(t, addr, never, turnkeep.WithReplyLimit(1<<20))
			_, err := client.Head(testContext(t), 7)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("got %v, not %v", err, c.want)
			}
			if turnkeep.IsRetryable(err) != c.retryable {
				t.Errorf("%v: retryable is not %v", err, c.retryable)
			}
			var refused *turnkeep.APIError
			if c.name == "an error in plain text" && (!errors.As(err, &refused) || refused.Message != "oops") {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestAnswersOneByteAtATimeAndOutOfOrder(t *testing.T) {
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		first, _ := p.request()
		second, _ := p.request()
		var bytes []byte
		for _, id := range []uint64{second, 77, first} {
			bytes = wire.AppendResponse(bytes, id, &wire.ContextHead{Asked: wire.TypeGetHead, Context: id})
		}
		for i := range bytes {
			p.send(bytes[i : i+1])
		}
		p.untilGone()
	})
	client := dialAddr(t, addr, never)
	var answers sync.WaitGroup
	for range 2 {
		answers.Add(1)
		go func() {
			defer answers.Done()
			if _, err := client.Head(testContext(t), 1); err != nil {
				t.Error(err)
			}
		}()
	}
	answers.Wait()
}

func TestDialRefusesWhatIsNoServer(t *testing.T) {
	hello := func(response wire.Response) func(int, *scriptedPeer) {
		return func(_ int, p *scriptedPeer) {
			id, _ := p.request()
			p.answer(id, response)
		}
	}
	cases := []struct {
		name  string
		serve func(int, *scriptedPeer)
		want  error
	}{
		{"401", hello(&wire.Failure{Status: 401, Detail: "no"}), turnkeep.ErrUnauthorized},
		{"another version", hello(&wire.Welcome{SessionID: 1, Version: 2}), turnkeep.ErrProtocol},
		{"another answer", hello(&wire.Cancelled{}), turnkeep.ErrProtocol},
		{"hangs up", func(int, *scriptedPeer) {}, turnkeep.ErrConnectionLost},
		{"silent", func(_ int, p *scriptedPeer) { p.untilGone() }, turnkeep.ErrConnect},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			addr := scriptedRaw(t, c.serve)
			_, err := turnkeep.Dial(testContext(t), addr, turnkeep.WithConnectTimeout(timeShort))
			if c.name != "silent" {
				_, err = turnkeep.Dial(testContext(t), addr)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, not %v", err, c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := turnkeep.Dial(ctx, "127.0.0.1:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for a cancelled dial", err)
	}
}

// dialHasty connects with a short answer time-out. That also bounds the greeting, which a busy machine may delay for
// longer, so it dials again until a greeting came in time.
func dialHasty(t *testing.T, addr string) *turnkeep.Client {
	t.Helper()
	ctx := testContext(t)
	for {
		client, err := turnkeep.Dial(ctx, addr, never, turnkeep.WithAnswerTimeout(timeShort))
		if err == nil {
			t.Cleanup(func() { _ = client.Close() })
			return client
		}
		if !errors.Is(err, turnkeep.ErrConnectionLost) {
			t.Fatal(err)
		}
	}
}

func TestASilentServerIsADeadOne(t *testing.T) {
	addr := scripted(t, func(_ int, p *scriptedPeer) { p.untilGone() })
	client := dialHasty(t, addr)
	_, err := client.Head(testContext(t), 1)
	if !errors.Is(err, turnkeep.ErrConnectionLost) {
		t.Errorf("got %v", err)
	}
	for _, err := range client.Subscribe(turnkeep.Subscribe{}).Events(testContext(t)) {
		if !errors.Is(err, turnkeep.ErrConnectionLost) {
			t.Errorf("got %v for a subscription that nobody accepts", err)
		}
	}
}

func TestAHistoryThatDoesNotLeadBackIsRefused(t *testing.T) {
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		for {
			id, _ := p.request()
			if id == 0 {
				return
			}
			p.answer(id, &wire.Page{Read: wire.TypeGetBefore, Items: []wire.Item{{Turn: 5, Parent: 4}, {Turn: 6, Parent: 5}}})
		}
	})
	client := dialAddr(t, addr, never)
	var turns []turnkeep.TurnID
	for turn, err := range client.History(testContext(t), 1, turnkeep.Read{}) {
		if err != nil {
			if !errors.Is(err, turnkeep.ErrProtocol) {
				t.Errorf("got %v", err)
			}
			break
		}
		if turns = append(turns, turn.ID); len(turns) > 2 {
			t.Fatalf("got %v", turns)
		}
	}
	if len(turns) != 2 {
		t.Errorf("got %v", turns)
	}
}

func TestPositionsThatDoNotGrowAreRefused(t *testing.T) {
	addr := scripted(t, func(_ int, p *scriptedPeer) {
		id, _ := p.request()
		p.answer(id, &wire.Subscribed{})
		for _, position := range []uint64{5, 6, 6} {
			p.answer(id, &wire.Delivery{Position: position, Context: 1, Item: wire.Item{Turn: position}})
		}
		p.untilGone()
	})
	client := dialAddr(t, addr, never)
	var positions []uint64
	for event, err := range client.Subscribe(turnkeep.Subscribe{}).Events(testContext(t)) {
		if err == nil {
			positions = append(positions, event.Position)
		} else if !errors.Is(err, turnkeep.ErrProtocol) {
			t.Errorf("got %v", err)
		}
	}
	if len(positions) != 2 {
		t.Errorf("got %v", positions)
	}
}
