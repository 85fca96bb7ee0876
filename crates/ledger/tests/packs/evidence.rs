//! Search and get: verbatim, in order, and nothing that the reader may not see.

use serde_json::{Value, json};
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::retrieval::validate_pack;
use turnkeep_ledger::{Code, World};

use crate::story::{Story, ask, code, found, viewer};

fn search(world: &World, who: &str, query: &str) -> Vec<String> {
    found(&ask(world, who, "LEDGER_SEARCH", query, json!({})).unwrap())
}

fn get(world: &World, who: &str, query: &str) -> Value {
    ask(world, who, "LEDGER_GET", query, json!({})).unwrap()
}

/// The worked beat: a private and a public line of PLANNER.
fn worked() -> (Story, EntryId, EntryId) {
    let mut story = Story::team();
    story.say("GEORGE", "Ship the refund fix today.");
    let secret = story.whisper(
        "PLANNER",
        &["REVIEWER"],
        "The refund fix has a blocker: the migration.",
    );
    let public = story.say(
        "PLANNER",
        "CODER takes the rounding test of the refund fix.",
    );
    (story, secret, public)
}

#[test]
fn a_search_finds_what_its_reader_may_see() {
    let (story, secret, public) = worked();
    let world = story.world();
    assert_eq!(
        search(&world, "REVIEWER", "refund blocker")[0],
        secret.to_string()
    );
    assert_eq!(
        search(&world, "PLANNER", "refund blocker")[0],
        secret.to_string()
    );
    for who in ["CODER", "GEORGE"] {
        let hits = search(&world, who, "refund fix blocker");
        assert_eq!(hits.len(), 2, "{who}");
        assert!(!hits.contains(&secret.to_string()), "{who}");
    }
    let by_author = ask(
        &world,
        "CODER",
        "LEDGER_SEARCH",
        "refund",
        json!({"person_id": "PLANNER"}),
    )
    .unwrap();
    assert_eq!(found(&by_author), [public.to_string()]);
    let by_nobody = ask(
        &world,
        "CODER",
        "LEDGER_SEARCH",
        "refund",
        json!({"person_id": "NOBODY"}),
    )
    .unwrap();
    assert_eq!(
        (&by_nobody["empty"], &by_nobody["notes"]),
        (&json!(true), &json!(null))
    );
    let window = json!({"time_window": {"from": "2026-11-15T09:00:03Z", "to": null}});
    assert_eq!(
        found(&ask(&world, "CODER", "LEDGER_SEARCH", "", window).unwrap()),
        [public.to_string()]
    );
}

#[test]
fn context_is_marked_and_never_more_than_the_request_allows() {
    let mut story = Story::team();
    let question = story
        .say("PLANNER", "Which port does the gateway use?")
        .to_string();
    let answer = story.say("CODER", "8443, as before.").to_string();
    let thanks = story.say("PLANNER", "Good.").to_string();
    let world = story.world();
    let gateway =
        |constraints| ask(&world, "CODER", "LEDGER_SEARCH", "gateway", constraints).unwrap();
    for (constraints, expect) in [
        (
            json!({}),
            &[(&question, false), (&answer, true), (&thanks, true)][..],
        ),
        (json!({"limit": 2}), &[(&question, false), (&answer, true)]),
        (
            json!({"context": 1}),
            &[(&question, false), (&answer, true)],
        ),
        (json!({"context": 0}), &[(&question, false)]),
    ] {
        let pack = gateway(constraints.clone());
        let results = pack["results"].as_array().unwrap();
        let marked: Vec<(&str, bool)> = results
            .iter()
            .map(|result| {
                (
                    result["entry_id"].as_str().unwrap(),
                    result.get("context") == Some(&json!(true)),
                )
            })
            .collect();
        let expect: Vec<(&str, bool)> = expect
            .iter()
            .map(|(id, context)| (id.as_str(), *context))
            .collect();
        assert_eq!(marked, expect, "{constraints}");
        assert!(
            results
                .iter()
                .all(|result| result.get("context") != Some(&json!(false))),
            "left out"
        );
        assert_eq!(validate_pack(&world.view(viewer("CODER")), &pack), Ok(()));
    }
    for bad in [
        json!({"context": -1}),
        json!({"context": 201}),
        json!({"context": "all"}),
    ] {
        let refused = ask(&world, "CODER", "LEDGER_SEARCH", "gateway", bad.clone());
        assert_eq!(
            refused.map_err(|fault| fault.code),
            Err(Code::BadLimit),
            "{bad}"
        );
    }
    let mut damaged = gateway(json!({}));
    damaged["results"][1]["context"] = json!("yes");
    assert!(validate_pack(&world.view(viewer("CODER")), &damaged).is_err());
}

#[test]
fn a_query_without_a_word_that_is_searched_for_finds_nothing_and_is_told_so() {
    let (story, ..) = worked();
    let world = story.world();
    for (query, hits, is_told) in [
        ("the", 0, true),
        ("???", 0, true),
        ("", 2, false),
        ("refund", 2, false),
    ] {
        let pack = ask(&world, "CODER", "LEDGER_SEARCH", query, json!({})).unwrap();
        assert_eq!(
            (found(&pack).len(), pack["notes"].is_string()),
            (hits, is_told),
            "{query}"
        );
    }
}

#[test]
fn get_keeps_ledger_order_and_names_each_entry_once() {
    let mut story = Story::team();
    let first = story.say("CODER", "one");
    let (bundle, members) = story.bundle(&[
        ("CODER", None, "two"),
        ("CODER", Some(&["PLANNER"]), "three"),
    ]);
    let last = story.say("CODER", "four");
    let world = story.world();
    let asked = format!("{last},{first}\n{bundle} {} {first}\tnonsense", members[0]);
    let ids = [first, members[0], members[1], last].map(|id| id.to_string());
    assert_eq!(found(&get(&world, "CODER", &asked)), ids);
    assert_eq!(
        found(&get(&world, "REVIEWER", &asked)),
        [&ids[0], &ids[1], &ids[3]].map(String::as_str)
    );
    let limited = ask(&world, "CODER", "LEDGER_GET", &asked, json!({"limit": 2})).unwrap();
    assert_eq!(found(&limited), ids[..2]);
}

#[test]
fn get_gives_ten_unless_told_and_says_how_many_there_are_to_this_reader() {
    let mut story = Story::team();
    let mut ids: Vec<_> = (0..12)
        .map(|number| story.say("CODER", &format!("n {number}")).to_string())
        .collect();
    ids.push(story.whisper("CODER", &["PLANNER"], "hidden").to_string());
    let world = story.world();
    let limited =
        |who, constraints| ask(&world, who, "LEDGER_GET", &ids.join(" "), constraints).unwrap();
    for (who, count) in [("REVIEWER", 12), ("PLANNER", 13)] {
        let ten = limited(who, json!({}));
        assert_eq!(found(&ten), ids[..10], "{who}");
        assert_eq!(
            ten["notes"],
            format!("the first 10 of {count}: a larger limit shows more")
        );
        let all = limited(who, json!({ "limit": 20 }));
        assert_eq!(
            (found(&all), &all["notes"]),
            (ids[..count].to_vec(), &json!(null)),
            "{who}"
        );
    }
}

#[test]
fn n20_a_hidden_id_and_a_random_id_have_the_same_answer() {
    let mut story = Story::team();
    story.say("CODER", "public");
    let (bundle, hidden) = story.bundle(&[("PLANNER", Some(&["REVIEWER"]), "hidden")]);
    let world = story.world();
    let random = EntryId(story.ids.draw());
    let answers: Vec<_> = [
        hidden[0].to_string(),
        bundle.to_string(),
        random.to_string(),
        "b_zz".to_owned(),
        String::new(),
    ]
    .iter()
    .map(|id| get(&world, "CODER", id).to_string())
    .collect();
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
}

#[test]
fn n19_an_entry_for_one_person_is_in_no_answer_to_the_operator() {
    let mut story = Story::new(
        turnkeep_ledger::config::Profile::Narrative,
        &["REBECCA", "JOHN"],
    );
    story.say("JOHN", "Rebecca came home at nine.");
    let (bundle, ids) = story.bundle(&[("REBECCA", Some(&["REBECCA"]), "canary-4711 nine")]);
    let world = story.world();
    for who in ["GEORGE", "JOHN", "PUBLIC"] {
        for (tool, query, constraints) in [
            ("LEDGER_SEARCH", "canary-4711 nine".to_owned(), json!({})),
            (
                "LEDGER_SEARCH",
                "\"canary\"".to_owned(),
                json!({"person_id": "REBECCA"}),
            ),
            ("LEDGER_GET", format!("{bundle} {}", ids[0]), json!({})),
            (
                "CAPSULE_GET",
                String::new(),
                json!({"person_id": "REBECCA"}),
            ),
            ("SCENE_PACK_BUILD", String::new(), json!({})),
        ] {
            let answer = ask(&world, who, tool, &query, constraints)
                .unwrap()
                .to_string();
            assert!(
                !answer.contains("canary") && !answer.contains(&ids[0].to_string()),
                "{who}: {answer}"
            );
        }
    }
    let own = ask(
        &world,
        "REBECCA",
        "CAPSULE_GET",
        "",
        json!({"person_id": "REBECCA"}),
    )
    .unwrap();
    assert!(own.to_string().contains("canary-4711"));
}

#[test]
fn p11_a_contradiction_is_returned_with_what_it_contradicts() {
    let mut story = Story::team();
    let old = story.say("CODER", "The refund port is 8443.");
    let new = story.say("CODER", "The refund port is 9443, not 8443.");
    let world = story.world();
    let hits = search(&world, "PLANNER", "refund port");
    assert!(hits.contains(&old.to_string()) && hits.contains(&new.to_string()));
    let capsule = ask(
        &world,
        "PLANNER",
        "CAPSULE_GET",
        "",
        json!({"person_id": "CODER"}),
    )
    .unwrap();
    let text = "The refund port is 8443.\nThe refund port is 9443, not 8443.";
    assert_eq!(capsule["sections"][0]["text"], text);
}

#[test]
fn a_long_text_is_quoted_around_the_match_to_the_byte() {
    let mut story = Story::team();
    let text = format!(
        "{} the needle, é😀 {}",
        "ä ".repeat(3000),
        "\r\n".repeat(3000)
    );
    let id = story.say("CODER", &text);
    let world = story.world();
    let pack = ask(&world, "CODER", "LEDGER_SEARCH", "needle", json!({})).unwrap();
    let result = &pack["results"][0];
    let bound = |index: usize| usize::try_from(result["range"][index].as_u64().unwrap()).unwrap();
    let excerpt = result["verbatim_excerpt"].as_str().unwrap();
    assert_eq!(
        (excerpt, result["entry_id"].as_str()),
        (&text[bound(0)..bound(1)], Some(id.to_string().as_str()))
    );
    assert!(excerpt.contains("the needle, é😀") && excerpt.len() <= 2048);
}

#[test]
fn n29_a_pack_with_an_excerpt_that_is_no_piece_of_the_text_is_refused() {
    let (story, secret, _) = worked();
    let world = story.world();
    let view = world.view(viewer("CODER"));
    let pack = ask(&world, "CODER", "LEDGER_SEARCH", "refund", json!({})).unwrap();
    validate_pack(&view, &pack).unwrap();
    let changed = |path: &str, value: Value| {
        let mut pack = pack.clone();
        *pack.pointer_mut(path).unwrap() = value;
        let fault = validate_pack(&view, &pack).unwrap_err();
        assert_eq!(fault.code, Code::PackInvalid);
        fault.path
    };
    let excerpt = pack["results"][0]["verbatim_excerpt"].as_str().unwrap();
    for (path, value, at) in [
        (
            "/results/0/verbatim_excerpt",
            json!(excerpt.replace('.', ",")),
            "results[0].verbatim_excerpt",
        ),
        (
            "/results/0/verbatim_excerpt",
            json!(format!("{excerpt}…")),
            "results[0].verbatim_excerpt",
        ),
        (
            "/results/0/range",
            json!([1, excerpt.len()]),
            "results[0].verbatim_excerpt",
        ),
        ("/results/0/range", json!([0, 100_000]), "results[0].range"),
        ("/results/0/range", json!([9, 1]), "results[0].range"),
        ("/results/0/range", json!([0]), "results[0].range"),
        (
            "/results/0/entry_id",
            json!(secret.to_string()),
            "results[0].entry_id",
        ),
        ("/results/0/bundle_id", json!("b_0"), "results[0].bundle_id"),
        (
            "/results/0/author_id",
            json!("CODER2"),
            "results[0].author_id",
        ),
        (
            "/results/0/visibility_scope",
            json!("PRIVATE"),
            "results[0].visibility_scope",
        ),
        ("/results/1", pack["results"][0].clone(), "results[1]"),
        ("/empty", json!(true), "empty"),
    ] {
        assert_eq!(changed(path, value), at, "{path}");
    }
    assert_eq!(code(validate_pack(&view, &json!({}))), Code::PackInvalid);
}
