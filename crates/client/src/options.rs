//! Options of a client: connection, time-outs, retries. Every wait and every queue has a limit
//! here.

use std::path::PathBuf;
use std::time::Duration;

/// How to reach a server. `Default` suits a server on the same machine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server's token. A server with `--no-auth` needs none.
    pub token: Option<String>,
    /// Uses TLS if set.
    pub tls: Option<Tls>,
    /// A short name of this client for the server's log.
    pub tag: String,
    /// How long the client waits.
    pub timeouts: Timeouts,
    /// How the client retries after a lost connection or a retryable error.
    pub retry: Retry,
    /// Requests that may be unanswered at once; one more waits.
    pub in_flight_max: usize,
    /// Bytes of unanswered requests at once; a request that would exceed them waits.
    pub in_flight_bytes_max: usize,
    /// The longest request, as the server's frame limit counts it. The client rejects a longer one:
    /// the server would close the connection that all callers share.
    pub request_bytes_max: usize,
    /// The longest frame that is accepted from the server.
    pub frame_bytes_max: usize,
    /// Checks every payload and blob that is read against its hash.
    pub verify_reads: bool,
    /// Events that a subscription queues for a slow reader. If there are more, it drops them and
    /// resumes later from the last event that the reader got.
    pub subscription_events_max: usize,
    /// Bytes of such events. A larger event is queued alone.
    pub subscription_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            token: None,
            tls: None,
            tag: "turnkeep-rust".to_owned(),
            timeouts: Timeouts::default(),
            retry: Retry::default(),
            in_flight_max: 4096,
            in_flight_bytes_max: 128 << 20,
            request_bytes_max: 64 << 20,
            frame_bytes_max: 128 << 20,
            verify_reads: false,
            subscription_events_max: 1024,
            subscription_bytes_max: 64 << 20,
        }
    }
}

/// Which certificates to trust.
#[derive(Debug, Clone)]
pub struct Tls {
    /// A PEM file with the certificates that may sign the server's.
    pub ca_file: PathBuf,
    /// The name that the server's certificate must have; `None` means the host of the address.
    pub server_name: Option<String>,
}

/// How long the client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, its TLS handshake and the answer to HELLO together.
    pub connect: Duration,
    /// For the next byte from the server while requests are unanswered.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(30),
        }
    }
}

/// How often the client retries, and with which pauses. It repeats only requests that are safe to
/// repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts after the first one; 0 means no retry.
    pub attempts_max: u32,
    /// The first pause. Each pause is random between half of its length and the whole.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Retry {
    /// No retries.
    pub const NEVER: Self = Self {
        attempts_max: 0,
        first: Duration::ZERO,
        longest: Duration::ZERO,
    };
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts_max: 8,
            first: Duration::from_millis(50),
            longest: Duration::from_secs(3),
        }
    }
}
