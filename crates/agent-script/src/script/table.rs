//! Reads TOML tables strictly.
//!
//! A [`TableReader`] hands out the values of one table. It remembers each key that was asked for, so
//! that [`TableReader::finish`] can reject any other key and list the allowed ones. The list is
//! therefore never out of date.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ScriptError;

type Found<T> = Result<Option<T>, ScriptError>;

/// The script's text, to turn byte positions into lines.
#[derive(Clone, Copy)]
pub(super) struct Source<'s> {
    pub(super) text: &'s str,
}

impl Source<'_> {
    pub(super) fn line_of(self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or_default();
        1 + before.matches('\n').count()
    }

    pub(super) fn error(self, span: &Range<usize>, message: impl Into<String>) -> ScriptError {
        ScriptError {
            line: self.line_of(span),
            message: message.into(),
        }
    }
}

pub(super) struct TableReader<'s> {
    source: Source<'s>,
    /// What the table describes, for messages: "a turn".
    what: &'static str,
    span: Range<usize>,
    entries: DeTable<'s>,
    asked: Vec<&'static str>,
}

impl<'s> TableReader<'s> {
    /// Starts to read `value`, which must be a table.
    pub(super) fn open(
        source: Source<'s>,
        what: &'static str,
        value: Spanned<DeValue<'s>>,
    ) -> Result<Self, ScriptError> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(entries) => Ok(TableReader::new(source, what, span, entries)),
            other => Err(wrong_kind(source, &span, what, "a table", &other)),
        }
    }

    pub(super) fn new(
        source: Source<'s>,
        what: &'static str,
        span: Range<usize>,
        entries: DeTable<'s>,
    ) -> Self {
        TableReader {
            source,
            what,
            span,
            entries,
            asked: Vec::new(),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|key| key.get_ref().as_ref())
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ScriptError {
        self.source.error(&self.span, message)
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Spanned<DeValue<'s>>> {
        self.asked.push(key);
        self.entries.remove(key)
    }

    pub(super) fn take_text(&mut self, key: &'static str) -> Found<String> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        read_text(self.source, key, value).map(Some)
    }

    pub(super) fn need_text(&mut self, key: &'static str) -> Result<String, ScriptError> {
        // Made first: `take_text` needs the table for itself.
        let missing = self.error(format!("{} needs `{key} = \"…\"`", self.what));
        self.take_text(key)?.ok_or(missing)
    }

    pub(super) fn take_flag(&mut self, key: &'static str) -> Result<bool, ScriptError> {
        let Some(value) = self.take(key) else {
            return Ok(false);
        };
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            other => Err(wrong_kind(
                self.source,
                &value.span(),
                key,
                "true or false",
                other,
            )),
        }
    }

    /// A whole number from zero on.
    pub(super) fn take_number(&mut self, key: &'static str) -> Found<u64> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let span = value.span();
        let wanted = "a whole number from 0 on";
        let DeValue::Integer(digits) = value.get_ref() else {
            return Err(wrong_kind(self.source, &span, key, wanted, value.get_ref()));
        };
        let number = u64::from_str_radix(digits.as_str(), digits.radix());
        let out_of_range = |_| {
            self.source
                .error(&span, format!("`{key}` must be {wanted}"))
        };
        number.map(Some).map_err(out_of_range)
    }

    /// A number of dollars, which may have a fraction.
    pub(super) fn take_amount(&mut self, key: &'static str) -> Found<f64> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let digits = match value.get_ref() {
            DeValue::Integer(digits) => digits.to_string(),
            DeValue::Float(digits) => digits.as_str().to_owned(),
            other => {
                return Err(wrong_kind(
                    self.source,
                    &value.span(),
                    key,
                    "a number",
                    other,
                ));
            }
        };
        match digits.parse::<f64>() {
            Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(Some(amount)),
            _ => {
                let message = format!("`{key}` must be a number from 0 on");
                Err(self.source.error(&value.span(), message))
            }
        }
    }

    /// A text, or a list of texts.
    pub(super) fn take_texts(&mut self, key: &'static str) -> Result<Vec<String>, ScriptError> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        let span = value.span();
        match value.into_inner() {
            DeValue::Array(items) => items
                .into_iter()
                .map(|item| read_text(self.source, key, item))
                .collect(),
            other => Ok(vec![read_text(
                self.source,
                key,
                Spanned::new(span, other),
            )?]),
        }
    }

    pub(super) fn take_list(
        &mut self,
        key: &'static str,
    ) -> Result<Vec<Spanned<DeValue<'s>>>, ScriptError> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        let span = value.span();
        match value.into_inner() {
            DeValue::Array(items) => Ok(items.into_iter().collect()),
            other => Err(wrong_kind(self.source, &span, key, "a list", &other)),
        }
    }

    /// A table of free form, as JSON.
    pub(super) fn take_json(&mut self, key: &'static str) -> Found<Value> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let span = value.span();
        match value.get_ref() {
            DeValue::Table(_) => to_json(self.source, &value).map(Some),
            // As text it keeps the order of its members and `null`, which TOML does not have.
            DeValue::String(text) => {
                let not_json = |error| format!("`{key}` is not JSON: {error}");
                let parsed = serde_json::from_str(text).map_err(not_json);
                parsed.map(Some).map_err(|m| self.source.error(&span, m))
            }
            other => Err(wrong_kind(self.source, &span, key, "a table", other)),
        }
    }

    pub(super) fn take_table(&mut self, key: &'static str) -> Found<TableReader<'s>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        TableReader::open(self.source, key, value).map(Some)
    }

    /// Rejects a key that was never asked for.
    pub(super) fn finish(self) -> Result<(), ScriptError> {
        let Some(unknown) = self.entries.keys().next() else {
            return Ok(());
        };
        let message = format!(
            "unknown key `{}` in {}; allowed are: {}",
            unknown.get_ref(),
            self.what,
            self.asked.join(", ")
        );
        Err(self.source.error(&unknown.span(), message))
    }
}

pub(super) fn read_text(
    source: Source<'_>,
    key: &str,
    value: Spanned<DeValue<'_>>,
) -> Result<String, ScriptError> {
    let span = value.span();
    match value.into_inner() {
        DeValue::String(text) => Ok(Cow::into_owned(text)),
        other => Err(wrong_kind(source, &span, key, "a text in quotes", &other)),
    }
}

pub(super) fn wrong_kind(
    source: Source<'_>,
    span: &Range<usize>,
    key: &str,
    wanted: &str,
    found: &DeValue<'_>,
) -> ScriptError {
    let message = format!("`{key}` must be {wanted}, not {}", found.type_str());
    source.error(span, message)
}

fn to_json(source: Source<'_>, value: &Spanned<DeValue<'_>>) -> Result<Value, ScriptError> {
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Integer(digits) => {
            let number = i64::from_str_radix(digits.as_str(), digits.radix());
            let too_large = |_| source.error(&value.span(), "the number is too large");
            Value::from(number.map_err(too_large)?)
        }
        // TOML allows `inf` and `nan`, which JSON cannot express: they become null.
        DeValue::Float(digits) => Value::from(digits.as_str().parse::<f64>().unwrap_or(f64::NAN)),
        DeValue::Array(items) => {
            let items: Result<_, _> = items.iter().map(|item| to_json(source, item)).collect();
            Value::Array(items?)
        }
        DeValue::Table(entries) => {
            let mut fields = serde_json::Map::new();
            for (key, entry) in entries {
                fields.insert(key.get_ref().to_string(), to_json(source, entry)?);
            }
            Value::Object(fields)
        }
    })
}
