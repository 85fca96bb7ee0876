//! `--graph`: all contexts that share history, drawn as branches.
//!
//! Two contexts share history exactly if they have the same root, which the binary protocol gives by
//! depth at no cost of walking. Then turns are shown newest first, which is also children first,
//! because a child's id is greater than its parent's; pages of ancestors are fetched as needed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use serde_json::Value;
use turnkeep_client::Client;
use turnkeep_client::message::{GetRange, ReadOptions};
use turnkeep_types::{ContextId, TurnId};

use super::super::{App, ctx};
use super::{Args, PAGE_TURNS, Printer, View, page};
use crate::http::Http;
use crate::render::graph::Graph;
use crate::render::turn::{ShownTurn, text_of};
use crate::session::Session;

/// The most contexts that are looked at, newest first.
const CONTEXTS_MAX: usize = 100_000;

pub(super) async fn show(session: &mut Session, args: &Args, app: &mut App) -> Result<()> {
    let client = session.client().await?;
    let heads = related_heads(&mut session.http, &client, args.context.0).await?;
    let mut turns = Turns::new(&heads, View::of(&app.out));
    let mut graph = Graph::default();
    let mut printer = Printer::new(args.oneline);
    let mut left = args.limit.unwrap_or(u64::MAX);
    while let Some(turn) = turns.next(&mut session.http).await?.filter(|_| left > 0) {
        let Some(id) = id_of(&turn, "turn_id") else { break };
        let margin = graph.turn(id, id_of(&turn, "parent_turn_id"));
        let names: Vec<String> = heads.get(&id).into_iter().flatten().map(|id| format!("ctx:{id}")).collect();
        printer.turn(&ShownTurn { turn: &turn, heads: &names }, Some(&margin), &mut app.out)?;
        left -= 1;
    }
    Ok(())
}

/// The contexts with the same root as the given one, by the turns at their heads.
type Heads = BTreeMap<TurnId, BTreeSet<ContextId>>;

async fn related_heads(http: &mut Http, client: &Client, context: ContextId) -> Result<Heads> {
    let mut heads = Heads::new();
    let root = root_of(client, context).await?;
    for other in ctx::all(http, None, CONTEXTS_MAX).await? {
        let (Ok(id), Some(head)) = (text_of(&other, "context_id").parse(), id_of(&other, "head_turn_id"))
        else {
            continue;
        };
        if root.is_some() && (id == context || root_of(client, id).await? == root) {
            heads.entry(head).or_default().insert(id);
        }
    }
    Ok(heads)
}

/// The first turn on a context's path; none for an empty context.
async fn root_of(client: &Client, context: ContextId) -> Result<Option<TurnId>> {
    let get = GetRange { context, start_depth: 0, limit: 1, options: ReadOptions::default() };
    Ok(client.range(get).await?.first().map(|item| item.turn))
}

fn id_of(value: &Value, name: &str) -> Option<TurnId> {
    text_of(value, name).parse().ok()
}

/// The turns below some heads, newest first, each once.
struct Turns {
    /// Turns to show, with a context through which they can be reached.
    waiting: BTreeMap<TurnId, ContextId>,
    fetched: HashMap<TurnId, Value>,
    view: View,
}

impl Turns {
    fn new(heads: &Heads, view: View) -> Self {
        let waiting = heads.iter().filter_map(|(turn, contexts)| Some((*turn, *contexts.first()?)));
        Self { waiting: waiting.collect(), fetched: HashMap::new(), view }
    }

    async fn next(&mut self, http: &mut Http) -> Result<Option<Value>> {
        let Some((id, context)) = self.waiting.pop_last() else { return Ok(None) };
        if !self.fetched.contains_key(&id) {
            self.fetch(http, id, context).await?;
        }
        let turn = self.fetched.remove(&id);
        if let Some(parent) = turn.as_ref().and_then(|turn| id_of(turn, "parent_turn_id")) {
            self.waiting.entry(parent).or_insert(context);
            if !self.fetched.contains_key(&parent) {
                self.fetch_before(http, id, context).await?;
            }
        }
        Ok(turn)
    }

    /// A head and what is before it. The head may have moved since it was listed.
    async fn fetch(&mut self, http: &mut Http, id: TurnId, context: ContextId) -> Result<()> {
        self.keep(page(http, self.view, &context.to_string(), None, PAGE_TURNS).await?.turns);
        if !self.fetched.contains_key(&id) {
            let turn = super::super::show::fetch_turn(http, &id.to_string()).await?;
            self.keep(vec![turn]);
        }
        Ok(())
    }

    async fn fetch_before(&mut self, http: &mut Http, id: TurnId, context: ContextId) -> Result<()> {
        let older = page(http, self.view, &context.to_string(), Some(&id.to_string()), PAGE_TURNS).await?;
        self.keep(older.turns);
        Ok(())
    }

    fn keep(&mut self, turns: Vec<Value>) {
        let turns = turns.into_iter().filter_map(|turn| Some((id_of(&turn, "turn_id")?, turn)));
        self.fetched.extend(turns);
    }
}
