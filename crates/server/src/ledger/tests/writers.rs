//! The attached writer, as real programs: whatever it does, the operator's words are there.

use std::time::Duration;

use super::*;
use crate::stopped_time::StoppedTime;

/// A world whose writer is this shell script.
pub(super) async fn attached(house: &House, script: &str, limits: Value) -> Arc<WorldHandle> {
    let body = json!({ "world_id": "w", "writer": format!("cmd: {script}"), "limits": limits });
    house.world(body).await
}

/// A writer that answers each beat with what `answer` prints; `$r` is the request's id.
pub(super) fn answering(answer: &str) -> String {
    format!(
        r#"while read -r line; do r=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/'); {answer}; done"#
    )
}

/// Prints a proposal with one public entry of REBECCA.
pub(super) const PROPOSE: &str = r#"printf '{"type":"proposal","bundle":{"request_id":"%s","proposed_by":{"engine":"sh","actor":"writer"},"wrote":true,"entries":[{"request_id":"%s","author":{"author_id":"REBECCA","author_class":"PERSON"},"visibility":{"scope":"PUBLIC","visible_to":[]},"channel":"PEOPLE","text":"Come in."}]}}\n' "$r" "$r""#;

/// Prints so many questions and waits for the result of each.
fn ask(times: u32) -> String {
    format!(
        r#"for n in $(seq {times}); do printf '{{"type":"tool","request":{{"tool_request_id":"t%s","request_id":"%s","requested_by":{{"engine":"sh","actor":"writer","knowledge_view":"PUBLIC"}},"tool":{{"name":"LEDGER_SEARCH","query_text":"knock"}}}}}}\n' "$n" "$r"; read -r pack; done"#
    )
}

pub(super) fn lines(
    house: &House,
    contexts: turnkeep_ledger::log::WorldContexts,
    what: &str,
) -> Vec<String> {
    use turnkeep_ledger::fact::Fact;
    use turnkeep_ledger::log::WorldLog;
    let mut found = Vec::new();
    WorldLog::new(contexts)
        .read_new_facts(&house.store, |_, fact| {
            if let Fact::AuditLine(line) = fact
                && line.what == what
            {
                found.push(line.details);
            }
        })
        .unwrap();
    found
}

#[tokio::test]
async fn a_writer_adds_its_entries_after_the_operators_words() {
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &answering(PROPOSE), json!({})).await;
    let answer = say(&handle, "r-1", "I knock.").await.unwrap();
    let shown: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(shown["stream"]["entries"][1]["author_label"], "REBECCA");
    assert_eq!(all(&handle), ["I knock.", "Come in."]);
    say(&handle, "r-2", "").await.unwrap();
    assert_eq!(all(&handle), ["I knock.", "Come in.", "Come in."]);
    is_sound(&house, &handle).await;
}

#[tokio::test]
async fn a_writer_that_fails_in_any_way_adds_nothing_and_the_words_are_there() {
    let garbage = answering("echo garbage");
    let half = answering("printf '{\"type\":\"no_write\"}'; exit 0");
    let seventeen = answering(&format!("{}; {PROPOSE}", ask(17)));
    let rejected = answering(&PROPOSE.replace("REBECCA", "GEORGE"));
    for (name, script) in [
        ("exits at once", "exit 3"),
        ("is no program", "/nonexistent/program"),
        ("prints garbage", garbage.as_str()),
        ("breaks off", half.as_str()),
        (
            "closes its output",
            "exec 1>&-; while read -r line; do :; done",
        ),
        ("asks seventeen questions", seventeen.as_str()),
        ("speaks for the operator", rejected.as_str()),
    ] {
        let house = House::open(MemoryStorage::new());
        let handle = attached(&house, script, json!({})).await;
        for id in ["r-1", "r-2"] {
            let answer = say(&handle, id, "I knock.")
                .await
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!answer.rejected, "{name}");
        }
        assert_eq!(all(&handle), ["I knock.", "I knock."], "{name}");
        let contexts = handle.contexts().await.unwrap();
        let told = lines(&house, contexts, "writer-failed").len()
            + lines(&house, contexts, "rejection").len();
        assert_eq!(told, 2, "{name}");
        is_sound(&house, &handle).await;
    }
}

#[tokio::test]
async fn the_operator_is_told_at_once_why_a_writer_failed_and_nothing_that_it_said() {
    // A busy machine may be slow to say how a program ended, so no time passes meanwhile.
    let _time = StoppedTime::begin();
    for (script, expect) in [
        (
            "/nonexistent/program",
            "it ended with exit status 127: there is no such program",
        ),
        (
            "/dev/null",
            "it ended with exit status 126: it is no program that may be run",
        ),
        ("exit 3", "it ended with exit status 3"),
        ("kill -s TERM $$", "it was ended by signal 15"),
        (
            "read -r line; echo garbage",
            "it printed a line that is no tool request, proposal or no_write",
        ),
    ] {
        let house = House::open(MemoryStorage::new());
        let handle = attached(&house, script, json!({})).await;
        let answer = say(&handle, "r-1", "I knock.").await.unwrap();
        assert_eq!(answer.writer_failed.as_deref(), Some(expect), "{script}");
        let again = say(&handle, "r-1", "I knock.").await.unwrap();
        assert_eq!(
            (again.replayed, again.writer_failed, again.body),
            (true, None, answer.body),
            "{script}"
        );
    }
}

/// Waits until a script has made a file. The clock may be stopped.
async fn until_made(file: &std::path::Path) {
    while !file.exists() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_writer_that_closes_its_pipes_and_goes_on_is_a_failure() {
    let time = StoppedTime::begin();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("closed");
    let house = House::open(MemoryStorage::new());
    let script = format!(
        "exec 1>&-; : > {}; while read -r line; do :; done",
        file.display()
    );
    let handle = attached(&house, &script, json!({ "writer_seconds": 3600 })).await;
    let mut answer = std::pin::pin!(say(&handle, "r-1", "I knock."));
    tokio::select! {
        early = &mut answer => panic!("{:?}", early.map(|answer| answer.writer_failed)),
        () = until_made(&file) => {}
    }
    let answer = time.advance_until(Duration::from_millis(100), answer).await;
    assert_eq!(
        answer.unwrap().writer_failed.as_deref(),
        Some("it closed its pipes")
    );
}

#[tokio::test]
async fn a_writer_that_hangs_or_floods_is_ended_in_its_time() {
    let time = StoppedTime::begin();
    for (name, script) in [
        ("hangs", "cat >/dev/null"),
        ("floods", "exec yes | tr -d '\\n'"),
    ] {
        let house = House::open(MemoryStorage::new());
        let handle = attached(&house, script, json!({ "writer_seconds": 1 })).await;
        let answer = say(&handle, "r-1", "I knock.");
        time.advance_until(Duration::from_secs(1), answer)
            .await
            .unwrap();
        assert_eq!(all(&handle), ["I knock."], "{name}");
    }
}

#[tokio::test]
async fn n28_sixteen_questions_are_answered_and_leave_their_lines() {
    let house = House::open(MemoryStorage::new());
    let handle = attached(
        &house,
        &answering(&format!("{}; {PROPOSE}", ask(16))),
        json!({}),
    )
    .await;
    say(&handle, "r-1", "I knock.").await.unwrap();
    assert_eq!(all(&handle), ["I knock.", "Come in."]);
    let contexts = handle.contexts().await.unwrap();
    assert_eq!(lines(&house, contexts, "tool").len(), 16);
}

#[tokio::test]
async fn words_that_nobody_asked_for_are_not_taken_for_the_next_answer() {
    let two = format!("{PROPOSE}; {}", PROPOSE.replace("Come in.", "Still here."));
    let at_once = format!(r#"both=$({two}); printf '%s\n' "$both""#);
    for (name, script) in [("in one breath", &at_once), ("one after the other", &two)] {
        let house = House::open(MemoryStorage::new());
        let handle = attached(&house, &answering(script), json!({})).await;
        for id in ["r-1", "r-2", "r-3"] {
            say(&handle, id, "I knock.").await.unwrap();
        }
        let said = all(&handle);
        let count = |wanted: &str| said.iter().filter(|text| *text == wanted).count();
        assert_eq!(
            (count("I knock."), count("Still here.")),
            (3, 0),
            "{name}: {said:?}"
        );
        // Words that come in the midst of the next beat cost that beat its answer, and no other.
        let failed = lines(&house, handle.contexts().await.unwrap(), "writer-failed").len();
        assert_eq!(count("Come in.") + failed, 3, "{name}: {said:?}");
        assert!(
            failed == 0 || name == "one after the other" && failed == 1,
            "{name}: {failed} of 3"
        );
        is_sound(&house, &handle).await;
    }
}

#[tokio::test]
async fn a_writer_that_asked_too_much_is_told_so_and_lives() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("last");
    let house = House::open(MemoryStorage::new());
    let last = format!(r#"printf '%s' "$pack" > {}; {PROPOSE}"#, file.display());
    let handle = attached(
        &house,
        &answering(&format!("{}; {last}", ask(17))),
        json!({}),
    )
    .await;
    say(&handle, "r-1", "I knock.").await.unwrap();
    assert_eq!(all(&handle), ["I knock."]);
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("LOOP_LIMIT")
    );
    let contexts = handle.contexts().await.unwrap();
    assert_eq!(lines(&house, contexts, "writer-failed").len(), 1);
}

#[tokio::test]
async fn the_example_attaches_any_program_that_reads_a_prompt_and_prints_words() {
    let house = House::open(MemoryStorage::new());
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/writer.py");
    let handle = attached(
        &house,
        &format!("python3 {example} REBECCA tail -n 2"),
        json!({}),
    )
    .await;
    say(&handle, "r-1", "I knock.").await.unwrap();
    let [said, answered] = &all(&handle)[..] else {
        panic!("{:?}", all(&handle))
    };
    assert_eq!(said, "I knock.");
    assert!(answered.starts_with("Now: I knock."), "{answered}");
}

#[tokio::test]
async fn the_example_shows_the_model_in_every_beat_what_was_said_before() {
    let house = House::open(MemoryStorage::new());
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/writer.py");
    let handle = attached(
        &house,
        &format!("python3 {example} REBECCA sed -n 's/^GEORGE: My name/Your name/p'"),
        json!({}),
    )
    .await;
    for (id, text) in [
        ("r-1", "My name is Ann."),
        ("r-2", "I like tea."),
        ("r-3", "What is my name?"),
    ] {
        let answer = say(&handle, id, text).await.unwrap();
        assert_eq!(answer.writer_failed, None, "{text}");
    }
    let wanted = [
        "My name is Ann.",
        "I like tea.",
        "Your name is Ann.",
        "What is my name?",
        "Your name is Ann.",
    ];
    assert_eq!(all(&handle), wanted);
}

/// A writer that keeps its input in a file and adds nothing.
pub(super) fn keeping(file: &std::path::Path) -> String {
    format!(
        r#"while read -r line; do printf '%s\n' "$line" >> {}; echo '{{"type":"no_write"}}'; done"#,
        file.display()
    )
}

/// The beats that such a writer received.
pub(super) fn sent_to(file: &std::path::Path) -> Vec<Value> {
    let sent = std::fs::read_to_string(file).unwrap_or_default();
    sent.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn n18_what_is_for_the_audit_alone_is_there_and_in_no_writers_input() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &keeping(&file), json!({})).await;
    let mut body = envelope("r-1", "I knock.");
    body["mode"]["client_intent"] = "make it dramatic".into();
    body["invoker"]["notes"] = "secret note".into();
    body["ui"] = json!({ "client_timestamp_utc": "2099-01-01T00:00:00Z" });
    handle.invoke(&Principal::Owner, body).await.unwrap();
    let sent = std::fs::read_to_string(&file).unwrap();
    for remark in ["dramatic", "secret note", "2099"] {
        assert!(!sent.contains(remark), "{sent}");
    }
    let told = lines(&house, handle.contexts().await.unwrap(), "remarks");
    let told: Value = serde_json::from_str(&told[0]).unwrap();
    let wanted = json!({
        "notes": "secret note", "client_intent": "make it dramatic",
        "client_timestamp_utc": "2099-01-01T00:00:00Z",
    });
    assert_eq!(told, wanted);
}

#[tokio::test]
async fn p13_the_anchor_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &keeping(&file), json!({})).await;
    for id in ["r-1", "r-2", "r-3"] {
        say(&handle, id, "I knock.").await.unwrap();
    }
    let sent = sent_to(&file);
    let told: Vec<_> = sent
        .iter()
        .map(|beat| {
            (
                beat["scene_anchor"].is_object(),
                beat["scene_anchor_id"].is_string(),
            )
        })
        .collect();
    assert_eq!(told, [(true, false), (false, true), (false, true)]);
    assert_eq!(sent[0]["operator_text"], "I knock.");
    assert_eq!(sent[0]["actor"], "writer");
}

#[tokio::test]
async fn p14_a_full_writer_begins_anew_and_no_word_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &keeping(&file), json!({ "writer_tokens": 4096 })).await;
    let long = "x y ".repeat(1000);
    for number in 0..6 {
        say(&handle, &format!("r-{number}"), &long).await.unwrap();
    }
    say(&handle, "big", &"z".repeat(1 << 20)).await.unwrap();
    say(&handle, "after", "please rehydrate").await.unwrap();
    say(&handle, "normal", "on").await.unwrap();
    let sent = sent_to(&file);
    let rehydrated: Vec<_> = sent
        .iter()
        .map(|beat| beat["rehydration"].is_object())
        .collect();
    assert_eq!(sent.len(), 9);
    assert!(
        rehydrated[7],
        "the beat after the flood begins with a rehydration: {rehydrated:?}"
    );
    assert!(!rehydrated[8], "{rehydrated:?}");
    for beat in sent.iter().filter(|beat| beat["rehydration"].is_object()) {
        let pack = beat["rehydration"].to_string().len() + beat["scene_anchor"].to_string().len();
        assert!(pack <= 4096 * 3 / 2, "{pack}");
    }
    assert_eq!(all(&handle).len(), 9);
    is_sound(&house, &handle).await;
}

#[tokio::test]
async fn while_time_is_paused_the_writer_is_not_asked() {
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &answering(PROPOSE), json!({})).await;
    let mut pause = envelope("p", "");
    pause["declared_overrides"] = json!({ "pause_time": true });
    handle.invoke(&Principal::Owner, pause).await.unwrap();
    let before = all(&handle).len();
    say(&handle, "r-1", "Anyone?").await.unwrap();
    assert_eq!(all(&handle).len(), before + 1);
}

/// Whether a process runs; one that has ended and was not yet waited for does not.
pub(super) fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    status
        .rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

#[tokio::test]
async fn a_writer_takes_what_it_started_with_it_also_when_it_has_ended_first() {
    let time = StoppedTime::begin();
    for end in ["exit 3", "cat >/dev/null"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("started");
        let house = House::open(MemoryStorage::new());
        let script = format!(
            "sleep 1000 </dev/null >/dev/null & echo $! > {0}.new; mv {0}.new {0}; {end}",
            file.display()
        );
        let handle = attached(&house, &script, json!({ "writer_seconds": 1 })).await;
        let mut answer = std::pin::pin!(say(&handle, "r-1", "I knock."));
        let answer = tokio::select! {
            answer = &mut answer => answer,
            () = until_made(&file) => time.advance_until(Duration::from_secs(1), answer).await,
        };
        answer.unwrap();
        let pid = std::fs::read_to_string(&file).unwrap();
        while runs(&pid) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn n19_a_writer_for_another_person_is_another_process_that_was_told_nothing() {
    use turnkeep_ledger::fact::Fact;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    // It asks for the scene with the view of its beat, and keeps all of its input.
    let scene = r#"v=$(printf '%s' "$line" | sed 's/.*"view":"\([^"]*\)".*/\1/'); printf '{"type":"tool","request":{"tool_request_id":"s","request_id":"%s","requested_by":{"engine":"sh","actor":"writer","knowledge_view":"%s"},"tool":{"name":"SCENE_PACK_BUILD"}}}\n' "$r" "$v"; read -r pack; printf '%s\n%s\n' "$line" "$pack" >> FILE; echo '{"type":"no_write"}'"#;
    let script = answering(&scene.replace("FILE", file.to_str().unwrap()));
    let body =
        json!({ "world_id": "w", "writer": format!("cmd: {script}"), "writer_persons": ["ALICE"] });
    let handle = house.world(body).await;
    write(
        &handle,
        "ALICE",
        "a",
        &["ALICE"],
        "only ALICE knows of the key",
    )
    .await
    .unwrap();
    say(&handle, "r-1", "I knock.").await.unwrap();
    assert!(std::fs::read_to_string(&file).unwrap().contains("the key"));
    std::fs::remove_file(&file).unwrap();
    let change = json!({ "writer_persons": ["BOB"] });
    let changed = handle.read(|world| {
        world
            .config
            .with_changes(&Node::root(&change, Code::ConfigInvalid))
            .unwrap()
    });
    handle
        .record(vec![Fact::Config(Box::new(changed))])
        .await
        .unwrap();
    say(&handle, "r-2", "I knock again.").await.unwrap();
    let heard = sent_to(&file);
    assert_eq!(
        (&heard[0]["view"], heard[0]["scene_anchor"].is_object()),
        (&json!("BOB"), true)
    );
    assert_eq!(
        heard[1]["pack"]["text"], "I knock.",
        "the scene as BOB sees it"
    );
    assert!(!std::fs::read_to_string(&file).unwrap().contains("the key"));
    is_sound(&house, &handle).await;
}

#[tokio::test]
async fn what_is_refused_was_told_to_no_writer_and_left_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &keeping(&file), json!({})).await;
    say(&handle, "r-1", "I knock.").await.unwrap();
    let before = (sent_to(&file).len(), house.store.stats().turns);
    let declare = |time: &str| json!({ "time": { "declared_world_time": time, "timezone": "Europe/Berlin" } });
    for (field, value, wanted) in [
        ("ui", json!({ "stream_cursor": "x" }), Code::BadCursor),
        ("declared_overrides", declare("noon"), Code::TimeFormat),
        (
            "declared_overrides",
            declare("2030-03-31T02:30:00"),
            Code::TimeAmbiguous,
        ),
        (
            "declared_overrides",
            declare("1999-01-01T00:00:00Z"),
            Code::TimeRegression,
        ),
        (
            "invoker",
            json!({ "invoker_id": "operator", "invoker_role": "INVOKER" }),
            Code::InvokerForbidden,
        ),
    ] {
        let mut body = envelope("r-2", "never said");
        body[field] = value;
        assert_eq!(
            code(handle.invoke(&Principal::Owner, body).await.unwrap_err()),
            wanted
        );
    }
    assert_eq!((sent_to(&file).len(), house.store.stats().turns), before);
    say(&handle, "r-2", "said").await.unwrap();
}

#[tokio::test]
async fn a_writer_is_told_the_time_that_the_operator_declares_with_the_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &keeping(&file), json!({})).await;
    let mut body = envelope("r-1", "A new year.");
    body["declared_overrides"] = json!({ "time": { "declared_world_time": "2040-01-01T00:00:00Z", "timezone": "Europe/Berlin" } });
    handle.invoke(&Principal::Owner, body).await.unwrap();
    let beat = &sent_to(&file)[0];
    assert_eq!(
        (&beat["world_time"], &beat["timezone"]),
        (&"2040-01-01T00:00:00Z".into(), &"Europe/Berlin".into())
    );
}

#[tokio::test]
async fn n25_no_words_ask_for_a_rehydration() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    let asks = format!(
        r#"printf '%s\n' "$line" >> {}; {}; {}"#,
        file.display(),
        ask(3).replace("knock", "please rehydrate: the context window is full"),
        PROPOSE.replace("Come in.", "Rehydrate me now, please.")
    );
    let handle = attached(&house, &answering(&asks), json!({})).await;
    for id in ["r-1", "r-2", "r-3"] {
        say(&handle, id, "please rehydrate").await.unwrap();
    }
    let sent = sent_to(&file);
    assert_eq!(sent.len(), 3);
    assert!(
        sent.iter().all(|beat| beat.get("rehydration").is_none()),
        "{sent:?}"
    );
    assert_eq!(
        handle.read(|world| world.epoch().map(|epoch| epoch.number)),
        Some(1)
    );
    assert!(lines(&house, handle.contexts().await.unwrap(), "rehydration").is_empty());
    assert_eq!(all(&handle).len(), 6);
}

#[tokio::test]
async fn n27_a_rejection_s_reason_is_in_no_entry_stream_or_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    let forbidden = PROPOSE.replace("REBECCA", "GEORGE");
    let script = format!(
        r#"printf '%s\n' "$line" >> {}; {}; {forbidden}"#,
        file.display(),
        ask(1)
    );
    let handle = attached(&house, &answering(&script), json!({})).await;
    let mut answers = String::new();
    for id in ["r-1", "r-2", "r-3"] {
        answers += std::str::from_utf8(&say(&handle, id, "I knock.").await.unwrap().body).unwrap();
    }
    let refused = handle
        .beat(
            &person("ANN"),
            envelope("r-4", ""),
            bundle("r-4", "BOB", &[], "x"),
            None,
            None,
        )
        .await;
    assert!(refused.unwrap().rejected);
    answers += std::str::from_utf8(&say(&handle, "r-5", "I knock.").await.unwrap().body).unwrap();
    let reasons = lines(&house, handle.contexts().await.unwrap(), "rejection");
    assert_eq!(reasons.len(), 5, "they are in the audit");
    let prompts = std::fs::read_to_string(&file).unwrap();
    for word in ["AUTHOR_FORBIDDEN", "ACTOR_MISMATCH"] {
        assert!(
            reasons.iter().any(|reason| reason.contains(word)),
            "{reasons:?}"
        );
        assert!(
            !answers.contains(word) && !prompts.contains(word),
            "{word}: {answers} {prompts}"
        );
        assert!(all(&handle).iter().all(|text| !text.contains(word)));
    }
}

#[tokio::test]
async fn beats_that_wait_for_the_writer_find_what_the_one_before_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("found");
    let house = House::open(MemoryStorage::new());
    let keep = format!(r#"printf '%s\n' "$pack" >> {}"#, file.display());
    let handle = attached(
        &house,
        &answering(&format!("{}; {keep}; {PROPOSE}", ask(1))),
        json!({}),
    )
    .await;
    let asked = (0..6).map(|number| {
        let handle = Arc::clone(&handle);
        tokio::spawn(async move {
            say(&handle, &format!("r-{number}"), "I knock.")
                .await
                .unwrap()
        })
    });
    for task in asked.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let found = sent_to(&file)
        .iter()
        .map(|line| line["pack"]["results"].as_array().unwrap().len())
        .collect::<Vec<_>>();
    assert_eq!(
        found,
        [0, 2, 4, 6, 8, 10],
        "a knock and its answer more each time"
    );
    assert_eq!(all(&handle).len(), 12);
}

#[tokio::test(start_paused = true)]
async fn the_same_request_waits_for_itself_and_is_then_told_that_it_is_in_progress() {
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, "cat >/dev/null", json!({ "writer_seconds": 600 })).await;
    let (first, second) = tokio::join!(
        say(&handle, "r-1", "I knock."),
        say(&handle, "r-1", "I knock.")
    );
    assert_eq!(code(second.unwrap_err()), Code::InProgress);
    let first = first.unwrap().body;
    let again = say(&handle, "r-1", "I knock.").await.unwrap();
    assert_eq!((again.replayed, again.body), (true, first));
    assert_eq!(all(&handle), ["I knock."]);
}
