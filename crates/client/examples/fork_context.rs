//! `CTX_FORK`: a new context that begins where a turn of another one stands. Nothing is copied.

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
    let turn = compose::turn(
        &note,
        Bytes::from_static(b"\x81\x01\xa5hello"),
        Compression::None,
    )?;
    let base = client.append(compose::append(context, turn)).await?.turn;
    let fork = client
        .fork_context(CreateContext {
            base: Some(base),
            key: None,
        })
        .await?;
    println!("context {} begins at turn {base}", fork.context);
    Ok(())
}
