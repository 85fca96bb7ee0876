//! Random ledgers: the index agrees with the reference, hidden entries have no effect, a search as
//! of a position is a search of the ledger that ends there, and a checkpoint changes nothing.

use turnkeep_teamworld::{Plan, Random, TeamWorld, WrittenEntry};

use super::super::{ClassId, Document, Hit, Index, Query, Scope, Window, date_words};
use super::reference::{Asked, Expected, Owned, Reference};

const WORDS: &[&str] = &[
    "refund",
    "refunds",
    "PAY-142",
    "PAY-7",
    "src/pay/refund.rs",
    "deadline",
    "port",
    "8443",
    "the",
    "of",
    "ship",
    "shipped",
    "café",
    "東京都",
    "🎉",
    "don't",
    "Anna's",
    "moved",
    "2026-11-15",
    "blocker",
    "test",
    "\n",
    "rollback,",
    "coder",
    "Ben",
];
const PEOPLE: &[&str] = &["ANNA", "BEN", "CODER", "planner"];

fn text(random: &mut Random) -> String {
    // Mostly common words, and short texts, so that ties and neighbours matter.
    let rare = if random.below(3) == 0 { WORDS.len() } else { 6 };
    let long = if random.below(40) == 0 { 400 } else { 8 };
    let words: Vec<&str> = (0..random.below(long))
        .map(|_| random.pick_word(&WORDS[..rare]))
        .collect();
    words.join(" ")
}

pub(super) fn ledger(random: &mut Random, classes: usize) -> Vec<Owned> {
    let mut time = 1_800_000_000_000;
    let entry = |random: &mut Random| {
        time += [0, 1000, 60_000, 31 * 60_000][random.below(4)];
        let author = random.pick_word(PEOPLE).to_owned();
        let class = u32::try_from(random.below(classes)).expect("few") * 7;
        let date = format!("2026-11-{:02}", random.below(28));
        // A label may change, and a hidden entry may have another one.
        let label = if random.below(3) == 0 {
            "Ben Coder".to_owned()
        } else {
            author.to_lowercase()
        };
        Owned {
            class,
            label,
            author,
            text: text(random),
            time,
            date,
        }
    };
    let count = random.below(300);
    std::iter::repeat_with({
        let mut entry = entry;
        move || entry(random)
    })
    .take(count)
    .collect()
}

fn asked(random: &mut Random, ledger: &[Owned]) -> Asked {
    let mut query = text(random);
    if random.below(4) == 0 && !ledger.is_empty() {
        let from = &ledger[random.below(ledger.len())].text;
        let piece: String = from
            .chars()
            .skip(random.below(9))
            .take(random.below(20))
            .collect();
        query = format!("{query} \"{piece}\"");
    }
    let time = |random: &mut Random| ledger.get(random.below(400)).map(|entry| entry.time);
    let window = match random.below(3) {
        0 => Window {
            from: time(random),
            to: time(random),
        },
        _ => Window::default(),
    };
    let author =
        (random.below(3) == 0).then(|| random.pick_word(&["ANNA", "BEN", "NOBODY"]).to_owned());
    let most = if random.below(5) == 0 { 90 } else { 20 };
    let limit = 1 + random.below(most);
    let context_max = if random.below(2) == 0 {
        limit
    } else {
        random.below(4)
    };
    Asked {
        text: query,
        author,
        window,
        limit,
        context_max,
    }
}

pub(super) fn index<'a>(entries: impl IntoIterator<Item = &'a Owned>) -> Index {
    let mut index = Index::new();
    for entry in entries {
        let Owned {
            class,
            author,
            label,
            text,
            time,
            date,
        } = entry;
        index.push(&Document {
            class: ClassId(*class),
            author,
            label,
            text,
            time: *time,
            date,
        });
    }
    index
}

fn hits(
    index: &Index,
    classes: &[ClassId],
    at: u32,
    asked: &Asked,
    texts: &[&str],
) -> Vec<Expected> {
    let Asked {
        text,
        author,
        window,
        limit,
        context_max,
    } = asked;
    let author = author.as_deref();
    let query = Query {
        text,
        author,
        window: *window,
        limit: *limit,
        context_max: *context_max,
    };
    let hits = index
        .search(&Scope { classes, at }, &query, texts)
        .expect("texts in memory");
    let expected = |hit: Hit| Expected {
        place: hit.entry as usize,
        score: hit.score.to_bits(),
        context: hit.context,
    };
    hits.into_iter().map(expected).collect()
}

/// The same hits, each in its place among all entries.
fn among_all(hits: &[Expected], places: &[u32]) -> Vec<Expected> {
    hits.iter()
        .map(|hit| Expected {
            place: places[hit.place] as usize,
            ..*hit
        })
        .collect()
}

fn texts<'a>(entries: impl IntoIterator<Item = &'a Owned>) -> Vec<&'a str> {
    entries
        .into_iter()
        .map(|entry| entry.text.as_str())
        .collect()
}

fn check(seed: u64) {
    let mut random = Random::new(seed);
    let count = 1 + random.below(6);
    let ledger = ledger(&mut random, count);
    let at = random.below(ledger.len() + 20);
    let classes: Vec<ClassId> = (0..8)
        .map(|class| ClassId(class * 7))
        .filter(|_| random.below(2) == 0)
        .collect();
    let sees = |entry: &Owned| classes.contains(&ClassId(entry.class));
    let places: Vec<u32> = (0..)
        .zip(ledger.iter().take(at))
        .filter(|(_, entry)| sees(entry))
        .map(|(place, _)| place)
        .collect();
    let visible: Vec<&Owned> = places
        .iter()
        .map(|place| &ledger[*place as usize])
        .collect();

    let whole = index(&ledger);
    let again = Index::decode(&whole.encode()).expect("a checkpoint that was just written");
    let cut = index(ledger.iter().take(at));
    let twin = index(visible.iter().copied());
    // The same entries, but all of one class.
    let merged: Vec<Owned> = visible
        .iter()
        .map(|entry| Owned {
            class: 1,
            ..(*entry).clone()
        })
        .collect();
    let one = index(&merged);
    let reference = Reference::new(visible.clone());
    for _ in 0..12 {
        let asked = asked(&mut random, &ledger);
        let expect = reference.search(&asked);
        let mapped = among_all(&expect, &places);
        let at = u32::try_from(at).expect("few");
        let end = u32::MAX;
        let seed = format!("seed {seed}, {asked:?}");
        assert_eq!(
            hits(&whole, &classes, at, &asked, &texts(&ledger)),
            mapped,
            "against the reference: {seed}"
        );
        assert_eq!(
            hits(&again, &classes, at, &asked, &texts(&ledger)),
            mapped,
            "after a checkpoint: {seed}"
        );
        assert_eq!(
            hits(&cut, &classes, end, &asked, &texts(&ledger)),
            mapped,
            "as of a position: {seed}"
        );
        assert_eq!(
            hits(
                &twin,
                &classes,
                end,
                &asked,
                &texts(visible.iter().copied())
            ),
            expect,
            "the twin: {seed}"
        );
        assert_eq!(
            hits(&one, &[ClassId(1)], end, &asked, &texts(&merged)),
            expect,
            "one class: {seed}"
        );
    }
}

#[test]
fn random_ledgers_agree_with_the_reference_and_with_their_twins() {
    (0..400).for_each(check);
}

/// The words of the date of a time, in UTC.
fn date_of(millis: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(millis).expect("a time of the world");
    date_words(jiff::tz::TimeZone::UTC.to_datetime(time).date())
}

/// Large enough for a search to leave most of the work undone.
#[test]
fn a_large_world_agrees_with_the_reference() {
    let world = TeamWorld::new(&Plan {
        questions: 20,
        ..Plan::new(9, 40_000)
    });
    let owned = |said: &WrittenEntry| Owned {
        class: said.class,
        author: world.person_id(said.author),
        label: world.persons[said.author].clone(),
        text: said.text.clone(),
        time: said.time,
        date: date_of(said.time),
    };
    let entries: Vec<Owned> = world.entries.iter().map(owned).collect();
    let (index, reader) = (index(&entries), 3);
    let classes: Vec<ClassId> = world.readable_classes(reader).map(ClassId).collect();
    let sees = |entry: &Owned| classes.contains(&ClassId(entry.class));
    let places: Vec<u32> = (0..)
        .zip(&entries)
        .filter(|(_, entry)| sees(entry))
        .map(|(place, _)| place)
        .collect();
    let reference = Reference::new(
        places
            .iter()
            .map(|place| &entries[*place as usize])
            .collect(),
    );
    for question in &world.questions {
        let author = question.author.map(|author| world.person_id(author));
        let (from, to) = (question.window.from, question.window.to);
        let (text, window) = (question.text.clone(), Window { from, to });
        let asked = Asked {
            text,
            author,
            window,
            limit: 10,
            context_max: 10,
        };
        let expect = among_all(&reference.search(&asked), &places);
        assert_eq!(
            hits(&index, &classes, u32::MAX, &asked, &texts(&entries)),
            expect,
            "{asked:?}"
        );
    }
}
