//! Generates random commands. The same seed and model give the same commands.
//!
//! Payloads, keys and ids come from small pools. So turns share blobs, keys collide, and commands
//! are repeated or conflict. A few commands name objects that do not exist.

use std::collections::BTreeSet;

use bytes::Bytes;
use turnkeep_store::blob::SentBlob;
use turnkeep_store::{Append, AppendPart, Command, CreateContext, Key, Labels, NewBlob, NewTurn};
use turnkeep_types::{BlobHash, Compression, ContextId, TurnId, TypeRef};

use crate::model::Model;
use crate::random::Random;

const PAYLOADS: u64 = 48;
const PAYLOAD_BYTES_MAX: usize = 8192;
const HISTORY_MAX: usize = 64;
/// An id far beyond any that a run makes.
const NOWHERE: u64 = 1 << 40;

/// The generator.
#[derive(Clone)]
pub struct Generator {
    random: Random,
    payloads: Vec<NewBlob>,
    /// Earlier commands, to send some of them again.
    history: Vec<Command>,
}

impl Generator {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let payloads = (0..PAYLOADS)
            .map(|number| payload(number, &mut random))
            .collect();
        Self {
            random,
            payloads,
            history: Vec::new(),
        }
    }

    /// The hashes of all blobs that it may send.
    pub fn hashes(&self) -> BTreeSet<BlobHash> {
        self.payloads.iter().map(NewBlob::hash).collect()
    }

    /// Several commands for the model's state.
    pub fn commands(&mut self, model: &Model, count: usize) -> Vec<Command> {
        (0..count).map(|_| self.command(model)).collect()
    }

    /// A command for the model's state.
    pub fn command(&mut self, model: &Model) -> Command {
        // A repeated command tests keys and duplicates.
        if self.random.one_in(6)
            && let Some(again) = self.random.pick(&self.history)
        {
            return again.clone();
        }
        let kind = if model.visible.contexts.is_empty() {
            0
        } else {
            self.random.below(20)
        };
        let command = match kind {
            0..3 => Command::CreateContext(self.random_create(model)),
            3..12 => self.random_append(model),
            12..15 => self.random_attach(model),
            15..17 => Command::PutBlob(self.random_payload()),
            17 => self.random_bundle(),
            _ => Command::SetLabels {
                context: self.random_context(model),
                labels: self.random_labels(),
            },
        };
        // The history keeps commands of all ages: a new one replaces a random old one.
        let place = self.random.below(HISTORY_MAX as u64);
        match usize::try_from(place)
            .ok()
            .and_then(|place| self.history.get_mut(place))
        {
            Some(old) => *old = command.clone(),
            None => self.history.push(command.clone()),
        }
        command
    }

    fn random_create(&mut self, model: &Model) -> CreateContext {
        let base = if self.random.one_in(2) {
            None
        } else {
            Some(self.random_turn(model))
        };
        CreateContext {
            base,
            labels: self.random_labels(),
            key: self.random_key(),
        }
    }

    fn random_append(&mut self, model: &Model) -> Command {
        let parts = if self.random.one_in(5) {
            1 + self.random.below(3)
        } else {
            1
        };
        let parts = (0..parts).map(|_| self.random_part(model)).collect();
        Command::Append(Append {
            parts,
            key: self.random_key(),
            strict: self.random.one_in(8),
        })
    }

    fn random_part(&mut self, model: &Model) -> AppendPart {
        let context = self.random_context(model);
        let parent = self.random.one_in(4).then(|| self.random_turn(model));
        let head = model.visible.context(context).and_then(|facts| facts.head);
        let expected_head = match self.random.below(8) {
            0 | 1 => Some(head),
            2 => Some(None),
            3 => Some(Some(self.random_turn(model))),
            _ => None,
        };
        let turns = if self.random.one_in(4) {
            1 + self.random.below(5)
        } else {
            1
        };
        AppendPart {
            context,
            parent,
            expected_head,
            turns: (0..turns).map(|_| self.random_new_turn()).collect(),
        }
    }

    fn random_new_turn(&mut self) -> NewTurn {
        let declared = match self.random.below(6) {
            0 => TypeRef::new("", 0),
            number => TypeRef::new(type_id(number), 1),
        };
        let fs_root = self.random.one_in(5).then(|| self.random_payload().hash());
        NewTurn {
            declared,
            encoding: u32::from(!self.random.one_in(9)),
            payload: self.random_payload(),
            fs_root,
        }
    }

    fn random_attach(&mut self, model: &Model) -> Command {
        let root = if self.random.one_in(9) {
            BlobHash::of(b"nobody has this")
        } else {
            self.random_payload().hash()
        };
        Command::AttachFs {
            turn: self.random_turn(model),
            root,
        }
    }

    fn random_bundle(&mut self) -> Command {
        let number = 1 + self.random.below(5);
        let (id, type_id) = (format!("bundle-{number}"), type_id(number));
        let kind = if self.random.one_in(3) {
            "u64"
        } else {
            "string"
        };
        let space = if self.random.one_in(3) { " " } else { "" };
        let fields = format!(r#"{{"1":{space}{{"name":"text","type":"{kind}"}}}}"#);
        let types = format!(r#"{{"{type_id}":{{"versions":{{"1":{{"fields":{fields}}}}}}}}}"#);
        let json =
            format!(r#"{{"registry_version":1,"bundle_id":"{id}","types":{types},"enums":{{}}}}"#);
        Command::PutBundle {
            id,
            json: json.into(),
        }
    }

    fn random_payload(&mut self) -> NewBlob {
        self.random
            .pick(&self.payloads)
            .expect("there are payloads")
            .clone()
    }

    fn random_key(&mut self) -> Option<Key> {
        let number = self.random.below(60);
        if number < 20 {
            None
        } else {
            Key::new(Bytes::from(format!("key {number}")))
        }
    }

    fn random_labels(&mut self) -> Labels {
        let count = self.random.below(3);
        (0..count)
            .map(|n| (format!("label {n}"), self.random.below(4).to_string()))
            .collect()
    }

    fn random_turn(&mut self, model: &Model) -> TurnId {
        let there = model.visible.turns.len() as u64;
        let number = if there == 0 || self.random.one_in(12) {
            NOWHERE
        } else {
            1 + self.random.below(there)
        };
        TurnId::new(number).expect("from 1 on")
    }

    fn random_context(&mut self, model: &Model) -> ContextId {
        let there = model.visible.contexts.len() as u64;
        let number = if there == 0 || self.random.one_in(15) {
            NOWHERE
        } else {
            1 + self.random.below(there)
        };
        ContextId::new(number).expect("from 1 on")
    }
}

fn type_id(number: u64) -> String {
    format!("com.example.Kind{number}")
}

/// Empty, short, long and compressible, long and not, or compressed by the sender.
fn payload(number: u64, random: &mut Random) -> NewBlob {
    let text = format!("payload {number} ");
    let bytes = match number % 6 {
        0 if number == 0 => Vec::new(),
        0 | 1 => text.into_bytes(),
        2 => text.repeat(40).into_bytes(),
        3 => text.repeat(350).into_bytes(),
        4 => (0..520).flat_map(|_| random.bits().to_le_bytes()).collect(),
        _ => return sent_compressed(text.repeat(20).as_bytes()),
    };
    NewBlob::from_raw(bytes.into(), PAYLOAD_BYTES_MAX).expect("it is within the limit")
}

fn sent_compressed(raw: &[u8]) -> NewBlob {
    let sent = SentBlob {
        hash: BlobHash::of(raw),
        raw_len: u32::try_from(raw.len()).expect("it is short"),
        compression: Compression::Zstd,
        bytes: zstd::bulk::compress(raw, 3).expect("it compresses").into(),
    };
    NewBlob::verify(sent, PAYLOAD_BYTES_MAX).expect("it is what it says")
}
