//! Many appends in flight on one connection: each is sent without waiting for the one before.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::message::CreateContext;
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
    let mut pending = Vec::new();
    for number in 0..100_u8 {
        let payload = Bytes::from(vec![0x81, 1, number]);
        let turn = compose::turn(&note, payload, Compression::None)?;
        pending.push(client.submit_append(compose::append(context, turn)).await?);
    }
    let mut last = None;
    for ack in pending {
        last = Some(ack.await?.depth);
    }
    println!(
        "the last of 100 turns is at depth {}",
        last.unwrap_or_default()
    );
    Ok(())
}
