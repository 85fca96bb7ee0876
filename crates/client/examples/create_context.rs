//! `CTX_CREATE`: a new, empty context. The key makes it safe to repeat.

use std::env;
use std::error::Error;

use turnkeep_client::message::CreateContext;
use turnkeep_client::{Client, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let addr = env::var("TURNKEEP_ADDR").unwrap_or_else(|_| "127.0.0.1:9009".to_owned());
    let options = Options {
        token: env::var("TURNKEEP_TOKEN").ok(),
        ..Options::default()
    };
    let client = Client::connect(&addr, options).await?;
    let create = CreateContext {
        base: None,
        key: Some("example: create".into()),
    };
    let first = client.create_context(create.clone()).await?.context;
    let again = client.create_context(create).await?.context;
    println!("context {first}, and with the same key again {again}");
    Ok(())
}
