//! How much one connection carries with this client, to compare it with the clients in other
//! languages.
//!
//! Appends of 1 KiB, all different, 512 in flight; then `GET_LAST` of 64 turns with their payloads,
//! 16 in flight; half a second to warm up and three to count, each. Prints one line of JSON.

use std::collections::VecDeque;
use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use turnkeep_client::message::{CreateContext, GetLast, ReadOptions};
use turnkeep_client::{Client, Options, compose};
use turnkeep_types::{Compression, ContextId, TypeRef};

const PAYLOAD_BYTES: usize = 1024;
const APPENDS_IN_FLIGHT: usize = 512;
const READS_IN_FLIGHT: usize = 16;
const TURNS_PER_READ: u32 = 64;
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(3);

type Fallible<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Fallible<()> {
    let addr = env::var("TURNKEEP_ADDR").unwrap_or_else(|_| "127.0.0.1:9009".to_owned());
    let options = Options {
        token: env::var("TURNKEEP_TOKEN").ok(),
        ..Options::default()
    };
    let client = Client::connect(&addr, options).await?;
    let context = client
        .create_context(CreateContext::default())
        .await?
        .context;
    let appends = appends(&client, context).await?;
    let reads = reads(&client, context).await?;
    println!(
        r#"{{"client":"rust","appends_per_second":{appends:.0},"pages_per_second":{reads:.0}}}"#
    );
    Ok(())
}

/// Counts what ends after the warm-up and before the end.
struct Count {
    start: Instant,
    ended: u32,
}

impl Count {
    fn new() -> Self {
        Self {
            start: Instant::now() + WARM_UP,
            ended: 0,
        }
    }

    /// Counts one, and says whether there is time for another.
    fn one(&mut self) -> bool {
        let since = Instant::now().checked_duration_since(self.start);
        self.ended += u32::from(since.is_some());
        since.is_none_or(|since| since < MEASURED)
    }

    fn per_second(&self) -> f64 {
        f64::from(self.ended) / self.start.elapsed().as_secs_f64()
    }
}

async fn appends(client: &Client, context: ContextId) -> Fallible<f64> {
    let note = TypeRef::new("bench.Note", 1);
    let mut noise = Noise(context.get() | 1 << 63);
    let mut pending = VecDeque::with_capacity(APPENDS_IN_FLIGHT);
    let mut count = Count::new();
    loop {
        while pending.len() < APPENDS_IN_FLIGHT {
            let turn = compose::turn(&note, noise.payload(), Compression::None)?;
            pending.push_back(client.submit_append(compose::append(context, turn)).await?);
        }
        let Some(oldest) = pending.pop_front() else {
            continue;
        };
        oldest.await?;
        if !count.one() {
            return Ok(count.per_second());
        }
    }
}

/// Reads as many callers, since a read is not handed out before its answer.
async fn reads(client: &Client, context: ContextId) -> Fallible<f64> {
    let callers: Vec<_> = (0..READS_IN_FLIGHT)
        .map(|_| tokio::spawn(read_for_a_while(client.clone(), context)))
        .collect();
    let mut per_second = 0.0;
    for caller in callers {
        per_second += caller.await??;
    }
    Ok(per_second)
}

async fn read_for_a_while(
    client: Client,
    context: ContextId,
) -> Result<f64, turnkeep_client::Error> {
    let options = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    let get = GetLast {
        context,
        limit: TURNS_PER_READ,
        options,
    };
    let mut count = Count::new();
    loop {
        let items = client.last(get.clone()).await?;
        assert_eq!(
            items.len(),
            TURNS_PER_READ as usize,
            "the context has enough turns"
        );
        if !count.one() {
            return Ok(count.per_second());
        }
    }
}

/// Bytes that do not compress and do not repeat.
struct Noise(u64);

impl Noise {
    fn payload(&mut self) -> Bytes {
        let words = (0..PAYLOAD_BYTES / 8).flat_map(|_| self.next().to_le_bytes());
        words.collect::<Vec<u8>>().into()
    }

    /// A step of xorshift64.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
