//! `PUT_BLOB`: keeps bytes under the name of their BLAKE3 hash, once, however often they are put.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::{Client, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let addr = env::var("TURNKEEP_ADDR").unwrap_or_else(|_| "127.0.0.1:9009".to_owned());
    let options = Options {
        token: env::var("TURNKEEP_TOKEN").ok(),
        ..Options::default()
    };
    let client = Client::connect(&addr, options).await?;
    let (hash, was_new) = client
        .put_blob(Bytes::from_static(b"put by an example"))
        .await?;
    println!("{hash} {}", if was_new { "is new" } else { "was there" });
    Ok(())
}
