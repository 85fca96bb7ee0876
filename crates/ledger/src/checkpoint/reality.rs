//! A compact copy of the facts of reality, which a start reads instead of the log.
//!
//! The log holds one msgpack record per fact, with ids and times as text. Decoding a million entries
//! from it takes longer than the rest of a start. The copy holds the same facts in an order from
//! which `World::apply` builds the same world.
//!
//! Little-endian; `n` is a varint, *text* is `n` and its bytes. *Name* is a number in the order of
//! first appearance; a number that is new is followed by its text. Each fact begins with a tag:
//!
//! | tag | fact | fields |
//! |---|---|---|
//! | 1 | entry | flags 1, id 16, [bundle 16, request text], [time text], author class name, author name, label name, channel name, [n, then addressee names], [reply 16], text |
//! | 2 | any other | record type name, version n, the record of the log as text |
//!
//! The flags of an entry say which fields in brackets follow. An entry without a bundle or time of
//! its own has those of the entry before it. Example: eight entries of one bundle, written at the
//! same time, store bundle, request and time once.
//!
//! Decoding rejects bytes that do not fit together, so forged bytes never panic.

use std::collections::HashMap;
use std::sync::Arc;

use turnkeep_types::TypeRef;
use turnkeep_types::varint::{self, Reader};

use crate::entry::{Author, AuthorClass, Channel, Entry};
use crate::fact::{Fact, Family, TimeDeclaration};
use crate::ids::{BundleId, EntryId, Name};
use crate::record;
use crate::time::WorldTime;
use crate::world::World;

/// Facts that are decoded before the caller gets them.
const PAGE_FACTS: usize = 4096;

const ENTRY: u8 = 1;
const RECORD: u8 = 2;

/// Flags of an entry: which optional fields follow.
const HAS_BUNDLE: u8 = 1;
const HAS_TIME: u8 = 2;
const HAS_ADDRESSEES: u8 = 4;
const HAS_REPLY: u8 = 8;

/// Encodes the facts of reality that make this world.
///
/// A bundle and its items stand behind the last entry of the bundle, as in the log: `apply` derives
/// the position of a bundle from the number of entries before it. The clock comes last, so that it
/// ends where it is now.
pub(super) fn encode(world: &World, out: &mut Vec<u8>) {
    let mut encoder = Encoder {
        out,
        names: HashMap::new(),
        request: None,
        time: None,
    };
    let mut others = other_facts(world).into_iter().peekable();
    for (number, entry) in (0_u32..).zip(world.all_entries()) {
        while let Some(other) = others.next_if(|other| other.position <= number) {
            encoder.put_record(&other.fact);
        }
        encoder.put_entry(entry);
    }
    for other in others {
        encoder.put_record(&other.fact);
    }
    // The facts above do not include declared times. The last fact sets the clock as it was.
    encoder.put_record(&Fact::Time(TimeDeclaration {
        from: world.clock.time.clone(),
        to: world.clock.clone(),
    }));
}

/// A fact that is not an entry, and how many entries come before it.
struct OtherFact {
    position: u32,
    /// Orders facts of one position: items, then their bundle, then outcomes.
    rank: u8,
    fact: Fact,
}

/// All facts of reality but entries and times, in the order in which they can be applied.
fn other_facts(world: &World) -> Vec<OtherFact> {
    let mut facts = Vec::new();
    for row in world.items_from(0) {
        facts.push(OtherFact {
            // Behind the last entry of its bundle. The items of a bundle keep their order, which need
            // not be that of their entries.
            position: bundle_end(world, row.entry),
            rank: 0,
            fact: Fact::Item(row.item.clone()),
        });
    }
    // Sorted, because maps have no order and equal worlds must give equal bytes.
    let mut bundles: Vec<_> = world.bundles().collect();
    bundles.sort_by_key(|bundle| bundle.commit.id);
    for bundle in bundles {
        facts.push(OtherFact {
            position: bundle.first + bundle.commit.entries,
            rank: 1,
            fact: Fact::Bundle(bundle.commit.clone()),
        });
    }
    let mut outcomes: Vec<_> = world.outcomes().collect();
    outcomes.sort_by(|one, other| one.request.cmp(&other.request));
    for outcome in outcomes {
        let fact = Fact::Outcome(Box::new((**outcome).clone()));
        // The others are in the audit, which a start reads from the log.
        if fact.family() == Family::Reality {
            facts.push(OtherFact {
                position: outcome.position,
                rank: 2,
                fact,
            });
        }
    }
    // Stable: equal positions keep the order of above.
    facts.sort_by_key(|fact| (fact.position, fact.rank));
    facts
}

/// How many entries there are up to the end of the bundle that has this entry.
fn bundle_end(world: &World, entry: u32) -> u32 {
    let bundle = world
        .entry(entry)
        .and_then(|entry| world.bundle(entry.bundle));
    bundle.map_or(entry + 1, |bundle| bundle.first + bundle.commit.entries)
}

fn union_of_flags(flags: [(u8, bool); 4]) -> u8 {
    let mut union = 0;
    for (flag, is_set) in flags {
        union |= if is_set { flag } else { 0 };
    }
    union
}

/// Writes facts, and remembers what the next one may leave out.
struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    names: HashMap<Arc<str>, u64>,
    request: Option<BundleRequest>,
    time: Option<WorldTime>,
}

impl Encoder<'_> {
    fn put_id(&mut self, id: u128) {
        self.out.extend_from_slice(&id.to_le_bytes());
    }

    fn put_text(&mut self, text: &str) {
        varint::put_bytes(self.out, text.as_bytes());
    }

    fn put_name(&mut self, name: &str) {
        if let Some(number) = self.names.get(name) {
            varint::put(self.out, *number);
            return;
        }
        let number = self.names.len() as u64;
        self.names.insert(name.into(), number);
        varint::put(self.out, number);
        self.put_text(name);
    }

    fn put_entry(&mut self, entry: &Entry) {
        let request = BundleRequest {
            bundle: entry.bundle,
            request: Arc::clone(&entry.request),
        };
        let is_new_bundle = self.request.as_ref() != Some(&request);
        // By its text: two times can be equal instants with different texts.
        let is_new_time = self.time.as_ref().map(WorldTime::as_str) != Some(entry.time.as_str());
        self.out.push(ENTRY);
        self.out.push(union_of_flags([
            (HAS_BUNDLE, is_new_bundle),
            (HAS_TIME, is_new_time),
            (HAS_ADDRESSEES, entry.visible_to.is_some()),
            (HAS_REPLY, entry.reply_to.is_some()),
        ]));
        self.put_id(entry.id.0);
        if is_new_bundle {
            self.put_id(entry.bundle.0);
            self.put_text(&entry.request);
            self.request = Some(request);
        }
        if is_new_time {
            self.put_text(entry.time.as_str());
            self.time = Some(entry.time.clone());
        }
        self.put_name(entry.author.class.word());
        self.put_name(entry.author.id.as_str());
        self.put_name(&entry.label);
        self.put_name(entry.channel.word());
        if let Some(addressees) = &entry.visible_to {
            self.put_addressees(addressees);
        }
        if let Some(reply_to) = entry.reply_to {
            self.put_id(reply_to.0);
        }
        self.put_text(&entry.text);
    }

    fn put_addressees(&mut self, addressees: &[Name]) {
        varint::put(self.out, addressees.len() as u64);
        for addressee in addressees {
            self.put_name(addressee.as_str());
        }
    }

    fn put_record(&mut self, fact: &Fact) {
        let (declared, payload) = record::encode(fact);
        self.out.push(RECORD);
        self.put_name(&declared.id);
        varint::put(self.out, declared.version.into());
        varint::put_bytes(self.out, &payload);
    }
}

/// Decodes facts and passes them to `take`, page by page. Returns `None` at the first fault, or if
/// `take` returns `false`.
pub(super) fn decode(bytes: &[u8], mut take: impl FnMut(Vec<Fact>) -> bool) -> Option<()> {
    let mut decoder = Decoder {
        reader: Reader(bytes),
        names: Vec::new(),
        request: None,
        time: None,
    };
    while !decoder.reader.0.is_empty() {
        let mut page = Vec::with_capacity(PAGE_FACTS);
        while page.len() < PAGE_FACTS && !decoder.reader.0.is_empty() {
            page.push(decoder.read_fact()?);
        }
        if !take(page) {
            return None;
        }
    }
    Some(())
}

/// Reads facts, and remembers what the next one may have left out.
struct Decoder<'a> {
    reader: Reader<'a>,
    names: Vec<Arc<str>>,
    request: Option<BundleRequest>,
    time: Option<WorldTime>,
}

/// A bundle and the request that committed it.
#[derive(Clone, PartialEq, Eq)]
struct BundleRequest {
    bundle: BundleId,
    request: Arc<str>,
}

impl Decoder<'_> {
    fn read_fact(&mut self) -> Option<Fact> {
        match self.reader.u8()? {
            ENTRY => self.read_entry().map(Fact::Entry),
            RECORD => self.read_record(),
            _ => None,
        }
    }

    fn read_id(&mut self) -> Option<u128> {
        let bytes = self.reader.read_bytes(size_of::<u128>())?;
        Some(u128::from_le_bytes(bytes.try_into().ok()?))
    }

    fn read_text(&mut self) -> Option<Arc<str>> {
        self.reader.str().map(Arc::from)
    }

    fn read_name(&mut self) -> Option<Arc<str>> {
        let number = usize::try_from(self.reader.u64()?).ok()?;
        // A number that was not used before is followed by its name.
        if number == self.names.len() {
            let name = self.read_text()?;
            self.names.push(name);
        }
        self.names.get(number).cloned()
    }

    fn read_person(&mut self) -> Option<Name> {
        let text = self.read_name()?;
        Name::new_shared(&text, |_| Arc::clone(&text))
    }

    fn read_entry(&mut self) -> Option<Entry> {
        let flags = self.reader.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let id = EntryId(self.read_id()?);
        if has(HAS_BUNDLE) {
            self.request = Some(BundleRequest {
                bundle: BundleId(self.read_id()?),
                request: self.read_text()?,
            });
        }
        if has(HAS_TIME) {
            self.time = Some(WorldTime::parse(self.reader.str()?)?);
        }
        let BundleRequest { bundle, request } = self.request.clone()?;
        // Rust evaluates the fields in the order in which they are written, so they stand here in the
        // order of the bytes, not in that of the struct.
        Some(Entry {
            id,
            bundle,
            request,
            time: self.time.clone()?,
            author: Author {
                class: AuthorClass::from_word(&self.read_name()?)?,
                id: self.read_person()?,
            },
            label: self.read_name()?,
            channel: Channel::from_word(&self.read_name()?)?,
            visible_to: self.read_addressees(has(HAS_ADDRESSEES))?,
            reply_to: if has(HAS_REPLY) {
                Some(EntryId(self.read_id()?))
            } else {
                None
            },
            text: self.reader.str()?.into(),
        })
    }

    /// The addressees of an entry, if it is private. The outer `None` is a fault.
    fn read_addressees(&mut self, is_private: bool) -> Option<Option<Box<[Name]>>> {
        if !is_private {
            return Some(None);
        }
        let count = self.reader.u32()?;
        // Grows with the bytes that are really there, whatever the count says.
        let mut addressees = Vec::new();
        for _ in 0..count {
            addressees.push(self.read_person()?);
        }
        Some(Some(addressees.into()))
    }

    fn read_record(&mut self) -> Option<Fact> {
        let id = self.read_name()?;
        let declared = TypeRef::new(&*id, self.reader.u32()?);
        let fact = record::decode(&declared, self.reader.bytes()?).ok()?;
        // Only facts of reality belong here.
        (fact.family() == Family::Reality).then_some(fact)
    }
}
