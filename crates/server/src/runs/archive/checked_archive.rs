//! An archive of which everything was checked: the zip file, every record as the store would read it,
//! the numbers of the events, the hashes of blobs and artifacts, and the names that become parts of
//! paths and branches.
//!
//! A record that decodes is not yet one that the runtime would write. The checks at the end of this
//! file are for what the runtime takes for granted about its own events.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Seek};

use bytes::Bytes;
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::fact::NodeChange;
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::node::NodeSettings;
use turnkeep_runtime::run::{RunLimits, RunSettings};
use turnkeep_runtime::{Event, Fact, Run, record};
use turnkeep_types::{BlobHash, Timestamp};
use turnkeep_wire::transcript::decode_item;

use super::ArchiveError;
use super::layout::{self, BlobPlace, Manifest, RecordPages};
use super::zip::ZipReader;

/// The last time that a record may have: the end of the year 9999, in milliseconds.
const TIME_MAX: Timestamp = Timestamp(253_402_300_799_999);
/// The longest time that a limit of a run may have: ten years, in milliseconds.
const LIMIT_MS_MAX: u64 = 10 * 366 * 24 * 60 * 60 * 1000;
/// The longest alias and role.
const NAME_CHARACTERS_MAX: usize = 64;

/// An archive of which everything was checked.
pub(super) struct CheckedArchive<R> {
    pub(super) zip: ZipReader<R>,
    pub(super) manifest: Manifest,
    pub(super) blobs: HashMap<BlobHash, BlobPlace>,
    pub(super) artifacts: Vec<Artifact>,
}

fn bad(message: impl Into<String>) -> ArchiveError {
    ArchiveError::BadArchive(message.into())
}

impl<R: Read + Seek> CheckedArchive<R> {
    /// Opens an archive and checks it.
    pub(super) fn open(file: R) -> Result<Self, ArchiveError> {
        let mut zip = ZipReader::open(file)?;
        let manifest = zip.read(layout::MANIFEST, layout::MANIFEST_BYTES_MAX)?;
        let manifest = Manifest::parse(&manifest).map_err(bad)?;
        let places = layout::index_blobs(&mut zip)?;
        let blobs = places.into_iter().map(|place| (place.hash, place));
        let mut archive = Self {
            zip,
            manifest,
            blobs: blobs.collect(),
            artifacts: Vec::new(),
        };
        // The events first: they name the artifacts and the nodes of the transcripts.
        let nodes = archive.check_events()?;
        archive.check_artifacts()?;
        archive.check_transcripts(&nodes)?;
        Ok(archive)
    }

    /// Reads all events. Returns the nodes that they add.
    fn check_events(&mut self) -> Result<BTreeSet<NodeId>, ArchiveError> {
        let mut pages = RecordPages::new(layout::EVENT_RECORDS.to_owned());
        let mut run = Run::new(self.manifest.run);
        let mut nodes = BTreeSet::new();
        loop {
            let page = pages.read_page(&mut self.zip)?;
            if page.is_empty() {
                break;
            }
            for record in page {
                if record.declared != record::event_type() {
                    return Err(bad("a record of the events has another type"));
                }
                let event = self.decode_event(&record.payload)?;
                check_event(&event, run.live.last_seq)?;
                run.apply(&event);
                match event.fact {
                    Fact::NodeAdded(_) => nodes.extend(event.node),
                    Fact::ArtifactCreated(artifact) => self.artifacts.push(*artifact),
                    _ => {}
                }
            }
        }
        if run.live.last_seq == 0 || run.live.last_seq != self.manifest.events {
            return Err(bad("it has another number of events than it says"));
        }
        if run.live.is_deleted {
            return Err(bad("the run was deleted"));
        }
        Ok(nodes)
    }

    fn decode_event(&mut self, payload: &[u8]) -> Result<Event, ArchiveError> {
        let zip = RefCell::new(&mut self.zip);
        let blobs = &self.blobs;
        let find = |hash: &BlobHash| {
            let place = blobs.get(hash).copied()?;
            layout::read_blob_at(&mut zip.borrow_mut(), place).ok()
        };
        record::decode(payload, &find).map_err(|error| bad(format!("an event {error}")))
    }

    /// Reads every artifact: its name, its length and its hash.
    fn check_artifacts(&mut self) -> Result<(), ArchiveError> {
        for place in 0..self.artifacts.len() {
            let Some(artifact) = self.artifacts.get(place).cloned() else {
                break;
            };
            self.read_artifact(&artifact)?;
        }
        Ok(())
    }

    /// Reads an artifact, which must be the file that its event names.
    pub(super) fn read_artifact(&mut self, artifact: &Artifact) -> Result<Bytes, ArchiveError> {
        let name = layout::artifact_entry(artifact);
        let content = self.zip.read(&name, u64::from(layout::BLOB_BYTES_MAX))?;
        let fits =
            content.len() as u64 == artifact.bytes && BlobHash::of(&content) == artifact.content;
        if fits {
            Ok(content.into())
        } else {
            Err(bad(format!("`{name}` is not the file that the run made")))
        }
    }

    fn check_transcripts(&mut self, nodes: &BTreeSet<NodeId>) -> Result<(), ArchiveError> {
        let mut seen = BTreeSet::new();
        for count in self.manifest.transcripts.clone() {
            if !nodes.contains(&count.node) || !seen.insert(count.node) {
                return Err(bad("it has a transcript of a node that is not in the run"));
            }
            let mut pages = RecordPages::new(layout::transcript_records(count.node));
            let mut turns = 0;
            loop {
                let page = pages.read_page(&mut self.zip)?;
                if page.is_empty() {
                    break;
                }
                for record in &page {
                    let item = decode_item(&record.declared, &record.payload);
                    item.map_err(|error| bad(format!("a transcript is damaged: {error}")))?;
                    turns += 1;
                }
            }
            if turns == 0 || turns != count.turns {
                return Err(bad(
                    "a transcript has another number of entries than it says",
                ));
            }
        }
        Ok(())
    }
}

/// Checks what the runtime takes for granted about an event of its own.
fn check_event(event: &Event, last_seq: u64) -> Result<(), ArchiveError> {
    if event.seq != last_seq + 1 {
        return Err(bad(format!(
            "event {} does not follow {last_seq}",
            event.seq
        )));
    }
    check_times(event)?;
    let is_first = last_seq == 0;
    match &event.fact {
        Fact::RunCreated(settings) if is_first => check_run(settings),
        Fact::RunCreated(_) => Err(bad("the run is created twice")),
        _ if is_first => Err(bad("the first event does not create the run")),
        Fact::RunConfigured(settings) => check_run(settings),
        Fact::NodeAdded(new) => check_node(&new.settings),
        Fact::NodeChanged {
            change: NodeChange::Configured(settings),
            ..
        } => check_node(settings),
        Fact::ArtifactCreated(artifact) if !layout::is_artifact_name(&artifact.name) => {
            Err(bad("an artifact has a name that cannot be a file's"))
        }
        _ => Ok(()),
    }
}

/// Times are added to limits, so none of them may be near the end of its range.
fn check_times(event: &Event) -> Result<(), ArchiveError> {
    let inner = match &event.fact {
        Fact::EnvelopeSent(envelope) => Some(envelope.created_at),
        Fact::MessageSent(message) => Some(message.created_at),
        Fact::ArtifactCreated(artifact) => Some(artifact.created_at),
        Fact::ApprovalRequested(approval) => approval.expires_at,
        Fact::NodeChanged {
            change: NodeChange::Parked { retry_at, .. },
            ..
        } => Some(*retry_at),
        _ => None,
    };
    if event.at > TIME_MAX || inner.is_some_and(|inner| inner > TIME_MAX) {
        return Err(bad(format!("event {} has an impossible time", event.seq)));
    }
    Ok(())
}

/// A relative directory would be one of this server's.
fn check_run(settings: &RunSettings) -> Result<(), ArchiveError> {
    let RunLimits {
        fan_in_ms,
        silence_warn_ms,
        silence_end_ms,
        turn_end_ms,
        approval_ms,
        ..
    } = settings.limits;
    let times = [
        fan_in_ms,
        silence_warn_ms,
        silence_end_ms,
        turn_end_ms,
        approval_ms,
    ];
    if times.into_iter().any(|ms| ms > LIMIT_MS_MAX) {
        return Err(bad("the run has a limit that is too long"));
    }
    let cwd = settings.cwd.as_deref();
    if cwd.is_some_and(|cwd| !cwd.starts_with('/') || cwd.contains('\0')) {
        return Err(bad("the run's directory is not absolute"));
    }
    Ok(())
}

/// An alias becomes a part of a branch's name, and a role of a file's.
fn check_node(settings: &NodeSettings) -> Result<(), ArchiveError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name =
        |name: &str| (1..=NAME_CHARACTERS_MAX).contains(&name.len()) && name.chars().all(is_plain);
    let alias = settings.alias.as_deref();
    if alias.is_some_and(|alias| !is_name(alias)) || !is_name(&settings.role) {
        return Err(bad("a node has an alias or a role that is not allowed"));
    }
    Ok(())
}
