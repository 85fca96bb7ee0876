//! The fields of one message: a map with text keys. Values are decoded when they are accessed.

use bytes::Bytes;
use turnkeep_types::Timestamp;
use turnkeep_types::broker::{Reason, Refusal, TEXT_BYTES_MAX};
use turnkeep_types::msgpack::{MsgpackError, MsgpackReader, Token};

/// The most fields of a message, with a reserve for later versions.
const FIELDS_MAX: u32 = 256;

/// The bytes are not a message: one MessagePack map with text keys, `type` and `id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a message: expected one MessagePack map with text keys, `type` and `id`")]
pub struct Malformed;

impl From<MsgpackError> for Malformed {
    fn from(_: MsgpackError) -> Self {
        Self
    }
}

/// A field is missing or invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadField {
    Missing(&'static str),
    Wrong(&'static str),
}

impl From<BadField> for Refusal {
    fn from(bad: BadField) -> Self {
        match bad {
            BadField::Missing(name) => {
                Self::new(Reason::MissingField, format!("`{name}` is missing"))
            }
            BadField::Wrong(name) => Self::new(
                Reason::BadField,
                format!("`{name}` has a value that it cannot have"),
            ),
        }
    }
}

/// The fields of a message or of one of its inner maps.
#[derive(Debug)]
pub(super) struct Fields<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Fields<'a> {
    /// Reads a map that fills all of `bytes`.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = MsgpackReader::new(bytes);
        let count = match reader.read_token()? {
            Token::Map(count) if count <= FIELDS_MAX => count,
            _ => return Err(Malformed),
        };
        let mut fields = Vec::new();
        for _ in 0..count {
            let Token::Str(key) = reader.read_token()? else {
                return Err(Malformed);
            };
            let key = std::str::from_utf8(key).map_err(|_| Malformed)?;
            fields.push((key, reader.skip_value()?));
        }
        if reader.unread().is_empty() {
            Ok(Self(fields))
        } else {
            Err(Malformed)
        }
    }

    /// The bytes of a field's value. If a key occurs twice, the last one counts.
    fn find(&self, name: &str) -> Option<&'a [u8]> {
        // From the end, so that the last occurrence of a key counts.
        self.0
            .iter()
            .rev()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    }

    /// A field's value, unless it is absent or nil.
    fn value(&self, name: &str) -> Option<Token<'a>> {
        let value = MsgpackReader::new(self.find(name)?).read_token().ok();
        value.filter(|value| *value != Token::Nil)
    }

    /// A text of any length.
    pub(super) fn long_text(&self, name: &'static str) -> Result<Option<&'a str>, BadField> {
        match self.value(name) {
            None => Ok(None),
            Some(Token::Str(text)) => std::str::from_utf8(text)
                .map(Some)
                .map_err(|_| BadField::Wrong(name)),
            Some(_) => Err(BadField::Wrong(name)),
        }
    }

    /// A text that is a name, a path or a pattern.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<String>, BadField> {
        match self.long_text(name)? {
            Some(text) if text.len() > TEXT_BYTES_MAX => Err(BadField::Wrong(name)),
            text => Ok(text.map(str::to_owned)),
        }
    }

    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, BadField> {
        match self.value(name) {
            None => Ok(None),
            Some(Token::Int(number)) => u64::try_from(number)
                .map(Some)
                .map_err(|_| BadField::Wrong(name)),
            Some(_) => Err(BadField::Wrong(name)),
        }
    }

    pub(super) fn small(&self, name: &'static str) -> Result<Option<u32>, BadField> {
        let narrow = |number| u32::try_from(number).map_err(|_| BadField::Wrong(name));
        self.number(name)?.map(narrow).transpose()
    }

    pub(super) fn time(&self, name: &'static str) -> Result<Option<Timestamp>, BadField> {
        Ok(self.number(name)?.map(Timestamp))
    }

    /// A flag; absent means not set.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, BadField> {
        Ok(self.flag_or_none(name)?.unwrap_or_default())
    }

    pub(super) fn flag_or_none(&self, name: &'static str) -> Result<Option<bool>, BadField> {
        match self.value(name) {
            None => Ok(None),
            Some(Token::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(BadField::Wrong(name)),
        }
    }

    /// Bytes. They are copied, so that they do not keep the whole message alive.
    pub(super) fn binary(&self, name: &'static str) -> Result<Option<Bytes>, BadField> {
        match self.value(name) {
            None => Ok(None),
            Some(Token::Bin(bytes)) => Ok(Some(Bytes::copy_from_slice(bytes))),
            Some(_) => Err(BadField::Wrong(name)),
        }
    }

    /// A list of maps, each decoded by `each`; `None` if the field is absent.
    pub(super) fn maps<T>(
        &self,
        name: &'static str,
        each: fn(&Fields<'_>) -> Result<T, BadField>,
    ) -> Result<Option<Vec<T>>, BadField> {
        let Some(bytes) = self.find(name) else {
            return Ok(None);
        };
        let mut reader = MsgpackReader::new(bytes);
        let Ok(Token::Array(count)) = reader.read_token() else {
            return Err(BadField::Wrong(name));
        };
        let mut items = Vec::new();
        for _ in 0..count {
            let item = reader.skip_value().map_err(|_| BadField::Wrong(name))?;
            let fields = Fields::read(item).map_err(|_| BadField::Wrong(name))?;
            items.push(each(&fields)?);
        }
        Ok(Some(items))
    }
}

/// Returns an error if a required field is absent.
pub(super) fn required<T>(
    name: &'static str,
    value: Result<Option<T>, BadField>,
) -> Result<T, BadField> {
    value?.ok_or(BadField::Missing(name))
}
