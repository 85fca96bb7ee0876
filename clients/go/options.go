// How a client connects, waits and tries again. Every wait and every queue has a bound here.

package turnkeep

import (
	"crypto/tls"
	"time"

	"turnkeep.dev/go/internal/wire"
)

// Option changes how a client connects, waits and tries again.
type Option func(*options)

type options struct {
	token          string
	tls            *tls.Config
	tag            string
	connectTimeout time.Duration
	answerTimeout  time.Duration
	retry          Retry
	requestsMax    int
	bytesMax       int
	replyBytesMax  int
	verify         bool
	zstdFrom       int
	queueEvents    int
	queueBytes     int
}

func newOptions(changes []Option) options {
	o := options{
		tag:            "turnkeep-go",
		connectTimeout: 5 * time.Second,
		answerTimeout:  30 * time.Second,
		retry:          Retry{Attempts: 8, First: 50 * time.Millisecond, Longest: 3 * time.Second},
		requestsMax:    4096,
		bytesMax:       128 << 20,
		replyBytesMax:  128 << 20,
		zstdFrom:       -1,
		queueEvents:    1024,
		queueBytes:     64 << 20,
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

// requestBytesMax is the longest request. The server would close the connection, which all goroutines share, if the
// client sent a longer one.
func (o *options) requestBytesMax() int { return min(o.bytesMax, wire.FrameBytesMax) }

// Retry says how often the client tries again, and with which pauses. It repeats only requests that are safe to
// repeat.
type Retry struct {
	// Attempts is the number of tries after the first one; 0 means no retry. A subscription starts counting again
	// after every event, and after it has lasted for at least Longest.
	Attempts int
	// First is the longest first pause. Each pause is drawn from half of its length to the whole, and the
	// next is twice as long.
	First time.Duration
	// Longest is the longest pause.
	Longest time.Duration
}

// WithToken names the server's token; only a server that runs with --no-auth needs none.
func WithToken(token string) Option { return func(o *options) { o.token = token } }

// WithTLS uses TLS. Without a ServerName, the certificate must have the address's host.
func WithTLS(config *tls.Config) Option { return func(o *options) { o.tls = config } }

// WithTag sets the name by which the server's log knows this client, at most 256 bytes; "turnkeep-go" unless given.
func WithTag(tag string) Option { return func(o *options) { o.tag = tag } }

// WithConnectTimeout bounds connecting, TLS and HELLO together; 5 s unless given.
func WithConnectTimeout(d time.Duration) Option { return func(o *options) { o.connectTimeout = d } }

// WithAnswerTimeout bounds a connection's silence while requests are unanswered; 30 s unless given. It is
// for dead servers: a context bounds a single request.
func WithAnswerTimeout(d time.Duration) Option { return func(o *options) { o.answerTimeout = d } }

// WithRetry replaces the default of 8 attempts with pauses from 50 ms to 3 s.
func WithRetry(retry Retry) Option { return func(o *options) { o.retry = retry } }

// WithInFlight bounds the unanswered requests, 4096 and 128 MiB unless given; one more waits.
func WithInFlight(requests, bytes int) Option {
	return func(o *options) { o.requestsMax, o.bytesMax = max(requests, 1), max(bytes, 1) }
}

// WithReplyLimit bounds the frames that are accepted from the server, 128 MiB unless given.
func WithReplyLimit(bytes int) Option { return func(o *options) { o.replyBytesMax = max(bytes, 1) } }

// WithVerify checks every payload and blob that is read against its hash.
func WithVerify() Option { return func(o *options) { o.verify = true } }

// WithZstd compresses payloads of at least this many bytes, if that makes them smaller.
func WithZstd(fromBytes int) Option { return func(o *options) { o.zstdFrom = max(fromBytes, 0) } }

// WithQueue limits the events that a subscription queues for a slow reader, 1024 events and 64 MiB unless
// given. Beyond that it drops the queue and resumes by itself.
func WithQueue(events, bytes int) Option {
	return func(o *options) { o.queueEvents, o.queueBytes = max(events, 1), max(bytes, 1) }
}
