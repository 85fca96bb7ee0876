//! Rehydration: when it comes, that it always fits, and what it carries.

use serde_json::Value;
use turnkeep_ledger::World;
use turnkeep_ledger::config::WRITER_TOKENS_MIN;
use turnkeep_ledger::epoch::{
    self, AnchorReason, AnchorUpdate, NewAnchor, TOKEN_BYTES, WriterMemory,
};

use crate::story::{Story, viewer};

/// A life that has been told and is as full as it may be.
fn full(world: &World, who: &str) -> WriterMemory {
    let mut life = WriterMemory::default();
    let AnchorUpdate::New(begun) = life.next_anchor(&world.view(viewer(who)), "r-0") else {
        panic!("nothing to begin with")
    };
    assert_eq!(begun.reason, AnchorReason::Started);
    life.record_sent(&begun);
    let bytes = world.config.limits.writer_tokens * TOKEN_BYTES * 8 / 10;
    life.add_bytes(usize::try_from(bytes).unwrap());
    life
}

fn rehydrated(world: &World, who: &str, request: &str) -> (Box<NewAnchor>, Value, Value) {
    let view = world.view(viewer(who));
    let AnchorUpdate::New(new) = full(world, who).next_anchor(&view, request) else {
        panic!("no rehydration")
    };
    assert_eq!(new.reason, AnchorReason::Full);
    epoch::validate(&view, &new.epoch).unwrap();
    let anchor = serde_json::from_str(&new.epoch.anchor).unwrap();
    let pack = serde_json::from_str(new.epoch.rehydration.as_ref().unwrap()).unwrap();
    (new, anchor, pack)
}

#[test]
fn p14_the_count_alone_decides_and_only_at_the_threshold() {
    let mut story = Story::team();
    story.config.limits.writer_tokens = WRITER_TOKENS_MIN;
    story.say(
        "GEORGE",
        "Please rehydrate now. Context window. TOKEN_BUDGET 80%",
    );
    let world = story.world();
    let view = world.view(viewer("PUBLIC"));
    let mut life = WriterMemory::default();
    let AnchorUpdate::New(begun) = life.next_anchor(&view, "r") else {
        panic!()
    };
    life.record_sent(&begun);
    // 0.80 of 4096 tokens are 3276.8: the next whole token is the threshold.
    life.add_bytes(3 * 3276);
    assert!(
        matches!(life.next_anchor(&view, "r"), AnchorUpdate::Unchanged(_)),
        "{} tokens",
        life.tokens()
    );
    life.add_bytes(1);
    assert_eq!(life.tokens(), 3277);
    let AnchorUpdate::New(new) = life.next_anchor(&view, "r") else {
        panic!("{} tokens", life.tokens())
    };
    assert_eq!(new.reason, AnchorReason::Full);
    life.record_sent(&new);
    assert!(
        matches!(life.next_anchor(&view, "r"), AnchorUpdate::Unchanged(_)),
        "one rehydration, then beats as usual"
    );
}

#[test]
fn p14_a_rehydration_fits_into_half_of_the_smallest_limit_whatever_was_written() {
    let texts = ["x", "é", "😀", "\u{1}", "\"\\", "a \n", "CODER "];
    let requests = ["r".to_owned(), "😀".repeat(200), "\"".repeat(200)];
    for (text, bytes) in texts
        .iter()
        .flat_map(|text| [1 << 20, 400, 40].map(|bytes| (text, bytes)))
    {
        let mut story = Story::team();
        story.config.limits.writer_tokens = WRITER_TOKENS_MIN;
        for author in ["GEORGE", "PLANNER", "CODER", "REVIEWER", "WORLD"]
            .iter()
            .cycle()
            .take(if bytes > 400 { 5 } else { 200 })
        {
            story.say(author, &text.repeat(bytes / text.len()));
            story.plan(None, None);
            story.say(author, text);
        }
        let world = story.world();
        for request in &requests {
            let (new, anchor, pack) = rehydrated(&world, "PUBLIC", request);
            let bytes = new.epoch.anchor.len() + new.epoch.rehydration.as_ref().unwrap().len();
            assert!(bytes <= 4096 * 3 / 2, "{bytes} bytes of {text:?}");
            for words in [
                &anchor["text"],
                &pack["text"],
                &pack["physical_continuity_replay"],
            ] {
                assert!(!words.as_str().unwrap().is_empty(), "{text:?}");
            }
            let mut life = full(&world, "PUBLIC");
            life.record_sent(&new);
            life.add_bytes(bytes);
            assert!(
                !life.is_full(&world.config.limits),
                "the next beat is as usual"
            );
        }
    }
}

#[test]
fn p14_a_rehydration_of_an_empty_world_is_empty() {
    let (_, anchor, pack) = rehydrated(&Story::team().world(), "PUBLIC", "r-7");
    assert_eq!(
        (
            &anchor["text"],
            &pack["text"],
            &pack["physical_continuity_replay"]
        ),
        (&"".into(), &"".into(), &"".into())
    );
    assert_eq!(pack["request_id"], "r-7");
    assert_eq!(
        pack["trigger"],
        serde_json::json!({"kind": "TOKEN_BUDGET", "threshold": "80%"})
    );
}

#[test]
fn p14_the_replay_has_the_last_of_everybody_present_however_long_one_of_them_speaks() {
    for tokens in [WRITER_TOKENS_MIN, 6000, 8192, 100_000] {
        let mut story = Story::team();
        story.config.limits.writer_tokens = tokens;
        story.say("PLANNER", "The planner's last.");
        story.say("CODER", "The coder's last.");
        story.say("GEORGE", &"and so on ".repeat(2400));
        let (_, _, pack) = rehydrated(&story.world(), "PUBLIC", "r-1");
        let replay = pack["physical_continuity_replay"].as_str().unwrap();
        let words = replay.strip_prefix("The planner's last.\nThe coder's last.\n");
        assert!(
            words.is_some_and(|words| words.starts_with("and so on ")),
            "{tokens}: {replay}"
        );
    }
}

#[test]
fn a_rehydration_carries_anchor_plans_persons_and_the_newest_entries() {
    let mut story = Story::team();
    let first = story.say("GEORGE", "It begins.");
    story.say("CODER", "Deploy on Monday.");
    story.plan(Some("2026-12-01T09:00:00Z"), None);
    story.say("CODER", "Lunch was planned.");
    story.plan(Some("2026-11-15T08:00:00Z"), None);
    for number in 0..600 {
        story.say("PLANNER", &format!("Line {number} {}", "z".repeat(500)));
    }
    story.whisper("REVIEWER", &["CODER"], "A secret.");
    story.say("CODER", "I am here.");
    story.scene("A busy office.", &[first]);
    let (new, _, pack) = rehydrated(&story.world(), "PUBLIC", "r-1");
    let text = pack["text"].as_str().unwrap();
    assert!(
        text.starts_with("A busy office.\nDeploy on Monday.\n"),
        "{}",
        &text[..60]
    );
    assert!(text.contains("Line 599 z") && text.contains("I am here.") && !text.contains("secret"));
    let line = format!("Line 599 {}\nI am here.", "z".repeat(500));
    assert_eq!(
        pack["physical_continuity_replay"], line,
        "the last of each person present, in ledger order"
    );
    let used = pack["provenance"]["used_entry_ids"].as_array().unwrap();
    let carried = new.carried.expect("a rehydration");
    assert_eq!(carried.entries, used.len() as u64);
    assert_eq!(
        carried.dropped + carried.entries,
        story.world().view(viewer("PUBLIC")).count()
    );
    assert!(carried.dropped > 0);
    assert_eq!(
        pack["provenance"]["used_capsule_ids"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert!(used.iter().collect::<std::collections::HashSet<_>>().len() == used.len());
}

#[test]
fn a_changed_rehydration_is_refused() {
    let mut story = Story::team();
    story.say("CODER", "One, two.");
    let world = story.world();
    let view = world.view(viewer("PUBLIC"));
    let (new, ..) = rehydrated(&world, "PUBLIC", "r-1");
    for (from, to) in [("One, two.", "One; two."), ("\"h_", "\"h_0")] {
        let mut broken = new.epoch.clone();
        broken.rehydration = broken.rehydration.map(|pack| pack.replace(from, to));
        assert!(epoch::validate(&view, &broken).is_err(), "{from}");
    }
}
