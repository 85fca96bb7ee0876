//! Archives from outside: what an export writes is accepted, and anything else is an error.

use std::io::Cursor;

use turnkeep_runtime::artifact::{Artifact, DiffSummary};
use turnkeep_runtime::fact::Fact;
use turnkeep_runtime::ids::{IdSource, NodeId, RunId, Uuid as _};
use turnkeep_runtime::input::Message;
use turnkeep_runtime::node::{Capabilities, NewNode, NodeSettings, Permissions};
use turnkeep_runtime::run::{RunLimits, RunSettings};
use turnkeep_runtime::usage::Budget;
use turnkeep_runtime::words::{
    ArtifactKind, CliPermissions, GlobalMode, MessageRole, Mode, Provider, WakeOn,
};
use turnkeep_runtime::{Event, record};
use turnkeep_types::{BlobHash, Timestamp};
use turnkeep_wire::transcript::{Origin, TranscriptItem, UserMessage, encode_item};

use super::checked_archive::CheckedArchive;
use super::layout::{self, Manifest, Record, TranscriptCount};
use super::zip::ZipWriter;

const AT: Timestamp = Timestamp(1_767_225_600_000);

/// The parts of an archive, which a test may change before they are written.
struct Parts {
    manifest: Manifest,
    events: Vec<Event>,
    files: Vec<(String, Vec<u8>)>,
    lines: Vec<TranscriptItem>,
}

fn settings() -> RunSettings {
    RunSettings {
        title: "Refunds".to_owned(),
        goal: None,
        cwd: Some("/work".to_owned()),
        mode: Mode::Interactive,
        global_mode: GlobalMode::Implementation,
        world: None,
        verify: Vec::new(),
        setup: Vec::new(),
        docs_node: None,
        budget: Budget::default(),
        limits: RunLimits::default(),
    }
}

fn node_settings(alias: &str) -> NodeSettings {
    NodeSettings {
        label: "Worker".to_owned(),
        role: "implementer".to_owned(),
        provider: Provider::Claude,
        provider_name: None,
        alias: Some(alias.to_owned()),
        person: None,
        capabilities: Capabilities {
            spawn_nodes: false,
            write_code: true,
            write_docs: true,
            run_commands: true,
            delegate_only: false,
        },
        permissions: Permissions {
            cli: CliPermissions::Gated,
            spawn_requires_approval: true,
        },
        custom_system_prompt: None,
        wake_on: WakeOn::Any,
        position: None,
        reset_commands: Vec::new(),
        budget: None,
    }
}

fn node_id() -> NodeId {
    NodeId::from_bits(7)
}

/// A run of one node with a long message and a diff.
fn sample() -> Parts {
    let mut ids = IdSource::from_seed(&[3; 32]);
    let run: RunId = ids.draw();
    let node = node_id();
    let patch = b"+hello\n".to_vec();
    let artifact = Artifact {
        id: ids.draw(),
        node: Some(node),
        kind: ArtifactKind::Diff,
        name: "diff.patch".to_owned(),
        content: BlobHash::of(&patch),
        bytes: patch.len() as u64,
        created_at: AT,
        diff: Some(DiffSummary::default()),
    };
    let files = vec![(layout::artifact_entry(&artifact), patch)];
    let message = Message {
        id: ids.draw(),
        node,
        role: MessageRole::User,
        // Longer than a record keeps, so it is a blob.
        content: "Please ".repeat(700),
        interrupt: false,
        created_at: AT,
    };
    let facts = vec![
        Fact::RunCreated(Box::new(settings())),
        Fact::NodeAdded(Box::new(NewNode {
            id: node,
            settings: node_settings("worker"),
            parent: None,
            depth: 0,
        })),
        Fact::MessageSent(message),
        Fact::ArtifactCreated(Box::new(artifact)),
    ];
    let event = |(place, fact): (usize, Fact)| Event {
        id: ids.draw(),
        seq: place as u64 + 1,
        at: AT,
        node: (place > 0).then_some(node),
        turn: None,
        request: None,
        made: None,
        fact,
    };
    let events: Vec<Event> = facts.into_iter().enumerate().map(event).collect();
    Parts {
        manifest: Manifest {
            run,
            events: events.len() as u64,
            transcripts: vec![TranscriptCount { node, turns: 1 }],
        },
        events,
        files,
        lines: vec![TranscriptItem::UserMessage(UserMessage {
            origin: Origin::default(),
            text: "Please".to_owned(),
            role: "user".to_owned(),
        })],
    }
}

impl Parts {
    fn write(&self) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()), AT);
        let manifest = self.manifest.to_json().to_string();
        zip.add(layout::MANIFEST, manifest.as_bytes()).unwrap();
        let (mut records, mut blobs) = (Vec::new(), Vec::new());
        for event in &self.events {
            let encoded = record::encode(event);
            let declared = record::event_type();
            let payload = encoded.payload;
            layout::write_record(&mut records, &Record { declared, payload }).unwrap();
            for blob in encoded.blobs {
                layout::write_blob(&mut blobs, &BlobHash::of(&blob), &blob).unwrap();
            }
        }
        zip.add(layout::EVENT_RECORDS, &records).unwrap();
        zip.add(layout::BLOBS, &blobs).unwrap();
        let mut lines = Vec::new();
        for line in &self.lines {
            let encoded = encode_item(line);
            let (declared, payload) = (encoded.declared, encoded.payload);
            layout::write_record(&mut lines, &Record { declared, payload }).unwrap();
        }
        let entry = layout::transcript_records(node_id());
        zip.add(&entry, &lines).unwrap();
        for (name, content) in &self.files {
            zip.add(name, content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn check_rejected(&self, expect: &str) {
        let error = open(&self.write()).err().unwrap().to_string();
        assert!(error.contains(expect), "{error}");
    }

    fn fact_mut(&mut self, place: usize) -> &mut Fact {
        &mut self.events[place].fact
    }
}

fn open(bytes: &[u8]) -> Result<CheckedArchive<Cursor<&[u8]>>, super::ArchiveError> {
    CheckedArchive::open(Cursor::new(bytes))
}

#[test]
fn a_whole_archive_is_accepted_and_no_part_of_it() {
    let bytes = sample().write();
    assert!(open(&bytes).is_ok());
    for end in 0..bytes.len() {
        assert!(open(&bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn a_changed_byte_is_an_error_or_changes_nothing_that_is_read() {
    let bytes = sample().write();
    let mut accepted = 0;
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        accepted += usize::from(open(&changed).is_ok());
    }
    // Only fields of the directory that no reader uses: the maker and the attributes of each row.
    let rows = 5;
    assert!(accepted <= rows * 10, "{accepted} changes were accepted");
}

#[test]
fn what_an_export_never_writes_is_rejected() {
    let check = |change: &dyn Fn(&mut Parts), expect: &str| {
        let mut parts = sample();
        change(&mut parts);
        parts.check_rejected(expect);
    };
    check(&|parts| parts.events.clear(), "number of events");
    check(&|parts| parts.manifest.events += 1, "number of events");
    check(&|parts| parts.events[2].seq = 9, "does not follow");
    check(&|parts| drop(parts.events.remove(0)), "does not follow");
    check(
        &|parts| *parts.fact_mut(1) = Fact::RunCreated(Box::new(settings())),
        "created twice",
    );
    check(
        &|parts| *parts.fact_mut(0) = Fact::RunDeleted,
        "does not create the run",
    );
    check(
        &|parts| *parts.fact_mut(3) = Fact::RunDeleted,
        "was deleted",
    );
    check(&|parts| parts.files.clear(), "is missing");
    check(
        &|parts| parts.files[0].1 = b"+other\n".to_vec(),
        "not the file",
    );
    check(
        &|parts| parts.manifest.transcripts[0].turns = 2,
        "number of entries",
    );
    check(
        &|parts| parts.manifest.transcripts[0].node = NodeId::from_bits(8),
        "not in the run",
    );
    check(
        &|parts| {
            let twice = parts.manifest.transcripts[0];
            parts.manifest.transcripts.push(twice);
        },
        "not in the run",
    );
}

#[test]
fn names_that_become_paths_are_checked() {
    for bad in ["../../etc/passwd", "a/b", "a\\b", "", "a\nb"] {
        let mut parts = sample();
        if let Fact::ArtifactCreated(artifact) = parts.fact_mut(3) {
            artifact.name = bad.to_owned();
        }
        parts.check_rejected("cannot be a file's");
    }
    for bad in ["../a", "a b", "-o\n", ""] {
        let mut parts = sample();
        if let Fact::NodeAdded(new) = parts.fact_mut(1) {
            new.settings.alias = Some(bad.to_owned());
        }
        parts.check_rejected("alias or a role");
    }
    let mut parts = sample();
    if let Fact::RunCreated(settings) = parts.fact_mut(0) {
        settings.cwd = Some("../here".to_owned());
    }
    parts.check_rejected("not absolute");
}

#[test]
fn times_that_would_overflow_are_rejected() {
    let mut parts = sample();
    parts.events[1].at = Timestamp(u64::MAX);
    parts.check_rejected("impossible time");
    let mut parts = sample();
    if let Fact::RunCreated(settings) = parts.fact_mut(0) {
        settings.limits.fan_in_ms = u64::MAX;
    }
    parts.check_rejected("too long");
}

#[test]
fn a_manifest_of_a_later_version_says_what_to_do() {
    let text = sample().manifest.to_json().to_string();
    assert_eq!(Manifest::parse(text.as_bytes()), Ok(sample().manifest));
    let later = text.replace("\"version\":1", "\"version\":2");
    let error = Manifest::parse(later.as_bytes()).unwrap_err();
    assert!(error.contains("upgrade"), "{error}");
    for bad in ["", "[]", "{}", "{\"format\":\"turnkeep-run\"}"] {
        assert!(Manifest::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}
