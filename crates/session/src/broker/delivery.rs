//! Delivers the relay buffer to a sink: which fields each sink needs, and the order of the checks.
//!
//! The order is: unknown sink, missing field, unknown session, empty buffer, disconnected session,
//! dialog. So a request that can never work is rejected the same way whatever was captured.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::broker::{Deliver, Inject, Paste, Reason, Refusal, TurnForm, ends_paste};

use super::effect::{Delivery, Effect, NodeAddress};
use super::ring::{HeldTurn, KeptTurn};
use super::{Broker, Decision, DecisionResult};

/// A destination of a turn.
enum Sink {
    Inject,
    Clipboard,
    File,
    Store,
    Node,
}

impl Sink {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "inject" => Self::Inject,
            "clipboard" => Self::Clipboard,
            "file" => Self::File,
            "store" => Self::Store,
            "node" => Self::Node,
            _ => return None,
        })
    }
}

impl Broker {
    /// Hands the relay buffer to a sink.
    pub(super) fn deliver(&self, deliver: Deliver) -> DecisionResult {
        let unknown = || {
            Refusal::new(
                Reason::UnknownSink,
                format!("there is no sink `{}`", deliver.sink),
            )
        };
        let sink = Sink::from_name(&deliver.sink).ok_or_else(unknown)?;
        let Deliver {
            session,
            path,
            run,
            node,
            form,
            bracketed,
            unless_blocked,
            ..
        } = deliver;
        let effect = match sink {
            Sink::Inject => {
                let session = require_field("session", session)?;
                return self.inject(&Paste {
                    session,
                    form,
                    bracketed,
                    unless_blocked,
                });
            }
            Sink::Clipboard => Effect::Clipboard(self.make_delivery(form)?),
            Sink::File => {
                let path = file_path(require_field("path", path)?)?;
                Effect::File {
                    path,
                    delivery: self.make_delivery(form)?,
                }
            }
            Sink::Store => Effect::Store(self.make_delivery(form)?),
            Sink::Node => {
                let to = NodeAddress {
                    run: require_field("run", run)?,
                    node: require_field("node", node)?,
                };
                Effect::Node {
                    to,
                    delivery: self.make_delivery(form)?,
                }
            }
        };
        Ok(Decision::Effect(Box::new(effect)))
    }

    /// Injects the relay buffer into a session.
    pub(super) fn inject(&self, paste: &Paste) -> DecisionResult {
        let owner = self
            .table
            .owner(&paste.session)
            .ok_or(Reason::SessionNotFound)?;
        // Before the check of the connection: see the order at the top of this file.
        let turn = self.relay_buffer()?;
        let to = owner.ok_or(Reason::SessionDisconnected)?;
        if paste.unless_blocked && self.table.may_show_dialog(&paste.session) {
            let detail =
                "the program shows a dialog, or has shown no prompt yet: a paste would answer it";
            return Err(Refusal::new(Reason::Blocked, detail));
        }
        let content = bytes_in_form(turn, paste.form)?;
        if (paste.bracketed || self.table.frames_pastes(&paste.session)) && ends_paste(&content) {
            let detail =
                "the content holds the end of a bracketed paste: what follows it would be typed";
            return Err(Refusal::new(Reason::UnsafeContent, detail));
        }
        let inject = Inject {
            content,
            bracketed: paste.bracketed,
        };
        Ok(Decision::Effect(Box::new(Effect::Inject { to, inject })))
    }

    fn relay_buffer(&self) -> Result<&Arc<KeptTurn>, Refusal> {
        self.relay
            .as_ref()
            .ok_or_else(|| Reason::BufferEmpty.into())
    }

    fn make_delivery(&self, form: TurnForm) -> Result<Delivery, Refusal> {
        let turn = self.relay_buffer()?;
        let held = HeldTurn {
            kept: Arc::clone(turn),
            raw: false,
        };
        Ok(Delivery {
            bytes: bytes_in_form(turn, form)?,
            turn: held,
        })
    }
}

fn require_field(field: &str, value: Option<String>) -> Result<String, Refusal> {
    value.ok_or_else(|| Refusal::new(Reason::MissingField, format!("`{field}` is missing")))
}

fn bytes_in_form(turn: &KeptTurn, form: TurnForm) -> Result<Bytes, Refusal> {
    turn.bytes(form).ok_or_else(|| Reason::NoRaw.into())
}

fn file_path(path: String) -> Result<PathBuf, Refusal> {
    if path.starts_with('/') && !path.contains('\0') {
        return Ok(path.into());
    }
    Err(Refusal::new(
        Reason::BadPath,
        "the path of a file is absolute",
    ))
}
