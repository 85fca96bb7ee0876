//! Starts with and without a checkpoint, and with a world that cannot be read.

use turnkeep_ledger::checkpoint;
use turnkeep_store::{Append, AppendPart, Command, NewBlob, NewTurn};
use turnkeep_types::TypeRef;

use super::super::worlds::{checkpoint_name, read_checkpoint};
use super::*;

/// Entries of one beat, as many as there may be.
const ENTRIES: usize = 64;

/// A beat of the owner with entries that differ.
async fn flood(handle: &Arc<WorldHandle>, beat: usize) {
    let id = format!("flood-{beat}");
    let mut body = bundle(&id, "PLANNER", &[], "");
    let entry = body["entries"][0].clone();
    let entries = (0..ENTRIES).map(|number| {
        let mut entry = entry.clone();
        entry["text"] = format!(
            "Beat {beat} says number {number} of ticket PAY-{}.",
            beat * 7 + number
        )
        .into();
        entry
    });
    body["entries"] = entries.collect();
    handle
        .beat(&Principal::Owner, envelope(&id, ""), body, None, None)
        .await
        .unwrap();
}

/// The evidence of a world and its index, to the byte.
fn index_of(house: &House) -> Vec<u8> {
    let handle = house.worlds.get("payments").unwrap();
    handle
        .read_with_log(|world, log| checkpoint::encode(world, log, &house.store))
        .flatten()
        .unwrap()
}

fn replace(disk: &MemoryStorage, bytes: &[u8]) {
    let file = disk
        .create(&checkpoint_name(&Name::new("payments").unwrap()), 0)
        .unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
}

#[tokio::test]
async fn p19_a_start_from_a_checkpoint_and_one_from_the_log_give_the_same_world() {
    let (disk, name) = (MemoryStorage::new(), Name::new("payments").unwrap());
    let kept = {
        let house = House::open(disk.clone());
        let handle = house.payments().await;
        for beat in 0..65 {
            flood(&handle, beat).await;
        }
        assert!(
            read_checkpoint(&house.store, &name).is_none(),
            "nothing is kept yet"
        );
        house.worlds.write_checkpoints();
        let kept = index_of(&house);
        // A tail behind the checkpoint, which no later checkpoint covers.
        flood(&handle, 65).await;
        write(&handle, "CODER", "r-1", &["PLANNER"], "only for you")
            .await
            .unwrap();
        kept
    };
    let whole = {
        let house = House::open(disk.clone());
        let checkpoint = read_checkpoint(&house.store, &name).expect("the checkpoint is read");
        assert_eq!(
            checkpoint.len() as usize,
            65 * ENTRIES,
            "the tail came from the log"
        );
        index_of(&house)
    };
    disk.remove(&checkpoint_name(&name)).unwrap();
    assert!(
        index_of(&House::open(disk.clone())) == whole,
        "from the log alone"
    );
    let mut flipped = kept.clone();
    flipped[kept.len() / 2] ^= 1;
    let mut foreign = kept.clone();
    foreign[12] ^= 1;
    for (what, bytes) in [
        ("cut", &kept[..kept.len() - 1]),
        ("flipped", &flipped),
        ("of another store", &foreign),
    ] {
        replace(&disk, bytes);
        let house = House::open(disk.clone());
        assert!(index_of(&house) == whole, "{what}: the world is the log's");
        let anew = read_checkpoint(&house.store, &name).map(|anew| anew.len() as usize);
        assert_eq!(anew, Some(66 * ENTRIES + 1), "{what}: it is made anew");
    }
}

#[tokio::test]
async fn a_checkpoint_of_a_ledger_that_went_on_otherwise_is_not_used() {
    let disk = MemoryStorage::new();
    flood(&House::open(disk.clone()).payments().await, 0).await;
    // A copy of the disk, from which the original then goes on.
    let copy = MemoryStorage::with_files(disk.files());
    let ahead = {
        let house = House::open(disk);
        flood(&house.worlds.get("payments").unwrap(), 1).await;
        index_of(&house)
    };
    for (what, beats) in [
        ("the log ends before it", 0),
        ("the log went on otherwise", 1),
    ] {
        let alone = {
            let house = House::open(copy.clone());
            for beat in 0..beats {
                flood(&house.worlds.get("payments").unwrap(), 1 + beat).await;
            }
            index_of(&house)
        };
        assert!(alone != ahead, "{what}: ids are random");
        replace(&copy, &ahead);
        let house = House::open(copy.clone());
        assert!(index_of(&house) == alone, "{what}");
        let entries = house.worlds.get("payments").unwrap().read(World::position);
        assert_eq!(entries as usize, (1 + beats) * ENTRIES, "{what}");
        drop(house);
        copy.remove(&checkpoint_name(&Name::new("payments").unwrap()))
            .unwrap();
    }
}

#[tokio::test]
async fn a_world_that_cannot_be_read_does_not_stop_the_others() {
    let disk = MemoryStorage::new();
    {
        let house = House::open(disk.clone());
        let handle = house.payments().await;
        say(&handle, "r-1", "Hello.").await.unwrap();
        house.world(json!({ "world_id": "other" })).await;
        let reality = handle.contexts().await.unwrap().reality;
        let payload = NewBlob::from_raw(bytes::Bytes::from_static(b"\x80"), 16).unwrap();
        let declared = TypeRef::new("com.example.Foreign", 1);
        let turns = vec![NewTurn {
            declared,
            encoding: 1,
            payload,
            fs_root: None,
        }];
        let part = AppendPart {
            context: reality,
            parent: None,
            expected_head: None,
            turns,
        };
        let foreign = Command::Append(Append {
            parts: vec![part],
            key: None,
            strict: false,
        });
        house.store.run(foreign).unwrap();
    }
    let house = House::open(disk);
    let refused = house.worlds.find("payments").err().unwrap();
    let error = crate::error::ApiError::from(refused);
    assert_eq!(error.code.status(), 503, "{error}");
    assert!(house.worlds.get("payments").is_none());
    let again = Config::new(
        Name::new("payments").unwrap(),
        turnkeep_ledger::config::Profile::Narrative,
        WorldTime::from_timestamp(NOW),
    );
    assert_eq!(
        code(house.worlds.create(again, Vec::new()).await.err().unwrap()),
        Code::NameTaken
    );
    for name in ["other", "default"] {
        let handle = house.worlds.find(name).unwrap().unwrap();
        say(&handle, "r-1", "Still here.").await.unwrap();
    }
}
