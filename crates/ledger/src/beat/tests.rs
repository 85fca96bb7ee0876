//! Beats against a world in memory: what they write, what they answer, and what they leave alone.

use serde_json::{Value, json};
use turnkeep_types::Timestamp;

use super::*;
use crate::config::{Config, Person, Profile, Registry};
use crate::envelope;
use crate::outcome::{RequestLookup, look_up_request, replay};

const NINE: Timestamp = Timestamp(1_763_197_200_000);

/// A world and the ids of its next beats.
struct Stage {
    world: World,
    ids: Ids,
    now: Timestamp,
}

struct Done {
    value: Value,
    rejected: bool,
    bytes: Bytes,
}

impl Stage {
    /// The world of the worked beat.
    fn payments() -> Self {
        let name = Name::new("payments").unwrap();
        let mut world = World::new(Config::new(
            name,
            Profile::Workspace,
            WorldTime::from_timestamp(NINE),
        ));
        for id in ["PLANNER", "CODER", "REVIEWER"] {
            world.apply(Fact::Person(Person::with_id(Name::new(id).unwrap())));
        }
        Self {
            world,
            ids: Ids::from_seed(&[1; 32]),
            now: NINE,
        }
    }

    fn narrative() -> Self {
        let name = Name::new("story").unwrap();
        let world = World::new(Config::new(
            name,
            Profile::Narrative,
            WorldTime::from_timestamp(NINE),
        ));
        assert_eq!(world.config.registry, Registry::Open);
        Self {
            world,
            ids: Ids::from_seed(&[2; 32]),
            now: NINE,
        }
    }

    fn run(
        &mut self,
        who: &Principal,
        envelope: &Value,
        bundle: Option<&Value>,
        expected: Option<&str>,
    ) -> Result<Done, Fault> {
        let parsed = Envelope::parse(envelope)?;
        let fingerprint = envelope::fingerprint(envelope, bundle);
        let kind = if bundle.is_some() {
            RequestKind::Beat
        } else {
            RequestKind::Invocation
        };
        let offer = bundle.map(|bundle| Offer {
            bundle,
            actor: Actor::AnyName,
            grant: Grant::of_caller(who),
            citable: CitableEntries::VisibleTo(who.viewer()),
            may_set_scene: *who == Principal::Owner,
        });
        let beat = Beat {
            principal: who,
            kind,
            envelope: &parsed,
            fingerprint,
            offer,
            expected_cursor: expected,
            now: self.now,
        };
        let decision = decide(&self.world, &beat, &mut self.ids)?;
        decision
            .facts
            .into_iter()
            .for_each(|fact| self.world.apply(fact));
        // What was answered can be answered again, at once and for ever.
        let Ok(RequestLookup::Repeated(outcome)) =
            look_up_request(&self.world, who, &parsed.request_id, &fingerprint)
        else {
            panic!("no outcome")
        };
        assert_eq!(
            replay(&self.world, &outcome, bundle),
            Ok(decision.response.clone())
        );
        let value = serde_json::from_slice(&decision.response).unwrap();
        Ok(Done {
            value,
            rejected: decision.rejected,
            bytes: decision.response,
        })
    }

    fn say(&mut self, id: &str, text: &str) -> Done {
        self.run(&Principal::Owner, &envelope(id, text), None, None)
            .unwrap()
    }

    fn write(&mut self, who: &str, id: &str, entries: Value) -> Done {
        let bundle = bundle(id, who, entries);
        self.run(&person(who), &envelope(id, ""), Some(&bundle), None)
            .unwrap()
    }

    fn cursor(&self, who: &str) -> String {
        let view = self.world.view(person(who).viewer());
        cursor::write(&view, view.count())
    }

    fn texts(&self, who: &str) -> Vec<String> {
        let view = self.world.view(person(who).viewer());
        view.entries_from(0)
            .map(|(_, entry)| entry.text.to_string())
            .collect()
    }
}

fn person(id: &str) -> Principal {
    Principal::Person {
        id: Name::new(id).unwrap(),
        write: true,
    }
}

fn envelope(id: &str, text: &str) -> Value {
    json!({
        "request_id": id,
        "invoker": { "invoker_id": "test-client", "invoker_role": "INVOKER", "notes": null },
        "operator": { "operator_id": "GEORGE", "input_text": text },
        "mode": { "kind": "BEAT", "client_intent": null },
    })
}

fn declaring(id: &str, overrides: Value) -> Value {
    let mut envelope = envelope(id, "");
    envelope["declared_overrides"] = overrides;
    envelope
}

fn entry(id: &str, who: &str, to: &[&str], text: &str) -> Value {
    let scope = if to.is_empty() { "PUBLIC" } else { "PRIVATE" };
    json!({
        "request_id": id, "author": { "author_id": who, "author_class": "PERSON" },
        "visibility": { "scope": scope, "visible_to": to }, "channel": "PEOPLE", "text": text,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn bundle(id: &str, who: &str, entries: Value) -> Value {
    json!({
        "bundle_id": null, "request_id": id, "proposed_by": { "engine": "test", "actor": who },
        "wrote": !entries.as_array().unwrap().is_empty(), "entries": entries,
    })
}

#[test]
fn the_worked_beat_is_seen_by_each_as_they_may() {
    let mut stage = Stage::payments();
    let done = stage.say("r-17", "Ship the refund fix today.");
    assert_eq!(
        done.value["stream"]["entries"][0]["text"],
        "Ship the refund fix today."
    );
    assert_eq!(
        done.value["stream"]["entries"][0]["created_at_world"],
        "2025-11-15T09:00:00.000Z"
    );
    assert_eq!(
        done.value["stream"]["entries"][0]["author_label"],
        Value::Null
    );
    assert_eq!(done.value["debug"]["wrote"], true);

    let text = "CODER takes the rounding test; REVIEWER checks by 15:00.";
    let start = text.find("REVIEWER checks").unwrap();
    let mut plan = bundle(
        "r-18",
        "PLANNER",
        json!([
            entry("r-18", "PLANNER", &[], text),
            entry(
                "r-18",
                "PLANNER",
                &["REVIEWER"],
                "Look twice at the ledger migration."
            ),
        ]),
    );
    plan["pocket_items"] =
        json!([{ "kind": "CALENDAR", "entry_index": 0, "title": [start, start + 15] }]);
    let done = stage
        .run(&person("PLANNER"), &envelope("r-18", ""), Some(&plan), None)
        .unwrap();
    assert!(!done.rejected, "{}", done.value);
    assert_eq!(done.value["bundle"]["entries"].as_array().unwrap().len(), 2);
    assert_eq!(
        done.value["projection"]["pocket"]["calendar"]["items"][0]["title"],
        "REVIEWER checks"
    );

    for (who, count) in [("PLANNER", 3), ("REVIEWER", 3), ("CODER", 2)] {
        assert_eq!(stage.texts(who).len(), count, "{who}");
    }
    let operator = stage.world.view(Viewer::operator());
    assert_eq!(operator.count(), 2);
}

use crate::audience::Viewer;

#[test]
fn n34_the_same_id_for_other_words_or_by_another_is_refused() {
    let mut stage = Stage::payments();
    stage.say("r-17", "Ship it.");
    let other = envelope::fingerprint(&envelope("r-17", "Do not ship it."), None);
    let fault = look_up_request(&stage.world, &Principal::Owner, "r-17", &other).unwrap_err();
    assert_eq!(fault.code, Code::RequestIdReused);
    let fault = look_up_request(&stage.world, &person("CODER"), "r-17", &other).unwrap_err();
    assert_eq!(fault.code, Code::RequestIdForeign);
    assert!(matches!(
        look_up_request(&stage.world, &person("CODER"), "r-18", &other),
        Ok(RequestLookup::New)
    ));
}

#[test]
fn ui_and_notes_do_not_make_another_request() {
    let mut stage = Stage::payments();
    let done = stage.say("r-1", "Hello.");
    let mut again = envelope("r-1", "Hello.");
    again["ui"] = json!({ "stream_cursor": null, "client_timestamp_utc": "2099-01-01T00:00:00Z" });
    again["invoker"]["notes"] = "again".into();
    let Ok(RequestLookup::Repeated(outcome)) = look_up_request(
        &stage.world,
        &Principal::Owner,
        "r-1",
        &envelope::fingerprint(&again, None),
    ) else {
        panic!("not recognised")
    };
    assert_eq!(replay(&stage.world, &outcome, None), Ok(done.bytes));
}

#[test]
fn p02_an_answer_stays_the_same_whatever_is_written_later() {
    let mut stage = Stage::payments();
    let plan = bundle(
        "r-2",
        "PLANNER",
        json!([entry("r-2", "PLANNER", &["CODER"], "psst")]),
    );
    let first = stage
        .run(&person("PLANNER"), &envelope("r-2", ""), Some(&plan), None)
        .unwrap();
    stage.now = Timestamp(NINE.0 + 60_000);
    stage.say("r-3", "Later.");
    stage.world.apply(Fact::Person(Person {
        label: "Renamed".into(),
        ..Person::with_id(Name::new("PLANNER").unwrap())
    }));
    let outcome = Arc::clone(stage.world.outcome("r-2").unwrap());
    assert_eq!(replay(&stage.world, &outcome, Some(&plan)), Ok(first.bytes));
}

#[test]
fn p05_silence_moves_time_and_writes_nothing() {
    let mut stage = Stage::narrative();
    let done = stage.say("r-1", "");
    assert_eq!(
        done.value["debug"],
        json!({ "wrote": false, "bundle_id": null })
    );
    assert_eq!(
        done.value["stream"],
        json!({ "cursor_before": null, "cursor_after": null, "entries": [] })
    );
    assert_eq!(
        done.value["pocket"]["clock"]["world_time"],
        "2025-11-15T09:00:01.000Z"
    );
    assert_eq!(stage.world.position(), 0);
}

#[test]
fn p06_a_rejected_proposal_keeps_the_operators_words_and_alone_leaves_everything() {
    let mut stage = Stage::narrative();
    let bad = bundle("r-1", "x", json!([entry("r-1", "REBECCA", &[], " ")]));
    let before = stage.world.clock.clone();
    let done = stage
        .run(&Principal::Owner, &envelope("r-1", ""), Some(&bad), None)
        .unwrap();
    assert!(done.rejected);
    assert_eq!(
        done.value["bundle"]["rejection"],
        json!({ "rejected": true, "reason": "TEXT_EMPTY: entries[0].text" })
    );
    assert_eq!((stage.world.position(), &stage.world.clock), (0, &before));
    let outcome = stage.world.outcome("r-1").unwrap();
    assert_eq!(
        Fact::Outcome(Box::new((**outcome).clone())).family(),
        crate::fact::Family::Audit
    );

    let bad = bundle("r-2", "x", json!([entry("r-2", "REBECCA", &[], " ")]));
    let done = stage
        .run(
            &Principal::Owner,
            &envelope("r-2", "Hello?"),
            Some(&bad),
            None,
        )
        .unwrap();
    assert!(done.rejected);
    assert_eq!(
        done.value["projection"]["stream"]["entries"][0]["text"],
        "Hello?"
    );
    assert_eq!(stage.world.clock.time.as_str(), "2025-11-15T09:00:01.000Z");
}

#[test]
fn p07_user_voice_and_people_come_in_one_bundle_with_the_right_labels() {
    let mut stage = Stage::narrative();
    let entries = json!([
        { "request_id": "r-1", "author": { "author_id": "WORLD", "author_class": "WORLD" },
          "visibility": { "scope": "PUBLIC", "visible_to": [] }, "channel": "VOICE", "text": "Rain." },
        entry("r-1", "REBECCA", &[], "Come in."),
    ]);
    let done = stage
        .run(
            &Principal::Owner,
            &envelope("r-1", "I knock."),
            Some(&bundle("r-1", "x", entries)),
            None,
        )
        .unwrap();
    let shown = done.value["projection"]["stream"]["entries"]
        .as_array()
        .unwrap();
    let labels: Vec<_> = shown
        .iter()
        .map(|entry| (&entry["channel"], &entry["author_label"]))
        .collect();
    assert_eq!(
        json!(labels),
        json!([["USER", null], ["VOICE", null], ["PEOPLE", "REBECCA"]])
    );
}

#[test]
fn p08_a_pause_holds_time_and_a_resume_does_not_jump() {
    let mut stage = Stage::narrative();
    let time = |stage: &Stage| stage.world.clock.time.as_str().to_owned();
    stage
        .run(
            &Principal::Owner,
            &declaring("p", json!({ "pause_time": true })),
            None,
            None,
        )
        .unwrap();
    let frozen = time(&stage);
    for id in ["a", "b", "c"] {
        stage.say(id, "words");
        assert_eq!(time(&stage), frozen);
    }
    stage
        .run(
            &Principal::Owner,
            &declaring("q", json!({ "pause_time": false })),
            None,
            None,
        )
        .unwrap();
    assert_eq!(
        time(&stage),
        frozen,
        "the beat that resumes still has the frozen time"
    );
    stage.say("d", "words");
    assert_eq!(time(&stage), "2025-11-15T09:00:02.000Z");
}

#[test]
fn while_time_stands_still_no_entry_is_ahead_of_it() {
    let mut stage = Stage::payments();
    stage
        .run(
            &Principal::Owner,
            &declaring("p", json!({ "pause_time": true })),
            None,
            None,
        )
        .unwrap();
    let frozen = stage.world.clock.time.clone();
    let mut ahead = bundle("r-1", "CODER", json!([entry("r-1", "CODER", &[], "soon")]));
    ahead["entries"][0]["created_at_world"] = frozen.plus_seconds(30).as_str().into();
    let done = stage
        .run(&person("CODER"), &envelope("r-1", ""), Some(&ahead), None)
        .unwrap();
    assert_eq!(
        done.value["bundle"]["rejection"]["reason"],
        "TIME_INCONSISTENT: entries[0].created_at_world"
    );
    assert_eq!(stage.world.clock.time, frozen);
}

#[test]
fn a_world_that_was_idle_takes_no_entry_into_the_time_in_between() {
    let mut stage = Stage::payments();
    let start = stage.world.clock.time.clone();
    stage.now = Timestamp(NINE.0 + 86_400_000);
    let day = 86_400;
    for (seconds, rejected) in [
        (3600, true),
        (day - 121, true),
        (day - 119, false),
        (day, false),
        (day + 61, true),
    ] {
        let request = format!("r-{seconds}");
        let mut dated = bundle(
            &request,
            "CODER",
            json!([entry(&request, "CODER", &[], "then")]),
        );
        dated["entries"][0]["created_at_world"] = start.plus_seconds(seconds).as_str().into();
        let done = stage
            .run(
                &person("CODER"),
                &envelope(&request, ""),
                Some(&dated),
                None,
            )
            .unwrap();
        assert_eq!(
            done.rejected, rejected,
            "{seconds}: {}",
            done.value["bundle"]["rejection"]
        );
    }
}

#[test]
fn n13_words_move_no_clock() {
    let mut stage = Stage::narrative();
    stage.say("r-1", "Later that day, three hours on, at noon…");
    assert_eq!(stage.world.clock.time.as_str(), "2025-11-15T09:00:01.000Z");
}

#[test]
fn n15_a_declared_time_is_one_record_and_no_entry() {
    let stage = Stage::narrative();
    let later = json!({ "time": { "declared_world_time": "2025-11-15T12:00:00Z" } });
    let declared = declaring("r-1", later);
    let parsed = Envelope::parse(&declared).unwrap();
    let beat = Beat {
        principal: &Principal::Owner,
        kind: RequestKind::Invocation,
        envelope: &parsed,
        fingerprint: envelope::fingerprint(&declared, None),
        offer: None,
        expected_cursor: None,
        now: stage.now,
    };
    let decision = decide(&stage.world, &beat, &mut Ids::from_seed(&[3; 32])).unwrap();
    let [Fact::Time(declaration), Fact::Outcome(_)] = &decision.facts[..] else {
        panic!("{:?}", decision.facts)
    };
    assert_eq!(declaration.from.as_str(), "2025-11-15T09:00:00.000Z");
    assert_eq!(
        declaration.to.time.as_str(),
        "2025-11-15T12:00:00Z",
        "kept as it was given"
    );
}

#[test]
fn p09_a_zone_changes_the_display_and_local_times_need_to_be_one_instant_of_it() {
    let mut stage = Stage::narrative();
    let zone = json!({ "time": { "timezone": "Europe/Berlin" } });
    let done = stage
        .run(&Principal::Owner, &declaring("r-1", zone), None, None)
        .unwrap();
    let clock = &done.value["pocket"]["clock"];
    assert_eq!(
        clock,
        &json!({ "world_time": "2025-11-15T09:00:01.000Z", "timezone": "Europe/Berlin" })
    );
    for (id, local) in [
        ("gap", "2026-03-29T02:30:00"),
        ("fold", "2026-10-25T02:30:00"),
    ] {
        let before = (stage.world.position(), stage.world.clock.clone());
        let declared = declaring(id, json!({ "time": { "declared_world_time": local } }));
        let fault = stage
            .run(&Principal::Owner, &declared, None, None)
            .err()
            .unwrap();
        assert_eq!(fault.code, Code::TimeAmbiguous, "{local}");
        assert_eq!((stage.world.position(), stage.world.clock.clone()), before);
        assert!(stage.world.outcome(id).is_none());
    }
    for (id, local, instant) in [
        ("before", "2026-03-29T01:59:59", "2026-03-29T00:59:59.000Z"),
        ("after", "2026-03-29T03:00:00", "2026-03-29T01:00:00.000Z"),
        (
            "said",
            "2026-10-25T02:30:00+01:00",
            "2026-10-25T02:30:00+01:00",
        ),
    ] {
        let declared = declaring(id, json!({ "time": { "declared_world_time": local } }));
        let done = stage.run(&Principal::Owner, &declared, None, None).unwrap();
        assert_eq!(done.value["pocket"]["clock"]["world_time"], instant);
    }
}

#[test]
fn p16_text_comes_back_to_the_byte() {
    let mebibyte = "\u{1F600}\u{301}\r\n".repeat((1 << 20) / 8);
    let mut stage = Stage::narrative();
    for (number, text) in [
        "👩‍👩‍👧‍👦 🏳️‍🌈 \u{1F600}",
        "one\r\ntwo\rthree\n\n\tfour  ",
        "\u{202E}טקסט ימין לשמאל\u{202C} العربية",
        "e\u{301} é a\u{308}\u{304} \u{FEFF}\u{200B}",
        " ",
        "\u{1}\u{7F}\u{85}\u{2028}\u{10FFFF}",
        mebibyte.as_str(),
    ]
    .into_iter()
    .enumerate()
    {
        let done = stage.say(&format!("r-{number}"), text);
        assert_eq!(done.value["stream"]["entries"][0]["text"], text);
    }
    let written = &mebibyte[..256 << 10];
    let done = stage.write("REBECCA", "w", json!([entry("w", "REBECCA", &[], written)]));
    assert_eq!(done.value["bundle"]["entries"][0]["text"], written);
    assert_eq!(stage.texts("REBECCA").last().unwrap(), written);
}

#[test]
fn cursors_are_looked_at_before_the_id_and_one_that_was_good_stays_so() {
    let mut stage = Stage::payments();
    stage.say("r-1", "Go.");
    let good = stage.cursor("CODER");
    let mut asked = envelope("r-2", "");
    asked["ui"] = json!({ "stream_cursor": good });
    let check = |stage: &Stage, asked: &Value, expected: Option<&str>| {
        let parsed = Envelope::parse(asked).unwrap();
        let view = stage.world.view(person("CODER").viewer());
        check_cursors(&view, &parsed, expected).map_err(|fault| (fault.code, fault.path))
    };
    assert_eq!(check(&stage, &asked, Some(&good)), Ok(()));
    stage.say("r-3", "Go on.");
    assert_eq!(
        check(&stage, &asked, Some(&good)),
        Ok(()),
        "what moved is told later"
    );
    let bad = |path: &str| Err((Code::BadCursor, path.to_owned()));
    assert_eq!(check(&stage, &asked, Some("x")), bad("expected_cursor"));
    asked["ui"]["stream_cursor"] = stage.cursor("PLANNER").into();
    assert_eq!(check(&stage, &asked, None), bad("ui.stream_cursor"));
}

#[test]
fn n14_a_time_in_the_past_changes_nothing() {
    let mut stage = Stage::narrative();
    stage.say("r-1", "One.");
    let early = json!({ "time": { "declared_world_time": "2025-11-15T08:00:00Z" } });
    let mut back = declaring("r-2", early);
    back["operator"]["input_text"] = "Back then.".into();
    let before = (stage.world.position(), stage.world.clock.clone());
    let fault = stage
        .run(&Principal::Owner, &back, None, None)
        .err()
        .unwrap();
    assert_eq!(fault.code, Code::TimeRegression);
    assert_eq!((stage.world.position(), stage.world.clock.clone()), before);
    assert!(stage.world.outcome("r-2").is_none());
}

#[test]
fn head_moved_is_said_for_what_the_caller_can_see_and_for_nothing_else() {
    let mut stage = Stage::payments();
    stage.say("r-1", "Go.");
    let coder = stage.cursor("CODER");
    stage.write(
        "PLANNER",
        "r-2",
        json!([entry("r-2", "PLANNER", &["REVIEWER"], "hidden from CODER")]),
    );
    let mine = bundle(
        "r-3",
        "CODER",
        json!([entry("r-3", "CODER", &[], "I begin.")]),
    );
    let done = stage.run(
        &person("CODER"),
        &envelope("r-3", ""),
        Some(&mine),
        Some(&coder),
    );
    assert!(done.is_ok(), "what CODER cannot see does not stop CODER");
    let next = bundle(
        "r-4",
        "CODER",
        json!([entry("r-4", "CODER", &[], "I go on.")]),
    );
    let fault = stage
        .run(
            &person("CODER"),
            &envelope("r-4", ""),
            Some(&next),
            Some(&coder),
        )
        .err()
        .unwrap();
    assert_eq!(fault.code, Code::HeadMoved);
    assert!(stage.world.outcome("r-4").is_none(), "the id stays free");
}

#[test]
fn p10_pages_join_to_the_visible_stream_whatever_their_size() {
    let mut stage = Stage::payments();
    for number in 0..40 {
        let to: &[&str] = if number % 3 == 0 { &["REVIEWER"] } else { &[] };
        let id = format!("r-{number}");
        stage.write(
            "PLANNER",
            &id,
            json!([entry(&id, "PLANNER", to, &format!("line {number}"))]),
        );
    }
    for who in ["CODER", "REVIEWER", "PLANNER"] {
        for size in [1, 2, 7, 500] {
            let view = stage.world.view(person(who).viewer());
            let (mut joined, mut cursor) = (Vec::new(), None);
            loop {
                let page = projection::read_page(&view, "n", cursor.as_deref(), size).unwrap();
                let entries = page.value["stream"]["entries"].as_array().unwrap().clone();
                joined.extend(
                    entries
                        .iter()
                        .map(|entry| entry["text"].as_str().unwrap().to_owned()),
                );
                assert_eq!(page.value["stream"]["cursor_before"], json!(cursor));
                cursor = page.cursor_after;
                if entries.is_empty() {
                    break;
                }
            }
            assert_eq!(joined, stage.texts(who), "{who} {size}");
        }
    }
    let coder = stage.world.view(person("CODER").viewer());
    let foreign = stage.cursor("REVIEWER");
    assert_eq!(
        projection::read_page(&coder, "n", Some(&foreign), 5)
            .unwrap_err()
            .code,
        Code::BadCursor
    );
    for bad in ["", "x", "cGF5bWVudHMvQ09ERVIvOTk5"] {
        assert_eq!(
            projection::read_page(&coder, "n", Some(bad), 5)
                .unwrap_err()
                .code,
            Code::BadCursor,
            "{bad}"
        );
    }
}

#[test]
fn p10_a_large_entry_has_a_page_of_its_own() {
    let mut stage = Stage::narrative();
    let large = "x".repeat(1 << 20);
    for (id, text) in [("a", "small"), ("b", large.as_str()), ("c", "after")] {
        stage.say(id, text);
    }
    let view = stage.world.view(Viewer::operator());
    let mut sizes = Vec::new();
    let mut cursor = None;
    loop {
        let page = projection::read_page(&view, "n", cursor.as_deref(), 500).unwrap();
        let count = page.value["stream"]["entries"].as_array().unwrap().len();
        if count == 0 {
            break;
        }
        sizes.push(count);
        cursor = page.cursor_after;
    }
    assert_eq!(sizes, [1, 1, 1]);
}

#[test]
fn p15_a_hidden_change_leaves_the_others_calendar_alone() {
    let mut stage = Stage::payments();
    let mut plan = bundle(
        "r-1",
        "PLANNER",
        json!([entry("r-1", "PLANNER", &[], "Review at three")]),
    );
    plan["pocket_items"] = json!([{ "kind": "CALENDAR", "entry_index": 0, "title": [0, 6], "time": "2025-11-15T15:00:00Z" }]);
    let done = stage
        .run(&person("PLANNER"), &envelope("r-1", ""), Some(&plan), None)
        .unwrap();
    let item = done.value["projection"]["pocket"]["calendar"]["items"][0]["item_id"].clone();
    let mut change = bundle(
        "r-2",
        "PLANNER",
        json!([entry("r-2", "PLANNER", &["REVIEWER"], "Moved to four")]),
    );
    change["pocket_items"] =
        json!([{ "kind": "CALENDAR", "entry_index": 0, "title": [0, 5], "supersedes": item }]);
    stage
        .run(
            &person("PLANNER"),
            &envelope("r-2", ""),
            Some(&change),
            None,
        )
        .unwrap();
    let titles = |who: &str| {
        let page =
            projection::read_page(&stage.world.view(person(who).viewer()), "n", None, 5).unwrap();
        let items = page.value["pocket"]["calendar"]["items"]
            .as_array()
            .unwrap()
            .clone();
        items
            .iter()
            .map(|item| item["title"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(titles("CODER"), ["Review"]);
    assert_eq!(titles("REVIEWER"), ["Moved"]);
    assert_eq!(titles("PLANNER"), ["Moved"]);
}

#[test]
fn only_the_server_writes_under_its_own_name() {
    let mut stage = Stage::payments();
    let mut words = entry("r-1", "SYSTEM", &[], "The run began.");
    words["author"]["author_class"] = "SYSTEM".into();
    words["channel"] = "VOICE".into();
    let report = bundle("r-1", "SYSTEM", json!([words]));
    let mut write_as = |who: &Principal, id: &str| {
        let mut report = report.clone();
        report["request_id"] = id.into();
        report["entries"][0]["request_id"] = id.into();
        let done = stage.run(who, &envelope(id, ""), Some(&report), None);
        done.unwrap().rejected
    };
    assert!(write_as(&Principal::Owner, "r-1"));
    assert!(write_as(&person("CODER"), "r-2"));
    assert!(!write_as(&Principal::System, "r-3"));
    assert_eq!(stage.texts("CODER"), ["The run began."]);

    // The server may write as `SYSTEM` only, not as a person.
    let foreign = bundle("r-4", "CODER", json!([entry("r-4", "CODER", &[], "x")]));
    let done = stage.run(
        &Principal::System,
        &envelope("r-4", ""),
        Some(&foreign),
        None,
    );
    assert!(done.unwrap().rejected);
}
