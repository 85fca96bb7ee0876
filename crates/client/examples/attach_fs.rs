//! `ATTACH_FS`: gives a turn the root of a directory tree. A tree is a msgpack array of entries
//! `{1: name, 2: kind, 3: mode, 4: size, 5: hash}`, sorted by name.

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
    let (file, _) = client.put_blob(Bytes::from_static(b"hello\n")).await?;
    // One file "a" with mode 0644 and 6 bytes.
    let mut tree = b"\x91\x85\x01\xa1a\x02\x00\x03\xcd\x01\xa4\x04\x06\x05\xc4\x20".to_vec();
    tree.extend_from_slice(file.as_bytes());
    let (root, _) = client.put_blob(tree.into()).await?;

    let context = client
        .create_context(CreateContext::default())
        .await?
        .context;
    let payload = Bytes::from_static(b"\x81\x01\xa5hello");
    let turn = compose::turn(
        &TypeRef::new("com.example.Note", 1),
        payload,
        Compression::None,
    )?;
    let turn = client.append(compose::append(context, turn)).await?.turn;
    client.attach_fs(turn, root).await?;
    println!("turn {turn} has the files of {root}");
    Ok(())
}
