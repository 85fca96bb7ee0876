//! What a beat waits for, and what it does not: shown by things that never end on their own.

use std::sync::mpsc;
use std::time::Duration;

use tokio::time::timeout;

use super::writers::{PROPOSE, answering, attached, keeping, lines, runs, sent_to};
use super::*;

/// What a test may take that stands still if somebody waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// More than a context of 8192 tokens holds before its writer begins anew.
fn flood() -> String {
    "x y ".repeat(6000)
}

fn read(file: &std::path::Path) -> Vec<String> {
    std::fs::read_to_string(file)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn p14_a_beat_does_not_wait_for_the_end_of_the_writer_that_was_full() {
    let dir = tempfile::tempdir().unwrap();
    let (file, stubborn) = (dir.path().join("sent"), dir.path().join("stubborn"));
    let house = House::open(MemoryStorage::new());
    // It ignores what it can, and the first leaves something behind that holds its output and is
    // not in its group.
    let leave = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 1000' &",
        stubborn.display()
    );
    let script = format!(
        "trap '' TERM INT HUP PIPE; [ -s {0} ] || {{ {leave} }}; while ! [ -s {0} ]; do :; done; {1}",
        stubborn.display(),
        keeping(&file)
    );
    let handle = attached(
        &house,
        &script,
        json!({ "writer_tokens": 8192, "writer_seconds": 3600 }),
    )
    .await;
    let beats = async {
        say(&handle, "r-1", &flood()).await.unwrap();
        say(&handle, "r-2", "Go on.").await.unwrap();
    };
    let in_time = timeout(PATIENCE, beats).await;
    let left = read(&stubborn);
    let held: Vec<bool> = left.iter().map(|pid| runs(pid)).collect();
    for pid in &left {
        std::process::Command::new("kill")
            .args(["-s", "KILL", pid])
            .status()
            .unwrap();
    }
    in_time.expect("the beat waited for what never ends");
    assert!(
        held.first() == Some(&true),
        "it was still there when the beat was answered: {held:?}"
    );
    let sent = sent_to(&file);
    assert_eq!(
        sent.iter()
            .map(|beat| beat["rehydration"].is_object())
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[tokio::test]
async fn p14_a_pack_is_made_once_however_many_beats_wait_for_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sent");
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &keeping(&file), json!({ "writer_tokens": 8192 })).await;
    say(&handle, "full", &flood()).await.unwrap();
    let waiting = (0..12).map(|number| {
        let handle = Arc::clone(&handle);
        tokio::spawn(async move {
            say(&handle, &format!("r-{number}"), "Go on.")
                .await
                .unwrap()
        })
    });
    for beat in waiting.collect::<Vec<_>>() {
        timeout(PATIENCE, beat).await.unwrap().unwrap();
    }
    let sent = sent_to(&file);
    assert_eq!(sent.len(), 13);
    assert_eq!(
        sent.iter()
            .filter(|beat| beat["rehydration"].is_object())
            .count(),
        1
    );
    assert_eq!(
        lines(&house, handle.contexts().await.unwrap(), "rehydration").len(),
        1
    );
    assert_eq!(
        handle.read(|world| world.epoch().map(|epoch| epoch.number)),
        Some(2)
    );
    is_sound(&house, &handle).await;
}

/// On one thread, as the server is: a pack is made as anything is read that takes long.
#[tokio::test]
async fn p14_beats_of_other_worlds_go_on_while_a_world_is_read_for_long() {
    let house = House::open(MemoryStorage::new());
    let (handle, other) = (
        house.payments().await,
        house.world(json!({ "world_id": "other" })).await,
    );
    let reality = handle.contexts().await.unwrap().reality;
    let (reads, is_read) = tokio::sync::oneshot::channel();
    let (end, ended) = mpsc::sync_channel::<()>(1);
    let reader = Arc::clone(&handle);
    let long = tokio::task::spawn_blocking(move || {
        reader.read_long(|_| {
            reads.send(()).unwrap();
            ended.recv_timeout(PATIENCE).is_ok()
        })
    });
    is_read.await.unwrap();
    let writer = Arc::clone(&handle);
    let beat = tokio::spawn(async move { write(&writer, "CODER", "r-1", &[], "hi").await });
    let durable = async {
        while house.store.context(reality).unwrap().head.is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, durable).await.unwrap();
    for number in 0..20 {
        say(&other, &format!("r-{number}"), "Go on.").await.unwrap();
    }
    assert_eq!(
        (handle.read(World::position), other.read(World::position)),
        (0, 20),
        "short looks go on too"
    );
    assert!(!beat.is_finished());
    end.send(()).unwrap();
    assert!(
        long.await.unwrap(),
        "the reader gave up: everybody waited for it"
    );
    assert!(!beat.await.unwrap().unwrap().rejected);
    assert_eq!(all(&handle), ["hi"]);
}

#[tokio::test]
async fn a_writer_that_has_ended_is_not_waited_for_though_another_process_holds_its_pipes() {
    let hold = "exec 4<&0; sleep 1000 <&4 &";
    let answered = format!("read -r line; r=r-1; {hold} {PROPOSE}; exit 0");
    let whole = format!("read -r line; r=r-1; {hold} {PROPOSE}");
    for (name, script, words, answer) in [
        (
            "says nothing",
            format!("read -r line; {hold} exit 3"),
            "I knock.",
            false,
        ),
        (
            "reads nothing",
            format!("{hold} exit 3"),
            &*"x ".repeat(1 << 19),
            false,
        ),
        (
            "breaks off",
            format!("read -r line; {hold} printf no_write; exit 0"),
            "I knock.",
            false,
        ),
        ("answers first", answered, "I knock.", true),
        ("answers last", whole, "I knock.", true),
    ] {
        let house = House::open(MemoryStorage::new());
        let handle = attached(&house, &script, json!({ "writer_seconds": 3600 })).await;
        let said = timeout(PATIENCE, say(&handle, "r-1", words)).await;
        said.unwrap_or_else(|_| panic!("{name}: the beat waited"))
            .unwrap();
        let failed = lines(&house, handle.contexts().await.unwrap(), "writer-failed").len();
        assert_eq!(
            (all(&handle).len(), failed),
            if answer { (2, 0) } else { (1, 1) },
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_large_beat_is_answered_like_a_small_one() {
    let house = House::open(MemoryStorage::new());
    let handle = attached(&house, &answering(PROPOSE), json!({})).await;
    for (id, words) in [
        ("small", "I knock.".to_owned()),
        ("large", "x ".repeat(1 << 19)),
    ] {
        let said = timeout(PATIENCE, say(&handle, id, &words))
            .await
            .unwrap()
            .unwrap();
        let again = say(&handle, id, &words).await.unwrap();
        assert_eq!(
            (said.replayed, again.replayed, &again.body),
            (false, true, &said.body),
            "{id}"
        );
        let text = &words[..words.len().min(200 << 10)];
        for (who, rejected) in [("ANN", false), ("BOB", true)] {
            let id = format!("{id}-{who}");
            let mut brought = bundle(&id, "ANN", &[], text);
            let entry = brought["entries"][0].clone();
            brought["entries"] = json!([entry, entry]);
            let check = handle
                .check_beat(&person(who), envelope(&id, ""), brought.clone(), None, None)
                .await
                .unwrap();
            let beat = handle
                .beat(&person(who), envelope(&id, ""), brought.clone(), None, None)
                .await
                .unwrap();
            let again = handle
                .beat(&person(who), envelope(&id, ""), brought, None, None)
                .await
                .unwrap();
            assert_eq!(
                (check.rejected, beat.rejected, again.rejected),
                (rejected, rejected, rejected),
                "{id}"
            );
            assert_eq!((again.replayed, again.body), (true, beat.body), "{id}");
        }
    }
    assert_eq!(all(&handle).len(), 8);
    is_sound(&house, &handle).await;
}

#[tokio::test]
async fn a_wait_for_news_ends_by_what_the_reader_may_see_and_by_nothing_else() {
    let house = House::open(MemoryStorage::new());
    let handle = house.payments().await;
    let reader = Viewer::Reader(Name::new("CODER").unwrap());
    let mut waiting = std::pin::pin!(handle.wait_for_entries(&reader, 0));
    for hidden in ["r-1", "r-2"] {
        write(&handle, "PLANNER", hidden, &["REVIEWER"], "Not for CODER.")
            .await
            .unwrap();
        let is_over = tokio::select! {
            biased;
            () = &mut waiting => true,
            () = std::future::ready(()) => false,
        };
        assert!(!is_over, "{hidden} is hidden");
    }
    write(&handle, "PLANNER", "r-3", &["CODER"], "For CODER.")
        .await
        .unwrap();
    timeout(PATIENCE, waiting).await.unwrap();
    timeout(PATIENCE, handle.wait_for_entries(&reader, 0))
        .await
        .expect("what is there already is not waited for");
}
