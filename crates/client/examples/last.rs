//! `GET_LAST`: the newest turns of a context, oldest first.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::message::{CreateContext, GetLast, ReadOptions};
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
    for payload in [&b"\x81\x01\xa1a"[..], b"\x81\x01\xa1b", b"\x81\x01\xa1c"] {
        let turn = compose::turn(&note, Bytes::from_static(payload), Compression::None)?;
        client.append(compose::append(context, turn)).await?;
    }
    let options = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    for item in client
        .last(GetLast {
            context,
            limit: 2,
            options,
        })
        .await?
    {
        println!(
            "depth {}: {} bytes of {}@{}",
            item.depth, item.raw_len, item.type_id, item.type_version
        );
    }
    Ok(())
}
