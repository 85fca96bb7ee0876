//! `HELLO`: connects, gives the token and learns whether the server takes it.

use std::env;
use std::error::Error;

use turnkeep_client::{Client, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let addr = env::var("TURNKEEP_ADDR").unwrap_or_else(|_| "127.0.0.1:9009".to_owned());
    let options = Options {
        token: env::var("TURNKEEP_TOKEN").ok(),
        ..Options::default()
    };
    let client = Client::connect(&addr, options).await?;
    drop(client);
    println!("connected to {addr}");
    Ok(())
}
