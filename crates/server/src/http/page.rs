//! Turns as JSON text, written straight into the response.
//!
//! A page has two limits: the bytes of payload that it reads and the text that it writes. A page that
//! reaches a limit keeps the newest turns, and always at least one. So turns are rendered from the
//! newest to the oldest, and put in order at the end. A turn that cannot be shown never hides the
//! others: it has an `error` beside its raw view.
//!
//! The text of a payload may be far longer than the payload. So a text is written within a
//! [`TextLimit`]. The caller holds the memory for it, and tries again with more if that is not
//! enough.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use turnkeep_store::projection::{self, BytesRender, ProjectionError, TypeHint};
use turnkeep_store::{Context, Payload, Registry, Turn};
use turnkeep_types::{Compression, TurnId, TypeRef};
use turnkeep_wire::ErrorCode;
use turnkeep_wire::json::Time;

use super::query::ViewOptions;
use crate::error::ApiError;
use crate::guarded_store::ContentReader;
use crate::shared::Shared;

/// How much memory a text may take while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextLimit {
    pub(crate) bytes_max: usize,
    /// Whether there is no larger limit to try: a page is cut, and a single turn that does not fit
    /// is shown with an error.
    pub(crate) is_last: bool,
}

/// Why a text was not written.
#[derive(Debug)]
pub(crate) enum RenderError {
    /// It needs more memory than its limit.
    NeedsMemory,
    /// It cannot be written at all.
    Failed(ApiError),
}

impl From<ApiError> for RenderError {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

/// What happens to a turn whose text does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TooLong {
    /// It is not written.
    LeaveOut,
    /// It is written with an error.
    ShowError,
}

impl TextLimit {
    /// What happens to the first turn of an answer if it does not fit. While there is a larger limit
    /// to try, the answer is written again instead.
    fn on_too_long(self) -> TooLong {
        if self.is_last {
            TooLong::ShowError
        } else {
            TooLong::LeaveOut
        }
    }
}

/// Turns as text, the newest first.
struct RenderedTurns {
    text: String,
    /// Each turn's part of the text.
    ranges: Vec<Range<usize>>,
}

/// A page to be written.
pub(crate) struct JsonPage {
    /// The context as the page's `meta` shows it.
    pub(crate) context: Context,
    /// The turns, oldest first.
    pub(crate) turns: Vec<Turn>,
    /// How to show them.
    pub(crate) options: ViewOptions,
    /// Reads the payloads.
    pub(crate) content: ContentReader,
}

impl JsonPage {
    /// The page as JSON.
    pub(crate) fn render(&self, shared: &Shared, limit: TextLimit) -> Result<String, RenderError> {
        let renderer = Renderer::new(shared, &self.content, &self.options, limit)?;
        let bytes_max = shared.config.limits.page_bytes_max;
        let RenderedTurns { text, ranges } = self.render_newest_first(&renderer, bytes_max)?;
        // With no turn at all the place is out of range, so there is no oldest turn either.
        let oldest = self.turns.iter().rev().nth(ranges.len().wrapping_sub(1));
        let mut out = String::with_capacity(text.len() + 512);
        self.write_meta(&mut out, &renderer.registry);
        for (place, range) in ranges.into_iter().rev().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str(&text[range]);
        }
        out.push_str("],\"next_before_turn_id\":");
        match oldest.filter(|turn| turn.parent.is_some()) {
            Some(turn) => put(&mut out, format_args!("\"{}\"}}", turn.id)),
            None => out.push_str("null}"),
        }
        Ok(out)
    }

    /// Renders turns from the newest on, within the limits.
    fn render_newest_first(
        &self,
        renderer: &Renderer<'_>,
        bytes_max: usize,
    ) -> Result<RenderedTurns, RenderError> {
        let mut text = String::new();
        let mut ranges = Vec::with_capacity(self.turns.len());
        let mut read = 0;
        for turn in self.turns.iter().rev() {
            read += turn.raw_len as usize;
            if !ranges.is_empty() && read > bytes_max {
                break;
            }
            let start = text.len();
            let too_long = if ranges.is_empty() {
                renderer.limit.on_too_long()
            } else {
                TooLong::LeaveOut
            };
            match renderer.write(&mut text, turn, too_long) {
                // The error is in the turn's text. The page as a whole is still a success.
                Ok(_) => {}
                // The unfinished turn stays in the text, but no range refers to it.
                Err(RenderError::NeedsMemory) if renderer.limit.is_last => break,
                Err(error) => return Err(error),
            }
            if !ranges.is_empty() && text.len() > bytes_max {
                break;
            }
            ranges.push(start..text.len());
        }
        Ok(RenderedTurns { text, ranges })
    }

    fn write_meta(&self, out: &mut String, registry: &Registry) {
        let Context {
            id,
            head,
            head_depth,
            ..
        } = &self.context;
        let head = TurnId::to_wire(*head);
        put(
            out,
            format_args!(
                "{{\"meta\":{{\"context_id\":\"{id}\",\"head_turn_id\":\"{head}\",\"head_depth\":{head_depth}"
            ),
        );
        out.push_str(",\"registry_bundle_id\":");
        match registry.last_bundle_id() {
            Some(id) => put_str(out, id),
            None => out.push_str("null"),
        }
        out.push_str("},\"turns\":[");
    }
}

/// Writes turns with one set of options and one state of the registry.
pub(crate) struct Renderer<'a> {
    content: &'a ContentReader,
    registry: Arc<Registry>,
    options: &'a ViewOptions,
    limit: TextLimit,
}

impl<'a> Renderer<'a> {
    /// Makes a renderer. Fails if the reader names a type that is not published, even if no turn
    /// needs it.
    pub(crate) fn new(
        shared: &Shared,
        content: &'a ContentReader,
        options: &'a ViewOptions,
        limit: TextLimit,
    ) -> Result<Self, ApiError> {
        let registry = shared.store.registry();
        if let TypeHint::Explicit(wanted) = &options.projection.hint
            && options.view.is_typed()
            && !registry.knows(wanted)
        {
            return Err(ApiError::new(
                ErrorCode::FailedDependency,
                format!("type {wanted} is not in the registry"),
            )
            .with("type_id", &*wanted.id)
            .with("type_version", wanted.version));
        }
        Ok(Self {
            content,
            registry,
            options,
            limit,
        })
    }

    /// One turn as JSON, or why it cannot be shown.
    pub(crate) fn render_turn(&self, turn: &Turn) -> Result<String, RenderError> {
        let mut out = String::with_capacity(1024);
        match self.write(&mut out, turn, self.limit.on_too_long())? {
            None => Ok(out),
            Some(fault) => Err(RenderError::Failed(fault)),
        }
    }

    /// Writes a complete turn. Returns why it could not be shown as requested. After an error, the
    /// text ends in the middle of the turn.
    fn write(
        &self,
        out: &mut String,
        turn: &Turn,
        too_long: TooLong,
    ) -> Result<Option<ApiError>, RenderError> {
        write_head(out, turn);
        let payload = self.content.payload(turn);
        let bytes = payload
            .as_ref()
            .map_err(Clone::clone)
            .and_then(Payload::raw);
        let mut fault = match &bytes {
            Ok(bytes) => self.write_typed_view(out, turn, bytes, too_long)?,
            Err(error) => Some(ApiError::from(error.clone())),
        };
        // The raw view also accompanies an error, so that a reader can get at the bytes anyway.
        if self.options.view.is_raw() || fault.is_some() {
            let bytes = bytes.as_deref().ok();
            let raw_fault = self.write_raw_view(out, turn, bytes, too_long)?;
            fault = fault.or(raw_fault);
        }
        if let Some(fault) = &fault {
            out.push_str(",\"error\":");
            write_error(out, fault);
        }
        out.push('}');
        if too_long == TooLong::LeaveOut && out.len() > self.limit.bytes_max {
            return Err(RenderError::NeedsMemory);
        }
        Ok(fault)
    }

    /// Writes the typed view, if it is requested. Returns why the payload cannot be shown.
    fn write_typed_view(
        &self,
        out: &mut String,
        turn: &Turn,
        payload: &[u8],
        too_long: TooLong,
    ) -> Result<Option<ApiError>, RenderError> {
        if !self.options.view.is_typed() {
            return Ok(None);
        }
        match self.write_typed(out, turn, payload) {
            Ok(()) => Ok(None),
            Err(ProjectionError::TooLarge { .. }) if too_long == TooLong::LeaveOut => {
                Err(RenderError::NeedsMemory)
            }
            Err(error) => Ok(Some(error.into())),
        }
    }

    /// Writes the raw view. If the bytes do not fit, it is written without them, and the error is
    /// returned.
    fn write_raw_view(
        &self,
        out: &mut String,
        turn: &Turn,
        bytes: Option<&[u8]>,
        too_long: TooLong,
    ) -> Result<Option<ApiError>, RenderError> {
        let text_bytes = out.len() + bytes.map_or(0, |bytes| self.raw_text_bytes(bytes));
        if text_bytes <= self.limit.bytes_max {
            self.write_raw(out, turn, bytes);
            return Ok(None);
        }
        match too_long {
            TooLong::LeaveOut => Err(RenderError::NeedsMemory),
            TooLong::ShowError => {
                self.write_raw(out, turn, None);
                let max = self.limit.bytes_max;
                Ok(Some(ProjectionError::TooLarge { max }.into()))
            }
        }
    }

    fn write_typed(
        &self,
        out: &mut String,
        turn: &Turn,
        payload: &[u8],
    ) -> Result<(), ProjectionError> {
        let ViewOptions { projection, .. } = self.options;
        let projected = projection::project_within(
            &self.registry,
            &turn.declared,
            turn.encoding,
            payload,
            projection,
            write_inner_error,
            self.limit.bytes_max.saturating_sub(out.len()),
        )?;
        out.push(',');
        projected.push_members(out);
        Ok(())
    }

    /// How long the text of a payload's bytes is.
    fn raw_text_bytes(&self, bytes: &[u8]) -> usize {
        match self.options.projection.bytes_render {
            BytesRender::Base64 => bytes.len().div_ceil(3) * 4,
            BytesRender::Hex => bytes.len() * 2,
            BytesRender::LenOnly => 0,
        }
    }

    fn write_raw(&self, out: &mut String, turn: &Turn, bytes: Option<&[u8]>) {
        let (encoding, none, len) = (turn.encoding, Compression::None.to_wire(), turn.raw_len);
        put(
            out,
            format_args!(
                ",\"content_hash_b3\":\"{}\",\"encoding\":{encoding}",
                turn.hash
            ),
        );
        put(
            out,
            format_args!(",\"compression\":{none},\"uncompressed_len\":{len}"),
        );
        let Some(bytes) = bytes else { return };
        match self.options.projection.bytes_render {
            BytesRender::Base64 => put_quoted(out, ",\"bytes_b64\":\"", &STANDARD.encode(bytes)),
            BytesRender::Hex => put_quoted(out, ",\"bytes_hex\":\"", &hex::encode(bytes)),
            BytesRender::LenOnly => put(out, format_args!(",\"bytes_len\":{}", bytes.len())),
        }
    }
}

fn write_head(out: &mut String, turn: &Turn) {
    let Turn {
        id,
        parent,
        depth,
        context,
        created_at,
        ..
    } = turn;
    let parent = TurnId::to_wire(*parent);
    put(
        out,
        format_args!("{{\"turn_id\":\"{id}\",\"parent_turn_id\":\"{parent}\",\"depth\":{depth}"),
    );
    put(
        out,
        format_args!(
            ",\"context_id\":\"{context}\",\"created_at\":\"{}\"",
            Time(*created_at)
        ),
    );
    if let Some(root) = turn.fs_root {
        put(out, format_args!(",\"fs_root_hash\":\"{root}\""));
    }
    out.push_str(",\"declared_type\":");
    put_type(out, &turn.declared);
}

/// Writes an error as the object `{code, status, message}`.
fn write_error(out: &mut String, error: &ApiError) {
    let (word, status) = (error.code.word(), error.code.status());
    put(
        out,
        format_args!("{{\"code\":\"{word}\",\"status\":{status},\"message\":"),
    );
    put_str(out, &error.message);
    out.push('}');
}

/// Writes why a payload inside a payload cannot be shown.
fn write_inner_error(out: &mut String, error: &ProjectionError) {
    write_error(out, &ApiError::from(error.clone()));
}

fn put_type(out: &mut String, name: &TypeRef) {
    out.push_str("{\"type_id\":");
    put_str(out, &name.id);
    put(out, format_args!(",\"type_version\":{}}}", name.version));
}

/// Writes text that needs no escapes.
fn put_quoted(out: &mut String, before: &str, text: &str) {
    out.push_str(before);
    out.push_str(text);
    out.push('"');
}

fn put_str(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a string is JSON"));
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes what is written");
}
