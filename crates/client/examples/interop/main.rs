//! The Rust side of the interoperability matrix. `clients/interop/README.md` describes its commands.

mod record;

use std::env;
use std::error::Error;
use std::fs;

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_client::message::{AppendTurn, CreateContext, Item, ReadOptions};
use turnkeep_client::{Client, Options, compose, verify};
use turnkeep_types::{BlobHash, Compression, ContextId, TypeRef};

use record::Record;

/// The type of the cases.
const RECORD: &str = "interop.Record";
/// Payloads up to this are reported whole.
const SHOWN_BYTES_MAX: usize = 4096;

type Fallible<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Fallible<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = match arguments[..] {
        ["write", file, "none"] => write(file, Compression::None).await?,
        ["write", file, "zstd"] => write(file, Compression::Zstd).await?,
        ["read", context] => read(context.parse()?).await?,
        _ => return Err("usage: interop write FILE none|zstd, or interop read CONTEXT".into()),
    };
    println!("{report}");
    Ok(())
}

async fn connect() -> Fallible<Client> {
    let options = Options {
        token: env::var("TURNKEEP_TOKEN").ok(),
        verify_reads: true,
        ..Options::default()
    };
    Ok(Client::connect(&env::var("TURNKEEP_ADDR")?, options).await?)
}

async fn write(file: &str, form: Compression) -> Fallible<Value> {
    let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(file)?)?;
    let client = connect().await?;
    let context = client
        .create_context(CreateContext::default())
        .await?
        .context;
    for case in cases {
        let turn = compose::turn(&TypeRef::new(RECORD, 1), payload(&case["write"])?, form)?;
        let key = Bytes::from(
            case["name"]
                .as_str()
                .ok_or("a case has no name")?
                .to_owned(),
        );
        client
            .append(AppendTurn {
                key,
                ..compose::append(context, turn)
            })
            .await?;
    }
    Ok(json!({"context_id": context.to_string()}))
}

fn payload(write: &Value) -> Fallible<Bytes> {
    if write["record"].is_object() {
        return Ok(Record::from_json(&write["record"])?.encode().into());
    }
    let mut bytes = hex::decode(write["bytes"].as_str().ok_or("a case writes nothing")?)?;
    let zeros = usize::try_from(write["zeros"].as_u64().unwrap_or(0))?;
    bytes.resize(bytes.len() + zeros, 0);
    let mut state = 1_u32;
    for _ in 0..write["noise"].as_u64().unwrap_or(0) {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.push(state.to_le_bytes()[3]);
    }
    Ok(bytes.into())
}

async fn read(context: ContextId) -> Fallible<Value> {
    let client = connect().await?;
    let raw = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    let mut stored = client.history(
        context,
        ReadOptions {
            stored_form: true,
            ..raw
        },
    );
    let mut plain = client.history(context, raw);
    let mut turns = Vec::new();
    while let (Some(stored), Some(plain)) = (stored.next().await?, plain.next().await?) {
        turns.push(report(&stored, &plain)?);
    }
    turns.reverse();
    Ok(turns.into())
}

/// What the driver compares of one turn that was read in both forms.
fn report(stored: &Item, plain: &Item) -> Fallible<Value> {
    let payload = verify::payload(stored)?;
    if payload != plain.payload || plain.compression != Compression::None {
        return Err(format!("turn {} differs between its two forms", stored.turn).into());
    }
    let shown = payload.len() <= SHOWN_BYTES_MAX;
    let is_record = shown && !payload.is_empty() && stored.type_id.as_str() == RECORD;
    let record = if is_record {
        Some(Record::decode(&payload)?)
    } else {
        None
    };
    let reencoded = record.as_ref().map(Record::encode);
    Ok(json!({
        "type_id": stored.type_id.as_str(),
        "type_version": stored.type_version,
        "encoding": stored.encoding,
        "depth": stored.depth,
        "uncompressed_len": stored.raw_len,
        "content_hash": stored.hash.to_string(),
        "stored_compression": stored.compression.to_wire(),
        "blake3": BlobHash::of(&payload).to_string(),
        "payload": shown.then(|| hex::encode(&payload)),
        "record": record.as_ref().map(Record::to_json),
        "reencoded": reencoded.map(|bytes| hex::encode(&bytes)),
    }))
}
