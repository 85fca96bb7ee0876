use std::net::SocketAddr;
use std::pin::pin;

use turnkeep_journal::MemoryStorage;
use turnkeep_store::{Options, Store};
use turnkeep_types::broker::TurnInfo;
use turnkeep_types::{ManualClock, Timestamp, TurnId};

use super::*;
use crate::config::ServerConfig;
use crate::memory::MemoryPermit;
use crate::run::{BoundAddrs, build_shared};
use crate::stopped_time::StoppedTime;

/// A keeper over a store in memory.
struct Harness {
    store: Store,
    keeper: StoreKeeper,
}

impl Harness {
    fn start() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(1)));
        let options = Options::default();
        let disk = Arc::new(MemoryStorage::new());
        let store = Store::open(disk, &options, Arc::<ManualClock>::clone(&clock)).unwrap();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let addrs = BoundAddrs {
            tcp: nowhere,
            http: nowhere,
        };
        let shared = build_shared(ServerConfig::default(), store.clone(), clock, addrs).unwrap();
        let keeper = StoreKeeper::new(shared);
        Self { store, keeper }
    }

    async fn keep(&self, turn: &FoundTurn) -> Stored {
        self.keeper.keep_turn(turn).await.unwrap()
    }

    /// The turns of a context, from the first on.
    fn turns_of(&self, context: ContextId) -> Vec<TurnId> {
        let turns = self.keeper.shared.store.last_turns(context, 100).unwrap();
        turns.iter().map(|turn| turn.id).collect()
    }

    /// Takes the whole memory budget, so that a large turn has to wait.
    fn take_memory(&self) -> MemoryPermit {
        self.keeper.shared.memory.try_acquire(usize::MAX).unwrap()
    }

    /// Waits until the store has done everything that was submitted before: its writer keeps the
    /// order of submission.
    async fn let_writer_finish(&self) {
        self.keep(&turn("other", 1, 1)).await;
    }
}

fn turn(session: &str, number: u32, bytes: usize) -> FoundTurn {
    FoundTurn {
        info: TurnInfo {
            turn_id: format!("{session}:{number}"),
            ..TurnInfo::default()
        },
        session: session.to_owned(),
        content: vec![b'x'; bytes].into(),
        ..FoundTurn::default()
    }
}

/// Polls a future once and expects that it is not ready.
async fn begin(future: std::pin::Pin<&mut impl Future>) {
    let mut future = Some(future);
    std::future::poll_fn(|context| {
        let is_pending = future
            .take()
            .is_none_or(|future| future.poll(context).is_pending());
        assert!(is_pending, "the turn was kept at once");
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_turn_waits_for_the_earlier_turns_of_its_session() {
    let harness = Harness::start();
    let first = harness.keep(&turn("s", 1, 1)).await;
    let (large, small) = (turn("s", 2, LARGE_FROM_BYTES), turn("s", 3, 1));
    let memory = harness.take_memory();
    let mut keep_large = pin!(harness.keeper.keep_turn(&large));
    begin(keep_large.as_mut()).await;
    let mut keep_small = pin!(harness.keeper.keep_turn(&small));
    begin(keep_small.as_mut()).await;
    harness.let_writer_finish().await;
    assert_eq!(
        harness.turns_of(first.context),
        [first.turn],
        "the small turn overtook the large one"
    );
    drop(memory);
    let second = keep_large.await.unwrap();
    let third = keep_small.await.unwrap();
    assert_eq!(
        harness.turns_of(first.context),
        [first.turn, second.turn, third.turn]
    );
    harness.store.close();
}

#[tokio::test]
async fn a_refused_turn_fails_with_the_turns_that_wait_behind_it() {
    let time = StoppedTime::begin();
    let harness = Harness::start();
    let first = harness.keep(&turn("s", 1, 1)).await;
    let (large, small) = (turn("s", 2, LARGE_FROM_BYTES), turn("s", 3, 1));
    let memory = harness.take_memory();
    let mut keep_large = pin!(harness.keeper.keep_turn(&large));
    begin(keep_large.as_mut()).await;
    let mut keep_small = pin!(harness.keeper.keep_turn(&small));
    begin(keep_small.as_mut()).await;
    harness.let_writer_finish().await;
    time.advance(harness.keeper.shared.config.timeouts.memory * 2)
        .await;
    let refusal = keep_large.await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::TooManyRequests);
    assert_eq!(
        keep_small.await.unwrap_err().to_string(),
        "a turn before this one was refused: keep them again, in their order"
    );
    drop(memory);
    let second = harness.keep(&large).await;
    let third = harness.keep(&small).await;
    assert_eq!(
        harness.turns_of(first.context),
        [first.turn, second.turn, third.turn]
    );
    harness.store.close();
}
