//! `CANCEL`: dropping a subscription ends it, and the connection goes on. The position says where
//! to resume.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::message::{CreateContext, ReadOptions, Subscribe};
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
    let subscribe = Subscribe {
        context: Some(context),
        after: Some(0),
        options: ReadOptions::default(),
    };
    let mut first = client.subscribe(subscribe.clone());
    println!("before: depth {}", first.next().await?.item.depth);
    let after = first.position();
    drop(first);

    let mut second = client.subscribe(Subscribe { after, ..subscribe });
    println!("after: depth {}", second.next().await?.item.depth);
    Ok(())
}
