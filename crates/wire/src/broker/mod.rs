//! Broker messages as they lie on the socket.
//!
//! ```text
//! frame   := length u32 big-endian, body           length ≤ 16 MiB
//! body    := MessagePack map with text keys        "type" text, "id" u32, then the message's fields
//! ```
//!
//! Binary fields are MessagePack `bin`. A reader ignores fields that it does not know, takes `nil`
//! for absent, and refuses what is no such map or goes on after it as [`Malformed`]. Nothing is
//! allocated by a declared length, and nothing that is decoded keeps the buffer that it was read
//! from.

mod fields;
mod frame;
mod pack;
mod request;
mod response;
pub mod roundtrip;

pub use fields::Malformed;
pub use frame::{FrameTooLong, HEADER_BYTES, declared, next_frame, seal};
pub use request::{Incoming, decode_request, encode_request};
pub use response::{decode_message, encode_message};
