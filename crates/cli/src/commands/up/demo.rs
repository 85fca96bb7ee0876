//! `turnkeep up --demo`: a server with a temporary data directory, filled with things to look at.
//!
//! Everything of a demo lies in one temporary directory, which is removed at the end: the data, the
//! broker's socket, a git repository, and the scripts of the agents. The user's own data,
//! configuration and broker are not touched. The demo fills itself through the public HTTP API with
//! the owner's token, so it shows nothing that another client cannot do.
//!
//! The server answers while the demo is filled. A part that cannot be filled is reported and stops
//! nothing else; the tour, which needs all parts, is then not offered. A demo that is killed leaves
//! its directory behind.

mod agents;
mod directory;
mod history;
mod ledger;
mod repository;
mod team;
mod terminal;

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::Instant;
use turnkeep_wire::json::{Demo, Id};

pub(super) use directory::{DemoDirectory, refuse_options};

use self::ledger::{COMPARED_PERSONS, WORLD};
use self::team::TeamThings;
use self::terminal::DemoTerminal;
use crate::commands::App;
use crate::failure::Failure;
use crate::http::{Http, Target};
use crate::local::LocalServer;

/// Far longer than all parts take on a busy machine. The server lets a browser wait a little longer.
const FILL_TIME_MAX: Duration = Duration::from_secs(100);

/// What was filled, for the tour. A part that failed is missing.
struct FilledDemo {
    context: Option<u64>,
    team: Option<TeamThings>,
    terminal: Option<DemoTerminal>,
}

/// Fills the demo, and says what became of it. The terminal ends when it is dropped.
pub(super) async fn fill_demo(
    directory: &DemoDirectory,
    local: &LocalServer,
    app: &mut App,
) -> Option<DemoTerminal> {
    say(
        app,
        "Filling the demo: a history, a ledger, a shared terminal, and a team of agents.",
    );
    // Boxed: the parts are filled at once, and together their state is large.
    let filled = Box::pin(fill_parts(directory, local)).await;
    let things = filled.things();
    local.offer_demo(things.clone());
    if app.out.is_json() {
        write_json(app, &json!({"demo": things}));
    }
    let done = match things {
        Some(_) => "The demo is ready. Its tour begins in the browser.",
        None => "The demo is incomplete, so there is no tour.",
    };
    say(app, done);
    filled.terminal
}

/// Prints a line for a person. The terminal may be gone; the demo goes on without its lines.
fn say(app: &mut App, line: &str) {
    if !app.out.is_json() {
        let said = app.out.line(line);
        said.and_then(|()| app.out.flush()).ok();
    }
}

/// Prints a line for a program, which may be gone as well.
fn write_json(app: &mut App, value: &Value) {
    let written = app.out.json(value);
    written.and_then(|()| app.out.flush()).ok();
}

async fn fill_parts(directory: &DemoDirectory, local: &LocalServer) -> FilledDemo {
    let deadline = Instant::now() + FILL_TIME_MAX;
    // Before the others: the terminal and the run work in it. They fail without it.
    fill_part(
        "repository",
        deadline,
        repository::make_repository(directory.repository()),
    )
    .await;
    let (context, team, terminal) = tokio::join!(
        fill_part("history", deadline, async {
            history::fill_history(client_of(local)?).await
        }),
        fill_part("ledger and no run", deadline, async {
            let mut http = client_of(local)?;
            // The run is linked to the ledger, and its nodes are the people of the ledger.
            ledger::fill_ledger(&mut http).await?;
            team::fill_run(&mut http, directory).await
        }),
        fill_part("terminal", deadline, async {
            terminal::open_terminal(client_of(local)?, directory).await
        }),
    );
    FilledDemo {
        context,
        team,
        terminal,
    }
}

/// Each part has a connection of its own, so that no part waits for another.
fn client_of(local: &LocalServer) -> Result<Http> {
    let address = local.http_addr().to_string();
    let token = local.token().to_owned();
    Ok(Http::new(Target::parse(&address, Some(token), None)?))
}

/// Fills a part, and reports if that fails.
async fn fill_part<T>(
    part: &str,
    deadline: Instant,
    filling: impl Future<Output = Result<T>>,
) -> Option<T> {
    let filled = match tokio::time::timeout_at(deadline, filling).await {
        Ok(filled) => filled,
        Err(_) => Failure::new(format!("the demo took longer than {FILL_TIME_MAX:?}")).fail(),
    };
    filled
        .inspect_err(|error| eprintln!("note: the demo has no {part}: {error:#}"))
        .ok()
}

impl FilledDemo {
    /// What the tour points at. Without the terminal there is a tour: it does not show it.
    fn things(&self) -> Option<Demo> {
        let team = self.team.as_ref()?;
        Some(Demo {
            run: team.run.clone(),
            approval_node: team.approval_node.clone(),
            node_stalled: team.node_stalled.clone(),
            file: team.file.clone(),
            line: team.line,
            world: WORLD.to_owned(),
            persons: COMPARED_PERSONS.map(str::to_owned),
            context: Id(self.context?),
        })
    }
}
