package turnkeep

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"turnkeep.dev/go/internal/wire"
)

func TestPausesDoubleUpToTheLongestAndEnd(t *testing.T) {
	policy := Retry{Attempts: 5, First: 100 * time.Millisecond, Longest: 500 * time.Millisecond}
	cases := []struct {
		random float64
		want   []time.Duration
	}{{1, []time.Duration{100, 200, 400, 500, 500}}, {0, []time.Duration{50, 100, 200, 250, 250}}}
	for _, c := range cases {
		tries := backoff{policy: policy}
		var got []time.Duration
		for pause, again := tries.next(c.random); again; pause, again = tries.next(c.random) {
			got = append(got, pause/time.Millisecond)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("got %v, not %v", got, c.want)
		}
	}
}

// Frames of all sizes come out whole, however the stream is cut, and stay as they are.
func TestFramesAreTakenWhole(t *testing.T) {
	sizes := []int{0, 1, runBytes - 21, runBytes - 20, runBytes, 50_000, 0, firstBytes, 100_000, 100_000, 100_000,
		runBytesMax - 20, runBytesMax - 19, trustedBytes - 4, trustedBytes - 3, 7, 5 << 20, 9 << 20, 3, 2 << 20, 100_000, 1}
	var sent []byte
	for i, size := range sizes {
		sent = wire.AppendResponse(sent, uint64(i), &wire.Blob{Bytes: bytes.Repeat([]byte{byte(i)}, size)})
	}
	sources := map[string]io.Reader{
		"whole": bytes.NewReader(sent), "halves": iotest.HalfReader(bytes.NewReader(sent)),
		"with the end": iotest.DataErrReader(bytes.NewReader(sent)),
	}
	for name, source := range sources {
		reader := frameReader{source: source}
		var taken []frame
		for range sizes {
			f, err := reader.next(10 << 20)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			taken = append(taken, f)
		}
		for i, f := range taken {
			want := wire.AppendResponse(nil, uint64(i), &wire.Blob{Bytes: bytes.Repeat([]byte{byte(i)}, sizes[i])})
			if !bytes.Equal(f.payload, want[wire.HeaderBytes:]) {
				t.Errorf("%s: frame %d of %d bytes came out different", name, i, sizes[i])
			}
		}
		if _, err := reader.next(10 << 20); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the end gives %v", name, err)
		}
	}
}

// Whatever comes, a connection has its first buffer and at most one more.
func TestFramesAreReadIntoOneBuffer(t *testing.T) {
	ack := wire.AppendResponse(nil, 1, &wire.TurnAck{Context: 1, Turn: 1})
	page := wire.AppendResponse(nil, 1, &wire.Blob{Bytes: make([]byte, 70_000)})
	cases := []struct {
		name   string
		source io.Reader
		bytes  int
	}{
		{"acks one by one", iotest.OneByteReader(bytes.NewReader(bytes.Repeat(ack, 3*firstBytes/len(ack)))), firstBytes},
		{"acks at once", bytes.NewReader(bytes.Repeat(ack, 3*bufferBytes/len(ack))), bufferBytes},
		{"pages", bytes.NewReader(bytes.Repeat(page, 3*bufferBytes/len(page))), bufferBytes},
	}
	for _, c := range cases {
		reader := frameReader{source: c.source}
		buffers := map[*byte]bool{}
		for _, err := reader.next(1 << 20); err == nil; _, err = reader.next(1 << 20) {
			buffers[&reader.buffer[0]] = true
		}
		if len(reader.buffer) != c.bytes || len(buffers) > 2 {
			t.Errorf("%s: %d buffers, the last one of %d bytes", c.name, len(buffers), len(reader.buffer))
		}
	}
}

// Who keeps a payload keeps little else: small frames are alone in memory, larger ones with a few neighbours.
func TestAPayloadSharesLittleMemory(t *testing.T) {
	for _, size := range []int{100, runBytes - 21, runBytes, 70_000, runBytesMax, trustedBytes - 4} {
		one := wire.AppendResponse(nil, 1, &wire.Blob{Bytes: make([]byte, size)})
		reader := frameReader{source: bytes.NewReader(bytes.Repeat(one, 20))}
		for range 20 {
			if _, err := reader.next(2 << 20); err != nil {
				t.Fatal(err)
			}
			if shared := len(reader.run); shared > 0 && (len(one) < runBytes || shared+len(one) > runBytesMax) {
				t.Errorf("a frame of %d bytes shares memory with %d bytes behind it", len(one), shared)
			}
		}
	}
}

func TestAStreamIsFullByFramesOrByBytesAndTakesAtLeastOne(t *testing.T) {
	cases := []struct {
		frames, bytes int
		sizes         []int
		want          int
	}{
		{3, 100, []int{10, 10, 10, 10}, 3}, {9, 100, []int{50, 50, 1}, 2}, {9, 100, []int{1000, 1}, 1},
		{9, 100, []int{1, 1000}, 1}, {1, 1, []int{1000, 1000}, 1},
	}
	for _, c := range cases {
		s := newStream(c.frames, c.bytes)
		s.put(frame{})
		taken := 0
		for taken < len(c.sizes) && s.put(frame{payload: make([]byte, c.sizes[taken])}) {
			taken++
		}
		if taken != c.want {
			t.Errorf("%v into %d frames and %d bytes: %d are taken, not %d", c.sizes, c.frames, c.bytes, taken, c.want)
		}
	}
}

func TestAnEndedStreamIsEmptiedFirst(t *testing.T) {
	s := newStream(4, 100)
	s.put(frame{payload: []byte("x")})
	reason := errors.New("lost")
	s.end(reason)
	if s.put(frame{}) {
		t.Error("an ended stream takes a frame")
	}
	if f, more, err := s.next(context.Background()); !more || err != nil || string(f.payload) != "x" {
		t.Errorf("got %q, %v, %v", f.payload, more, err)
	}
	if _, more, err := s.next(context.Background()); more || !errors.Is(err, reason) {
		t.Errorf("got %v, %v", more, err)
	}
}

func TestRoomIsGivenInTheOrderOfAsking(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := newBudget(10, 100)
	if err := b.take(ctx, 60); err != nil {
		t.Fatal(err)
	}
	large, impatient := make(chan error), make(chan error)
	go func() { large <- b.take(ctx, 100) }()
	waitFor(t, ctx, func() bool { return b.waitingNow() == 1 })
	short, stop := context.WithCancel(ctx)
	go func() { impatient <- b.take(short, 1) }()
	waitFor(t, ctx, func() bool { return b.waitingNow() == 2 })
	stop()
	if err := <-impatient; !errors.Is(err, context.Canceled) {
		t.Errorf("a small request overtakes a large one, or does not end: %v", err)
	}
	b.giveBack(60)
	if err := <-large; err != nil {
		t.Error(err)
	}
	b.giveBack(100)
	if b.requests != 10 || b.bytes != 100 {
		t.Errorf("%d requests and %d bytes are left", b.requests, b.bytes)
	}
}

func (b *budget) waitingNow() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting.Len()
}

func waitFor(t *testing.T, ctx context.Context, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

func TestRetryabilityIsOneQuestion(t *testing.T) {
	api := func(status int) error { return &APIError{Status: status, Message: "x"} }
	cases := []struct {
		err  error
		want bool
	}{
		{nil, false}, {io.EOF, false}, {lost(io.EOF), true}, {ErrConnect, true}, {api(429), true}, {api(503), true},
		{api(507), true}, {api(404), false}, {api(409), false}, {api(500), false}, {lost(api(401)), true},
		{risky.explain(lost(io.EOF)), false}, {safe.explain(lost(io.EOF)), true}, {risky.explain(api(503)), false},
		{risky.explain(api(429)), true}, {risky.explain(context.Canceled), false}, {ErrClosed, false},
		{protocolError(io.EOF), false}, {context.DeadlineExceeded, false},
	}
	for _, c := range cases {
		if IsRetryable(c.err) != c.want {
			t.Errorf("%v: retryable is not %v", c.err, c.want)
		}
	}
}

func TestHashesHaveOneText(t *testing.T) {
	hash := HashOf(nil)
	const text = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
	if hash.String() != text {
		t.Errorf("got %v", hash)
	}
	if parsed, err := ParseHash(text); err != nil || parsed != hash {
		t.Errorf("got %v, %v", parsed, err)
	}
	for _, bad := range []string{"", "af", text + "00", "zz" + text[2:]} {
		if _, err := ParseHash(bad); err == nil {
			t.Errorf("%q is a hash", bad)
		}
	}
}

func TestADirectoryThatWasReplacedIsNotRead(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "inside"), t.TempDir()
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(inside)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readDirectory(inside, info); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(inside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, inside); err != nil {
		t.Fatal(err)
	}
	if _, err := readDirectory(inside, info); err == nil {
		t.Error("a symlink was followed")
	}
}

// The watchdog looks for silence only while something is unanswered: a subscription that was accepted may be quiet.
func TestSilenceIsDeadlyUntilASubscriptionIsAccepted(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	o := newOptions([]Option{WithAnswerTimeout(time.Hour)})
	c := startConnection(near, &o)
	defer c.close(ErrClosed)
	id, err := c.follow(newStream(1, 1), &wire.Subscribe{})
	if err != nil {
		t.Fatal(err)
	}
	silentAtLast := func() (silent bool) {
		for range 2 * watchTicks {
			silent = c.isSilent()
		}
		return silent
	}
	if !silentAtLast() {
		t.Error("a subscription that nobody accepts waits for ever")
	}
	if err := c.deliver(frame{header: wire.Header{Type: wire.TypeSubscribe, ReqID: id}}); err != nil {
		t.Fatal(err)
	}
	if silentAtLast() {
		t.Error("a quiet subscription is taken for dead")
	}
}
