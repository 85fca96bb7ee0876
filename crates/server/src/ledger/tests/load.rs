//! A writer with the smallest legal context, under load.

use super::*;

/// Rounds of beats; each is more than the writer's context holds.
const ROUNDS: usize = 6;
/// Requests at once that need the writer: fewer than may wait for it.
const OPERATOR: usize = 8;
/// Beats at once that bring their own bundle.
const PERSONS: usize = 24;

/// What the operator says: nothing much, a page, or as much as there may be.
fn words(number: usize) -> String {
    "word ".repeat([1, 800, 2500, (1 << 20) / 5][number % 4])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p14_with_the_smallest_limit_no_beat_fails_while_the_writer_begins_anew_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let sent = dir.path().join("sent");
    let script = format!(
        r#"while read -r line; do printf '%s\n' "$line" >> {}; echo '{{"type":"no_write"}}'; done"#,
        sent.display()
    );
    let house = House::open(MemoryStorage::new());
    let body = json!({
        "world_id": "w", "writer": format!("cmd: {script}"), "limits": { "writer_tokens": 4096 },
        "persons": [{ "person_id": "PLANNER" }, { "person_id": "CODER" }],
    });
    let handle = house.world(body).await;
    for round in 0..ROUNDS {
        let mut beats = Vec::new();
        for number in 0..OPERATOR {
            let (handle, id) = (Arc::clone(&handle), format!("say-{round}-{number}"));
            beats.push(tokio::spawn(async move {
                say(&handle, &id, &words(number)).await.map(drop)
            }));
        }
        for number in 0..PERSONS {
            let (handle, id) = (Arc::clone(&handle), format!("write-{round}-{number}"));
            let who = ["PLANNER", "CODER"][number % 2];
            let to: &[&str] = if number % 3 == 0 { &["CODER"] } else { &[] };
            beats.push(tokio::spawn(async move {
                write(&handle, who, &id, to, &words(number % 3))
                    .await
                    .map(drop)
            }));
        }
        for beat in beats {
            beat.await
                .unwrap()
                .unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }
    assert_eq!(
        all(&handle).len(),
        ROUNDS * (OPERATOR + PERSONS),
        "no word is lost"
    );
    let sent = std::fs::read_to_string(&sent).unwrap();
    let sent: Vec<Value> = sent
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        sent.len(),
        ROUNDS * OPERATOR,
        "the writer was asked about every word of the operator"
    );
    let anew: Vec<&Value> = sent
        .iter()
        .filter(|beat| beat["rehydration"].is_object())
        .collect();
    assert!(anew.len() >= ROUNDS, "it began anew {} times", anew.len());
    for beat in anew {
        let pack = beat["rehydration"].to_string().len() + beat["scene_anchor"].to_string().len();
        assert!(pack <= 4096 * 3 / 2, "{pack}");
    }
    is_sound(&house, &handle).await;
}
