//! Random beats against a reference that is a page long, over a disk that breaks off at random:
//! answered beats stay, rejected ones leave nothing, and every reader sees the same as in the
//! reference.

mod plan;
mod reference;

use bytes::Bytes;
use turnkeep_journal::{Fault as DiskFault, FaultyStorage};
use turnkeep_ledger::cursor;

use self::plan::{Dice, OPERATOR, Plan};
use self::reference::{READERS, Reference, Told};
use super::*;

/// How many random worlds are tried: `TURNKEEP_MODEL_WORLDS`, else 24.
fn worlds() -> u64 {
    std::env::var("TURNKEEP_MODEL_WORLDS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(24)
}

const STEPS: usize = 60;
/// The disk breaks off at most so many operations after it was last started.
const OPERATIONS_MAX: usize = 40;

/// A request as it was sent, and what came of it.
struct Done {
    who: &'static str,
    sent: Sent,
    body: Bytes,
    rejected: bool,
}

#[derive(Debug, Clone)]
struct Sent {
    envelope: Value,
    bundle: Option<Value>,
    expected: Option<String>,
}

fn principal(who: &str) -> Principal {
    if who == OPERATOR {
        Principal::Owner
    } else {
        person(who)
    }
}

fn viewer(who: &str) -> Viewer {
    if who == "PUBLIC" {
        Viewer::Public
    } else {
        Viewer::Reader(Name::new(who).unwrap())
    }
}

async fn send(
    handle: &Arc<WorldHandle>,
    who: &str,
    sent: &Sent,
) -> Result<LedgerAnswer, LedgerError> {
    let Sent {
        envelope,
        bundle,
        expected,
    } = sent.clone();
    match bundle {
        Some(bundle) => {
            handle
                .beat(&principal(who), envelope, bundle, expected, None)
                .await
        }
        None => handle.invoke(&principal(who), envelope).await,
    }
}

/// What became of a trial, so that a run that tried nothing is seen.
#[derive(Debug, Default)]
struct Tally {
    committed: usize,
    rejected: usize,
    refused: usize,
    replayed: usize,
    crashes: usize,
    together: usize,
    hidden: usize,
}

struct Trial {
    seed: u64,
    dice: Dice,
    reference: Reference,
    disk: FaultyStorage,
    house: House,
    /// The wall's clock.
    now: i64,
    done: Vec<Done>,
    item_ids: Vec<String>,
    made: usize,
    /// An id whose request was refused, and which is free therefore.
    free: Option<String>,
    tally: Tally,
}

fn start(disk: &FaultyStorage, now: i64) -> Option<House> {
    let house = super::faults::try_open(disk.clone())?;
    house.clock.set(Timestamp(u64::try_from(now).unwrap()));
    Some(house)
}

impl Trial {
    async fn new(seed: u64) -> Self {
        let mut dice = Dice::of(seed);
        let now = i64::try_from(NOW.0).unwrap();
        let disk = FaultyStorage::new(None);
        let house = start(&disk, now).unwrap();
        let steps = dice.once_in(2);
        let persons = json!([
            { "person_id": "PLANNER" }, { "person_id": "CODER", "display_label": "Carla the coder" },
            { "person_id": "REVIEWER" },
        ]);
        let clock = if steps { "STEP" } else { "WALL" };
        house
            .world(json!({ "world_id": "w", "clock": clock, "registry": "CLOSED", "persons": persons }))
            .await;
        Self {
            seed,
            reference: Reference::new(steps, now),
            dice,
            disk,
            house,
            now,
            done: Vec::new(),
            item_ids: Vec::new(),
            made: 0,
            free: None,
            tally: Tally::default(),
        }
    }

    fn handle(&self) -> Arc<WorldHandle> {
        self.house.worlds.get("w").unwrap()
    }

    fn new_id(&mut self) -> String {
        self.made += 1;
        self.free
            .take()
            .unwrap_or_else(|| format!("r-{}", self.made))
    }

    /// The power fails, and only synced data is left. The next failure comes later, or never.
    fn crash(&mut self) {
        self.tally.crashes += 1;
        let faults = [
            DiskFault::Crash,
            DiskFault::TornWrite,
            DiskFault::TornWriteBackwards,
            DiskFault::FailedSync,
            DiskFault::NoSpace,
        ];
        let next = (
            self.dice.below(OPERATIONS_MAX) as u64,
            self.dice.one(&faults),
        );
        let files = self.disk.crash().files();
        self.disk = FaultyStorage::with_files(files, (!self.dice.once_in(8)).then_some(next));
        if let Some(house) = start(&self.disk, self.now) {
            self.house = house;
        } else {
            self.disk = FaultyStorage::with_files(self.disk.crash().files(), None);
            self.house = start(&self.disk, self.now).unwrap();
        }
    }

    /// Sends until there is an answer: a caller whose server breaks off asks again.
    async fn insist(&mut self, who: &str, sent: &Sent) -> Result<LedgerAnswer, Code> {
        for _ in 0..8 {
            match send(&self.handle(), who, sent).await {
                Ok(answer) => return Ok(answer),
                Err(LedgerError::Fault(fault)) => return Err(fault.code),
                Err(_) => self.crash(),
            }
        }
        panic!("seed {}: no answer to {sent:?}", self.seed);
    }

    fn cursor(&self, who: &str, place: u64) -> String {
        self.handle()
            .read(|world| cursor::write(&world.view(viewer(who)), place))
    }

    fn sent(&mut self, plan: &Plan) -> Sent {
        let beyond = self.reference.commit(self.now, plan.declared)
            + self.dice.one(&[61_000, 86_400_000])
            // Before the world's time is out of reach, too.
            - if self.dice.once_in(3) { 100_000_000 } else { 0 };
        Sent {
            envelope: plan.envelope(
                self.dice.once_in(2),
                plan.from.map(|place| self.cursor(plan.who, place)),
            ),
            bundle: plan.bundle(&self.item_ids, beyond),
            expected: plan.expected.map(|place| self.cursor(plan.who, place)),
        }
    }

    /// One request, which the reference answers too.
    async fn beat(&mut self) {
        let id = self.new_id();
        let plan = Plan::any(&mut self.dice, id, &self.reference, self.now);
        let sent = self.sent(&plan);
        let answer = self.insist(plan.who, &sent).await;
        self.compare(&plan, sent, answer);
    }

    fn compare(&mut self, plan: &Plan, sent: Sent, answer: Result<LedgerAnswer, Code>) {
        let wanted = self.reference.take(plan, self.now);
        let context = format!("seed {}, {plan:?}, {sent:?}", self.seed);
        match (wanted, answer) {
            (Err(wanted), Err(code)) => {
                assert_eq!(code.word(), wanted, "{context}");
                self.tally.refused += 1;
                self.free = Some(plan.id.clone());
            }
            (Ok(wanted), Ok(answer)) => self.agree(plan, sent, &wanted, answer, &context),
            (wanted, answer) => panic!("{context}: {wanted:?}, but {answer:?}"),
        }
    }

    fn agree(
        &mut self,
        plan: &Plan,
        sent: Sent,
        wanted: &Told,
        answer: LedgerAnswer,
        context: &str,
    ) {
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        let projection = if plan.offer.is_some() {
            &body["projection"]
        } else {
            &body
        };
        assert_eq!(
            self.observed(plan.who, projection),
            wanted.shown,
            "{context}"
        );
        assert_eq!(projection["debug"]["wrote"], wanted.wrote, "{context}");
        assert_eq!(
            projection["debug"]["bundle_id"].is_string(),
            wanted.wrote,
            "{context}"
        );
        assert_eq!(
            answer.rejected,
            wanted.rejected.is_some(),
            "{context}: {body}"
        );
        if let Some(code) = wanted.rejected {
            let reason = body["bundle"]["rejection"]["reason"].as_str().unwrap();
            assert_eq!(reason.split(':').next(), Some(code), "{context}");
            self.tally.rejected += 1;
        } else {
            let bundle = &body["bundle"];
            let items = bundle["pocket_items"].as_array().into_iter().flatten();
            self.item_ids
                .extend(items.map(|item| item["item_id"].as_str().unwrap().to_owned()));
            let entries = bundle["entries"].as_array().map(Vec::len);
            assert_eq!(
                entries.unwrap_or(wanted.lines.len()),
                wanted.lines.len(),
                "{context}: {bundle}"
            );
            self.tally.committed += usize::from(!wanted.lines.is_empty());
            self.tally.hidden += usize::from(!wanted.lines.is_empty() && !wanted.wrote);
        }
        assert_eq!(self.item_ids.len(), self.reference.items(), "{context}");
        self.done.push(Done {
            who: plan.who,
            sent,
            body: answer.body,
            rejected: answer.rejected,
        });
    }

    /// A projection in the reference's words.
    fn observed(&self, who: &str, projection: &Value) -> Value {
        let handle = self.handle();
        let number = |id: &Value| {
            let id = id.as_str().unwrap();
            handle
                .read(|world| {
                    world
                        .all_entries()
                        .iter()
                        .position(|entry| entry.id.to_string() == id)
                })
                .unwrap()
        };
        let time = |text: &Value| {
            text.as_str()
                .map(|text| WorldTime::parse(text).unwrap().unix_ms())
        };
        let list = |value: &Value, each: &dyn Fn(&Value) -> Value| -> Value {
            value.as_array().unwrap().iter().map(each).collect()
        };
        let line = |entry: &Value| {
            let number = number(&entry["entry_id"]);
            let shown = &entry["created_at_world"];
            let given = self.reference.given(number).map(|_| shown);
            json!([
                number,
                time(shown),
                given,
                entry["channel"],
                entry["author_label"],
                entry["text"]
            ])
        };
        let (stream, pocket) = (&projection["stream"], &projection["pocket"]);
        let after = stream["cursor_after"].as_str();
        let after = after.map_or(Some(0), |after| {
            (0..=1000).find(|place| self.cursor(who, *place) == after)
        });
        json!({
            "lines": list(&stream["entries"], &line),
            "after": after,
            "calendar": list(&pocket["calendar"]["items"], &|item| {
                json!([item["title"], time(&item["time"]), number(&item["entry_id"])])
            }),
            "messages": list(&pocket["messages"]["items"], &|item| {
                json!([item["from"], item["text"], time(&item["time"]), number(&item["entry_id"])])
            }),
            "time": time(&pocket["clock"]["world_time"]),
            "zone": pocket["clock"]["timezone"],
        })
    }

    /// Everybody looks, by a request that reads; its id, its words and the clock stay as they were.
    async fn look(&mut self) {
        let handle = self.handle();
        for who in READERS.into_iter().filter(|who| *who != "PUBLIC") {
            let count = self.reference.count(who);
            let from = self
                .dice
                .once_in(2)
                .then(|| self.dice.below(usize::try_from(count).unwrap() + 1) as u64);
            let words = if who == OPERATOR { "not heard" } else { "" };
            let mut envelope = envelope(&format!("r-{}", self.dice.below(self.made + 2)), words);
            envelope["mode"]["kind"] = "NO_OP".into();
            envelope["ui"] = json!({ "stream_cursor": from.map(|place| self.cursor(who, place)) });
            let answer = handle.invoke(&principal(who), envelope).await.unwrap();
            let shown: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(answer.input_ignored, who == OPERATOR);
            let wanted = self.reference.shown(who, from.unwrap_or(0));
            assert_eq!(
                self.observed(who, &shown),
                wanted,
                "seed {}, {who} from {from:?}",
                self.seed
            );
        }
        assert_eq!(
            texts(&handle, Viewer::Public).len() as u64,
            self.reference.count("PUBLIC")
        );
        assert_eq!(all(&handle), self.reference.texts(), "seed {}", self.seed);
    }

    /// An earlier request comes again: as it was, with other words, or from somebody else.
    async fn again(&mut self) {
        if self.done.is_empty() {
            return;
        }
        let number = self.dice.below(self.done.len());
        let (who, sent) = (self.done[number].who, self.done[number].sent.clone());
        let id = sent.envelope["request_id"].as_str().unwrap().to_owned();
        let other = |who: &str| Sent {
            envelope: envelope(&id, ""),
            bundle: Some(bundle(
                &id,
                if who == OPERATOR { "CODER" } else { who },
                &[],
                "something else",
            )),
            expected: None,
        };
        match self.dice.below(4) {
            0 => assert_eq!(
                self.insist(who, &other(who)).await.unwrap_err(),
                Code::RequestIdReused
            ),
            1 => {
                let somebody = self.dice.one(&[OPERATOR, "PLANNER", "CODER"]);
                if somebody != who {
                    let refused = self.insist(somebody, &other(somebody)).await;
                    assert_eq!(
                        refused.unwrap_err(),
                        Code::RequestIdForeign,
                        "seed {}",
                        self.seed
                    );
                }
            }
            _ => {
                let answer = self.insist(who, &sent).await.unwrap();
                let done = &self.done[number];
                assert!(answer.replayed, "seed {}, {sent:?}", self.seed);
                assert_eq!(
                    (&answer.body, answer.rejected),
                    (&done.body, done.rejected),
                    "seed {}",
                    self.seed
                );
                self.tally.replayed += 1;
            }
        }
    }

    /// Several requests at once, one of them twice; the reference takes them in the order of the
    /// ledger.
    async fn together(&mut self) {
        let mut plans = Vec::new();
        for _ in 0..2 + self.dice.below(4) {
            let id = self.new_id();
            plans.push(Plan::plain(&mut self.dice, id));
        }
        let sent: Vec<_> = plans.iter().map(|plan| self.sent(plan)).collect();
        let doubled = plans
            .iter()
            .zip(&sent)
            .chain(plans.iter().zip(&sent).take(1));
        let tasks: Vec<_> = doubled
            .map(|(plan, sent)| {
                let (handle, who, sent) = (self.handle(), plan.who, sent.clone());
                tokio::spawn(async move { send(&handle, who, &sent).await })
            })
            .collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        for (number, answer) in answers.iter_mut().enumerate() {
            if answer.is_err() {
                let number = number % plans.len();
                *answer = Ok(self.insist(plans[number].who, &sent[number]).await.unwrap());
            }
        }
        let twice = answers.pop().unwrap().unwrap();
        assert_eq!(
            twice.body,
            answers[0].as_ref().unwrap().body,
            "seed {}",
            self.seed
        );
        let order: Vec<String> = self.handle().read(|world| {
            world.all_entries()[self.reference.len()..]
                .iter()
                .map(|entry| entry.request.to_string())
                .collect()
        });
        let mut all: Vec<_> = plans.into_iter().zip(sent).zip(answers).collect();
        all.sort_by_key(|((plan, _), _)| order.iter().position(|id| *id == plan.id));
        for ((plan, sent), answer) in all {
            self.compare(&plan, sent, Ok(answer.unwrap()));
        }
        self.tally.together += 1;
    }

    async fn run(mut self) -> Tally {
        for _ in 0..STEPS {
            match self.dice.below(12) {
                0 => self.crash(),
                1 | 2 => self.again().await,
                3 => self.together().await,
                4 => {
                    self.now += 1000 * (i64::try_from(self.dice.below(200)).unwrap() - 20);
                    self.house
                        .clock
                        .set(Timestamp(u64::try_from(self.now).unwrap()));
                }
                5 => self.look().await,
                _ => self.beat().await,
            }
        }
        self.crash();
        self.look().await;
        for number in 0..self.done.len() {
            let (who, sent) = (self.done[number].who, self.done[number].sent.clone());
            let answer = self.insist(who, &sent).await.unwrap();
            assert_eq!(
                answer.body, self.done[number].body,
                "seed {}, {sent:?}",
                self.seed
            );
        }
        self.look().await;
        is_sound(&self.house, &self.handle()).await;
        self.tally
    }
}

#[tokio::test]
async fn e3_random_beats_over_a_failing_disk_agree_with_the_reference() {
    let mut sum = Tally::default();
    for seed in 0..worlds() {
        let tally = Trial::new(seed).await.run().await;
        sum.committed += tally.committed;
        sum.rejected += tally.rejected;
        sum.refused += tally.refused;
        sum.replayed += tally.replayed;
        sum.crashes += tally.crashes;
        sum.together += tally.together;
        sum.hidden += tally.hidden;
    }
    let least = usize::try_from(worlds()).unwrap();
    let tried = [
        sum.committed / 8,
        sum.rejected,
        sum.refused,
        sum.replayed,
        sum.crashes,
        sum.together,
    ];
    assert!(
        tried.iter().all(|count| *count >= least) && sum.hidden > 0,
        "{sum:?}"
    );
}
