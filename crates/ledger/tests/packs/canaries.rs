//! Canaries: each private entry of a busy world has a token of its own, and in a million answers no
//! other reader gets one.

use std::collections::HashMap;

use serde_json::json;
use turnkeep_ledger::audience::Audience;
use turnkeep_ledger::config::Profile;
use turnkeep_ledger::ids::Ids;
use turnkeep_ledger::tools::{self, ToolRequest};
use turnkeep_ledger::{can_see, projection};

use crate::story::{Story, caller, question, viewer};

const PEOPLE: usize = 120;
const ENTRIES: usize = 3000;
const PAIRS: usize = 1_000_000;
const CANARY: usize = 24;

/// A world in which a third is private to a few, with the token of each private entry.
fn busy() -> (Story, HashMap<String, Audience>) {
    let people: Vec<String> = (0..PEOPLE).map(|number| format!("P{number}")).collect();
    let people: Vec<&str> = people.iter().map(String::as_str).collect();
    let mut story = Story::new(Profile::Workspace, &people);
    let mut dice = Ids::from_seed(&[17; 32]);
    let mut draw = move |end: usize| usize::try_from(dice.draw() % end as u128).unwrap();
    let mut tokens = HashMap::new();
    let mut names = Ids::from_seed(&[18; 32]);
    for number in 0..ENTRIES {
        let author = people[draw(PEOPLE)];
        let readers: Vec<&str> = (0..=draw(4)).map(|_| people[draw(PEOPLE)]).collect();
        let token = format!("{:032x}", names.draw())[..CANARY].to_owned();
        let text = format!("note {number} about the refund, {token}, for review");
        if draw(3) == 0 {
            story.whisper(author, &readers, &text);
            let entry = story.entries().last().unwrap();
            tokens.insert(token, Audience::of_entry(entry));
        } else {
            story.say(author, &text.replace(&token, "no secret"));
        }
    }
    (story, tokens)
}

/// Every token in an answer is one that the reader may see.
fn check(answer: &str, who: &str, tokens: &HashMap<String, Audience>) {
    let words = answer
        .split(|char: char| !char.is_ascii_hexdigit())
        .filter(|word| word.len() == CANARY);
    for audience in words.filter_map(|word| tokens.get(word)) {
        assert!(can_see(&viewer(who), audience), "{who} was told {answer}");
    }
}

#[test]
fn no_answer_holds_a_token_that_its_reader_may_not_see() {
    let (story, tokens) = busy();
    let world = story.world();
    let mut pairs = 0;
    let entries: Vec<String> = story.entries().map(|entry| entry.id.to_string()).collect();
    for number in 0..PEOPLE {
        let who = format!("P{number}");
        let ask = |tool: &str, query: &str, constraints| {
            let request = ToolRequest::parse(&question(&who, tool, query, constraints)).unwrap();
            let answer = tools::answer(&world, world.position(), &caller(&who), &request, None);
            answer.map_or_else(|fault| fault.to_string(), |pack| pack.to_string())
        };
        let view = world.view(viewer(&who));
        let mut told = 0;
        let mut check = |answer: String| {
            check(&answer, &who, &tokens);
            told += 1;
        };
        for id in &entries {
            check(ask("LEDGER_GET", id, json!({})));
            check(format!(
                "{:?}",
                view.entry(id.parse().unwrap()).map(|entry| &entry.text)
            ));
        }
        for token in tokens.keys() {
            check(ask("LEDGER_SEARCH", token, json!({"limit": 1})));
        }
        for person in 0..PEOPLE {
            check(ask(
                "CAPSULE_GET",
                "",
                json!({"person_id": format!("P{person}")}),
            ));
        }
        let mut cursor = None;
        while let Ok(page) = projection::read_page(&view, "r", cursor.as_deref(), 1) {
            let end = page.value["stream"]["entries"]
                .as_array()
                .unwrap()
                .is_empty();
            check(page.value.to_string());
            cursor = page.cursor_after;
            if end {
                break;
            }
        }
        pairs += told;
    }
    assert!(pairs >= PAIRS, "only {pairs} answers were looked at");
}
