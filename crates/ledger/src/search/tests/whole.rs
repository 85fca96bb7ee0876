//! What a person expects of a search, and what damaged checkpoints do.

use super::super::query::ParsedQuery;
use super::super::{CheckpointError, ClassId, Document, Index, Query, Scope, Window, date_words};
use super::twins::{index, ledger};
use turnkeep_teamworld::Random;

const PUBLIC: ClassId = ClassId(0);
const SECRET: ClassId = ClassId(9);
const MINUTE: i64 = 60_000;

struct World {
    index: Index,
    texts: Vec<String>,
}

fn world(entries: &[(ClassId, &str, i64, &str)]) -> World {
    let mut world = World {
        index: Index::new(),
        texts: Vec::new(),
    };
    for (class, author, minute, text) in entries {
        let date = date_words(jiff::civil::date(2026, 11, 15));
        let time = minute * MINUTE;
        world.index.push(&Document {
            class: *class,
            author,
            label: author,
            text,
            time,
            date: &date,
        });
        world.texts.push((*text).to_owned());
    }
    world
}

impl World {
    fn find(&self, query: Query<'_>) -> Vec<u32> {
        let scope = Scope {
            classes: &[PUBLIC],
            at: u32::MAX,
        };
        let Ok(hits) = self.index.search(&scope, &query, &self.texts[..]);
        hits.into_iter().map(|hit| hit.entry).collect()
    }

    fn search_words(&self, text: &str) -> Vec<u32> {
        self.find(query(text))
    }
}

fn query(text: &str) -> Query<'_> {
    Query {
        text,
        author: None,
        window: Window::default(),
        limit: 10,
        context_max: 10,
    }
}

/// Entries far apart in time, so that none is another's neighbour.
fn apart(texts: &[&str]) -> World {
    let entries: Vec<_> = (0..)
        .zip(texts)
        .map(|(hour, text)| (PUBLIC, "ANNA", hour * 60, *text))
        .collect();
    world(&entries)
}

#[test]
fn identifiers_are_found_whole_and_by_part() {
    let world = apart(&[
        "the fix is in src/pay/refund.rs now",
        "PAY-142 waits for review",
        "mask 0x1f on port 8443",
        "parseRefundHeader fails for Café Müller",
        "ship 東京都 🎉",
    ]);
    for (text, expect) in [
        ("src/pay/refund.rs", 0),
        ("refund.rs", 0),
        ("pay-142", 1),
        ("142", 1),
        ("0x1F", 2),
        ("8443", 2),
        ("header", 3),
        ("parserefundheader", 3),
        ("CAFE muller", 3),
        ("京都", 4),
        ("🎉", 4),
        ("reviewing", 1),
    ] {
        assert_eq!(world.search_words(text).first(), Some(&expect), "{text}");
    }
}

#[test]
fn parts_of_words_are_found_where_no_space_or_any_ending_ends_them() {
    let world = apart(&["東京都に行く", "京阪の駅", "한국어를 배운다", "국물이 좋다"]);
    for (text, expect) in [
        ("東", &[0][..]),
        ("都", &[0]),
        ("京", &[1, 0]),
        ("京都", &[0]),
        ("한국", &[2]),
        ("국", &[3, 2]),
        ("한국어", &[2]),
        ("金", &[]),
    ] {
        let mut found = world.search_words(text);
        found.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(found, expect, "{text}");
    }
}

#[test]
fn words_that_are_not_searched_for_find_nothing_and_no_words_the_newest() {
    let world = apart(&["the end of the day costs 5 €", "of and to ???"]);
    for text in ["the", "of and", "???", "€", "->"] {
        assert!(world.search_words(text).is_empty(), "{text}");
    }
    assert_eq!(world.search_words(" "), [1, 0]);
    assert_eq!(world.search_words("the day"), [0]);
    assert_eq!(world.search_words("\"of and\""), [1]);
}

#[test]
fn authors_and_dates_are_words() {
    let mut world = world(&[(PUBLIC, "ANNA", 0, "one"), (PUBLIC, "BEN", 60, "two")]);
    let date = date_words(jiff::civil::date(2027, 2, 1));
    assert_eq!(date, "2027-02-01 monday february");
    let (author, time) = ("ANNA", 120 * MINUTE);
    world.index.push(&Document {
        class: PUBLIC,
        author,
        label: author,
        text: "three",
        time,
        date: &date,
    });
    for (text, expect) in [
        ("ben", &[1][..]),
        ("What did Anna say?", &[2, 0]),
        ("monday", &[2]),
        ("2027-02-01", &[2]),
        ("sunday", &[1, 0]),
    ] {
        assert_eq!(world.search_words(text), expect, "{text}");
    }
}

#[test]
fn phrases_are_exact_bytes() {
    let world = apart(&[
        "Ship the refund fix today.",
        "ship the  refund fix",
        "the refund is shipped",
        "re\"fund",
    ]);
    for (text, expect) in [
        ("\"the refund fix\"", &[0][..]),
        ("\"the refund\"", &[2, 0]),
        ("\"he refund f\"", &[0]),
        ("\"Ship\"", &[0]),
        ("\"hip\"", &[2, 1, 0]),
        ("\"the  \"", &[1]),
        ("\"the\"", &[2, 1, 0]),
        ("\"refund\" \"today\"", &[0]),
        ("\"no such thing\"", &[]),
        ("\"fix today. \"", &[]),
    ] {
        let mut found = world.search_words(text);
        found.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(found, expect, "{text}");
    }
}

#[test]
fn every_piece_of_a_text_in_quotes_finds_every_text_that_has_it() {
    let texts = [
        "Stopping the refunds, studied carefully.",
        "He stopped; the refunding studies agree.",
        "It's O'Reilly's well-known parseHeader()!",
        "Boxes, classes and parties of being there.",
        "cafés und Straße: stoppings, agreeing eyes",
        "the other there",
    ];
    let world = apart(&texts);
    for text in texts {
        let bounds: Vec<usize> = text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .collect();
        for (index, start) in bounds.iter().enumerate() {
            for end in bounds[index..].iter().skip(1).take(12) {
                let piece = &text[*start..*end];
                let mut found = world.search_words(&format!("\"{piece}\""));
                found.sort_unstable();
                let expect = (0..)
                    .zip(&texts)
                    .filter(|(_, text)| text.contains(piece))
                    .map(|(at, _)| at);
                assert_eq!(found, expect.collect::<Vec<u32>>(), "{piece:?}");
            }
        }
    }
}

#[test]
fn phrases_may_cut_identifiers_anywhere() {
    let long = format!("{}142", "x".repeat(80));
    let world = apart(&[
        "fix PAY-142.",
        "fix pay-142",
        "PAY-1421 too",
        "it's142",
        "12 1 42",
        &long,
        "port 142's",
    ]);
    for (text, expect) in [
        ("\"PAY-142\"", &[2, 0][..]),
        ("\"142\"", &[6, 5, 3, 2, 1, 0]),
        ("\"Y-14\"", &[2, 0]),
        ("\"42.\"", &[0]),
        ("\"x142\"", &[5]),
        ("\"142's\"", &[6]),
        ("\"1 4\"", &[4]),
    ] {
        let mut found = world.search_words(text);
        found.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(found, expect, "{text}");
    }
}

#[test]
fn filters_come_first_and_no_words_mean_newest_first() {
    let world = world(&[
        (PUBLIC, "ANNA", 0, "refund one"),
        (PUBLIC, "BEN", 60, "refund two"),
        (SECRET, "ANNA", 120, "refund hidden"),
        (PUBLIC, "ANNA", 180, "refund three"),
        (PUBLIC, "ANNA", 240, "other"),
    ]);
    let window = |from: i64, to: i64| Window {
        from: Some(from * MINUTE),
        to: Some(to * MINUTE),
    };
    assert_eq!(world.search_words("refund"), [3, 1, 0]);
    assert_eq!(world.search_words(""), [4, 3, 1, 0]);
    assert_eq!(world.search_words("the of"), [0; 0]);
    assert_eq!(world.search_words("nothing"), [0; 0]);
    assert_eq!(
        world.find(Query {
            author: Some("ANNA"),
            ..query("refund")
        }),
        [3, 0]
    );
    assert_eq!(
        world.find(Query {
            author: Some("anna"),
            ..query("refund")
        }),
        [0; 0]
    );
    assert_eq!(
        world.find(Query {
            author: Some("BEN"),
            ..query("")
        }),
        [1]
    );
    assert_eq!(
        world.find(Query {
            window: window(60, 180),
            ..query("refund")
        }),
        [1]
    );
    assert_eq!(
        world.find(Query {
            window: window(0, 240),
            limit: 2,
            ..query("")
        }),
        [3, 1]
    );
    assert_eq!(
        world.find(Query {
            window: Window {
                from: Some(1),
                to: None
            },
            ..query("refund")
        }),
        [3, 1]
    );
    assert_eq!(
        world.find(Query {
            limit: 0,
            ..query("refund")
        }),
        [0; 0]
    );
}

#[test]
fn neighbours_lend_a_part_of_their_score() {
    let world = world(&[
        (PUBLIC, "ANNA", 0, "which port does the gateway use"),
        (SECRET, "ANNA", 1, "hidden"),
        (PUBLIC, "BEN", 29, "8443, as before"),
        (PUBLIC, "BEN", 60, "lunch"),
    ]);
    assert_eq!(world.search_words("gateway"), [0, 2]);
}

#[test]
fn entries_beside_a_hit_are_context_and_never_more_than_asked_for() {
    let world = world(&[
        (PUBLIC, "ANNA", 0, "which port does the gateway use"),
        (PUBLIC, "BEN", 1, "8443, as before"),
        (SECRET, "ANNA", 2, "hidden"),
        (PUBLIC, "ANNA", 3, "thanks"),
        (PUBLIC, "BEN", 4, "lunch"),
    ]);
    let scope = Scope {
        classes: &[PUBLIC],
        at: u32::MAX,
    };
    for (context_max, limit, expect) in [
        (10, 10, &[(0, false), (1, true), (3, true)][..]),
        (1, 10, &[(0, false), (1, true)]),
        (0, 10, &[(0, false)]),
        (10, 2, &[(0, false), (1, true)]),
        (10, 1, &[(0, false)]),
    ] {
        let query = Query {
            limit,
            context_max,
            ..query("gateway")
        };
        let Ok(hits) = world.index.search(&scope, &query, &world.texts[..]);
        let found: Vec<(u32, bool)> = hits.iter().map(|hit| (hit.entry, hit.context)).collect();
        assert_eq!(found, expect, "{context_max} of {limit}");
    }
    // A filter is one for context, too, and whatever has the phrase is no context.
    let by = |author| {
        world.find(Query {
            author: Some(author),
            ..query("gateway")
        })
    };
    assert_eq!((by("ANNA"), by("BEN")), (vec![0, 3], vec![]));
    assert_eq!(world.search_words("\"gateway\""), [0]);
}

#[test]
fn context_never_takes_the_place_of_a_match_further_down() {
    // More matches than are looked at again, each beside an entry that matches nothing.
    let minute = |number: i64| number * 40;
    let entries: Vec<_> = (0..120)
        .map(|number| match number % 2 {
            0 => (PUBLIC, "ANNA", minute(number / 2), "the refund"),
            _ => (PUBLIC, "BEN", minute(number / 2) + 1, "lunch"),
        })
        .collect();
    let world = world(&entries);
    let scope = Scope {
        classes: &[PUBLIC],
        at: u32::MAX,
    };
    let Ok(hits) = world.index.search(
        &scope,
        &Query {
            limit: 70,
            ..query("refund")
        },
        &world.texts[..],
    );
    let matches = hits.iter().filter(|hit| !hit.context).count();
    assert_eq!((matches, hits.len()), (60, 70));
    let Ok(fewer) = world.index.search(
        &scope,
        &Query {
            limit: 7,
            ..query("refund")
        },
        &world.texts[..],
    );
    assert_eq!(fewer, hits[..7], "fewer are the first of many");
}

#[test]
fn a_query_that_names_an_author_prefers_what_the_author_wrote() {
    let mut world = apart(&["the port moved with Ben Ray", "the port moved", "lunch"]);
    let date = date_words(jiff::civil::date(2026, 11, 15));
    let (text, time) = ("the port moved", 10_000 * MINUTE);
    for label in ["Ben Ray", "Ben"] {
        world.index.push(&Document {
            class: PUBLIC,
            author: "B7",
            label,
            text,
            time,
            date: &date,
        });
        world.texts.push(text.to_owned());
    }
    assert_eq!(
        world.search_words("when did the port of Ben Ray move")[0],
        3,
        "the label that it had then"
    );
    assert_eq!(
        world.search_words("port lunch b7")[..3],
        [2, 4, 3],
        "the id"
    );
    for (query, name, expect) in [
        ("port ray", "Ben Ray", false),
        ("RAY and ben", "Ben Ray", true),
        ("coders", "CODER", true),
        ("the will", "Will", false),
        ("port", "", false),
    ] {
        assert_eq!(
            ParsedQuery::parse(query).has_all_words_of(name),
            expect,
            "{name} in {query}"
        );
    }
}

#[test]
fn neighbours_are_those_of_the_same_conversation() {
    // ANNA talks with BEN, while CLEO talks with DAN. An answer follows its question after two
    // others.
    let talk = [
        ("ANNA", "which port does the gateway use"),
        ("CLEO", "where shall we eat"),
        ("DAN", "at the harbour"),
        ("BEN", "8443, as before"),
        ("ANNA", "thanks"),
        ("BEN", "welcome"),
        ("CLEO", "fine"),
        ("DAN", "good"),
        ("CLEO", "see you"),
        ("DAN", "later"),
    ];
    let entries: Vec<_> = (0..)
        .zip(talk)
        .map(|(minute, (by, text))| (PUBLIC, by, minute, text))
        .collect();
    assert_eq!(world(&entries).search_words("gateway"), [0, 3, 4]);
}

#[test]
fn damaged_checkpoints_are_refused() {
    let mut random = Random::new(7);
    let whole = index(&ledger(&mut random, 4)).encode();
    assert!(Index::decode(&whole).is_ok());
    assert_eq!(Index::decode(b"").err(), Some(CheckpointError::Foreign));
    assert_eq!(
        Index::decode(&[0; 99]).err(),
        Some(CheckpointError::Foreign)
    );
    let mut newer = whole.clone();
    newer[8] = 9;
    assert_eq!(
        Index::decode(&newer).err(),
        Some(CheckpointError::Version(9))
    );
    for cut in 0..whole.len() {
        assert!(Index::decode(&whole[..cut]).is_err(), "cut at {cut}");
    }
    for _ in 0..300 {
        let mut damaged = whole.clone();
        let at = 12 + random.below(whole.len() - 12);
        damaged[at] ^= 1 << random.below(8);
        assert_eq!(
            Index::decode(&damaged).err(),
            Some(CheckpointError::Checksum),
            "at {at}"
        );
    }
}

#[test]
fn made_up_checkpoints_never_panic() {
    let mut random = Random::new(11);
    let mut read = 0;
    for round in 0..3000_u64 {
        let mut bytes = index(&ledger(&mut Random::new(round % 5), 3)).encode();
        bytes.truncate(bytes.len() - 32);
        for _ in 0..=random.below(3) {
            let at = 12 + random.below(bytes.len() - 12);
            bytes[at] = u8::try_from(random.below(256)).expect("a byte");
        }
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        if let Ok(index) = Index::decode(&bytes) {
            read += 1;
            let classes: Vec<ClassId> = (0..30).map(ClassId).collect();
            let scope = Scope {
                classes: &classes,
                at: u32::MAX,
            };
            for text in ["refund port deadline", "2026-11-15", "", "\"refund\""] {
                let texts: &[&str] = &[];
                let Ok(_) = index.search(&scope, &query(text), texts);
            }
        }
    }
    assert!(read > 100, "some of it must be read: {read}");
}
