//! The ERROR frame: the response to a request that failed.

use bytes::{BufMut, BytesMut};

use crate::error::{ErrorBody, ErrorCode};
use crate::frame::{MsgType, OpenFrame, put_bytes};
use crate::reader::{DecodeError, Reader};
use crate::text::Text;

/// A received error. The detail is text; [`Failure::body`] parses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The number, which is the HTTP status.
    pub status: u32,
    /// JSON, or plain text from a server that sends no JSON.
    pub detail: Text,
}

impl Failure {
    /// Parses the detail. Plain text becomes the message: other implementations of the protocol may
    /// send no JSON.
    pub fn body(&self) -> ErrorBody {
        serde_json::from_str(&self.detail).unwrap_or_else(|_| ErrorBody {
            // No word: a program can only look at the status.
            code: String::new(),
            message: self.detail.as_str().to_owned(),
            details: serde_json::Map::new(),
        })
    }

    /// The error code, if status and word are known.
    pub fn code(&self) -> Option<ErrorCode> {
        ErrorCode::from_wire(self.status, &self.body().code)
    }

    pub(crate) fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            status: reader.read_u32("code")?,
            detail: reader.read_text("detail")?,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u32_le(self.status);
        put_bytes(out, self.detail.as_bytes());
    }
}

/// Appends an ERROR frame. `details` must be a JSON object.
pub fn encode_failure(
    out: &mut BytesMut,
    req_id: u64,
    code: ErrorCode,
    message: &str,
    details: &serde_json::Map<String, serde_json::Value>,
) {
    let body = ErrorBody {
        code: code.word().to_owned(),
        message: message.to_owned(),
        details: details.clone(),
    };
    // Serializing strings cannot fail; the plain message is a safe fallback.
    let detail = serde_json::to_string(&body).unwrap_or_else(|_| message.to_owned());
    let frame = OpenFrame::begin(out, MsgType::Error, 0, req_id);
    Failure {
        status: code.status().into(),
        detail: Text::from(detail),
    }
    .write_to(out);
    frame.finish(out);
}
