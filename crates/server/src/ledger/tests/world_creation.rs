//! How worlds begin: made, forked, and made again after a maker that gave up.

use std::task::{Context, Waker};
use std::time::Duration;

use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::log::{self, ForkBase, Unrecordable};
use turnkeep_types::TurnId;

use super::*;
use turnkeep_ledger::config::Profile;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

#[tokio::test]
async fn a_world_whose_maker_goes_away_is_made_all_the_same() {
    let disk = MemoryStorage::new();
    {
        let house = House::open(disk.clone());
        let config = Config::new(
            name("w"),
            Profile::Workspace,
            WorldTime::from_timestamp(NOW),
        );
        let mut creation = Box::pin(house.worlds.create(config.clone(), Vec::new()));
        assert!(
            creation
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        drop(creation);
        let made = async {
            while house.worlds.get("w").is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), made)
            .await
            .unwrap();
        let again = house.worlds.create(config, Vec::new()).await;
        assert_eq!(code(again.err().unwrap()), Code::NameTaken);
    }
    let house = House::open(disk);
    is_sound(&house, &house.worlds.get("w").unwrap()).await;
}

#[tokio::test]
async fn p17_a_fork_leaves_out_a_beat_without_entries_behind_its_point() {
    let house = House::open(MemoryStorage::new());
    let handle = house
        .world(json!({ "world_id": "story", "registry": "OPEN" }))
        .await;
    say(&handle, "r-1", "one").await.unwrap();
    let time = handle.read(|world| world.clock.time.clone());
    let mut later = envelope("r-2", "");
    later["declared_overrides"] =
        json!({ "time": { "declared_world_time": "2030-01-01T00:00:00Z" } });
    handle.invoke(&Principal::Owner, later).await.unwrap();
    assert!(handle.read(|world| world.clock.time > time));
    for (fork, point) in [
        (
            "by-time",
            handle
                .read(|world| Point::read(world, &Viewer::operator(), time.as_str(), "at"))
                .unwrap(),
        ),
        ("by-entries", Point::Entries(1)),
    ] {
        let fork = house
            .worlds
            .fork(&handle, name(fork), |_| Ok(Some(point.clone())))
            .await
            .unwrap();
        assert_eq!(all(&fork), ["one"]);
        assert_eq!(
            fork.read(|world| world.clock.time.clone()),
            time,
            "{point:?}"
        );
        assert!(
            fork.read(|world| world.outcome("r-2").is_none()),
            "{point:?}"
        );
    }
    let now = house
        .worlds
        .fork(&handle, name("now"), |_| Ok(None))
        .await
        .unwrap();
    assert!(now.read(|world| world.outcome("r-2").is_some()));
}

#[tokio::test]
async fn a_fork_that_was_begun_elsewhere_and_never_finished_does_not_stop_another() {
    let disk = MemoryStorage::new();
    {
        let house = House::open(disk.clone());
        let handle = house.payments().await;
        say(&handle, "r-1", "one").await.unwrap();
        for command in log::create_contexts(
            &name("other"),
            ForkBase {
                reality: TurnId::new(1),
                derived: None,
            },
        ) {
            house.store.run(command).unwrap();
        }
        let fork = house
            .worlds
            .fork(&handle, name("other"), |_| Ok(None))
            .await
            .unwrap();
        assert_eq!(all(&fork), ["one"]);
    }
    let house = House::open(disk);
    let fork = house.worlds.get("other").unwrap();
    assert_eq!(all(&fork), ["one"]);
    is_sound(&house, &fork).await;
}

#[tokio::test]
async fn what_no_record_can_hold_is_refused_and_not_dropped() {
    let house = House::open(MemoryStorage::new());
    let handle = house.payments().await;
    let line = AuditLine {
        at: NOW,
        principal: "owner".to_owned(),
        what: "test".to_owned(),
        request: None,
        details: "x".repeat(17 << 20),
    };
    let refused = handle.record(vec![Fact::AuditLine(line)]).await;
    assert!(
        matches!(
            refused,
            Err(LedgerError::Unrecordable(Unrecordable::TooLarge { .. }))
        ),
        "{refused:?}"
    );
}
