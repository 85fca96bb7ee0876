//! The demo's history: a conversation with typed turns of three versions, and two forks of it.

use anyhow::{Context, Result};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::answer::text_of;
use crate::http::{Call, Http};

const MESSAGE: &str = "com.example.shop.Message";
/// An id that JavaScript's numbers cannot hold: it stays exact on its way to the browser.
const ORDER: &str = "9007199254740993";
/// The first turn was written at this time, and each further one a minute later.
const FIRST_SENT_AT_MS: u64 = 1_760_000_000_000;
const MINUTE_MS: u64 = 60_000;

/// A turn: the speaker, and the words.
type Words = (&'static str, &'static str);

const BEGINNING: [Words; 2] = [
    (
        "user",
        "I ordered ten pears and paid the full price. Is there no discount?",
    ),
    (
        "assistant",
        "There is one from ten pieces on. What is the number of your order?",
    ),
];
const MIDDLE: [Words; 2] = [
    (
        "user",
        "It is on the receipt: see the order of this message.",
    ),
    (
        "assistant",
        "Found. The order is older than the discount, by one day.",
    ),
];
const END: [Words; 2] = [
    ("user", "Can I still have it?"),
    (
        "assistant",
        "Yes: **135 cents** are on your account for the next order.",
    ),
];
const SHORT_END: [Words; 1] = [("assistant", "Sorry, the discount began a day later.")];
const OTHER_END: [Words; 2] = [
    ("user", "Then please cancel it, and I order again."),
    (
        "assistant",
        "Cancelled. The new order costs 1350 cents instead of 1500.",
    ),
];

/// Makes the contexts. Returns the id of the one that the forks come from.
pub(super) async fn fill_history(mut http: Http) -> Result<u64> {
    publish_types(&mut http).await?;
    let mut writer = ContextWriter { http, written: 0 };
    let labels = json!({"agent": "support", "topic": "discount"});
    let body = json!({"labels": labels});
    let made = writer.http.json(Call::post("/v1/contexts", &body)).await?;
    let context = text_of(&made, "context_id").to_owned();
    writer.append(&context, 1, &BEGINNING).await?;
    let base = writer.append(&context, 2, &MIDDLE).await?;
    writer.append(&context, 3, &END).await?;
    for (draft, end) in [("short", &SHORT_END[..]), ("cancel", &OTHER_END[..])] {
        let labels = json!({"agent": "support", "topic": "discount", "draft": draft});
        let body = json!({"base_turn_id": base, "labels": labels});
        let forked = writer
            .http
            .json(Call::post("/v1/contexts/fork", &body))
            .await?;
        writer
            .append(text_of(&forked, "context_id"), 3, end)
            .await?;
    }
    context.parse().context("the server named no context")
}

/// Publishes the three versions of the type, each in a bundle of its own, as a program does that
/// gets new fields over time.
async fn publish_types(http: &mut Http) -> Result<()> {
    for version in 1..=3 {
        let id = format!("shop-{version}");
        let versions: serde_json::Map<String, Value> = (1..=version)
            .map(|version| (version.to_string(), json!({"fields": fields_of(version)})))
            .collect();
        let bundle = json!({
            "registry_version": 1,
            "bundle_id": id,
            "types": {MESSAGE: {"versions": versions}},
            "enums": {"com.example.shop.Role": {"1": "system", "2": "user", "3": "assistant"}},
        });
        let path = format!("/v1/registry/bundles/{id}");
        let body = Bytes::from(bundle.to_string());
        http.json(Call::put(path, "application/json", body)).await?;
    }
    Ok(())
}

/// The fields of a version. A version keeps the fields of the earlier ones.
fn fields_of(version: u32) -> Value {
    let mut fields = json!({
        "1": {"name": "role", "type": "u8", "enum": "com.example.shop.Role"},
        "2": {"name": "text", "type": "string", "semantic": "markdown"},
    });
    if version >= 2 {
        fields["3"] = json!({"name": "order", "type": "u64", "optional": true});
    }
    if version >= 3 {
        fields["4"] = json!({
            "name": "sent_at", "type": "u64", "semantic": "unix_ms", "optional": true,
        });
    }
    fields
}

/// Appends the turns of the conversation.
struct ContextWriter {
    http: Http,
    /// How many turns were appended, which tells the time of the next one.
    written: u64,
}

impl ContextWriter {
    /// Appends turns of one version to a context. Returns the id of the last one.
    async fn append(&mut self, context: &str, version: u32, turns: &[Words]) -> Result<String> {
        let mut last = String::new();
        for (role, text) in turns {
            let mut data = json!({"role": role, "text": text});
            if version >= 2 {
                data["order"] = ORDER.into();
            }
            if version >= 3 {
                data["sent_at"] = (FIRST_SENT_AT_MS + self.written * MINUTE_MS).into();
            }
            self.written += 1;
            let body = json!({"type_id": MESSAGE, "type_version": version, "data": data});
            let call = Call::post(format!("/v1/contexts/{context}/turns"), &body);
            let appended = self.http.json(call).await?;
            text_of(&appended, "turn_id").clone_into(&mut last);
        }
        Ok(last)
    }
}
