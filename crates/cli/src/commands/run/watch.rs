//! `turnkeep run watch`: follows a run, on a screen that is repainted or as lines.
//!
//! A snapshot, the newest events and the stream behind them together have no gap: the stream begins
//! after the last event that was read, and the server replays what came in between.

pub(crate) mod controls;
pub(crate) mod followed_run;
mod live_view;
mod screen;

use std::io::IsTerminal;

use anyhow::Result;
use serde_json::Value;
use turnkeep_wire::runs::{ApprovalList, ApprovalView};

use self::followed_run::FollowedRun;
use super::client::{RunsClient, run_path};
use super::events::{RunEvent, RunEvents};
use super::list::print_outcome;
use super::names::RunName;
use crate::answer::list_at;
use crate::commands::App;
use crate::http::Call;
use crate::output::Output;
use crate::render::run_event::event_lines;
use crate::shutdown_signals::ShutdownSignals;

/// How much of the past the view begins with.
const PAST_EVENTS_ON_SCREEN: u64 = 500;
const PAST_EVENTS_AS_LINES: u64 = 20;

/// Follow a run live
///
/// On a terminal: its nodes, what they write, and what waits for you, which keys answer. Otherwise,
/// or with --plain, one line for each event. With --json, each event as the server sends it.
/// Leaving changes nothing: the run goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run watch                       # the only active run
  turnkeep run watch @last --plain
  turnkeep run watch 3f2a --until-quiet    # end when it waits for you
  turnkeep run watch 3f2a --json --since 0 | jq -r .type")]
pub(crate) struct RunWatchArgs {
    /// The run: its id, a unique head of its id, or @last [default: the only active one]
    run: Option<RunName>,
    #[command(flatten)]
    follow: FollowArgs,
}

/// How a run is followed.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FollowArgs {
    /// Print lines, also on a terminal
    #[arg(long)]
    plain: bool,
    /// Print the events after this one first; 0 prints all of them
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// End as soon as nothing goes on without you
    #[arg(long)]
    until_quiet: bool,
}

pub(super) async fn run_run_watch(args: &RunWatchArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let run = client.find_run(args.run.as_ref()).await?;
    follow_run(&mut client, &run, &args.follow, app).await
}

/// Follows a run until the person leaves or the run ends.
pub(super) async fn follow_run(
    client: &mut RunsClient,
    run: &str,
    args: &FollowArgs,
    app: &mut App,
) -> Result<()> {
    let wants_lines = args.plain || args.since.is_some() || args.until_quiet;
    let is_screen = app.out.is_screen() && std::io::stdin().is_terminal();
    if is_screen && !wants_lines {
        let followed = fetch_followed(client, run).await?;
        let past = fetch_past(client, run, PAST_EVENTS_ON_SCREEN).await?;
        return live_view::show_live(client, followed, &past).await;
    }
    print_events(client, run, args, app).await
}

/// The state of a run with what waits for a person.
async fn fetch_followed(client: &mut RunsClient, run: &str) -> Result<FollowedRun> {
    // Approvals first: one that is resolved in between is then closed by its event.
    let call = Call::get("/api/approvals").query("runId", run);
    let open: ApprovalList = client.fetch(call).await?.view;
    let open: Vec<ApprovalView> = open
        .approvals
        .into_iter()
        .map(|item| item.approval)
        .collect();
    let view = client.run_view(run).await?;
    Ok(FollowedRun::new(&view, &open))
}

/// The newest events, oldest first.
async fn fetch_past(client: &mut RunsClient, run: &str, limit: u64) -> Result<Vec<RunEvent>> {
    let call = Call::get(run_path(run, "/events")).query("limit", limit);
    let page: Value = client.send(call).await?;
    Ok(list_at(&page, "/events")
        .iter()
        .cloned()
        .map(RunEvent::new)
        .collect())
}

/// Follows a run as lines.
async fn print_events(
    client: &mut RunsClient,
    run: &str,
    args: &FollowArgs,
    app: &mut App,
) -> Result<()> {
    let mut shutdown = ShutdownSignals::listen()?;
    let mut followed = fetch_followed(client, run).await?;
    let past = match args.since {
        // The stream replays them.
        Some(_) => Vec::new(),
        None => fetch_past(client, run, PAST_EVENTS_AS_LINES).await?,
    };
    for event in &past {
        followed.apply(event);
        print_event(event, &followed, &mut app.out)?;
    }
    let since = args.since.unwrap_or_else(|| last_seq(&followed, &past));
    let mut events = RunEvents::open(client.http(), run, since).await?;
    let mut seen = since;
    while !is_done(&followed, seen, args) {
        // A person or a program waits for each line, so none may stay in the buffer.
        app.out.flush()?;
        let event = tokio::select! {
            event = events.next() => event?,
            () = shutdown.requested() => None,
        };
        let Some(event) = event else { break };
        seen = seen.max(event.seq());
        followed.apply(&event);
        print_event(&event, &followed, &mut app.out)?;
    }
    if followed.status == "completed" && !app.out.is_json() {
        print_outcome(&client.run_view(run).await?, &mut app.out)?;
    }
    app.out.flush()
}

/// The event behind which the stream begins.
fn last_seq(followed: &FollowedRun, past: &[RunEvent]) -> u64 {
    let newest = past.last().map_or(0, RunEvent::seq);
    newest.max(followed.snapshot_seq())
}

/// Whether following ends here. Before the replay is over, the state is that of its end.
fn is_done(followed: &FollowedRun, seen: u64, args: &FollowArgs) -> bool {
    let is_up_to_date = seen >= followed.snapshot_seq();
    is_up_to_date && (followed.is_over() || (args.until_quiet && followed.is_quiet()))
}

fn print_event(event: &RunEvent, followed: &FollowedRun, out: &mut Output) -> Result<()> {
    if out.is_json() {
        return out.json(&event.json);
    }
    let names = |id: &str| followed.node_name(id).to_owned();
    event_lines(event, &names)
        .iter()
        .try_for_each(|line| out.line(line))
}
