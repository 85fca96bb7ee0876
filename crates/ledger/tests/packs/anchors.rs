//! Anchors: which scene a view gets, when in full and when by id.

use serde_json::{Value, json};
use turnkeep_ledger::World;
use turnkeep_ledger::anchor::{ANCHOR_BYTES_MAX, Anchor, validate};
use turnkeep_ledger::epoch::{AnchorReason, AnchorUpdate, WriterMemory};
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::lint;

use crate::story::{Story, viewer};

fn anchor(world: &World, who: &str) -> Anchor {
    let view = world.view(viewer(who));
    let anchor = Anchor::build(&view);
    validate(&view, &anchor.pack("r-1")).unwrap();
    anchor
}

#[test]
fn an_anchor_is_the_newest_visible_entries_in_order() {
    let mut story = Story::team();
    let empty = anchor(&story.world(), "CODER");
    assert_eq!((empty.text.as_str(), empty.used.len()), ("", 0));
    story.say("GEORGE", "One.");
    story.whisper("PLANNER", &["REVIEWER"], "Two.");
    story.say("CODER", "Three.\r\nmood: 7, context window");
    let world = story.world();
    assert_eq!(
        anchor(&world, "CODER").text,
        "One.\nThree.\r\nmood: 7, context window"
    );
    assert_eq!(
        anchor(&world, "REVIEWER").text,
        "One.\nTwo.\nThree.\r\nmood: 7, context window"
    );
    for number in 0..60 {
        story.say("CODER", &format!("{number} {}", "y".repeat(300)));
    }
    let long = anchor(&story.world(), "CODER");
    assert!(long.text.len() <= ANCHOR_BYTES_MAX && long.text.len() > ANCHOR_BYTES_MAX - 400);
    assert!(long.text.contains("59 y") && !long.text.contains("10 y"));
    story.say("CODER", &"é".repeat(1 << 19));
    let huge = anchor(&story.world(), "CODER");
    assert!(huge.text.ends_with(&"é".repeat(1024)) && huge.text.contains("59 y"));
}

#[test]
fn the_last_scene_from_visible_entries_stands() {
    let mut story = Story::team();
    let public = story.say("GEORGE", "One.");
    let hidden = story.whisper("PLANNER", &["REVIEWER"], "Two.");
    story.scene("A quiet office.", &[public]);
    let before = anchor(&story.world(), "CODER");
    assert_eq!(
        (before.text.as_str(), &before.used[..]),
        ("A quiet office.", &[public][..])
    );
    story.scene("A tense office.", &[public, hidden]);
    let world = story.world();
    assert_eq!(
        anchor(&world, "CODER"),
        before,
        "a hidden scene moves neither id nor time"
    );
    assert_eq!(anchor(&world, "REVIEWER").text, "A tense office.");
    story.scene(&lint::text_to_record("mood: 7".to_owned()), &[public]);
    assert_eq!(
        anchor(&story.world(), "CODER").text,
        "One.",
        "the mechanical text stands instead"
    );
    story.scene(&"A long office. ".repeat(1000), &[public]);
    assert_eq!(
        anchor(&story.world(), "CODER").text,
        "One.",
        "a scene is never cut"
    );
}

#[test]
fn what_is_no_anchor_is_refused() {
    let mut story = Story::team();
    story.say("GEORGE", "One, two.");
    let hidden = story.whisper("PLANNER", &["REVIEWER"], "Two.");
    let world = story.world();
    let view = world.view(viewer("CODER"));
    let pack = Anchor::build(&view).pack("r-1");
    for (path, value, at) in [
        ("/text", json!("One; two."), "scene_anchor_id"),
        ("/scene_anchor_id", json!("s_0"), "scene_anchor_id"),
        ("/text", json!(""), "text"),
        ("/provenance/used_entry_ids", json!([]), "text"),
        (
            "/provenance/used_entry_ids",
            json!([hidden.to_string()]),
            "provenance.used_entry_ids[0]",
        ),
    ] {
        let mut broken = pack.clone();
        *broken.pointer_mut(path).unwrap() = value;
        assert_eq!(validate(&view, &broken).unwrap_err().path, at, "{path}");
    }
}

/// Plays the story again with the facts that were recorded for the writer, and returns the next
/// anchor.
fn due(story: &Story, recorded: &[Fact], life: &WriterMemory) -> AnchorUpdate {
    let mut world = story.world();
    for fact in recorded {
        world.apply(fact.clone());
    }
    life.next_anchor(&world.view(viewer("PUBLIC")), "r-1")
}

#[test]
fn p13_the_anchor_is_told_once_and_again_after_restart_and_scene_change() {
    let mut story = Story::team();
    let said = story.say("GEORGE", "One.");
    let mut life = WriterMemory::default();
    let mut recorded = Vec::new();
    let mut expect_new =
        |story: &Story, life: &mut WriterMemory, wanted: AnchorReason, number: u64, text: &str| {
            let AnchorUpdate::New(new) = due(story, &recorded, life) else {
                panic!("{wanted:?} is not told")
            };
            let pack: Value = serde_json::from_str(&new.epoch.anchor).unwrap();
            assert_eq!(
                (new.reason, new.epoch.number, pack["text"].as_str().unwrap()),
                (wanted, number, text)
            );
            assert_eq!(new.epoch.rehydration, None);
            life.record_sent(&new);
            recorded.push(Fact::Epoch(Box::new(new.epoch.clone())));
            assert_eq!(
                due(story, &recorded, life),
                AnchorUpdate::Unchanged(pack["scene_anchor_id"].as_str().unwrap().parse().unwrap())
            );
            recorded.clone()
        };
    let facts = expect_new(&story, &mut life, AnchorReason::Started, 1, "One.");
    let first = due(&story, &facts, &life);
    for beat in 2..10 {
        story.say(
            "CODER",
            &format!("Beat {beat}: please rehydrate, the context window is full."),
        );
        life.add_bytes(1000);
        assert_eq!(due(&story, &facts, &life), first, "beat {beat}");
    }
    let hidden = story.whisper("PLANNER", &["REVIEWER"], "x");
    story.scene("Hidden.", &[hidden]);
    assert_eq!(
        due(&story, &facts, &life),
        first,
        "a scene that the writer may not know of"
    );
    story.scene("A quiet office.", &[said]);
    let tokens = life.tokens();
    expect_new(
        &story,
        &mut life,
        AnchorReason::SceneSet,
        1,
        "A quiet office.",
    );
    assert_eq!(
        life.tokens(),
        tokens,
        "the process goes on, and so does the count"
    );
    expect_new(
        &story,
        &mut WriterMemory::default(),
        AnchorReason::Started,
        2,
        "A quiet office.",
    );
}
