//! How a client connects, waits and tries again. Every wait and every queue has a bound here.

use std::path::PathBuf;
use std::time::Duration;

/// How to reach a server. `Default` suits a server on the same machine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server's token; none only for a server that runs with `--no-auth`.
    pub token: Option<String>,
    /// Speaks TLS when set.
    pub tls: Option<Tls>,
    /// A short name by which the server's log knows this client.
    pub tag: String,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// What to do when the connection is lost or the server says "later".
    pub retry: Retry,
    /// Requests that may be unanswered at once; one more waits.
    pub in_flight_max: usize,
    /// Bytes of unanswered requests at once; a request that would exceed them waits.
    pub in_flight_bytes_max: usize,
    /// The longest request, as the server's frame limit counts it. A longer one is refused here:
    /// sent, it would end the connection for everybody who shares it.
    pub request_bytes_max: usize,
    /// The longest frame that is accepted from the server.
    pub frame_bytes_max: usize,
    /// Checks every payload and blob that is read against its hash.
    pub verify_reads: bool,
    /// Events that a subscription holds for a reader that is busy. Beyond them it resumes by
    /// itself.
    pub subscription_events_max: usize,
    /// Bytes of such events. A larger event is held alone.
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

/// Whom to trust when speaking TLS.
#[derive(Debug, Clone)]
pub struct Tls {
    /// A PEM file with the certificates that may sign the server's.
    pub ca_file: PathBuf,
    /// The name that the server's certificate must have; none means the host of the address.
    pub server_name: Option<String>,
}

/// How long to wait for what.
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

/// How often and how patiently to try again. Only what is safe to repeat is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Tries after the first one; 0 gives up at once.
    pub attempts_max: u32,
    /// The longest first pause; each pause is drawn from half of its length to the whole.
    pub first: Duration,
    /// The longest pause at all.
    pub longest: Duration,
}

impl Retry {
    /// Never tries again.
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
