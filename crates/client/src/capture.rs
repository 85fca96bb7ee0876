//! Stores captured turns: their type, their payload and the append.
//!
//! Each session has one context, and each captured turn is one turn in it. Both have idempotency
//! keys, so keeping a turn twice, or after a lost response, stores it once. The payload has
//! `content` only if it differs from the text, so that nothing is stored twice.

use std::collections::HashMap;

use bytes::Bytes;
use rmp::encode::{write_bin, write_bool, write_map_len, write_str, write_uint};
use tokio::sync::Mutex;
use turnkeep_types::broker::FoundTurn;
use turnkeep_types::{Compression, ContextId, TypeRef};
use turnkeep_wire::message::{AppendTurn, CreateContext, TurnAck};

use crate::client::Client;
use crate::compose;
use crate::error::Error;

/// The bundle that describes captured turns.
pub const BUNDLE: &str = include_str!("capture.json");
/// The bundle's id.
pub const BUNDLE_ID: &str = "turnkeep.capture#1";
/// The type of a captured turn.
pub const TURN_TYPE: &str = "turnkeep.capture.Turn";
const TURN_VERSION: u32 = 1;

/// Payloads of this size and more are sent compressed.
const COMPRESS_FROM_BYTES: usize = 4096;
/// The most sessions whose context is cached. Creating the context again is safe, only slower.
const CONTEXTS_MAX: usize = 4096;

/// A captured turn in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The context of its session.
    pub context: ContextId,
    /// The turn in the store.
    pub ack: TurnAck,
}

/// Keeps captured turns in a store.
pub struct CaptureStore {
    client: Client,
    cache: Mutex<CaptureCache>,
}

#[derive(Default)]
struct CaptureCache {
    published: bool,
    contexts: HashMap<String, ContextId>,
}

impl CaptureStore {
    /// Stores turns through this client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            cache: Mutex::default(),
        }
    }

    /// Appends the turn to the context of its session, once, and waits until it is durable.
    pub async fn keep(&self, turn: &FoundTurn) -> Result<Kept, Error> {
        let context = self.context(&turn.session).await?;
        let payload = payload(turn);
        let form = if payload.len() < COMPRESS_FROM_BYTES {
            Compression::None
        } else {
            Compression::Zstd
        };
        let sent = compose::turn(&TypeRef::new(TURN_TYPE, TURN_VERSION), payload, form)?;
        let key = Bytes::copy_from_slice(turn.info.turn_id.as_bytes());
        let ack = self
            .client
            .append(AppendTurn {
                key,
                ..compose::append(context, sent)
            })
            .await?;
        Ok(Kept { context, ack })
    }

    /// Returns the session's context. The first call publishes the type and creates the context.
    pub async fn context(&self, session: &str) -> Result<ContextId, Error> {
        let mut cache = self.cache.lock().await;
        // Once is enough: published bundles never change.
        if !cache.published {
            self.client
                .put_bundle(BUNDLE_ID, Bytes::from_static(BUNDLE.as_bytes()))
                .await?;
            cache.published = true;
        }
        if let Some(context) = cache.contexts.get(session) {
            return Ok(*context);
        }
        let key = Some(Bytes::from(format!("turnkeep.capture:{session}")));
        let context = self
            .client
            .create_context(CreateContext { base: None, key })
            .await?
            .context;
        // Clearing is enough: the keys find the contexts again.
        if cache.contexts.len() >= CONTEXTS_MAX {
            cache.contexts.clear();
        }
        cache.contexts.insert(session.to_owned(), context);
        Ok(context)
    }
}

/// The value of a field.
enum Field<'a> {
    Text(&'a str),
    Number(u64),
    Set,
    Binary(&'a [u8]),
}

/// Encodes the turn as a payload of [`TURN_TYPE`].
pub fn payload(turn: &FoundTurn) -> Bytes {
    let text = turn.readable();
    let content =
        Some(&turn.content[..]).filter(|content| text.map(str::as_bytes) != Some(*content));
    let flag = |set: bool| set.then_some(Field::Set);
    let fields = [
        (1, Some(Field::Text(&turn.info.turn_id))),
        (2, Some(Field::Text(&turn.session))),
        (3, turn.name.as_deref().map(Field::Text)),
        (4, turn.preset.as_deref().map(Field::Text)),
        (5, Some(Field::Number(turn.info.timestamp.0))),
        (6, flag(turn.info.interrupted)),
        (7, flag(turn.info.truncated)),
        (8, flag(turn.info.incomplete)),
        (9, turn.text_source.as_deref().map(Field::Text)),
        (10, text.map(Field::Text)),
        (11, content.map(Field::Binary)),
    ];
    let fields: Vec<(u64, Field<'_>)> = fields
        .into_iter()
        .filter_map(|(tag, field)| Some((tag, field?)))
        .collect();
    let mut out = Vec::with_capacity(turn.content.len() + 256);
    encode_fields(&mut out, &fields)
        .unwrap_or_else(|error| unreachable!("memory takes every byte: {error}"));
    out.into()
}

fn encode_fields(
    out: &mut Vec<u8>,
    fields: &[(u64, Field<'_>)],
) -> Result<(), rmp::encode::ValueWriteError<std::io::Error>> {
    write_map_len(out, u32::try_from(fields.len()).unwrap_or(u32::MAX))?;
    for (tag, field) in fields {
        write_uint(out, *tag)?;
        match field {
            Field::Text(text) => write_str(out, text)?,
            Field::Number(number) => {
                write_uint(out, *number)?;
            }
            Field::Set => {
                write_bool(out, true).map_err(rmp::encode::ValueWriteError::InvalidMarkerWrite)?;
            }
            Field::Binary(bytes) => write_bin(out, bytes)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_kept_only_where_it_is_not_the_text() {
        fn check(content: &'static [u8], text: Option<&str>, expect_fields: u8, expect: &[u8]) {
            let turn = FoundTurn {
                content: Bytes::from_static(content),
                text: text.map(str::to_owned),
                ..FoundTurn::default()
            };
            let payload = payload(&turn);
            assert_eq!(payload[0], 0x80 | expect_fields, "{content:?} {text:?}");
            assert!(
                payload.windows(expect.len()).any(|window| window == expect),
                "{payload:?}"
            );
        }
        check(b"plain", None, 4, b"\x0a\xa5plain");
        check(b"plain", Some("plain"), 4, b"\x0a\xa5plain");
        check(b"\x1b[1mbold", Some("bold"), 5, b"\x0b\xc4\x08\x1b[1mbold");
        check(b"\xff", None, 4, b"\x0b\xc4\x01\xff");
    }
}
