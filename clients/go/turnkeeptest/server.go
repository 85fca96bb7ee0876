// Package turnkeeptest is a Turnkeep server for the tests of programs that use package turnkeep.
//
// It runs in the test's process, keeps everything in memory and speaks the binary protocol on a loopback
// port: contexts, appends with idempotency keys and expected heads, forks, reads, blobs, filesystem roots
// and subscriptions behave as on a real server. It differs where tests do not need the real behaviour: any token is
// accepted, nothing is durable, bundles are kept but their evolution is not checked, payloads are kept in
// the form in which they were sent, and the server waits for a slow subscriber.
package turnkeeptest

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/wire"
)

// Server is a fake server.
type Server struct {
	listener net.Listener
	store    *store
	running  sync.WaitGroup

	mu     sync.Mutex
	peers  map[*peer]bool
	lastID uint64
	closed bool
}

// Start runs a server, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	server, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// Listen runs a server until Close, for programs that are not tests.
func Listen() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener, store: newStore(), peers: make(map[*peer]bool)}
	s.running.Add(1)
	go s.accept()
	return s, nil
}

// Addr is the address to dial.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Client dials the server. The client is closed with the test.
func (s *Server) Client(t testing.TB, options ...turnkeep.Option) *turnkeep.Client {
	t.Helper()
	client, err := turnkeep.Dial(context.Background(), s.Addr(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Disconnect cuts all connections, as a network does: what was received may or may not have been carried
// out. New connections are accepted.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		p.hangUp()
	}
}

// Close ends the server and waits for its goroutines.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.listener.Close()
	s.Disconnect()
	s.running.Wait()
}

func (s *Server) accept() {
	defer s.running.Done()
	for {
		socket, err := s.listener.Accept()
		if err != nil {
			return
		}
		if p := s.admit(socket); p != nil {
			s.running.Add(1)
			go s.serve(p)
		}
	}
}

func (s *Server) admit(socket net.Conn) *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = socket.Close()
		return nil
	}
	s.lastID++
	p := newPeer(socket, s.store, s.lastID)
	s.peers[p] = true
	return p
}

func (s *Server) serve(p *peer) {
	defer s.running.Done()
	p.serve()
	s.mu.Lock()
	delete(s.peers, p)
	s.mu.Unlock()
}

// peer is one connection. Its requests are carried out and answered in order; subscriptions write between
// the answers.
type peer struct {
	socket    net.Conn
	store     *store
	sessionID uint64
	gone      chan struct{}
	hangOnce  sync.Once
	followers sync.WaitGroup

	mu            sync.Mutex
	subscriptions map[uint64]chan struct{}
}

func newPeer(socket net.Conn, store *store, sessionID uint64) *peer {
	return &peer{
		socket:        socket,
		store:         store,
		sessionID:     sessionID,
		gone:          make(chan struct{}),
		subscriptions: make(map[uint64]chan struct{}),
	}
}

func (p *peer) hangUp() {
	p.hangOnce.Do(func() {
		close(p.gone)
		_ = p.socket.Close()
	})
}

func (p *peer) serve() {
	defer p.followers.Wait()
	defer p.hangUp()
	reader := bufio.NewReader(p.socket)
	var head [wire.HeaderBytes]byte
	for {
		if _, err := io.ReadFull(reader, head[:]); err != nil {
			return
		}
		header := wire.ParseHeader(&head)
		if err := wire.CheckLength(header, wire.FrameBytesMax); err != nil {
			p.answer(header.ReqID, refusalOf(err))
			return
		}
		payload := make([]byte, header.Len)
		if _, err := io.ReadFull(reader, payload); err != nil {
			return
		}
		p.handle(header, payload)
	}
}

func (p *peer) handle(header wire.Header, payload []byte) {
	request, err := wire.DecodeRequest(header, payload)
	if err != nil {
		p.answer(header.ReqID, refusalOf(err))
		return
	}
	switch r := request.(type) {
	case *wire.Hello:
		p.answer(header.ReqID, &wire.Welcome{SessionID: p.sessionID, Version: wire.Version})
	case *wire.Subscribe:
		p.subscribe(header.ReqID, r)
	case *wire.Cancel:
		p.cancel(header.ReqID, r.ReqID)
	default:
		p.answer(header.ReqID, p.store.carryOut(request))
	}
}

// answer writes a frame. If the peer has gone, the next read ends the connection.
func (p *peer) answer(id uint64, response wire.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send(id, response)
}

func (p *peer) send(id uint64, response wire.Response) {
	_, _ = p.socket.Write(wire.AppendResponse(nil, id, response))
}

func (p *peer) subscribe(id uint64, request *wire.Subscribe) {
	after, caughtUp, refused := p.store.startFeed(request)
	p.mu.Lock()
	defer p.mu.Unlock()
	if refused == nil && p.subscriptions[id] != nil {
		refused = refuse(400, "request %d is a subscription already", id)
	}
	if refused != nil {
		p.send(id, refused)
		return
	}
	p.send(id, &wire.Subscribed{CaughtUp: caughtUp})
	cancelled := make(chan struct{})
	p.subscriptions[id] = cancelled
	p.followers.Add(1)
	go p.follow(id, request, after, cancelled)
}

func (p *peer) follow(id uint64, request *wire.Subscribe, after uint64, cancelled chan struct{}) {
	defer p.followers.Done()
	for {
		deliveries, last, changed := p.store.feed(request, after)
		after = last
		for _, delivery := range deliveries {
			if !p.deliver(id, delivery, cancelled) {
				return
			}
		}
		select {
		case <-changed:
		case <-cancelled:
			return
		case <-p.gone:
			return
		}
	}
}

// deliver writes an event unless the subscription was cancelled.
func (p *peer) deliver(id uint64, delivery *wire.Delivery, cancelled chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.subscriptions[id] != cancelled {
		return false
	}
	p.send(id, delivery)
	return true
}

func (p *peer) cancel(id, subscription uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cancelled := p.subscriptions[subscription]
	if cancelled == nil {
		p.send(id, refuse(404, "there is no subscription %d", subscription))
		return
	}
	delete(p.subscriptions, subscription)
	close(cancelled)
	p.send(id, &wire.Cancelled{})
}
