//! `HAS_BLOBS`: which of many blobs the server has, so that only the others need be sent.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::{Client, Options};
use turnkeep_types::BlobHash;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let addr = env::var("TURNKEEP_ADDR").unwrap_or_else(|_| "127.0.0.1:9009".to_owned());
    let options = Options {
        token: env::var("TURNKEEP_TOKEN").ok(),
        ..Options::default()
    };
    let client = Client::connect(&addr, options).await?;
    let (there, _) = client
        .put_blob(Bytes::from_static(b"asked for by an example"))
        .await?;
    let missing = BlobHash::of(b"nobody ever put this");
    let has = client.has_blobs(vec![there, missing]).await?;
    println!("{has:?}");
    Ok(())
}
