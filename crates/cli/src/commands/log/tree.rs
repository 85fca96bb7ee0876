//! `--graph`: draws all contexts that share history, as branches.
//!
//! Two contexts share history exactly if they have the same first turn. The binary protocol returns
//! that turn by its depth, without walking and without payloads, so the command reads no content of
//! contexts that are not drawn. Turns are then drawn newest first. That order has every child
//! before its parent, because a child's id is greater. Pages of ancestors are fetched as needed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use serde_json::Value;
use turnkeep_client::message::{GetRange, ReadOptions};
use turnkeep_client::{Client, Error, ErrorCode};
use turnkeep_types::{ContextId, TurnId};

use super::super::App;
use super::super::ctx::{self, WorldContexts};
use super::super::show::fetch_turn;
use super::{LogArgs, PAGE_TURNS, Page, PageView, TurnPrinter, earlier_turn, fetch_page};
use crate::answer::text_of;
use crate::failure::ProblemsReported;
use crate::http::{Gap, Http, HttpRefusal};
use crate::output::Output;
use crate::render::graph::Graph;
use crate::render::turn::ShownTurn;
use crate::session::StoreSession;

/// The most contexts that are looked at, newest first.
const CONTEXTS_MAX: usize = 100_000;

pub(super) async fn show_graph(
    session: &mut StoreSession,
    args: &LogArgs,
    app: &mut App,
) -> Result<()> {
    let client = session.binary_client().await?;
    let heads = related_heads(&mut session.http, &client, args.context.0).await?;
    let mut turns = TurnsBelowHeads::new(&heads, PageView::for_output(&app.out));
    let mut drawing = Drawing {
        graph: Graph::default(),
        printer: TurnPrinter::new(args.oneline),
    };
    let mut has_gaps = false;
    for _ in 0..args.limit.unwrap_or(u64::MAX) {
        match turns.next_turn(&mut session.http).await? {
            Some(NextTurn::Turn(turn)) => drawing.draw_turn(&turn, &heads, &mut app.out)?,
            Some(NextTurn::Lost(gap)) => {
                has_gaps = true;
                let earlier = earlier_turn(&mut session.http, &gap).await?;
                drawing.draw_gap(&gap, earlier.as_ref(), &mut app.out)?;
            }
            None => break,
        }
    }
    if has_gaps {
        return Err(ProblemsReported.into());
    }
    Ok(())
}

/// The lines of the graph and the text beside them.
struct Drawing {
    graph: Graph,
    printer: TurnPrinter,
}

impl Drawing {
    fn draw_turn(&mut self, turn: &Value, heads: &Heads, out: &mut Output) -> Result<()> {
        let Some(id) = turn_id_in(turn, "turn_id") else {
            return Ok(());
        };
        let margin = self.graph.draw_turn(id, turn_id_in(turn, "parent_turn_id"));
        let contexts = heads.get(&id).into_iter().flatten();
        let names: Vec<String> = contexts.map(|context| format!("ctx:{context}")).collect();
        let shown = ShownTurn {
            turn,
            heads: &names,
        };
        self.printer.print_turn(&shown, Some(&margin), out)
    }

    fn draw_gap(&mut self, gap: &Gap, earlier: Option<&Value>, out: &mut Output) -> Result<()> {
        let margin = self.graph.draw_turn(gap.turn, gap.earlier);
        self.printer.print_gap(gap, earlier, Some(&margin), out)
    }
}

/// The contexts with the same root as the given one, by the turns at their heads.
type Heads = BTreeMap<TurnId, BTreeSet<ContextId>>;

async fn related_heads(http: &mut Http, client: &Client, context: ContextId) -> Result<Heads> {
    let mut heads = Heads::new();
    let root = fetch_root(client, context).await?;
    let listed = ctx::fetch_contexts(http, None, WorldContexts::Listed, CONTEXTS_MAX).await?;
    if listed.is_cut {
        eprintln!(
            "only the newest {CONTEXTS_MAX} contexts are looked at: older branches are not drawn"
        );
    }
    for other in listed.contexts {
        let id = text_of(&other, "context_id").parse();
        // An empty context has no head, and nothing to draw.
        let (Ok(id), Some(head)) = (id, turn_id_in(&other, "head_turn_id")) else {
            continue;
        };
        // A context without a readable root shares history with no other, but is drawn itself.
        if id == context || (root.is_some() && fetch_root(client, id).await? == root) {
            heads.entry(head).or_default().insert(id);
        }
    }
    Ok(heads)
}

/// The first turn on a context's path; none for an empty context, or if it cannot be reached
/// because history breaks off.
async fn fetch_root(client: &Client, context: ContextId) -> Result<Option<TurnId>> {
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

fn turn_id_in(value: &Value, name: &str) -> Option<TurnId> {
    text_of(value, name).parse().ok()
}

/// What comes next in the drawing.
enum NextTurn {
    Turn(Value),
    /// The turn was lost to damage.
    Lost(Gap),
}

/// The turns below some heads, newest first, each once.
struct TurnsBelowHeads {
    /// Turns to show, with a context through which they can be reached.
    waiting: BTreeMap<TurnId, ContextId>,
    fetched: HashMap<TurnId, Value>,
    /// Lost turns that some page ran into, with all that is known about them.
    gaps: HashMap<TurnId, Gap>,
    view: PageView,
}

impl TurnsBelowHeads {
    fn new(heads: &Heads, view: PageView) -> Self {
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

    async fn next_turn(&mut self, http: &mut Http) -> Result<Option<NextTurn>> {
        let Some((id, context)) = self.waiting.pop_last() else {
            return Ok(None);
        };
        if !self.fetched.contains_key(&id)
            && let Some(gap) = self.fetch_head(http, id, context).await?
        {
            // A page may have told more about the gap than the request for the turn itself.
            let gap = self.gaps.get(&id).copied().unwrap_or(gap);
            self.waiting
                .extend(gap.earlier.map(|earlier| (earlier, context)));
            return Ok(Some(NextTurn::Lost(gap)));
        }
        let Some(turn) = self.fetched.remove(&id) else {
            return Ok(None);
        };
        if let Some(parent) = turn_id_in(&turn, "parent_turn_id") {
            // Another branch may have named the same parent before.
            self.waiting.entry(parent).or_insert(context);
            if !self.fetched.contains_key(&parent) {
                self.fetch_before(http, id, context).await?;
            }
        }
        Ok(Some(NextTurn::Turn(turn)))
    }

    /// Fetches a head and the turns before it. Returns a gap if the head itself is lost.
    async fn fetch_head(
        &mut self,
        http: &mut Http,
        id: TurnId,
        context: ContextId,
    ) -> Result<Option<Gap>> {
        let newest = fetch_page(http, self.view, &context.to_string(), None, PAGE_TURNS).await;
        self.keep_page(newest)?;
        // The head may have moved since it was listed; then the page ends with another turn.
        if self.fetched.contains_key(&id) {
            return Ok(None);
        }
        match fetch_turn(http, &id.to_string()).await {
            Ok(turn) => self.keep_turns(vec![turn]),
            Err(error) => return HttpRefusal::lost_turn(&error).map(Some).ok_or(error),
        }
        Ok(None)
    }

    async fn fetch_before(
        &mut self,
        http: &mut Http,
        id: TurnId,
        context: ContextId,
    ) -> Result<()> {
        let (context, before) = (context.to_string(), id.to_string());
        let older = fetch_page(http, self.view, &context, Some(&before), PAGE_TURNS).await;
        self.keep_page(older)
    }

    /// Keeps the turns of a page. A page that runs into a lost turn fails as a whole; the gap is
    /// remembered and drawn when the walk arrives there.
    fn keep_page(&mut self, page: Result<Page>) -> Result<()> {
        match page {
            Ok(page) => self.keep_turns(page.turns),
            Err(error) => {
                let gap = HttpRefusal::lost_turn(&error).ok_or(error)?;
                let known = self.gaps.entry(gap.turn).or_insert(gap);
                known.earlier = known.earlier.or(gap.earlier);
                known.depth = known.depth.or(gap.depth);
            }
        }
        Ok(())
    }

    fn keep_turns(&mut self, turns: Vec<Value>) {
        let turns = turns
            .into_iter()
            .filter_map(|turn| Some((turn_id_in(&turn, "turn_id")?, turn)));
        self.fetched.extend(turns);
    }
}
