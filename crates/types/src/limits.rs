//! The configurable limits. They apply before a command is logged and never to logged commands.

/// The limits of requests, each with its unit. `Default` has the documented values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Payload bytes of one binary frame.
    pub frame_bytes_max: usize,
    /// One payload or blob, uncompressed.
    pub blob_bytes_max: usize,
    /// All payloads of one batch as sent.
    pub batch_bytes_max: usize,
    /// All payloads of one batch, uncompressed.
    pub batch_raw_bytes_max: usize,
    /// Turns in one batch.
    pub batch_turns_max: usize,
    /// One HTTP request body.
    pub http_body_bytes_max: usize,
    /// One registry bundle.
    pub bundle_bytes_max: usize,
    /// All registry bundles together. The registry is kept in memory and can never shrink; it takes
    /// up to about thirty times the bytes of its bundles.
    pub registry_bytes_max: usize,
    /// A type id, in UTF-8.
    pub type_id_bytes_max: usize,
    /// An idempotency key.
    pub key_bytes_max: usize,
    /// Labels of one context.
    pub labels_max: usize,
    /// One label's key or value, in UTF-8.
    pub label_bytes_max: usize,
    /// Nesting of JSON bodies. A value above 128 has no effect: payloads and bundles allow 128.
    pub nesting_max: usize,
    /// Turns that one read returns.
    pub page_turns_max: usize,
    /// Payload bytes that one read returns.
    pub page_bytes_max: usize,
    /// Hashes in one `HAS_BLOBS` request.
    pub has_blobs_max: usize,
    /// Ledger: writing requests per minute of one person's token.
    pub token_writes_per_minute: usize,
    /// Ledger: bytes of text per minute that one person's token writes.
    pub token_write_bytes_per_minute: usize,
    /// Ledger: writing requests per minute of all persons of one world.
    pub world_writes_per_minute: usize,
    /// Ledger: bytes of text per minute that all persons of one world write.
    pub world_write_bytes_per_minute: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // A batch may be as long as a frame. A frame is longer than a blob, because the fields around
        // a payload need room as well.
        const MIB: usize = 1 << 20;
        Self {
            frame_bytes_max: 64 * MIB,
            blob_bytes_max: 32 * MIB,
            batch_bytes_max: 64 * MIB,
            batch_raw_bytes_max: 256 * MIB,
            batch_turns_max: 1024,
            http_body_bytes_max: 64 * MIB,
            bundle_bytes_max: 8 * MIB,
            registry_bytes_max: 16 * MIB,
            type_id_bytes_max: 512,
            key_bytes_max: 1024,
            labels_max: 64,
            label_bytes_max: 1024,
            nesting_max: 128,
            page_turns_max: 10_000,
            page_bytes_max: 64 * MIB,
            has_blobs_max: 65_536,
            token_writes_per_minute: 1_200,
            token_write_bytes_per_minute: 64 * MIB,
            world_writes_per_minute: 12_000,
            world_write_bytes_per_minute: 256 * MIB,
        }
    }
}
