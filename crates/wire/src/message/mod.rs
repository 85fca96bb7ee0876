//! The messages: one closed enum of requests and one of responses, with a file per subject.
//!
//! A response does not tell the form of its items, which depends on the request. So the caller of a
//! decoder passes the form: see [`Request::item_form`].

mod append;
mod blob;
mod context;
mod failure;
mod hello;
mod read;
mod request;
mod response;
mod subscribe;

pub use append::{AppendBatch, AppendTurn, BatchAck, BatchAckTurn, SentTurn, TurnAck};
pub use blob::{AttachFs, PutBlob, PutBundle, encode_blob};
pub use context::{ContextHead, CreateContext};
pub use failure::{Failure, encode_failure};
pub use hello::{Hello, Welcome};
pub use read::{
    EventRef, GetBefore, GetLast, GetRange, Item, ItemExtra, ItemForm, ItemRef, PageWriter,
    ReadOptions, encode_event,
};
pub use request::Request;
pub use response::Response;
pub use subscribe::{Delivery, Subscribe};

use crate::frame::Header;
use crate::reader::DecodeError;

/// Rejects flag bits that a message does not define. A bit may announce a further field, so a reader
/// that ignored an unknown one would take that field's bytes for something else.
fn check_flags(header: Header, defined: u16) -> Result<(), DecodeError> {
    let Header {
        msg_type, flags, ..
    } = header;
    if flags & !defined == 0 {
        Ok(())
    } else {
        Err(DecodeError::UndefinedFlags { msg_type, flags })
    }
}

/// Flag bits. A bit means something only in the messages that define it, so two messages may use
/// the same bit for different things.
pub mod flag {
    /// `APPEND_TURN`: a filesystem root follows.
    pub const FS_ROOT: u16 = 1 << 0;
    /// Deliveries of `SUBSCRIBE`: the subscription has reached the end of the log.
    pub const CAUGHT_UP: u16 = 1 << 0;
    /// Reads: payloads are in their stored form.
    pub const STORED_FORM: u16 = 1 << 1;
    /// Appends: the expected head follows.
    pub const EXPECTED_HEAD: u16 = 1 << 2;
    /// Reads: items have their creation time and filesystem root.
    pub const EXTENDED: u16 = 1 << 2;
    /// `CTX_CREATE` and `CTX_FORK`: an idempotency key follows.
    pub const KEY: u16 = 1 << 3;

    /// The bit if it is set, else no bit.
    pub(super) const fn bit_if(set: bool, bit: u16) -> u16 {
        if set { bit } else { 0 }
    }
}
