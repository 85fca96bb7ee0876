//! The disk fails at every operation of a beat, and the request is repeated.

use turnkeep_journal::{Fault as DiskFault, FaultyStorage};
use turnkeep_store::Refusal;

use super::*;

/// Runs the story on a disk; errors are what a failing disk may give.
async fn story(house: &House) -> Result<(), LedgerError> {
    let handle = if let Some(handle) = house.worlds.get("w") {
        handle
    } else {
        let body = json!({ "world_id": "w", "persons": [{ "person_id": "REBECCA" }] });
        let node = Node::root(&body, Code::ConfigInvalid);
        let (config, persons) = Config::from_json(&node, WorldTime::from_timestamp(NOW)).unwrap();
        house.worlds.create(config, persons).await?
    };
    say(&handle, "r-1", "I knock.").await?;
    let mut rain = bundle("r-2", "REBECCA", &[], "Come in.");
    let entry = rain["entries"][0].clone();
    rain["entries"].as_array_mut().unwrap().push(entry);
    handle
        .beat(&person("REBECCA"), envelope("r-2", ""), rain, None, None)
        .await?;
    say(&handle, "r-3", "").await.map(drop)
}

const TOLD: [&str; 3] = ["I knock.", "Come in.", "Come in."];

/// Every disk on which the story breaks off at one operation.
async fn at_every_operation(
    faults: &[DiskFault],
    check: impl AsyncFn(DiskFault, u64, FaultyStorage),
) {
    let sound = FaultyStorage::new(None);
    story(&House::open(sound.clone())).await.unwrap();
    for fault in faults {
        for at in 0..sound.operations() {
            check(*fault, at, FaultyStorage::new(Some((at, *fault)))).await;
        }
    }
}

pub(super) fn try_open(disk: FaultyStorage) -> Option<House> {
    let clock = Arc::new(ManualClock::new(NOW));
    let store = Store::open(Arc::new(disk), &options(), clock.clone()).ok()?;
    let handle = StoreHandle::new(store.clone(), Options::default().queue_commands_max);
    let worlds = Worlds::open(
        handle,
        clock.clone(),
        (TaskTracker::new(), CancellationToken::new()),
        &seed(),
    );
    Some(House {
        store,
        worlds,
        clock,
    })
}

#[tokio::test]
async fn p03_a_crash_at_every_write_point_and_a_retry_leave_exactly_one_bundle_each() {
    let faults = [
        DiskFault::Crash,
        DiskFault::TornWrite,
        DiskFault::TornWriteBackwards,
        DiskFault::FailedSync,
    ];
    at_every_operation(&faults, async |fault, at, disk| {
        if let Some(house) = try_open(disk.clone()) {
            // It breaks off, or the fault comes only after the story.
            story(&house).await.ok();
        }
        let house = House::open(disk.crash());
        story(&house)
            .await
            .unwrap_or_else(|error| panic!("{fault:?} at {at}: {error}"));
        let handle = house.worlds.get("w").unwrap();
        assert_eq!(all(&handle), TOLD, "{fault:?} at {at}");
        is_sound(&house, &handle).await;
    })
    .await;
}

#[tokio::test]
async fn p04_a_crash_after_the_commit_and_before_the_answer_is_answered_by_the_retry() {
    let disk = MemoryStorage::new();
    let house = House::open(disk.clone());
    let handle = house.payments().await;
    let mut committed = handle.subscribe_position();
    let asked = {
        let handle = Arc::clone(&handle);
        tokio::spawn(async move { write(&handle, "PLANNER", "r-1", &["CODER"], "psst").await })
    };
    committed.wait_for(|position| *position == 1).await.unwrap();
    // The caller and the server are gone, and no answer was sent.
    asked.abort();
    drop((handle, house));
    let house = House::open(disk);
    let handle = house.worlds.get("payments").unwrap();
    let answer = write(&handle, "PLANNER", "r-1", &["CODER"], "psst")
        .await
        .unwrap();
    assert!(answer.replayed);
    assert_eq!(all(&handle), ["psst"]);
    let again = write(&handle, "PLANNER", "r-1", &["CODER"], "psst")
        .await
        .unwrap();
    assert_eq!(again.body, answer.body);
    is_sound(&house, &handle).await;
}

#[tokio::test]
async fn a_full_disk_is_told_as_such_and_the_next_try_works() {
    at_every_operation(&[DiskFault::NoSpace], async |_, at, disk| {
        let Some(house) = try_open(disk) else { return };
        if let Err(error) = story(&house).await {
            assert!(
                matches!(error, LedgerError::Refusal(Refusal::NoSpace { .. })),
                "at {at}: {error}"
            );
        }
        story(&house)
            .await
            .unwrap_or_else(|error| panic!("at {at}: {error}"));
        assert_eq!(all(&house.worlds.get("w").unwrap()), TOLD, "at {at}");
    })
    .await;
}
