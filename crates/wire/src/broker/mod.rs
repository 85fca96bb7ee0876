//! The format of the broker's messages.
//!
//! ```text
//! frame   := length u32 big-endian, body           length ≤ 16 MiB
//! body    := MessagePack map with text keys        "type" text, "id" u32, then the message's fields
//! ```
//!
//! Binary fields are MessagePack `bin`. A reader ignores unknown fields and treats `nil` as absent.
//! Other bytes, or bytes after the map, are [`Malformed`]. A declared length never causes an
//! allocation. Decoded values copy their bytes, so they do not keep the receive buffer alive.

mod fields;
mod frame;
mod pack;
mod request;
mod response;
#[cfg(any(test, feature = "dev"))]
pub mod roundtrip;

pub use fields::Malformed;
pub use frame::{HEADER_BYTES, MessageTooLong, next_frame};
pub use request::{Incoming, decode_request, encode_request};
pub use response::{decode_message, encode_message};
