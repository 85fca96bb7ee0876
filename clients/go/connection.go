// One live connection: the goroutines that own its socket, and the outbox through which callers reach them.

package turnkeep

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"turnkeep.dev/go/internal/wire"
)

const (
	// spareBytesMax is the largest write buffer that is kept for the next frames.
	spareBytesMax = 1 << 20
	// writeBytes is written at a time, so that the watchdog sees progress on a slow line.
	writeBytes = 256 << 10
	// watchTicks is how often the watchdog checks within the answer time-out.
	watchTicks = 4
)

// connection is one live connection. A goroutine of its own writes to the socket and another one reads
// from it; callers encode their frames into the outbox and leave a call or a stream under their request
// id. Invariant: a call is answered exactly once, and when the connection ends, all calls and streams get the
// reason. A connection that has ended is never used again; the client dials a new one. A slow reader of a
// subscription does not delay the others.
type connection struct {
	socket          net.Conn
	requestBytesMax int
	replyBytesMax   int
	silenceMax      time.Duration

	wake     chan struct{}
	ended    chan struct{}
	running  sync.WaitGroup
	activity atomic.Uint64

	mu      sync.Mutex
	outbox  []byte
	lastID  uint64
	calls   map[uint64]*call
	streams map[uint64]*stream
	// unanswered are the streams that have not received a frame yet.
	unanswered map[uint64]bool
	lost       error
	watchdog   *time.Timer
	// The watchdog's last observation.
	silentTicks int
	movedBefore uint64
}

func startConnection(socket net.Conn, o *options) *connection {
	c := &connection{
		socket:          socket,
		requestBytesMax: o.requestBytesMax(),
		replyBytesMax:   o.replyBytesMax,
		silenceMax:      o.answerTimeout,
		wake:            make(chan struct{}, 1),
		ended:           make(chan struct{}),
		calls:           make(map[uint64]*call),
		streams:         make(map[uint64]*stream),
		unanswered:      make(map[uint64]bool),
	}
	c.watch()
	c.running.Add(2)
	go c.write()
	go c.read()
	return c
}

// call queues a request. The writer goroutine sends it.
func (c *connection) call(p *call, request wire.Request) error {
	c.mu.Lock()
	id, err := c.push(request)
	if err == nil {
		c.calls[id] = p
	}
	c.mu.Unlock()
	c.wakeWriter()
	return err
}

// follow queues a subscription and passes its frames to the stream.
func (c *connection) follow(s *stream, request *wire.Subscribe) (uint64, error) {
	c.mu.Lock()
	id, err := c.push(request)
	if err == nil {
		c.streams[id] = s
		c.unanswered[id] = true
	}
	c.mu.Unlock()
	c.wakeWriter()
	return id, err
}

// unfollow ends a subscription. It does nothing if the subscription has ended already.
func (c *connection) unfollow(id uint64) {
	c.mu.Lock()
	c.dropStream(id)
	c.mu.Unlock()
	c.wakeWriter()
}

func (c *connection) dropStream(id uint64) {
	if c.streams[id] == nil {
		return
	}
	delete(c.streams, id)
	delete(c.unanswered, id)
	// No caller waits for the answer to CANCEL. The call makes the watchdog expect it.
	if cancelID, err := c.push(&wire.Cancel{ReqID: id}); err == nil {
		c.calls[cancelID] = newCall(nil, 0)
	}
}

// push adds a request's frame to the outbox if it is within the server's limit.
func (c *connection) push(request wire.Request) (uint64, error) {
	if c.lost != nil {
		return 0, c.lost
	}
	start := len(c.outbox)
	c.outbox = wire.AppendRequest(c.outbox, c.lastID+1, request)
	if size := len(c.outbox) - start - wire.HeaderBytes; size > c.requestBytesMax {
		c.outbox = c.outbox[:start]
		return 0, requestTooLarge(size, c.requestBytesMax)
	}
	c.lastID++
	return c.lastID, nil
}

func requestTooLarge(size, limit int) error {
	return fmt.Errorf("%w: a request of %d bytes is over the limit of %d", ErrTooLarge, size, limit)
}

// lostBy returns the reason why the connection has ended, or nil.
func (c *connection) lostBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// end closes the connection and sends the reason to every call and stream. The first reason stays.
func (c *connection) end(reason error) {
	c.mu.Lock()
	if c.lost != nil {
		c.mu.Unlock()
		return
	}
	c.lost = reason
	calls, streams := c.calls, c.streams
	c.calls, c.streams, c.unanswered, c.outbox = nil, nil, nil, nil
	c.watchdog.Stop()
	c.mu.Unlock()
	close(c.ended)
	_ = c.socket.Close()
	for _, p := range calls {
		p.finish(outcome{err: reason})
	}
	for _, s := range streams {
		s.end(reason)
	}
}

// close ends the connection and waits for its goroutines.
func (c *connection) close(reason error) {
	c.end(reason)
	c.running.Wait()
}

func (c *connection) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *connection) write() {
	defer c.running.Done()
	var spare []byte
	for {
		select {
		case <-c.wake:
		case <-c.ended:
			return
		}
		// Lets callers that are about to send join this write.
		runtime.Gosched()
		c.mu.Lock()
		out := c.outbox
		c.outbox = spare[:0]
		c.mu.Unlock()
		if err := c.writeAll(out); err != nil {
			c.end(lost(err))
			return
		}
		if spare = out; cap(spare) > spareBytesMax {
			spare = nil
		}
	}
}

func (c *connection) writeAll(bytes []byte) error {
	for len(bytes) > 0 {
		n, err := c.socket.Write(bytes[:min(len(bytes), writeBytes)])
		if err != nil {
			return err
		}
		c.activity.Add(1)
		bytes = bytes[n:]
	}
	return nil
}

func (c *connection) read() {
	defer c.running.Done()
	reader := frameReader{source: activeReader{c}}
	for {
		f, err := reader.next(c.replyBytesMax)
		var refused *wire.DecodeError
		switch {
		case errors.As(err, &refused):
			c.refuseReply(f.header.ReqID, refused)
			return
		case err != nil:
			c.end(lost(endOfStream(err)))
			return
		}
		if err := c.deliver(f); err != nil {
			c.end(lost(err))
			return
		}
	}
}

func endOfStream(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the server closed it")
	}
	return err
}

// activeReader counts reads, so that the watchdog can distinguish a silent server from a slow one.
type activeReader struct{ c *connection }

func (r activeReader) Read(p []byte) (int, error) {
	n, err := r.c.socket.Read(p)
	r.c.activity.Add(1)
	return n, err
}

// refuseReply ends the connection because of an answer that is too long. The request for it must not be
// repeated; the other requests may.
func (c *connection) refuseReply(id uint64, err error) {
	c.mu.Lock()
	asked, followed := c.takeCall(id), c.streams[id]
	delete(c.streams, id)
	c.mu.Unlock()
	if asked != nil {
		asked.finish(outcome{err: protocolError(err)})
	}
	if followed != nil {
		followed.end(protocolError(err))
	}
	c.end(lost(err))
}

func (c *connection) takeCall(id uint64) *call {
	p := c.calls[id]
	delete(c.calls, id)
	return p
}

// deliver passes a frame to its call or stream. An error ends the connection.
func (c *connection) deliver(f frame) error {
	c.mu.Lock()
	p := c.takeCall(f.header.ReqID)
	if p == nil {
		// The lock guards the streams. It is not held for long, because a stream never waits for its reader.
		defer c.mu.Unlock()
		return c.deliverToStream(f)
	}
	c.mu.Unlock()
	p.finish(outcome{frame: f})
	return nil
}

func (c *connection) deliverToStream(f frame) error {
	id := f.header.ReqID
	s := c.streams[id]
	delete(c.unanswered, id)
	switch {
	case s == nil:
		return strayFrame(f)
	case !s.put(f):
		c.dropStream(id)
		c.wakeWriter()
		s.end(nil)
	case f.header.Type == wire.TypeError:
		delete(c.streams, id)
	}
	return nil
}

// strayFrame handles a frame without a call or stream. The server may still send frames of a subscription
// that was just cancelled. An error without a request is the reason why the server is about to close the
// connection.
func strayFrame(f frame) error {
	if f.header.ReqID != 0 || f.header.Type != wire.TypeError {
		return nil
	}
	response, err := wire.DecodeResponse(f.header, f.payload, false)
	if failure, ok := response.(*wire.Failure); ok && err == nil {
		return apiError(int(failure.Status), []byte(failure.Detail))
	}
	return errors.New("the server closed it")
}

// watch starts the watchdog. It ends the connection if requests are unanswered and no byte moves in either
// direction.
func (c *connection) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchdog = time.AfterFunc(c.watchPause(), func() {
		if c.isSilent() {
			c.end(lost(fmt.Errorf("no answer for %v", c.silenceMax)))
		}
	})
}

func (c *connection) watchPause() time.Duration {
	return max(c.silenceMax/watchTicks, time.Millisecond)
}

// isSilent checks once, and reports whether the silence has lasted for the whole time-out.
func (c *connection) isSilent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	moved := c.activity.Load()
	if c.silentTicks++; len(c.calls)+len(c.unanswered) == 0 || moved != c.movedBefore {
		c.silentTicks = 0
	}
	c.movedBefore = moved
	if c.lost == nil {
		c.watchdog.Reset(c.watchPause())
	}
	// One tick more than the time-out has, because the first may come right after the request was queued.
	return c.silentTicks > watchTicks
}
