//! Programs that print more than an event can hold.

use serde_json::json;

use crate::team::{Team, skip};

const PRINTER: &str = r#"
[providers.printer]
command = "/bin/sh"
protocol = "raw"
args = ["-c", "cat > /dev/null; yes 'one line of many' | head -n 400000"]
"#;

#[test]
fn a_very_long_answer_ends_its_turn_and_is_kept_whole() {
    let mut team = Team::start_with("", |_| PRINTER.to_owned());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "printer", skip("a"));
    let whole = "one line of many\n".repeat(400_000);
    let mut artifacts_seen = 0;
    for turns in 1..=2 {
        team.chat(&run, &node, "Go");
        assert_eq!(team.wait_for_turn_end(&run, &node, turns), "turn.completed");
        let mut answers = team.artifacts_of(&run, &node, "log");
        answers.retain(|log| log["name"] == "answer.txt");
        let of_turn = &answers[artifacts_seen..];
        artifacts_seen = answers.len();
        // The adapter reports such an answer as several messages.
        let kept: String = of_turn
            .iter()
            .map(|part| team.read_artifact(&run, part))
            .collect();
        let is_whole = kept == whole.trim_end();
        assert!(is_whole, "{} of {} bytes", kept.len(), whole.len());
        let events = team.events(&run).into_iter();
        let mut finals = events.filter(|event| event["type"] == "message.assistant.final");
        let last = finals.next_back().unwrap();
        let (beginning, note) = last["content"]
            .as_str()
            .unwrap()
            .split_once("\n\n")
            .unwrap();
        assert!(beginning.len() > 1 << 19 && whole.contains(beginning));
        let id = answers.last().unwrap()["id"].as_str().unwrap();
        assert!(note.contains(id), "{note}");
        // What is in the log can be read back, and the run goes on.
        team.restart();
        team.resume(&run);
    }
}
