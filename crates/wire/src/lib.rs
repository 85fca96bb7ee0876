//! What crosses a process boundary: binary frames, their messages, error codes and JSON shapes.
//!
//! Nothing here decides anything. A decoder takes bytes and gives a value or a [`DecodeError`]; it
//! checks every length before it allocates and refuses bytes left over, so that whatever decodes
//! also encodes to the same bytes again. Payloads are slices of the buffer they arrived in. What
//! the messages mean, byte by byte, is in `docs/binary-protocol.md`.

pub mod broker;
pub mod error;
pub mod frame;
pub mod fs_tree;
pub mod json;
pub mod message;
mod percent;
mod reader;
pub mod roundtrip;
mod text;
mod unpack;

pub use error::{ErrorBody, ErrorCode};
pub use frame::{Frame, FrameTooLong, HEADER_BYTES, Header, MsgType};
pub use message::{Request, Response};
pub use percent::percent_encode;
pub use reader::DecodeError;
pub use text::Text;
