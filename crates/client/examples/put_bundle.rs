//! `REGISTRY_PUT_BUNDLE`: publishes what the tags of a type mean, so that every reader can show its
//! turns.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::{Client, Options};

const BUNDLE: &str = r#"{
  "registry_version": 1,
  "bundle_id": "example#1",
  "types": {"com.example.Note": {"versions": {"1": {"fields": {"1": {"name": "text", "type": "string"}}}}}},
  "enums": {}
}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let addr = env::var("TURNKEEP_ADDR").unwrap_or_else(|_| "127.0.0.1:9009".to_owned());
    let options = Options {
        token: env::var("TURNKEEP_TOKEN").ok(),
        ..Options::default()
    };
    let client = Client::connect(&addr, options).await?;
    let is_new = client
        .put_bundle("example#1", Bytes::from_static(BUNDLE.as_bytes()))
        .await?;
    println!("the bundle {}", if is_new { "is new" } else { "was there" });
    Ok(())
}
