//! The HTTP gateway as a client sees it: over real sockets, on a store in memory.

mod blobs;
mod client;
mod contexts;
mod damage;
mod documents;
mod events;
mod fs;
mod gate;
mod limits;
mod projection;
mod registry;
mod server;
mod tls;
mod turns;
