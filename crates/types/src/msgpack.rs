//! MessagePack: the one reader and the one writer of every format that uses it.
//!
//! The reader borrows from a slice and allocates nothing. It checks each declared length against
//! the bytes that follow, so a hostile length fails and costs nothing. The writer appends to memory
//! and cannot fail. It writes every value in its shortest form, unless a method says otherwise.

mod reader;
mod writer;

pub use reader::{MsgpackError, MsgpackReader, Token};
pub use writer::MsgpackWriter;
