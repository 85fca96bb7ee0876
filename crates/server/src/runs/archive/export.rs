//! Writes a run into one file: everything to import it again, and a page to read it.
//!
//! The file is written to a scratch file first and sent when it is complete. So memory is bounded by
//! one page of events and one artifact, the caller learns the length before the first byte, and an
//! error never looks like a short archive. A run that goes on meanwhile is exported as it was when
//! the export began.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::record;
use turnkeep_runtime::words::ArtifactKind;
use turnkeep_runtime::{Event, Fact};
use turnkeep_store::{Store, Turn};
use turnkeep_types::BlobHash;
use turnkeep_wire::transcript::decode_item;

use super::ArchiveError;
use super::layout::{self, Manifest, Record, TranscriptCount};
use super::page::{EmbeddedPatch, PageWriter};
use super::run_cut::{RunCut, TranscriptCut};
use super::scratch_file;
use super::transcript_lines;
use super::zip::ZipWriter;
use crate::runs::json::{ConnectionViews, RunPlace, event_view, run_view};
use crate::runs::{RunError, RunHandle};

/// How many events or turns are read at once.
const PAGE: usize = 256;

/// Exports a run. The file is complete, and its position is its end.
pub(crate) async fn export_run(handle: &Arc<RunHandle>) -> Result<File, ArchiveError> {
    let cut = RunCut::take(handle).await?;
    let services = Arc::clone(&handle.services);
    let handle = Arc::clone(handle);
    let write = move || {
        let file = scratch_file::create_blocking(&handle.services)?;
        let at = handle.read_live(|run| run.updated_at);
        let export = Export {
            store: handle.services.store.store(),
            handle: &handle,
            cut,
            zip: ZipWriter::new(BufWriter::new(file), at),
        };
        export.write()
    };
    services.run_blocking(write).await?
}

/// An export under way.
struct Export<'a> {
    store: &'a Store,
    handle: &'a RunHandle,
    cut: RunCut,
    zip: ZipWriter<BufWriter<File>>,
}

/// What the records of the events name.
#[derive(Default)]
struct Named {
    blobs: BTreeSet<BlobHash>,
    artifacts: Vec<Artifact>,
}

impl Export<'_> {
    fn write(mut self) -> Result<File, ArchiveError> {
        self.write_manifest()?;
        let named = self.write_event_records()?;
        self.write_blobs(&named.blobs)?;
        self.write_transcripts()?;
        self.write_artifacts(&named.artifacts)?;
        self.write_patches(&named.artifacts)?;
        self.write_events()?;
        self.write_page(&named.artifacts)?;
        let out = self.zip.finish()?;
        let file = out
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        Ok(file)
    }

    fn write_manifest(&mut self) -> Result<(), ArchiveError> {
        let count = |cut: &TranscriptCut| TranscriptCount {
            node: cut.node,
            turns: u64::from(cut.turns),
        };
        let manifest = Manifest {
            run: self.handle.id(),
            events: self.cut.last_seq,
            transcripts: self.cut.transcripts.iter().map(count).collect(),
        };
        let text = format!("{:#}\n", manifest.to_json());
        Ok(self.zip.add(layout::MANIFEST, text.as_bytes())?)
    }

    fn write_event_records(&mut self) -> Result<Named, ArchiveError> {
        let mut named = Named::default();
        self.zip.begin(layout::EVENT_RECORDS)?;
        let mut seq = 1;
        while seq <= self.cut.last_seq {
            let turns = self.read_event_turns(seq)?;
            if turns.is_empty() {
                break;
            }
            for turn in &turns {
                let record = read_record(self.store, turn)?;
                let event = self.decode_event(turn, &record.payload, &mut named.blobs)?;
                if let Fact::ArtifactCreated(artifact) = event.fact {
                    named.artifacts.push(*artifact);
                }
                layout::write_record(&mut self.zip, &record)?;
            }
            seq += turns.len() as u64;
        }
        self.zip.end()?;
        Ok(named)
    }

    /// The turns of a page of events. Later events than the cut are left out.
    fn read_event_turns(&self, seq: u64) -> Result<Vec<Turn>, ArchiveError> {
        let left = usize::try_from(self.cut.last_seq - seq + 1).unwrap_or(PAGE);
        let depth = u32::try_from(seq - 1).unwrap_or(u32::MAX);
        Ok(self.store.range(self.cut.events, depth, left.min(PAGE))?)
    }

    /// Decodes an event and notes the blobs that it names.
    fn decode_event(
        &self,
        turn: &Turn,
        payload: &[u8],
        named: &mut BTreeSet<BlobHash>,
    ) -> Result<Event, ArchiveError> {
        let asked = RefCell::new(named);
        let find = |hash: &BlobHash| {
            asked.borrow_mut().insert(*hash);
            self.store.blob(*hash).ok()?.into_raw_bytes().ok()
        };
        let event = record::decode(payload, &find).map_err(|error| RunError::Record {
            turn: turn.id,
            error,
        })?;
        Ok(event)
    }

    fn write_blobs(&mut self, hashes: &BTreeSet<BlobHash>) -> Result<(), ArchiveError> {
        self.zip.begin(layout::BLOBS)?;
        for hash in hashes {
            let content = self.read_blob(*hash)?;
            layout::write_blob(&mut self.zip, hash, &content)?;
        }
        Ok(self.zip.end()?)
    }

    fn read_blob(&self, hash: BlobHash) -> Result<Bytes, ArchiveError> {
        Ok(self.store.blob(hash)?.into_raw_bytes()?)
    }

    /// Writes each transcript twice: its records, and lines for tools.
    fn write_transcripts(&mut self) -> Result<(), ArchiveError> {
        for cut in self.cut.transcripts.clone() {
            self.zip.begin(&layout::transcript_records(cut.node))?;
            self.for_each_record(cut, layout::write_record)?;
            self.zip.end()?;
            let name = self.node_name(cut);
            self.zip.begin(&format!("transcripts/{name}.jsonl"))?;
            self.for_each_record(cut, |zip, record| {
                match decode_item(&record.declared, &record.payload) {
                    Ok(item) => writeln!(zip, "{}", transcript_lines::to_json(&item)),
                    // A later version wrote this type. The archive has the record; this version
                    // cannot render it as a line.
                    Err(_) => Ok(()),
                }
            })?;
            self.zip.end()?;
        }
        Ok(())
    }

    fn for_each_record(
        &mut self,
        cut: TranscriptCut,
        mut write: impl FnMut(&mut ZipWriter<BufWriter<File>>, &Record) -> std::io::Result<()>,
    ) -> Result<(), ArchiveError> {
        let mut depth = 0;
        while depth < cut.turns {
            let left = (cut.turns - depth) as usize;
            let turns = self.store.range(cut.context, depth, left.min(PAGE))?;
            if turns.is_empty() {
                break;
            }
            for turn in &turns {
                write(&mut self.zip, &read_record(self.store, turn)?)?;
                depth += 1;
            }
        }
        Ok(())
    }

    /// A name for people, and unique: an alias is, and so is an id.
    fn node_name(&self, cut: TranscriptCut) -> String {
        let alias = self
            .handle
            .read_live(|run| run.node(cut.node)?.settings.alias.clone());
        alias.map_or_else(|| cut.node.to_string(), |alias| layout::plain_name(&alias))
    }

    fn write_artifacts(&mut self, artifacts: &[Artifact]) -> Result<(), ArchiveError> {
        for artifact in artifacts {
            let content = self.read_blob(artifact.content)?;
            self.zip.add(&layout::artifact_entry(artifact), &content)?;
        }
        Ok(())
    }

    fn write_patches(&mut self, artifacts: &[Artifact]) -> Result<(), ArchiveError> {
        let diffs = artifacts.iter().filter(|artifact| is_patch(artifact));
        for (place, artifact) in diffs.enumerate() {
            let node = artifact.node.and_then(|node| {
                let alias =
                    |run: &turnkeep_runtime::LiveRun| run.node(node)?.settings.alias.clone();
                self.handle.read_live(alias)
            });
            let node = layout::plain_name(&node.unwrap_or_else(|| "node".to_owned()));
            let content = self.read_blob(artifact.content)?;
            let name = format!("patches/{:04}-{node}.patch", place + 1);
            self.zip.add(&name, &content)?;
        }
        Ok(())
    }

    fn write_events(&mut self) -> Result<(), ArchiveError> {
        self.zip.begin(layout::EVENTS)?;
        self.for_each_line(|zip, _, line| {
            zip.write_all(line.as_bytes())?;
            zip.write_all(b"\n")
        })?;
        Ok(self.zip.end()?)
    }

    /// Calls `write` with each event and its JSON. Paths of artifacts lead into the archive.
    fn for_each_line(
        &mut self,
        mut write: impl FnMut(&mut ZipWriter<BufWriter<File>>, &Event, &str) -> std::io::Result<()>,
    ) -> Result<(), ArchiveError> {
        let mut seq = 1;
        while seq <= self.cut.last_seq {
            let turns = self.read_event_turns(seq)?;
            if turns.is_empty() {
                break;
            }
            for turn in &turns {
                let record = read_record(self.store, turn)?;
                let event = self.decode_event(turn, &record.payload, &mut BTreeSet::new())?;
                let line = self.render(&event);
                write(&mut self.zip, &event, &line)?;
            }
            seq += turns.len() as u64;
        }
        Ok(())
    }

    fn render(&self, event: &Event) -> String {
        self.handle.read(|run| {
            let place = RunPlace {
                run: run.live.id,
                archive: &run.archive,
                artifacts_dir: Path::new("artifacts"),
            };
            serde_json::to_string(&event_view(place, event)).unwrap_or_default()
        })
    }

    fn write_page(&mut self, artifacts: &[Artifact]) -> Result<(), ArchiveError> {
        let run = self.handle.read(|run| {
            let place = RunPlace {
                run: run.live.id,
                archive: &run.archive,
                artifacts_dir: Path::new("artifacts"),
            };
            let view = run_view(place, run, &ConnectionViews::default());
            serde_json::to_string(&view).unwrap_or_default()
        });
        self.zip.begin(layout::PAGE)?;
        let title = self.handle.read_live(|run| run.settings.title.clone());
        // A new id is random enough: no text of an agent can contain the nonce of its own page.
        let nonce = self
            .handle
            .services
            .new_ids()
            .draw::<turnkeep_runtime::ids::EventId>();
        let mut page = PageWriter::begin(&mut self.zip, &title, &nonce.to_string())?;
        page.add_run(&mut self.zip, &run)?;
        PageWriter::begin_events(&mut self.zip)?;
        self.for_each_line(|zip, event, line| {
            if is_on_page(event) {
                page.add_event(zip, line)?;
            }
            Ok(())
        })?;
        PageWriter::begin_patches(&mut self.zip)?;
        for artifact in artifacts.iter().filter(|artifact| is_patch(artifact)) {
            let content = self.read_blob(artifact.content)?;
            let patch = EmbeddedPatch {
                artifact: artifact.id.to_string(),
                text: &String::from_utf8_lossy(&content),
            };
            page.add_patch(&mut self.zip, &patch)?;
        }
        page.finish(&mut self.zip)?;
        Ok(self.zip.end()?)
    }
}

fn read_record(store: &Store, turn: &Turn) -> Result<Record, ArchiveError> {
    Ok(Record {
        declared: turn.declared.clone(),
        payload: store.payload(turn)?.into_raw_bytes()?,
    })
}

fn is_patch(artifact: &Artifact) -> bool {
    artifact.kind == ArtifactKind::Diff && artifact.bytes > 0
}

/// The page leaves out pieces of text whose whole follows.
fn is_on_page(event: &Event) -> bool {
    !matches!(
        event.fact,
        Fact::AnswerDelta(_) | Fact::ThinkingDelta(_) | Fact::NodeProgressed { .. }
    )
}
