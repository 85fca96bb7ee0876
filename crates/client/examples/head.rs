//! `GET_HEAD`: where a context stands.

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
    let context = client
        .create_context(CreateContext::default())
        .await?
        .context;
    let head = client.head(context).await?;
    match head.head {
        Some(turn) => println!(
            "context {context} stands at turn {turn}, depth {}",
            head.depth
        ),
        None => println!("context {context} is empty"),
    }
    Ok(())
}
