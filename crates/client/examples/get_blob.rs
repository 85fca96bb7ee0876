//! `GET_BLOB`: bytes by the name of their hash, checked on arrival.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::{Client, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let addr = env::var("TURNKEEP_ADDR").unwrap_or_else(|_| "127.0.0.1:9009".to_owned());
    let token = env::var("TURNKEEP_TOKEN").ok();
    let options = Options {
        token,
        verify_reads: true,
        ..Options::default()
    };
    let client = Client::connect(&addr, options).await?;
    let (hash, _) = client
        .put_blob(Bytes::from_static(b"got by an example"))
        .await?;
    let bytes = client.blob(hash).await?;
    println!("{}", String::from_utf8_lossy(&bytes));
    Ok(())
}
