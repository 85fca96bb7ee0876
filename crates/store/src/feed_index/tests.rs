//! The feed of some contexts against the whole feed filtered by hand, and what it costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use turnkeep_journal::MemoryStorage;
use turnkeep_types::{BlobHash, ManualClock, Timestamp, TypeRef};

use super::*;
use crate::apply::Applier;
use crate::feed_cursor::FeedCursor;
use crate::record::{BlobName, PartRecord, Record, TurnRecord};
use crate::{
    Append, AppendPart, Command, CreateContext, Event, EventKind, Labels, NewBlob, NewTurn,
    Options, Outcome, Store,
};

fn turn_id(id: u64) -> TurnId {
    TurnId::new(id).unwrap()
}

fn context_id(id: u64) -> ContextId {
    ContextId::new(id).unwrap()
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// An id from 1 to `last`.
    fn pick(&mut self, last: u64) -> u64 {
        1 + self.below(last)
    }

    fn pick_turn(&mut self, turns: u64) -> Option<TurnId> {
        (turns > 0).then(|| turn_id(self.pick(turns)))
    }
}

/// A state without a log. Records of turns need no payloads here.
struct History(Applier);

impl History {
    fn new() -> Self {
        Self(Applier::new(Arc::new(State::new())))
    }

    fn state(&self) -> &State {
        &self.0.state
    }

    fn apply(&mut self, record: &Record) {
        self.0.replay(Timestamp(7), record);
    }

    fn create(&mut self, base: Option<TurnId>) -> ContextId {
        self.apply(&Record::Create {
            base,
            labels: Labels::new(),
            key: None,
        });
        context_id(self.state().contexts.len())
    }

    fn append(&mut self, context: ContextId, parent: Option<TurnId>, turns: usize) -> TurnId {
        let parts = [new_part(context, parent, turns)].into_iter().collect();
        self.apply(&Record::Append {
            parts,
            key: None,
            strict: false,
        });
        turn_id(self.state().turns.len())
    }

    fn attach(&mut self, turn: TurnId) {
        self.apply(&Record::LostRoot {
            turn,
            root: BlobHash::of(b"root"),
            attached: true,
        });
    }

    fn feed_of(&self, contexts: &[ContextId], after: u64) -> FeedCursor {
        FeedCursor::of_contexts(self.0.state.clone(), contexts, after)
    }

    fn last(&self) -> u64 {
        self.state().events.len()
    }

    fn events(&self) -> Vec<Event> {
        (1..=self.last())
            .filter_map(|position| self.state().event(position))
            .collect()
    }

    /// The context of a turn; `None` if the turn is lost.
    fn context_of(&self, turn: TurnId) -> Option<ContextId> {
        ContextId::new(self.state().turn(turn)?.context)
    }

    /// Applies one record at random.
    fn grow(&mut self, numbers: &mut Numbers) {
        let (turns, contexts) = (self.state().turns.len(), self.state().contexts.len());
        let context = context_id(numbers.pick(contexts.max(1)));
        match numbers.below(12) {
            0 => drop(self.create(numbers.pick_turn(turns))),
            1 => drop(self.create(None)),
            2 => {
                let parent = numbers.pick_turn(turns);
                let parts = (0..numbers.pick(3)).map(|_| {
                    let context = context_id(numbers.pick(contexts.max(1)));
                    new_part(context, parent.filter(|_| numbers.below(2) == 0), 2)
                });
                let parts = parts.collect();
                self.apply(&Record::Append {
                    parts,
                    key: None,
                    strict: false,
                });
            }
            3 => drop(self.append(context, numbers.pick_turn(turns), 1)),
            4 if turns > 0 => self.attach(turn_id(numbers.pick(turns))),
            5 if numbers.below(3) == 0 => self.apply(&Record::Lost {
                turns: numbers.below(4),
                contexts: numbers.below(2),
                in_feed: numbers.below(2) == 0,
            }),
            6 => self.apply(&Record::SetLabels {
                context,
                labels: Labels::from([("a".to_owned(), "1".to_owned())]),
            }),
            // As repair writes it: the parent may be lost, or be any other turn.
            7 if turns > 0 => {
                let parent = turn_id(numbers.pick(turns));
                let depth = self.state().turn(parent).map_or(0, |row| row.depth) + 1;
                let part = PartRecord {
                    parent: Some(parent),
                    depth,
                    placed: true,
                    ..new_part(context, None, 1)
                };
                self.apply(&Record::Append {
                    parts: [part].into_iter().collect(),
                    key: None,
                    strict: false,
                });
            }
            _ => drop(self.append(context, None, 1)),
        }
    }
}

fn new_part(context: ContextId, parent: Option<TurnId>, turns: usize) -> PartRecord {
    let turn = TurnRecord {
        declared: TypeRef::new("t", 1),
        encoding: 1,
        payload: BlobName::by_hash(BlobHash::of(b"payload")),
        fs_root: None,
    };
    PartRecord {
        context,
        sent_parent: parent,
        expected_head: None,
        parent: None,
        depth: 0,
        placed: false,
        turns: std::iter::repeat_n(turn, turns).collect(),
    }
}

/// Whether an event belongs to the feed of some contexts, by the rule of the feed.
fn is_wanted(
    event: &Event,
    wanted: &[ContextId],
    context_of: impl Fn(TurnId) -> Option<ContextId>,
) -> bool {
    match event.kind {
        EventKind::ContextCreated(context) => wanted.contains(&context),
        EventKind::TurnAppended(turn) => {
            context_of(turn).is_none_or(|context| wanted.contains(&context))
        }
        EventKind::FsAttached(turn) => {
            context_of(turn).is_some_and(|context| wanted.contains(&context))
        }
        EventKind::RegistryPut(_) => false,
    }
}

/// Reads a cursor to the end of the feed.
fn read_all(mut cursor: FeedCursor, last: u64) -> Vec<Event> {
    let events = std::iter::from_fn(|| cursor.next_up_to(last)).collect();
    assert_eq!(cursor.position(), last);
    events
}

#[test]
fn the_worked_example_of_the_header_reads_in_order() {
    let mut history = History::new();
    let (one, two) = (history.create(None), history.create(None));
    history.append(one, None, 2);
    history.append(two, None, 2);
    history.append(one, None, 2);
    history.append(two, None, 1);
    history.append(one, Some(turn_id(2)), 1);
    history.append(one, None, 1);
    let turns = |after| -> Vec<u64> {
        let events = read_all(history.feed_of(&[one], after), history.last());
        let turns = events.iter().filter_map(|event| match event.kind {
            EventKind::TurnAppended(turn) => Some(turn.get()),
            _ => None,
        });
        turns.collect()
    };
    // Events 1 and 2 are the creations, so turn 2 is event 4.
    assert_eq!(turns(0), [1, 2, 5, 6, 8, 9]);
    assert_eq!(turns(4), [5, 6, 8, 9]);
    assert_eq!(turns(8), [8, 9]);
    assert_eq!(turns(11), [0_u64; 0]);
}

#[test]
fn a_feed_of_contexts_is_the_whole_feed_filtered_by_hand() {
    for seed in 0..60 {
        let (mut history, mut numbers) = (History::new(), Numbers(seed));
        history.create(None);
        for _ in 0..numbers.pick(150) {
            history.grow(&mut numbers);
        }
        let (events, contexts) = (history.events(), history.state().contexts.len());
        for count in [0, 1, 1, 1, 2, 5] {
            let wanted: Vec<_> = (0..count)
                .map(|_| context_id(numbers.pick(contexts)))
                .collect();
            for after in 0..=history.last() {
                let by_hand = events.iter().filter(|event| event.position > after);
                let by_hand = by_hand
                    .filter(|event| is_wanted(event, &wanted, |turn| history.context_of(turn)));
                assert_eq!(
                    read_all(history.feed_of(&wanted, after), history.last()),
                    by_hand.cloned().collect::<Vec<_>>(),
                    "seed {seed}, contexts {wanted:?}, after {after}"
                );
            }
        }
    }
}

#[test]
fn a_cursor_goes_on_with_what_is_appended_while_it_waits() {
    for seed in 0..60 {
        let (mut history, mut numbers) = (History::new(), Numbers(seed));
        history.create(None);
        // The third context may not exist yet.
        let wanted = [context_id(1), context_id(numbers.pick(4)), context_id(3)];
        // A cursor may even begin beyond the end.
        let start = numbers.below(6);
        let mut cursor = history.feed_of(&wanted, start);
        let mut read = Vec::new();
        for _ in 0..200 {
            history.grow(&mut numbers);
            let last = numbers.below(history.last() + 2);
            if numbers.below(3) == 0 {
                read.extend(std::iter::from_fn(|| cursor.next_up_to(last)));
            }
            if numbers.below(3) == 0 {
                let peeked = cursor.peek_up_to(last);
                let next = cursor.next_up_to(last);
                assert_eq!(next.as_ref().map(|event| event.position), peeked);
                read.extend(next);
            }
        }
        read.extend(std::iter::from_fn(|| cursor.next_up_to(u64::MAX)));
        let mut by_hand = history.events();
        by_hand.retain(|event| {
            event.position > start && is_wanted(event, &wanted, |turn| history.context_of(turn))
        });
        assert_eq!(read, by_hand, "seed {seed}");
    }
}

#[test]
fn a_reader_beside_the_writer_misses_nothing() {
    const ROUNDS: u64 = 20_000;
    let mut history = History::new();
    let (one, other) = (history.create(None), history.create(None));
    let state = history.0.state.clone();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = Numbers(1);
            for _ in 0..ROUNDS {
                let turns = history.state().turns.len();
                let parent = numbers.pick_turn(turns).filter(|_| numbers.below(5) == 0);
                let context = if numbers.below(2) == 0 { one } else { other };
                let turn = history.append(context, parent, 1);
                if numbers.below(4) == 0 {
                    history.attach(turn);
                }
            }
            is_done.store(true, Ordering::Release);
        });
        let mut cursor = FeedCursor::of_contexts(state.clone(), &[one], 0);
        let mut read = Vec::new();
        loop {
            // Before the read: what was appended until then must be found.
            let is_last = is_done.load(Ordering::Acquire);
            read.extend(std::iter::from_fn(|| cursor.next_up_to(u64::MAX)));
            if is_last {
                break;
            }
        }
        let events = (1..=state.events.len()).filter_map(|position| state.event(position));
        let context_of = |turn| ContextId::new(state.turn(turn)?.context);
        let by_hand: Vec<_> = events
            .filter(|event| is_wanted(event, &[one], context_of))
            .collect();
        assert_eq!(read, by_hand);
    });
}

/// A store on a disk in memory that writes many small checkpoint files.
fn open(disk: &MemoryStorage) -> Store {
    let options = Options {
        segment_bytes: 64 << 10,
        checkpoint_every_bytes: 8 << 10,
        ..Options::default()
    };
    let clock = Arc::new(ManualClock::new(Timestamp(7)));
    Store::open(Arc::new(disk.clone()), &options, clock).unwrap()
}

fn without_index(disk: &MemoryStorage) -> MemoryStorage {
    let mut files = disk.files();
    files.retain(|name, _| !name.starts_with("index/"));
    MemoryStorage::with_files(files)
}

fn append_command(parts: Vec<AppendPart>) -> Command {
    Command::Append(Append {
        parts,
        key: None,
        strict: false,
    })
}

fn command_part(context: ContextId, parent: Option<TurnId>, text: &str) -> AppendPart {
    let payload = NewBlob::from_raw(Bytes::copy_from_slice(text.as_bytes()), 1000).unwrap();
    AppendPart {
        context,
        parent,
        expected_head: None,
        turns: vec![NewTurn {
            declared: TypeRef::new("t", 1),
            encoding: 1,
            payload,
            fs_root: None,
        }],
    }
}

fn create(base: Option<TurnId>) -> Command {
    Command::CreateContext(CreateContext {
        base,
        ..CreateContext::default()
    })
}

fn random_command(store: &Store, numbers: &mut Numbers) -> Command {
    let stats = store.stats();
    let context = context_id(numbers.pick(stats.contexts));
    let text = numbers.below(1000).to_string();
    match numbers.below(12) {
        0 => create(numbers.pick_turn(stats.turns)),
        1 => create(None),
        2 => {
            let other = context_id(numbers.pick(stats.contexts));
            append_command(vec![
                command_part(context, None, &text),
                command_part(other, None, &text),
            ])
        }
        3 => {
            let parent = numbers.pick_turn(stats.turns);
            append_command(vec![command_part(context, parent, &text)])
        }
        4 | 5 if stats.turns > 0 => Command::AttachFs {
            turn: turn_id(numbers.pick(stats.turns)),
            root: BlobHash::of(b"root"),
        },
        6 => Command::SetLabels {
            context,
            labels: Labels::from([("a".to_owned(), text)]),
        },
        7 => Command::PutBlob(NewBlob::from_raw(Bytes::from(text), 1000).unwrap()),
        8 => {
            let json = format!(
                r#"{{"registry_version":1,"bundle_id":"{text}","types":{{}},"enums":{{}}}}"#
            );
            Command::PutBundle {
                id: text,
                json: Bytes::from(json),
            }
        }
        _ => append_command(vec![command_part(context, None, &text)]),
    }
}

/// Compares feeds of single contexts and of pairs with the whole feed filtered by hand.
fn check_feeds(store: &Store, numbers: &mut Numbers) {
    let last = store.last_position();
    let events: Vec<_> = read_all(store.feed(0), last);
    assert_eq!(events.len() as u64, last, "the whole feed has no gaps");
    let contexts = store.stats().contexts;
    for context in (1..=contexts).map(context_id) {
        let wanted = [context, context_id(numbers.pick(contexts))];
        let wanted = if numbers.below(2) == 0 {
            &wanted[..1]
        } else {
            &wanted[..]
        };
        let after = numbers.below(last + 1);
        for after in [0, after, last] {
            let by_hand = events.iter().filter(|event| event.position > after);
            let by_hand = by_hand.filter(|event| {
                is_wanted(event, wanted, |turn| {
                    store.turn(turn).ok().map(|turn| turn.context)
                })
            });
            assert_eq!(
                read_all(store.feed_of(wanted, after), last),
                by_hand.cloned().collect::<Vec<_>>(),
                "contexts {wanted:?} after {after}"
            );
        }
    }
}

#[test]
fn the_feeds_are_the_same_after_a_reopen_with_checkpoints_and_without() {
    for seed in 0..8 {
        let (disk, mut numbers) = (MemoryStorage::new(), Numbers(seed));
        let mut store = open(&disk);
        let root = NewBlob::from_raw(Bytes::from_static(b"root"), 1000).unwrap();
        store.run(Command::PutBlob(root)).unwrap();
        store.run(create(None)).unwrap();
        for _ in 0..3 {
            for _ in 0..150 {
                let command = random_command(&store, &mut numbers);
                // The store may refuse a repeated bundle id or a second root.
                match store.run(command) {
                    Ok(_) | Err(_) => {}
                }
            }
            check_feeds(&store, &mut numbers);
            // As a crash leaves it: the checkpoints cover a part, the log's tail the rest.
            let crashed = MemoryStorage::with_files(disk.files());
            check_feeds(&open(&crashed), &mut numbers);
            check_feeds(&open(&without_index(&disk)), &mut numbers);
            store.close();
            drop(store);
            store = open(&disk);
            check_feeds(&store, &mut numbers);
        }
        let several = disk.files().contains_key("index/0000000002.ckpt");
        assert!(several, "more than one checkpoint file was loaded");
    }
}

/// Steps to read a cursor to the end, and how many events it had.
fn measure(store: &Store, mut cursor: FeedCursor) -> (u64, u64) {
    let before = store.feed_steps();
    let events = std::iter::from_fn(|| cursor.next_up_to(u64::MAX)).count();
    (store.feed_steps() - before, events as u64)
}

/// Appends turns to a context, a hundred at a time.
fn append_many(store: &Store, context: ContextId, turns: usize) {
    for _ in 0..turns / 100 {
        let mut part = command_part(context, None, "text");
        part.turns = vec![part.turns[0].clone(); 100];
        store.run(append_command(vec![part])).unwrap();
    }
}

#[test]
fn a_reader_pays_for_the_events_of_its_contexts_only() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    for _ in 0..4 {
        store.run(create(None)).unwrap();
    }
    let (noise, busy, quiet) = (context_id(1), context_id(2), context_id(3));
    let never = context_id(4);
    let mut old = 0;
    for n in 0..10 {
        append_many(&store, noise, 1_000);
        append_many(&store, busy, 100);
        if n == 4 {
            old = store.last_position();
        }
    }
    store
        .run(append_command(vec![command_part(quiet, None, "text")]))
        .unwrap();
    append_many(&store, noise, 1_000);
    let check = |store: &Store| {
        let last = store.last_position();
        let steps = |contexts: &[ContextId], after: u64, expected: u64| {
            let (steps, events) = measure(store, store.feed_of(contexts, after));
            assert_eq!(events, expected, "{contexts:?} after {after}");
            steps
        };
        // About three steps for a turn of a full page, and a search for each page.
        let busy_steps = steps(&[busy], 0, 1 + 1_000);
        assert!(busy_steps <= 4 * 1_000, "{busy_steps} for a thousand turns");
        let old_steps = steps(&[busy], old, 500);
        assert!(old_steps <= 4 * 500, "{old_steps} from an old position");
        let several = steps(&[busy, quiet, never], 0, 3 + 1_001);
        assert!(several <= 4 * 1_004, "{several} for three contexts");
        let few = steps(&[quiet], 0, 2) + steps(&[never], 0, 1);
        assert!(few <= 20, "{few} for three events");
        assert_eq!(steps(&[busy, quiet, never], last, 0), 0);
        assert_eq!(steps(&[never], old, 0), 0);
    };
    check(&store);
    check(&open(&without_index(&disk)));
    store.close();
    drop(store);
    let store = open(&disk);
    check(&store);

    // Waiting for news costs nothing while other contexts grow.
    let mut waiting = store.feed_of(&[busy, never], store.last_position());
    let before = store.feed_steps();
    for _ in 0..5 {
        append_many(&store, noise, 1_000);
        assert_eq!(waiting.next_up_to(u64::MAX), None);
        assert_eq!(waiting.position(), store.last_position());
    }
    assert_eq!(store.feed_steps(), before);
    let Ok(Outcome::Appended(news)) =
        store.run(append_command(vec![command_part(busy, None, "news")]))
    else {
        panic!("a turn")
    };
    let event = waiting.next_up_to(u64::MAX).unwrap();
    assert_eq!(event.kind, EventKind::TurnAppended(news.turns[0].turn));
    let steps = store.feed_steps() - before;
    assert!(steps <= 10, "{steps} for one event");
}

#[test]
fn the_end_of_a_long_context_is_found_in_few_steps() {
    let mut history = History::new();
    let context = history.create(None);
    for _ in 0..200 {
        history.append(context, None, 1_000);
    }
    for missed in [1, 10, 100] {
        let before = history.state().feed_steps.load(Ordering::Relaxed);
        let events = read_all(
            history.feed_of(&[context], history.last() - missed),
            history.last(),
        );
        let steps = history.state().feed_steps.load(Ordering::Relaxed) - before;
        assert_eq!(events.len() as u64, missed);
        assert!(
            steps <= 4 * missed + 150,
            "{steps} for {missed} of 200 000 turns"
        );
    }
}

#[test]
fn a_context_of_nothing_but_branches_costs_a_few_steps_for_each() {
    let mut history = History::new();
    let (context, other) = (history.create(None), history.create(None));
    history.append(context, None, 1);
    for _ in 0..500 {
        history.append(other, None, 5);
        history.append(context, Some(turn_id(1)), 1);
    }
    let before = history.state().feed_steps.load(Ordering::Relaxed);
    let events = read_all(history.feed_of(&[context], 0), history.last());
    let steps = history.state().feed_steps.load(Ordering::Relaxed) - before;
    assert_eq!(events.len(), 502);
    assert!(steps <= 10 * 502, "{steps} for 502 events");
}

#[test]
fn ordinary_turns_take_no_memory_in_the_index() {
    let mut history = History::new();
    let contexts: Vec<_> = (0..10).map(|_| history.create(None)).collect();
    for n in 0..10_000 {
        history.append(contexts[n % contexts.len()], None, 1);
    }
    let index = &history.state().feed_index;
    assert_eq!(index.turn_positions.runs(), 1);
    assert_eq!(index.lost_turns.runs(), 0);
    assert!(index.irregular.read().unwrap().is_empty());
}

#[test]
fn an_event_without_its_row_or_out_of_order_is_no_event() {
    let mut history = History::new();
    let context = history.create(None);
    history.append(context, None, 2);
    let (state, position) = (history.state(), history.last() + 1);
    let add = |event| state.feed_index.add(state, position, event);
    assert_eq!(add(EventRow::Turn(turn_id(3))), None);
    assert_eq!(add(EventRow::Turn(turn_id(1))), None, "its event exists");
    assert_eq!(add(EventRow::Fs(turn_id(3))), None);
    assert_eq!(add(EventRow::Context(context_id(2))), None);
}
