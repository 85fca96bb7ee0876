//! The formats between processes: binary frames, their messages, error codes and JSON shapes.
//!
//! This crate has no logic. A decoder takes bytes and returns a value or a [`DecodeError`]. It
//! checks every length before it allocates, and rejects trailing bytes. So a message that decodes
//! encodes to the same bytes again. Payloads are slices of the receive buffer.
//! `docs/binary-protocol.md` defines the messages byte by byte.

pub mod broker;
pub mod capture;
pub mod error;
pub mod frame;
pub mod fs_tree;
pub mod json;
pub mod message;
mod percent;
mod reader;
#[cfg(any(test, feature = "dev"))]
pub mod roundtrip;
pub mod runs;
mod text;
pub mod transcript;

pub use error::{ErrorBody, ErrorCode, ErrorReason};
pub use frame::{Frame, FrameTooLong, HEADER_BYTES, Header, MsgType};
pub use message::{Request, Response};
pub use percent::percent_encode;
pub use reader::DecodeError;
pub use text::Text;

/// The head of the command line's `User-Agent`. Its version follows.
pub const CLI_USER_AGENT: &str = "turnkeep/";
