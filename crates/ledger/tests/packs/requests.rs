//! The shape of questions, whose view may be used, and how often a beat may ask.

use serde_json::{Value, json};
use turnkeep_ledger::config::Profile;
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::tools::{
    self, AllowedViews, CALLS_MAX, Caller, EpochAnchor, ToolLoop, ToolRequest, knowledge_view,
};
use turnkeep_ledger::{Code, Grant, Principal, Viewer};

use crate::story::{Story, ask, caller, code, name, question, viewer};

/// The question with one place set to something else.
fn with(path: &str, value: Value) -> Value {
    let mut body = question("CODER", "LEDGER_SEARCH", "refund", json!({}));
    let (parent, key) = path.rsplit_once('/').unwrap();
    body.pointer_mut(parent)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .insert(key.to_owned(), value);
    body
}

#[test]
fn a_question_out_of_shape_is_refused_and_says_where() {
    let long = "x".repeat(201);
    for (path, value, wanted, at) in [
        ("/mood", json!(7), Code::UnknownField, "mood"),
        (
            "/tool_request_id",
            json!(""),
            Code::ToolRequestInvalid,
            "tool_request_id",
        ),
        (
            "/tool_request_id",
            json!(long),
            Code::ToolRequestInvalid,
            "tool_request_id",
        ),
        (
            "/tool_request_id",
            json!(7),
            Code::ToolRequestInvalid,
            "tool_request_id",
        ),
        (
            "/request_id",
            json!(null),
            Code::ToolRequestInvalid,
            "request_id",
        ),
        (
            "/requested_by",
            json!([]),
            Code::ToolRequestInvalid,
            "requested_by",
        ),
        (
            "/requested_by/x",
            json!(1),
            Code::UnknownField,
            "requested_by.x",
        ),
        (
            "/requested_by/engine",
            json!(""),
            Code::ToolRequestInvalid,
            "requested_by.engine",
        ),
        (
            "/requested_by/actor",
            json!(null),
            Code::ToolRequestInvalid,
            "requested_by.actor",
        ),
        (
            "/requested_by/knowledge_view",
            json!(1),
            Code::ToolRequestInvalid,
            "requested_by.knowledge_view",
        ),
        (
            "/tool/name",
            json!("ledger_search"),
            Code::UnknownTool,
            "tool.name",
        ),
        (
            "/tool/name",
            json!("LEDGER_WRITE"),
            Code::UnknownTool,
            "tool.name",
        ),
        ("/tool/limit", json!(3), Code::UnknownField, "tool.limit"),
        (
            "/tool/query_text",
            json!("x".repeat(4097)),
            Code::ToolRequestInvalid,
            "tool.query_text",
        ),
        (
            "/tool/constraints/limit",
            json!(0),
            Code::BadLimit,
            "tool.constraints.limit",
        ),
        (
            "/tool/constraints/limit",
            json!(201),
            Code::BadLimit,
            "tool.constraints.limit",
        ),
        (
            "/tool/constraints/limit",
            json!(1.5),
            Code::BadLimit,
            "tool.constraints.limit",
        ),
        (
            "/tool/constraints/limit",
            json!("5"),
            Code::BadLimit,
            "tool.constraints.limit",
        ),
        (
            "/tool/constraints/person",
            json!("X"),
            Code::UnknownField,
            "tool.constraints.person",
        ),
        (
            "/tool/constraints/person_id",
            json!(7),
            Code::ToolRequestInvalid,
            "tool.constraints.person_id",
        ),
        (
            "/tool/constraints/time_window",
            json!({"since": null}),
            Code::UnknownField,
            "tool.constraints.time_window.since",
        ),
        (
            "/tool/constraints/time_window",
            json!({"from": 7}),
            Code::ToolRequestInvalid,
            "tool.constraints.time_window.from",
        ),
    ] {
        let fault = ToolRequest::parse(&with(path, value)).unwrap_err();
        assert_eq!((fault.code, fault.path.as_str()), (wanted, at));
    }
    assert_eq!(
        code(ToolRequest::parse(&json!("x"))),
        Code::ToolRequestInvalid
    );
}

#[test]
fn the_first_fault_in_the_order_is_the_answer() {
    let mut body = with("/tool/name", json!("NOTHING"));
    body["tool"]["constraints"]["limit"] = json!(0);
    assert_eq!(code(ToolRequest::parse(&body)), Code::UnknownTool);
    body["mood"] = json!(7);
    assert_eq!(code(ToolRequest::parse(&body)), Code::UnknownField);
}

#[test]
fn windows_are_instants_and_end_after_they_begin() {
    let world = Story::team().world();
    let window = |from: &str, to: &str| {
        ask(
            &world,
            "CODER",
            "LEDGER_SEARCH",
            "",
            json!({"time_window": {"from": from, "to": to}}),
        )
    };
    for (from, to, wanted) in [
        (
            "2026-11-15T10:00:00Z",
            "2026-11-15T09:00:00Z",
            Code::BadWindow,
        ),
        (
            "2026-11-15T10:00:00+02:00",
            "2026-11-15T07:59:00Z",
            Code::BadWindow,
        ),
        (
            "2026-11-15T10:00:00",
            "2026-11-15T09:00:00",
            Code::BadWindow,
        ),
        ("yesterday", "2026-11-15T09:00:00Z", Code::TimeFormat),
    ] {
        assert_eq!(code(window(from, to)), wanted, "{from} {to}");
    }
    assert!(window("2026-11-15T09:00:00Z", "2026-11-15T09:00:00Z").is_ok());
}

#[test]
fn an_actor_is_who_asks() {
    let world = Story::team().world();
    let mut body = question("CODER", "LEDGER_SEARCH", "x", json!({}));
    body["requested_by"]["actor"] = json!("PLANNER");
    let request = ToolRequest::parse(&body).unwrap();
    assert_eq!(
        code(tools::answer(&world, 0, &caller("CODER"), &request, None)),
        Code::ActorMismatch
    );
}

#[test]
fn n21_a_view_that_is_not_the_callers_is_forbidden_whether_there_is_such_a_person_or_not() {
    let mut story = Story::new(Profile::Narrative, &["REBECCA", "JOHN"]);
    story.say("ANNA", "I came uninvited.");
    story.whisper("REBECCA", &["OTTO"], "Come, too.");
    let world = story.world();
    let attached = |grant| Caller {
        identity: "writer".to_owned(),
        views: AllowedViews::OfGrant(grant),
    };
    let all = [
        "REBECCA",
        "REBECCA_VIEW",
        "JOHN",
        "ANNA",
        "OTTO",
        "GEORGE",
        "WORLD",
        "PUBLIC",
        "Omniscient",
        "rebecca",
    ];
    let nobody = [
        "omniscient",
        "",
        "_VIEW",
        "PUBLIC_VIEW",
        "REBECCA_VIEW_VIEW",
        "ALL",
        "*",
        "SYSTEM",
        "NOBODY",
        "REBECCA ",
    ];
    for (caller, allowed) in [
        (
            caller("REBECCA"),
            &["REBECCA", "REBECCA_VIEW", "PUBLIC"][..],
        ),
        (
            Caller::from_principal(&Principal::Owner),
            &["GEORGE", "PUBLIC"],
        ),
        (
            attached(Grant::Everyone),
            &["REBECCA", "REBECCA_VIEW", "JOHN", "ANNA", "OTTO", "PUBLIC"],
        ),
        (
            attached(Grant::These(vec![name("JOHN"), name("WORLD")])),
            &["JOHN", "PUBLIC"],
        ),
    ] {
        let mut refusals = Vec::new();
        for view in all.iter().chain(&nobody) {
            match knowledge_view(view, &caller, &world) {
                Ok(seen) => {
                    assert!(
                        allowed.contains(view),
                        "{} may not be {view}",
                        caller.identity
                    );
                    assert_eq!(seen, viewer(view.trim_end_matches("_VIEW")));
                }
                Err(fault) => {
                    assert!(!allowed.contains(view), "{} may be {view}", caller.identity);
                    refusals.push(fault);
                }
            }
        }
        assert!(
            refusals
                .iter()
                .all(|fault| fault.code == Code::ViewForbidden && *fault == refusals[0])
        );
    }
}

#[test]
fn n28_a_seventeenth_call_and_an_id_with_another_body_are_refused() {
    let mut story = Story::team();
    story.say("CODER", "refund");
    let world = story.world();
    let mut calls = ToolLoop::new("r-1".into());
    let mut ask = |body: &Value| {
        calls.call(body, |request| {
            tools::answer(&world, world.position(), &caller("CODER"), request, None)
        })
    };
    let first = question("CODER", "LEDGER_SEARCH", "refund", json!({}));
    let pack = ask(&first).unwrap();
    assert_eq!(
        ask(&first).unwrap(),
        pack,
        "the same question gets the same pack"
    );
    assert_eq!(
        code(ask(&question("CODER", "LEDGER_SEARCH", "other", json!({})))),
        Code::DuplicateToolId
    );
    let mut foreign = first.clone();
    foreign["request_id"] = json!("r-2");
    assert_eq!(code(ask(&foreign)), Code::RequestMismatch);
    assert_eq!(code(ask(&json!({}))), Code::ToolRequestInvalid);
    for call in 6..=CALLS_MAX {
        let mut next = first.clone();
        next["tool_request_id"] = json!(format!("t-{call}"));
        assert!(ask(&next).is_ok(), "call {call}");
    }
    assert_eq!(code(ask(&first)), Code::LoopLimit);
}

#[test]
fn n28_a_beat_gets_no_more_than_its_bytes() {
    let mut story = Story::team();
    for number in 0..200 {
        story.say("CODER", &format!("refund {number} {}", "x".repeat(1500)));
    }
    let world = story.world();
    let mut calls = ToolLoop::new("r-1".into());
    let mut total = 0;
    let refused = (1..=CALLS_MAX).find_map(|call| {
        let mut body = question("CODER", "LEDGER_SEARCH", "refund", json!({"limit": 50}));
        body["tool_request_id"] = json!(call.to_string());
        let answer = calls.call(&body, |request| {
            tools::answer(&world, world.position(), &caller("CODER"), request, None)
        });
        total += answer.as_ref().map_or(0, |pack| pack.len());
        answer.err()
    });
    assert_eq!(refused.unwrap().code, Code::LoopLimit);
    assert!(total <= 256 << 10, "{total}");
    assert_eq!(
        code(
            calls.call(&question("CODER", "LEDGER_GET", "", json!({})), |_| Ok(
                json!({})
            ))
        ),
        Code::LoopLimit
    );
}

#[test]
fn a_scene_pack_is_the_epochs_for_its_own_view_and_computed_for_others() {
    let mut story = Story::team();
    story.say("CODER", "One.");
    let mut world = story.world();
    let told = ask(&world, "CODER", "SCENE_PACK_BUILD", "", json!({})).unwrap();
    let last = story.say("CODER", "Two.");
    let Some(crate::story::Act::Bundle(_, entries, _)) = story.acts.last() else {
        panic!()
    };
    world.apply(Fact::Entry(entries[0].clone()));
    assert_eq!(entries[0].id, last);
    let pack = told.to_string();
    let own = viewer("CODER");
    let request =
        ToolRequest::parse(&question("CODER", "SCENE_PACK_BUILD", "", json!({}))).unwrap();
    let answer = |viewer: &Viewer| {
        let epoch = EpochAnchor {
            viewer,
            pack: &pack,
        };
        tools::answer(
            &world,
            world.position(),
            &caller("CODER"),
            &request,
            Some(epoch),
        )
        .unwrap()
    };
    assert_eq!(answer(&own), told);
    assert_eq!(answer(&Viewer::Public)["text"], "One.\nTwo.");
}
