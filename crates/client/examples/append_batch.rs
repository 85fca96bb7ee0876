//! `APPEND_BATCH`: several turns, all of them or none, and the head moves once.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::message::{AppendBatch, CreateContext};
use turnkeep_client::{Client, Options, compose};
use turnkeep_types::{Compression, TypeRef};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
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
    let note = TypeRef::new("com.example.Note", 1);
    let payloads: [&[u8]; 3] = [b"\x81\x01\xa1a", b"\x81\x01\xa1b", b"\x81\x01\xa1c"];
    let turns = payloads
        .map(|payload| compose::turn(&note, Bytes::from_static(payload), Compression::None));
    let turns = turns.into_iter().collect::<Result<_, _>>()?;
    let batch = AppendBatch {
        context,
        parent: None,
        turns,
        key: "example: batch".into(),
        expected_head: None,
    };
    let ack = client.append_batch(batch).await?;
    println!(
        "{} turns, the last at depth {}",
        ack.turns.len(),
        ack.turns.last().map_or(0, |turn| turn.depth)
    );
    Ok(())
}
