//! stub until main has it

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use turnkeep_ledger::config::Person;
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::ids::{Name, TokenId};
use turnkeep_ledger::{Code, Config, Fault, Principal, World};
use turnkeep_store::Refusal;
use turnkeep_types::{ContextId, Timestamp};

#[derive(Default)]
pub(crate) struct Worlds(RwLock<BTreeMap<String, Arc<Room>>>);

pub(crate) struct Room {
    name: Name,
    world: RwLock<World>,
    changed: watch::Sender<u32>,
}

pub(crate) struct Answer {
    pub(crate) rejected: bool,
    pub(crate) body: Bytes,
    pub(crate) replayed: bool,
    pub(crate) input_ignored: bool,
}

#[derive(Debug)]
pub(crate) enum LedgerError {
    Fault(Fault),
    Refusal(Refusal),
}

impl Worlds {
    pub(crate) fn get(&self, world: &str) -> Option<Arc<Room>> {
        self.0.read().unwrap().get(world).cloned()
    }
    pub(crate) fn list(&self) -> Vec<Arc<Room>> {
        self.0.read().unwrap().values().cloned().collect()
    }
    pub(crate) async fn create(&self, config: Config, persons: Vec<Person>) -> Result<Arc<Room>, LedgerError> {
        let name = config.world.clone();
        let mut world = World::new(config);
        for person in persons {
            world.apply(Fact::Person(person));
        }
        let room = Arc::new(Room { name: name.clone(), world: RwLock::new(world), changed: watch::channel(0).0 });
        let mut rooms = self.0.write().unwrap();
        if rooms.contains_key(name.as_str()) {
            return Err(LedgerError::Fault(Fault::new(Code::NameTaken, "world_id", "there is a world of this name")));
        }
        rooms.insert(name.to_string(), Arc::clone(&room));
        Ok(room)
    }
    pub(crate) async fn fork(&self, _origin: &Room, _world: Name, _at: Option<u32>) -> Result<Arc<Room>, LedgerError> {
        Err(LedgerError::Refusal(Refusal::Closed))
    }
    pub(crate) fn principal_of(&self, secret: &str, now: Timestamp) -> Option<(Arc<Room>, Principal, TokenId)> {
        let hash = *blake3::hash(secret.as_bytes()).as_bytes();
        self.list().into_iter().find_map(|room| {
            let found = room.read(|world| {
                let token = world.tokens().find(|token| token.secret == hash)?;
                if token.expires_at.is_some_and(|end| end <= now) {
                    return None;
                }
                Some((Principal::Person { id: token.person.clone(), write: token.write }, token.id))
            });
            found.map(|(who, id)| (room, who, id))
        })
    }
    pub(crate) fn owner_of(&self, _context: ContextId) -> Option<Arc<Room>> {
        None
    }
}

impl Room {
    pub(crate) fn name(&self) -> &Name {
        &self.name
    }
    pub(crate) fn read<T>(&self, f: impl FnOnce(&World) -> T) -> T {
        f(&self.world.read().unwrap())
    }
    pub(crate) async fn invoke(&self, _who: &Principal, _body: Value) -> Result<Answer, LedgerError> {
        Err(LedgerError::Refusal(Refusal::Closed))
    }
    pub(crate) async fn beat(
        &self,
        _who: &Principal,
        _envelope: Value,
        _bundle: Value,
        _expected_cursor: Option<String>,
    ) -> Result<Answer, LedgerError> {
        Err(LedgerError::Refusal(Refusal::Closed))
    }
    pub(crate) async fn record(&self, facts: Vec<Fact>) -> Result<(), LedgerError> {
        let mut world = self.world.write().unwrap();
        facts.into_iter().for_each(|fact| world.apply(fact));
        Ok(())
    }
    pub(crate) fn changed(&self) -> watch::Receiver<u32> {
        self.changed.subscribe()
    }
}
