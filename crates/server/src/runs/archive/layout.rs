//! What is where in the archive of a run.
//!
//! | entry | for |
//! |---|---|
//! | `manifest.json` | the format, the run's id, and how many records follow |
//! | `index.html` | people: a page that needs no server and no network |
//! | `events.jsonl` | tools: one event a line, as in the run's directory |
//! | `artifacts/<id>-<name>` | both: the files that the run made |
//! | `patches/<number>-<node>.patch` | people: the diffs in their order |
//! | `transcripts/<node>.jsonl` | tools: what was said to a node and by it |
//! | `records/events.bin` | import: the records of the events, byte for byte |
//! | `records/transcripts/<node id>.bin` | import: the records of a transcript |
//! | `records/blobs.bin` | import: the long texts that records name |
//!
//! Import reads the manifest, the records and the artifacts; the rest is made from them.
//!
//! ```text
//! a record:  u16 length of the type   type   u32 its version   u32 length of the payload   payload
//! a blob:    32 bytes hash   u32 length   content
//! ```

use std::io::{self, Read, Seek, Write};

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::ids::{NodeId, RunId};
use turnkeep_types::{BlobHash, TypeRef};

use super::zip::{ZipError, ZipReader};

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const PAGE: &str = "index.html";
pub(super) const EVENTS: &str = "events.jsonl";
pub(super) const EVENT_RECORDS: &str = "records/events.bin";
pub(super) const BLOBS: &str = "records/blobs.bin";

/// Names the format in the manifest.
const FORMAT: &str = "turnkeep-run";
const VERSION: u64 = 1;
/// The longest manifest: a run of ten thousand nodes needs a fraction of it.
pub(super) const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// The longest record, as in the store.
pub(super) const RECORD_BYTES_MAX: u32 = 4 << 20;
/// The longest blob and the longest artifact, as in the store.
pub(super) const BLOB_BYTES_MAX: u32 = 64 << 20;
/// The longest name of an artifact. With its id it must fit the name of a file.
const ARTIFACT_NAME_BYTES_MAX: usize = 200;
/// How many bytes of records are read at once.
const PAGE_BYTES: usize = 1 << 20;

/// What the archive says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) run: RunId,
    pub(super) events: u64,
    pub(super) transcripts: Vec<TranscriptCount>,
}

/// How many records the transcript of a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TranscriptCount {
    pub(super) node: NodeId,
    pub(super) turns: u64,
}

impl Manifest {
    pub(super) fn to_json(&self) -> Value {
        let row = |count: &TranscriptCount| json!({"nodeId": count.node.to_string(), "turns": count.turns});
        json!({
            "format": FORMAT,
            "version": VERSION,
            "runId": self.run.to_string(),
            "events": self.events,
            "transcripts": self.transcripts.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// Reads a manifest; the error says what is wrong.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let wrong = || format!("`{MANIFEST}` is not that of an exported run");
        let value: Value = serde_json::from_slice(bytes).map_err(|_| wrong())?;
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(wrong());
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(newer) if newer > VERSION => {
                return Err(format!(
                    "the archive has version {newer}, and this server knows {VERSION}: upgrade it"
                ));
            }
            _ => return Err(wrong()),
        }
        let rows = value.get("transcripts").and_then(Value::as_array);
        let transcripts = rows.ok_or_else(wrong)?.iter().map(parse_count);
        Ok(Self {
            run: parse_id(&value, "runId").ok_or_else(wrong)?,
            events: value
                .get("events")
                .and_then(Value::as_u64)
                .ok_or_else(wrong)?,
            transcripts: transcripts.collect::<Option<_>>().ok_or_else(wrong)?,
        })
    }
}

fn parse_count(row: &Value) -> Option<TranscriptCount> {
    Some(TranscriptCount {
        node: parse_id(row, "nodeId")?,
        turns: row.get("turns")?.as_u64()?,
    })
}

fn parse_id<T: std::str::FromStr>(value: &Value, name: &str) -> Option<T> {
    value.get(name)?.as_str()?.parse().ok()
}

/// The entry with the records of a transcript.
pub(super) fn transcript_records(node: NodeId) -> String {
    format!("records/transcripts/{node}.bin")
}

/// The entry with the content of an artifact.
pub(super) fn artifact_entry(artifact: &Artifact) -> String {
    format!("artifacts/{}-{}", artifact.id, plain_name(&artifact.name))
}

/// A name that every file system takes: letters, digits, dots, dashes and underscores.
pub(super) fn plain_name(name: &str) -> String {
    let plain = |letter: char| {
        let is_plain = letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
        if is_plain { letter } else { '_' }
    };
    name.chars().take(80).map(plain).collect()
}

/// Whether an artifact can have this name. Its file is `<id>-<name>`, so a separator would lead out
/// of the directory.
pub(super) fn is_artifact_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= ARTIFACT_NAME_BYTES_MAX
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control)
}

/// A record with its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) declared: TypeRef,
    pub(super) payload: Bytes,
}

/// Writes a record.
pub(super) fn write_record(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let TypeRef { id, version } = &record.declared;
    let too_long = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let type_bytes = u16::try_from(id.len()).map_err(too_long)?;
    let payload_bytes = u32::try_from(record.payload.len()).map_err(too_long)?;
    out.write_all(&type_bytes.to_le_bytes())?;
    out.write_all(id.as_bytes())?;
    out.write_all(&version.to_le_bytes())?;
    out.write_all(&payload_bytes.to_le_bytes())?;
    out.write_all(&record.payload)
}

/// Writes a blob.
pub(super) fn write_blob(out: &mut impl Write, hash: &BlobHash, content: &[u8]) -> io::Result<()> {
    let too_long = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let bytes = u32::try_from(content.len()).map_err(too_long)?;
    out.write_all(hash.as_bytes())?;
    out.write_all(&bytes.to_le_bytes())?;
    out.write_all(content)
}

/// Why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LayoutError {
    #[error(transparent)]
    Zip(#[from] ZipError),
    #[error("`{entry}` is damaged at byte {at}")]
    Damaged { entry: String, at: u64 },
}

/// The records of an entry, a page at a time.
///
/// Between two pages the caller may read other entries: a page begins where the last one ended.
pub(super) struct RecordPages {
    entry: String,
    at: u64,
}

impl RecordPages {
    pub(super) fn new(entry: String) -> Self {
        Self { entry, at: 0 }
    }

    /// The next records; none at the end.
    pub(super) fn read_page<R: Read + Seek>(
        &mut self,
        zip: &mut ZipReader<R>,
    ) -> Result<Vec<Record>, LayoutError> {
        let mut content = zip.stream_from(&self.entry, self.at)?;
        let mut page = Vec::new();
        let begin = self.at;
        while content.limit() > 0 && self.at - begin < PAGE_BYTES as u64 {
            let before = content.limit();
            let record = read_record(&mut content);
            let record = record.ok_or_else(|| LayoutError::Damaged {
                entry: self.entry.clone(),
                at: self.at,
            })?;
            self.at += before - content.limit();
            page.push(record);
        }
        Ok(page)
    }
}

fn read_record(content: &mut impl Read) -> Option<Record> {
    let type_bytes = u16::from_le_bytes(read_array(content)?);
    let id = read_bytes(content, u32::from(type_bytes))?;
    let id = String::from_utf8(id).ok()?;
    let version = u32::from_le_bytes(read_array(content)?);
    let bytes = u32::from_le_bytes(read_array(content)?);
    let payload = read_bytes(
        content,
        // A forged length must not take the memory of the server.
        Some(bytes).filter(|bytes| *bytes <= RECORD_BYTES_MAX)?,
    )?;
    Some(Record {
        declared: TypeRef::new(id, version),
        payload: payload.into(),
    })
}

/// Where a blob of the archive is.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlobPlace {
    pub(super) hash: BlobHash,
    at: u64,
    bytes: u32,
}

/// Finds the blobs of an archive and checks their hashes.
pub(super) fn index_blobs<R: Read + Seek>(
    zip: &mut ZipReader<R>,
) -> Result<Vec<BlobPlace>, LayoutError> {
    let mut content = zip.stream(BLOBS)?;
    let whole = content.limit();
    let mut places = Vec::new();
    while content.limit() > 0 {
        let begin = whole - content.limit();
        let place = read_blob(&mut content, whole);
        places.push(place.ok_or_else(|| LayoutError::Damaged {
            entry: BLOBS.to_owned(),
            at: begin,
        })?);
    }
    Ok(places)
}

fn read_blob<R: Read>(content: &mut io::Take<R>, whole: u64) -> Option<BlobPlace> {
    let hash = BlobHash(read_array(content)?);
    let bytes = u32::from_le_bytes(read_array(content)?);
    let at = whole - content.limit();
    let found = read_bytes(
        content,
        Some(bytes).filter(|bytes| *bytes <= BLOB_BYTES_MAX)?,
    )?;
    (BlobHash::of(&found) == hash).then_some(BlobPlace { hash, at, bytes })
}

/// Reads a blob that was found before.
pub(super) fn read_blob_at<R: Read + Seek>(
    zip: &mut ZipReader<R>,
    place: BlobPlace,
) -> Result<Bytes, LayoutError> {
    let mut content = zip.stream_from(BLOBS, place.at)?;
    let damaged = || LayoutError::Damaged {
        entry: BLOBS.to_owned(),
        at: place.at,
    };
    let content = read_bytes(&mut content, place.bytes).ok_or_else(damaged)?;
    Ok(content.into())
}

fn read_array<const N: usize>(content: &mut impl Read) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    content.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// Reads exactly so many bytes. Memory grows with the bytes that are there, not with the number.
fn read_bytes(content: &mut impl Read, bytes: u32) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    content.take(u64::from(bytes)).read_to_end(&mut read).ok()?;
    (read.len() == bytes as usize).then_some(read)
}
