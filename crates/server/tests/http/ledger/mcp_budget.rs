//! The Model Context Protocol: no answer is larger than its budget, and a next call gets the rest.

use serde_json::{Value, json};

use super::mcp::{call, labelled, write};
use super::{Kind, Team};

const ANSWER_BYTES_DEFAULT: usize = 32 << 10;

/// What a tool answers ANN. The whole response has at most so many bytes.
async fn call_within(team: &Team, tool: &str, arguments: Value, max_bytes: usize) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let reply = team.post(Kind::Reader, "/mcp", &message).await;
    let bytes = reply.body.len();
    assert!(bytes <= max_bytes, "{tool}: {bytes} > {max_bytes}");
    let result = reply.json()["result"].clone();
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["structuredContent"].clone()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a Vec<Value> {
    value.pointer(pointer).unwrap().as_array().unwrap()
}

#[tokio::test]
async fn an_answer_keeps_within_its_budget_and_every_byte_is_reached() {
    let team = labelled().await;
    let long = "0123456789\"\n\u{1}é🦀".repeat(5000);
    let written = write(&team, json!({ "text": long })).await;
    let id = written["entries"][0]["entry_id"].clone();
    for number in 0..60 {
        write(
            &team,
            json!({ "text": format!("{number} {}", "y".repeat(1500)) }),
        )
        .await;
    }
    for max_bytes in [8 << 10, 32 << 10, 100_000] {
        let (mut cursor, mut read, mut answers) = (Value::Null, 0, 0);
        loop {
            let mut arguments = json!({ "max_bytes": max_bytes });
            arguments["cursor"] = cursor;
            let page = call_within(&team, "ledger_read", arguments, max_bytes).await;
            read += page["stream"]["entries"].as_array().unwrap().len();
            answers += 1;
            cursor = page["stream"]["cursor_after"].clone();
            if page["stream"]["more"] == false {
                break;
            }
        }
        assert!(
            read == 62 && answers > 1,
            "{read} entries in {answers} answers"
        );
        let (mut whole, mut offset) = (String::new(), Some(0));
        while let Some(from) = offset {
            let arguments = json!({ "ids": [id], "offset": from, "max_bytes": max_bytes });
            let pack = call_within(&team, "ledger_get", arguments, max_bytes).await;
            let piece = &pack["results"][0];
            assert_eq!(piece["range"][0], from);
            whole.push_str(piece["verbatim_excerpt"].as_str().unwrap());
            offset = piece["next_offset"].as_u64();
        }
        assert!(whole == long, "{} of {} bytes", whole.len(), long.len());
    }
    let page = call_within(&team, "ledger_read", json!({}), ANSWER_BYTES_DEFAULT).await;
    assert_eq!(page["stream"]["more"], true);
    assert_eq!(page.get("pocket"), None);
    let (newest, _) = call(&team, Kind::Reader, "ledger_read", json!({ "newest": 3 })).await;
    let entries = newest["stream"]["entries"].as_array().unwrap();
    let first_words: Vec<_> = entries
        .iter()
        .map(|e| e["text"].as_str().unwrap().split(' ').next().unwrap())
        .collect();
    assert_eq!(
        (first_words, &newest["stream"]["older"]),
        (vec!["57", "58", "59"], &json!(59))
    );
    let (behind, failed) = call(
        &team,
        Kind::Reader,
        "ledger_get",
        json!({ "ids": [id], "offset": long.len() + 1 }),
    )
    .await;
    assert!(
        failed && behind["error"]["details"]["path"] == "offset",
        "{behind}"
    );
    team.stop().await;
}

/// A label of the greatest length whose every character is escaped, twice.
fn long_label() -> String {
    "\"".repeat(256)
}

#[tokio::test]
async fn a_list_of_persons_keeps_within_its_budget() {
    let team = Team::start().await;
    for number in 0..70 {
        let person = json!({
            "person_id": format!("P{number:02}"), "display_label": long_label(), "identity": long_label(),
        });
        let added = team
            .post(Kind::Owner, "/v1/worlds/team/persons", &person)
            .await;
        assert_eq!(added.status, 201, "{}", added.text());
    }
    for max_bytes in [8 << 10, ANSWER_BYTES_DEFAULT, 100_000] {
        let (mut after, mut ids) = (Value::Null, Vec::new());
        loop {
            let arguments = json!({ "after": after, "max_bytes": max_bytes });
            let page = call_within(&team, "whoami", arguments, max_bytes).await;
            let persons = list(&page, "/persons").iter();
            ids.extend(persons.map(|person| person["person_id"].as_str().unwrap().to_owned()));
            after = page["next_after"].clone();
            if after.is_null() {
                break;
            }
        }
        let others = (0..70).map(|number| format!("P{number:02}"));
        let all: Vec<String> = ["GEORGE", "ANN", "BOB"]
            .map(str::to_owned)
            .into_iter()
            .chain(others)
            .collect();
        assert_eq!(ids, all);
    }
    call_within(&team, "whoami", json!({}), ANSWER_BYTES_DEFAULT).await;
    team.stop().await;
}

/// BOB writes 256 short entries, and a long one whose every character is escaped.
async fn write_many(team: &Team) {
    write(team, json!({ "text": "\u{1}".repeat(3000) })).await;
    for part in 0..4 {
        let entry = |number: usize| json!({ "text": format!("{}", part * 64 + number) });
        let entries: Vec<Value> = (0..64).map(entry).collect();
        write(team, json!({ "entries": entries })).await;
    }
}

#[tokio::test]
async fn a_capsule_and_a_scene_quote_the_newest_that_fit_with_their_sources() {
    let team = labelled().await;
    write_many(&team).await;
    for max_bytes in [8 << 10, ANSWER_BYTES_DEFAULT, 100_000, 1 << 20] {
        let arguments = json!({ "person_id": "BOB", "max_bytes": max_bytes });
        let capsule = call_within(&team, "capsule_get", arguments, max_bytes).await;
        let evidence = &capsule["sections"][0];
        check_quotations(&capsule, evidence, max_bytes);
        let excerpts = list(evidence, "/excerpts").len();
        assert_eq!(excerpts, list(&capsule, "/sources").len());
        let arguments = json!({ "max_bytes": max_bytes });
        let scene = call_within(&team, "scene_pack_build", arguments, max_bytes).await;
        check_quotations(&scene, &scene, max_bytes);
    }
    let default = json!({ "person_id": "BOB" });
    call_within(&team, "capsule_get", default, ANSWER_BYTES_DEFAULT).await;
    call_within(&team, "scene_pack_build", json!({}), ANSWER_BYTES_DEFAULT).await;
    team.stop().await;
}

/// Checks that a part quotes the newest of the numbers, each with its source.
fn check_quotations(pack: &Value, part: &Value, max_bytes: usize) {
    let ids = list(part, "/provenance/used_entry_ids");
    let sources = list(pack, "/sources").iter();
    assert!(sources.map(|source| &source["entry_id"]).eq(ids));
    for source in list(pack, "/sources") {
        assert!(source["audience"].is_string(), "{source}");
    }
    let text = part["text"].as_str().unwrap();
    if max_bytes < 100_000 {
        let numbers: Vec<String> = (256 - ids.len()..256).map(|n| n.to_string()).collect();
        assert_eq!(text, numbers.join("\n"));
        let note = pack["notes"].as_str().unwrap();
        assert!(note.contains("a larger max_bytes"), "{note}");
    }
    if max_bytes == 1 << 20 {
        assert_eq!((ids.len() > 256, &pack["notes"]), (true, &Value::Null));
    }
}

#[tokio::test]
async fn one_quotation_or_result_that_does_not_fit_is_shortened() {
    let team = labelled().await;
    let text = format!("needle {}", "\u{1}".repeat(3000));
    write(&team, json!({ "text": text })).await;
    let small = 8 << 10;
    let arguments = json!({ "query": "needle", "max_bytes": small });
    let found = call_within(&team, "ledger_search", arguments, small).await;
    let result = &found["results"][0];
    let excerpt = result["verbatim_excerpt"].as_str().unwrap();
    assert!(excerpt.starts_with("needle") && excerpt.len() < 2048);
    assert_eq!(result["range"], json!([0, excerpt.len()]));
    let arguments = json!({ "person_id": "BOB", "max_bytes": small });
    let capsule = call_within(&team, "capsule_get", arguments, small).await;
    let evidence = &capsule["sections"][0];
    let quoted = evidence["text"].as_str().unwrap();
    assert!(!quoted.is_empty() && text.starts_with(quoted));
    assert_eq!(evidence["excerpts"][0]["end"], quoted.len());
    let arguments = json!({ "max_bytes": small });
    let scene = call_within(&team, "scene_pack_build", arguments, small).await;
    let quoted = scene["text"].as_str().unwrap();
    assert!(!quoted.is_empty() && text.starts_with(quoted));
    team.stop().await;
}

/// BOB writes 16 beats. Each has a calendar item and a message with large texts.
async fn write_large_items(team: &Team) {
    for number in 0..16 {
        let words = format!("{number:02} {}", "w".repeat(60_000));
        let mut beat = super::beat(&format!("item-{number}"), "BOB", &words, None);
        beat["bundle"]["pocket_items"] = json!([
            { "kind": "CALENDAR", "entry_index": 0, "title": [0, 2], "notes": [3, 60_003] },
            { "kind": "MESSAGE", "entry_index": 0, "title": [0, 60_003] },
        ]);
        let reply = team
            .post(Kind::Writer, "/v1/worlds/team/beats", &beat)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

/// All items of a part, read page by page.
async fn read_items(team: &Team, part: &str, max_bytes: usize) -> Vec<Value> {
    let (mut items, mut skip) = (Vec::new(), json!(0));
    while !skip.is_null() {
        let arguments = json!({ "part": part, "skip": skip, "max_bytes": max_bytes });
        let page = call_within(team, "ledger_pocket", arguments, max_bytes).await;
        assert_eq!(page["total"], 16);
        items.extend(list(&page, "/items").iter().cloned());
        skip = page["next_skip"].clone();
    }
    items
}

#[tokio::test]
async fn the_pocket_is_read_page_by_page_and_a_large_item_is_cut() {
    let team = Team::start().await;
    write_large_items(&team).await;
    for (part, text) in [("calendar", "title"), ("messages", "text")] {
        for max_bytes in [8 << 10, ANSWER_BYTES_DEFAULT, 1 << 20] {
            let items = read_items(&team, part, max_bytes).await;
            let numbers: Vec<_> = items
                .iter()
                .map(|item| item[text].as_str().unwrap()[..2].to_owned())
                .collect();
            let all: Vec<_> = (0..16).map(|number| format!("{number:02}")).collect();
            assert_eq!(numbers, all, "{part} {max_bytes}");
            let is_small = max_bytes < 1 << 20;
            for item in &items {
                assert_eq!(item.get("cut").is_some(), is_small, "{part} {max_bytes}");
                assert!(item["item_id"].is_string() && item["audience"] == "everyone");
            }
        }
    }
    let default = json!({ "part": "messages" });
    call_within(&team, "ledger_pocket", default, ANSWER_BYTES_DEFAULT).await;
    let limited = json!({ "part": "calendar", "limit": 3, "skip": 15 });
    let last = call_within(&team, "ledger_pocket", limited, ANSWER_BYTES_DEFAULT).await;
    assert_eq!(
        (list(&last, "/items").len(), &last["next_skip"]),
        (1, &Value::Null)
    );
    team.stop().await;
}

#[tokio::test]
async fn large_pocket_items_make_no_other_answer_larger() {
    let team = Team::start().await;
    write_large_items(&team).await;
    let newest = json!({ "newest": 1 });
    call_within(&team, "ledger_read", newest, ANSWER_BYTES_DEFAULT).await;
    let params = json!({ "name": "ledger_write", "arguments": { "text": "Short." } });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let reply = team.post(Kind::Writer, "/mcp", &message).await;
    assert_eq!(reply.json()["result"]["isError"], false, "{}", reply.text());
    assert!(reply.body.len() < 2048, "{}", reply.body.len());
    team.stop().await;
}

#[tokio::test]
async fn the_newest_entries_that_do_not_fit_are_read_from_a_cursor() {
    let team = Team::start().await;
    for number in 0..60 {
        let text = format!("{number} {}", "y".repeat(1500));
        team.write(&format!("r-{number}"), &text, None).await;
    }
    let numbers = |page: &Value| -> Vec<usize> {
        let entries = list(page, "/stream/entries").iter();
        let number = |entry: &Value| entry["text"].as_str()?.split(' ').next()?.parse().ok();
        entries.map(|entry| number(entry).unwrap()).collect()
    };
    for (wanted, first) in [(50, 10), (60, 0), (500, 0)] {
        let arguments = json!({ "newest": wanted });
        let newest = call_within(&team, "ledger_read", arguments, ANSWER_BYTES_DEFAULT).await;
        let stream = &newest["stream"];
        let shown = numbers(&newest);
        assert_eq!((shown.last(), &stream["more"]), (Some(&59), &json!(false)));
        assert!(shown[0] > first, "not all fit: {shown:?}");
        assert_eq!(
            (&stream["more_before"], &stream["older"]),
            (&json!(true), &json!(shown[0]))
        );
        let (mut left_out, mut cursor) = (Vec::new(), stream["cursor_before"].clone());
        while left_out.last().is_none_or(|last| last + 1 < shown[0]) {
            let arguments = json!({ "cursor": cursor });
            let page = call_within(&team, "ledger_read", arguments, ANSWER_BYTES_DEFAULT).await;
            left_out.extend(numbers(&page));
            cursor = page["stream"]["cursor_after"].clone();
        }
        left_out.truncate(shown[0] - first);
        assert_eq!(left_out, (first..shown[0]).collect::<Vec<_>>());
    }
    let two = json!({ "newest": 2 });
    let few = call_within(&team, "ledger_read", two, ANSWER_BYTES_DEFAULT).await;
    assert_eq!(
        (
            &few["stream"]["more_before"],
            &few["stream"]["cursor_before"]
        ),
        (&json!(false), &Value::Null)
    );
    team.stop().await;
}
