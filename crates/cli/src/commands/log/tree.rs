//! `--graph`: all contexts that share history, drawn as branches.
//!
//! Two contexts share history exactly if they have the same root, which the binary protocol gives
//! by depth at no cost of walking, and without payloads: so nothing of a world is read to find out
//! that it has no part in the drawing. Then turns are shown newest first, which is also children
//! first, because a child's id is greater than its parent's; pages of ancestors are fetched as
//! needed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use serde_json::Value;
use turnkeep_client::message::{GetRange, ReadOptions};
use turnkeep_client::{Client, Error, ErrorCode};
use turnkeep_types::{ContextId, TurnId};

use super::super::App;
use super::super::ctx::{self, Worlds};
use super::super::show::fetch_turn;
use super::{Args, PAGE_TURNS, Page, Printer, View, earlier_turn, page};
use crate::failure::Unsound;
use crate::http::{Gap, Http, Refused};
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
    let mut is_whole = true;
    while let Some(next) = turns.next(&mut session.http).await?.filter(|_| left > 0) {
        left -= 1;
        let turn = match next {
            Next::Turn(turn) => turn,
            Next::Lost(gap) => {
                is_whole = false;
                let margin = graph.turn(gap.turn, gap.earlier);
                let earlier = earlier_turn(&mut session.http, &gap).await?;
                printer.lost(&gap, earlier.as_ref(), Some(&margin), &mut app.out)?;
                continue;
            }
        };
        let Some(id) = id_of(&turn, "turn_id") else {
            break;
        };
        let margin = graph.turn(id, id_of(&turn, "parent_turn_id"));
        let names: Vec<String> = heads
            .get(&id)
            .into_iter()
            .flatten()
            .map(|id| format!("ctx:{id}"))
            .collect();
        printer.turn(
            &ShownTurn {
                turn: &turn,
                heads: &names,
            },
            Some(&margin),
            &mut app.out,
        )?;
    }
    if is_whole {
        Ok(())
    } else {
        Err(Unsound.into())
    }
}

/// The contexts with the same root as the given one, by the turns at their heads.
type Heads = BTreeMap<TurnId, BTreeSet<ContextId>>;

async fn related_heads(http: &mut Http, client: &Client, context: ContextId) -> Result<Heads> {
    let mut heads = Heads::new();
    let root = root_of(client, context).await?;
    let listed = ctx::fetch_contexts(http, None, Worlds::Listed, CONTEXTS_MAX).await?;
    if listed.is_cut {
        eprintln!(
            "only the newest {CONTEXTS_MAX} contexts are looked at: older branches are not drawn"
        );
    }
    for other in listed.contexts {
        let (Ok(id), Some(head)) = (
            text_of(&other, "context_id").parse(),
            id_of(&other, "head_turn_id"),
        ) else {
            continue;
        };
        if id == context || (root.is_some() && root_of(client, id).await? == root) {
            heads.entry(head).or_default().insert(id);
        }
    }
    Ok(heads)
}

/// The first turn on a context's path; none for an empty context, or if it cannot be reached
/// because history breaks off.
async fn root_of(client: &Client, context: ContextId) -> Result<Option<TurnId>> {
    let get = GetRange {
        context,
        start_depth: 0,
        limit: 1,
        options: ReadOptions::default(),
    };
    match client.range(get).await {
        Ok(items) => Ok(items.first().map(|item| item.turn)),
        Err(Error::Server(refused)) if refused.code == Some(ErrorCode::Corrupt) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn id_of(value: &Value, name: &str) -> Option<TurnId> {
    text_of(value, name).parse().ok()
}

/// What comes next in the drawing.
enum Next {
    Turn(Value),
    /// This one is gone.
    Lost(Gap),
}

/// The turns below some heads, newest first, each once.
struct Turns {
    /// Turns to show, with a context through which they can be reached.
    waiting: BTreeMap<TurnId, ContextId>,
    fetched: HashMap<TurnId, Value>,
    /// Lost turns that were met, with what is known about them.
    gaps: HashMap<TurnId, Gap>,
    view: View,
}

impl Turns {
    fn new(heads: &Heads, view: View) -> Self {
        let waiting = heads
            .iter()
            .filter_map(|(turn, contexts)| Some((*turn, *contexts.first()?)));
        Self {
            waiting: waiting.collect(),
            fetched: HashMap::new(),
            gaps: HashMap::new(),
            view,
        }
    }

    async fn next(&mut self, http: &mut Http) -> Result<Option<Next>> {
        let Some((id, context)) = self.waiting.pop_last() else {
            return Ok(None);
        };
        if !self.fetched.contains_key(&id)
            && let Some(gap) = self.fetch(http, id, context).await?
        {
            let gap = self.gaps.get(&id).copied().unwrap_or(gap);
            self.waiting
                .extend(gap.earlier.map(|earlier| (earlier, context)));
            return Ok(Some(Next::Lost(gap)));
        }
        let Some(turn) = self.fetched.remove(&id) else {
            return Ok(None);
        };
        if let Some(parent) = id_of(&turn, "parent_turn_id") {
            self.waiting.entry(parent).or_insert(context);
            if !self.fetched.contains_key(&parent) {
                self.fetch_before(http, id, context).await?;
            }
        }
        Ok(Some(Next::Turn(turn)))
    }

    /// A head and what is before it, or that it is lost. The head may have moved since it was
    /// listed.
    async fn fetch(
        &mut self,
        http: &mut Http,
        id: TurnId,
        context: ContextId,
    ) -> Result<Option<Gap>> {
        let newest = page(http, self.view, &context.to_string(), None, PAGE_TURNS).await;
        self.keep_page(newest)?;
        if self.fetched.contains_key(&id) {
            return Ok(None);
        }
        match fetch_turn(http, &id.to_string()).await {
            Ok(turn) => self.keep(vec![turn]),
            Err(error) => return Refused::lost_turn(&error).map(Some).ok_or(error),
        }
        Ok(None)
    }

    async fn fetch_before(
        &mut self,
        http: &mut Http,
        id: TurnId,
        context: ContextId,
    ) -> Result<()> {
        let older = page(
            http,
            self.view,
            &context.to_string(),
            Some(&id.to_string()),
            PAGE_TURNS,
        )
        .await;
        self.keep_page(older)
    }

    /// Keeps a page; where one would begin with a lost turn, that is found when its turn comes.
    fn keep_page(&mut self, page: Result<Page>) -> Result<()> {
        match page {
            Ok(page) => self.keep(page.turns),
            Err(error) => {
                let gap = Refused::lost_turn(&error).ok_or(error)?;
                let known = self.gaps.entry(gap.turn).or_insert(gap);
                known.earlier = known.earlier.or(gap.earlier);
                known.depth = known.depth.or(gap.depth);
            }
        }
        Ok(())
    }

    fn keep(&mut self, turns: Vec<Value>) {
        let turns = turns
            .into_iter()
            .filter_map(|turn| Some((id_of(&turn, "turn_id")?, turn)));
        self.fetched.extend(turns);
    }
}
