//! Publishes a type, appends two turns to a new context, and reads them back.

use std::env;
use std::error::Error;

use bytes::Bytes;
use turnkeep_client::message::{AppendTurn, CreateContext, GetLast, ReadOptions};
use turnkeep_client::{Client, Options, compose};
use turnkeep_types::{Compression, TypeRef};

const BUNDLE: &str = r#"{
  "registry_version": 1,
  "bundle_id": "quickstart#1",
  "types": {"com.example.Greeting": {"versions": {"1": {"fields": {"1": {"name": "text", "type": "string"}}}}}},
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
    client
        .put_bundle("quickstart#1", Bytes::from_static(BUNDLE.as_bytes()))
        .await?;

    let context = client
        .create_context(CreateContext::default())
        .await?
        .context;
    let greeting = TypeRef::new("com.example.Greeting", 1);
    for (key, payload) in [
        ("first", b"\x81\x01\xa5hello"),
        ("second", b"\x81\x01\xa5world"),
    ] {
        // Msgpack of {1: "hello"}; the key makes it safe to send again.
        let turn = compose::turn(&greeting, Bytes::from_static(payload), Compression::None)?;
        let append = AppendTurn {
            key: key.into(),
            ..compose::append(context, turn)
        };
        println!("turn {} is durable", client.append(append).await?.turn);
    }

    let options = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    for item in client
        .last(GetLast {
            context,
            limit: 10,
            options,
        })
        .await?
    {
        println!("{}@{}: {:?}", item.type_id, item.type_version, item.payload);
    }
    Ok(())
}
