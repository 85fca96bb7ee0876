//! What the owner is shown of a writer that was full: in the counters, in the audit and with the
//! world.

use serde_json::{Value, json};

use super::{Kind, Team, envelope};

/// A writer that reads its input and proposes nothing.
const SILENT: &str = r#"cmd: while read -r line; do echo '{"type":"no_write"}'; done"#;

/// A counter's value.
async fn counter(team: &Team, name: &str) -> u64 {
    let text = team.get(Kind::Owner, "/metrics").await.text();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix("_total "));
    value
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn p14_counters_audit_and_world_tell_what_rehydrations_carried_and_dropped() {
    let team = Team::start().await;
    let body =
        json!({ "world_id": "play-7734", "writer": SILENT, "limits": { "writer_tokens": 4096 } });
    let made = team.post(Kind::Owner, "/v1/worlds", &body).await.json();
    assert_eq!(made["rehydrations"], json!({ "count": 0, "last": null }));
    assert_eq!(counter(&team, "turnkeep_rehydrations").await, 0);
    for number in 0..12 {
        let words = envelope(&format!("r-{number}"), &format!("{number} ").repeat(900));
        let said = team
            .post(Kind::Owner, "/v1/worlds/play-7734/invocations", &words)
            .await;
        assert_eq!(said.status, 200, "{}", said.text());
    }
    let page = team
        .get(Kind::Owner, "/v1/worlds/play-7734/audit/lines")
        .await
        .json();
    let lines = page["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["what"] == "rehydration");
    let told: Vec<&Value> = lines.map(|line| &line["details"]).collect();
    assert!(told.len() > 1, "{page}");
    let sum = |key: &str| {
        told.iter()
            .map(|details| details[key].as_u64().unwrap())
            .sum::<u64>()
    };
    let (carried, dropped) = (sum("carried_entries"), sum("dropped_entries"));
    assert!(carried > 0 && dropped > 0, "{told:?}");
    for (name, wanted) in [
        ("turnkeep_rehydrations", told.len() as u64),
        ("turnkeep_rehydration_carried_entries", carried),
        ("turnkeep_rehydration_dropped_entries", dropped),
    ] {
        assert_eq!(counter(&team, name).await, wanted, "{name}");
    }
    let text = team.get(Kind::Owner, "/metrics").await.text();
    assert!(!text.contains("7734"), "no counter names a world: {text}");
    let shown = team.get(Kind::Owner, "/v1/worlds/play-7734").await.json();
    let last = told.last().unwrap();
    assert_eq!(shown["rehydrations"]["count"], told.len());
    for key in ["carried_entries", "dropped_entries"] {
        assert_eq!(shown["rehydrations"]["last"][key], last[key], "{key}");
    }
    team.stop().await;
}
