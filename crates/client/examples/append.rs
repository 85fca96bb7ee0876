//! `APPEND_TURN`: one turn, durable when the answer is there. The key makes it safe to repeat, the
//! expected head keeps two writers from overwriting each other.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::message::{AppendTurn, CreateContext};
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
    // Msgpack of {1: "hello"}: payloads are maps from field tags to values.
    let payload = Bytes::from_static(b"\x81\x01\xa5hello");
    let turn = compose::turn(
        &TypeRef::new("com.example.Note", 1),
        payload,
        Compression::Zstd,
    )?;
    let append = AppendTurn {
        key: "example: append".into(),
        expected_head: Some(None),
        ..compose::append(context, turn)
    };
    let ack = client.append(append.clone()).await?;
    assert_eq!(
        client.append(append).await?,
        ack,
        "the same key gives the same ack"
    );
    println!(
        "turn {} at depth {} with payload {}",
        ack.turn, ack.depth, ack.hash
    );
    Ok(())
}
