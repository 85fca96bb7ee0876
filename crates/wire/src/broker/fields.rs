//! The fields of one message: a map with text keys. Values are decoded when they are accessed.
//!
//! Unknown fields are skipped and never decoded, so an older peer accepts the messages of a newer
//! one. A field of the wrong kind is an error with the field's name; the connection stays usable.

use bytes::Bytes;
use turnkeep_types::Timestamp;
use turnkeep_types::broker::{Reason, Refusal, TEXT_BYTES_MAX};
use turnkeep_types::msgpack::{MsgpackError, MsgpackReader, Token};

/// The most fields of a message, with a reserve for later versions. Finding a field scans the list,
/// and the list takes more memory than the fields' bytes, so the number of fields is limited.
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

/// The two fields that every message has.
pub(super) struct MessageHead {
    pub(super) kind: String,
    pub(super) id: u32,
}

/// The fields of a message or of one of its inner maps.
#[derive(Debug)]
pub(super) struct Fields<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Fields<'a> {
    /// Reads a map that fills all of `bytes`.
    pub(super) fn parse_map(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = MsgpackReader::new(bytes);
        let count = match reader.read_token()? {
            Token::Map(count) if count <= FIELDS_MAX => count,
            _ => return Err(Malformed),
        };
        // Without a reserved capacity: the peer wrote `count`.
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
    fn find_value(&self, name: &str) -> Option<&'a [u8]> {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    }

    /// A field's value, unless it is absent or nil. Many MessagePack libraries write an absent value
    /// as nil.
    fn find_token(&self, name: &str) -> Option<Token<'a>> {
        let value = MsgpackReader::new(self.find_value(name)?).read_token().ok();
        value.filter(|value| *value != Token::Nil)
    }

    /// Reads `type` and `id`. Without them there is nothing to answer to, so the connection ends. Any
    /// other fault is answered under the id, and the connection goes on.
    pub(super) fn read_head(&self) -> Result<MessageHead, Malformed> {
        let kind = self
            .require("type", Self::read_text)
            .map_err(|_| Malformed)?;
        let id = self.require("id", Self::read_u32).map_err(|_| Malformed)?;
        Ok(MessageHead { kind, id })
    }

    /// Reads a field with one of the methods below. Returns an error if the field is absent.
    pub(super) fn require<T>(
        &self,
        name: &'static str,
        read: fn(&Self, &'static str) -> Result<Option<T>, BadField>,
    ) -> Result<T, BadField> {
        read(self, name)?.ok_or(BadField::Missing(name))
    }

    /// Reads a text of any length.
    pub(super) fn read_long_text(&self, name: &'static str) -> Result<Option<&'a str>, BadField> {
        match self.find_token(name) {
            None => Ok(None),
            Some(Token::Str(text)) => std::str::from_utf8(text)
                .map(Some)
                .map_err(|_| BadField::Wrong(name)),
            Some(_) => Err(BadField::Wrong(name)),
        }
    }

    /// Reads a text that is a name, a path or a pattern, and therefore short.
    pub(super) fn read_text(&self, name: &'static str) -> Result<Option<String>, BadField> {
        match self.read_long_text(name)? {
            Some(text) if text.len() > TEXT_BYTES_MAX => Err(BadField::Wrong(name)),
            text => Ok(text.map(str::to_owned)),
        }
    }

    pub(super) fn read_u64(&self, name: &'static str) -> Result<Option<u64>, BadField> {
        match self.find_token(name) {
            None => Ok(None),
            Some(Token::Int(number)) => u64::try_from(number)
                .map(Some)
                .map_err(|_| BadField::Wrong(name)),
            Some(_) => Err(BadField::Wrong(name)),
        }
    }

    pub(super) fn read_u32(&self, name: &'static str) -> Result<Option<u32>, BadField> {
        let narrow = |number| u32::try_from(number).map_err(|_| BadField::Wrong(name));
        self.read_u64(name)?.map(narrow).transpose()
    }

    pub(super) fn read_time(&self, name: &'static str) -> Result<Option<Timestamp>, BadField> {
        Ok(self.read_u64(name)?.map(Timestamp))
    }

    /// Reads a flag; absent means not set.
    pub(super) fn read_flag(&self, name: &'static str) -> Result<bool, BadField> {
        Ok(self.read_optional_flag(name)?.unwrap_or_default())
    }

    pub(super) fn read_optional_flag(&self, name: &'static str) -> Result<Option<bool>, BadField> {
        match self.find_token(name) {
            None => Ok(None),
            Some(Token::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(BadField::Wrong(name)),
        }
    }

    /// Reads bytes. They are copied: the broker keeps turns, and a slice would keep the whole message
    /// of up to 16 MiB alive with each of them.
    pub(super) fn read_binary(&self, name: &'static str) -> Result<Option<Bytes>, BadField> {
        match self.find_token(name) {
            None => Ok(None),
            Some(Token::Bin(bytes)) => Ok(Some(Bytes::copy_from_slice(bytes))),
            Some(_) => Err(BadField::Wrong(name)),
        }
    }

    /// Reads a list of maps, each decoded by `each`; `None` if the field is absent.
    pub(super) fn read_maps<T>(
        &self,
        name: &'static str,
        each: fn(&Fields<'_>) -> Result<T, BadField>,
    ) -> Result<Option<Vec<T>>, BadField> {
        let Some(bytes) = self.find_value(name) else {
            return Ok(None);
        };
        let mut reader = MsgpackReader::new(bytes);
        let Ok(Token::Array(count)) = reader.read_token() else {
            return Err(BadField::Wrong(name));
        };
        // A count beyond the bytes ends the loop with an error at the first missing item.
        let mut items = Vec::new();
        for _ in 0..count {
            let item = reader.skip_value().map_err(|_| BadField::Wrong(name))?;
            let fields = Fields::parse_map(item).map_err(|_| BadField::Wrong(name))?;
            items.push(each(&fields)?);
        }
        Ok(Some(items))
    }
}
