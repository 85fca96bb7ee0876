//! The Rust client of the binary protocol, and in [`broker`] that of the broker's socket.
//!
//! A [`Client`] is cheap to clone. All clones share one connection: the client pipelines requests,
//! combines writes and matches responses by request id. After a lost connection it dials again with
//! growing pauses. It repeats a lost request if that is safe; otherwise the request fails with
//! [`Error::OutcomeUnknown`]. [`Options`] bounds everything in flight.
//!
//! ```no_run
//! # async fn example() -> Result<(), turnkeep_client::Error> {
//! use turnkeep_client::{Client, Options, compose};
//! use turnkeep_client::message::CreateContext;
//! use turnkeep_types::{Compression, TypeRef};
//!
//! let options = Options { token: Some("…".to_owned()), ..Options::default() };
//! let client = Client::connect("127.0.0.1:9009", options).await?;
//! let context = client.create_context(CreateContext::default()).await?.context;
//! let turn = compose::turn(&TypeRef::new("com.example.Note", 1), "\u{0}".into(), Compression::None)?;
//! let mut append = compose::append(context, turn);
//! append.key = "note-1".into();
//! println!("turn {}", client.append(append).await?.turn);
//! # Ok(())
//! # }
//! ```

mod backoff;
pub mod broker;
pub mod capture;
mod client;
pub mod compose;
mod connection;
mod dial;
mod error;
mod frames;
mod history;
mod options;
mod pending;
mod subscription;
pub mod tls;
pub mod verify;

pub use client::Client;
pub use error::{Error, Lost, ServerError};
pub use history::History;
pub use options::{Options, Retry, Timeouts, Tls};
pub use pending::{Answered, Pending};
pub use subscription::Subscription;
pub use turnkeep_wire::{ErrorCode, fs_tree, message};
