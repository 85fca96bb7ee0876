//! The loop of the live view: events and keys in, a repainted screen and requests out.
//!
//! A request that fails is shown as a notice; it never ends the view.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Result;
use crossterm::event::{Event, EventStream};
use futures_core::Stream;
use tokio::time::Instant;

use super::controls::{Controls, Wish};
use super::followed_run::FollowedRun;
use super::screen::Screen;
use crate::commands::approvals::editor::edit_json;
use crate::commands::approvals::resolve::{Decision, resolve_approval};
use crate::commands::node::chat::{ChatTarget, send_chat};
use crate::commands::run::client::RunsClient;
use crate::commands::run::events::{RunEvent, RunEvents};
use crate::render::run_screen::draw_run;
use crate::shutdown_signals::ShutdownSignals;

/// Events are folded for so long before they are painted: agents may write faster than anybody
/// reads.
const PAINT_EVERY: Duration = Duration::from_millis(40);

/// Shows a run until the person leaves.
pub(super) async fn show_live(
    client: &mut RunsClient,
    followed: FollowedRun,
    past: &[RunEvent],
) -> Result<()> {
    let since = super::last_seq(&followed, past);
    let events = RunEvents::open(client.http(), &followed.id, since).await?;
    let mut view = LiveView {
        run: followed,
        controls: Controls::default(),
        events,
        screen: Screen::open()?,
        keys: Some(EventStream::new()),
        paint_at: None,
    };
    for event in past {
        view.run.apply(event);
    }
    view.follow(client).await
}

struct LiveView {
    run: FollowedRun,
    controls: Controls,
    events: RunEvents,
    screen: Screen,
    /// None while an editor has the keyboard.
    keys: Option<EventStream>,
    /// When the changes since the last painting are shown.
    paint_at: Option<Instant>,
}

impl LiveView {
    async fn follow(&mut self, client: &mut RunsClient) -> Result<()> {
        let mut shutdown = ShutdownSignals::listen()?;
        self.paint()?;
        loop {
            let paint_at = self.paint_at.unwrap_or_else(Instant::now);
            tokio::select! {
                () = tokio::time::sleep_until(paint_at), if self.paint_at.is_some() => self.paint()?,
                event = self.events.next(), if !self.run.is_deleted => match event? {
                    Some(event) => self.add_event(&event),
                    None => self.run.is_deleted = true,
                },
                typed = next_typed(&mut self.keys) => {
                    // The keyboard is gone: no key could ever end this loop.
                    let Some(typed) = typed else { return Ok(()) };
                    match self.read_typed(typed?) {
                        Some(Wish::Leave) => return Ok(()),
                        Some(wish) => self.carry_out(wish, client).await,
                        None => {}
                    }
                    self.paint()?;
                }
                () = shutdown.requested() => return Ok(()),
            }
        }
    }

    fn add_event(&mut self, event: &RunEvent) {
        self.run.apply(event);
        self.paint_at
            .get_or_insert_with(|| Instant::now() + PAINT_EVERY);
    }

    fn read_typed(&mut self, typed: Event) -> Option<Wish> {
        match typed {
            Event::Key(key) => self.controls.press(key, &self.run),
            Event::Paste(text) => {
                self.controls.paste(&text);
                None
            }
            // A new size is painted like everything else.
            Event::Resize(..) | Event::Mouse(_) | Event::FocusGained | Event::FocusLost => None,
        }
    }

    fn paint(&mut self) -> Result<()> {
        self.paint_at = None;
        let Self { run, controls, .. } = self;
        self.screen
            .paint(|area, cells| draw_run(run, controls, area, cells))
    }

    async fn carry_out(&mut self, wish: Wish, client: &mut RunsClient) {
        let done = match wish {
            // Leaving is the loop's business.
            Wish::Leave => Ok(()),
            Wish::Approve { approval } => decide(client, &approval, Decision::Approve).await,
            Wish::Deny { approval, reason } => {
                let reason = Some(reason).filter(|reason| !reason.is_empty());
                let stop = false;
                decide(client, &approval, Decision::Deny { reason, stop }).await
            }
            Wish::Answer { approval, text } => {
                decide(client, &approval, Decision::Answer(text)).await
            }
            Wish::Edit { approval } => self.edit(client, &approval).await,
            Wish::Chat { node, text } => {
                let target = ChatTarget {
                    run: &self.run.id,
                    node: Some(&node),
                };
                send_chat(client, target, &text, false).await.map(drop)
            }
        };
        self.controls.notice = match done {
            Ok(()) => String::new(),
            Err(error) => format!("{error:#}"),
        };
    }

    /// Lets the person edit the arguments of a call in an editor, which gets the terminal meanwhile.
    async fn edit(&mut self, client: &mut RunsClient, approval: &str) -> Result<()> {
        let open = self.run.approvals.iter().find(|open| open.id == approval);
        let args = open.map(|open| open.args.clone()).unwrap_or_default();
        // The stream reads ahead: it would take keys from the editor.
        self.keys = None;
        self.screen.suspend()?;
        let edited = edit_json(&args);
        self.screen.resume()?;
        self.keys = Some(EventStream::new());
        match edited? {
            Some(args) => decide(client, approval, Decision::Edit(args)).await,
            None => Ok(()),
        }
    }
}

async fn decide(client: &mut RunsClient, approval: &str, decision: Decision) -> Result<()> {
    resolve_approval(client, approval, decision).await.map(drop)
}

/// The next key, paste or resize; none when the keyboard is gone.
async fn next_typed(keys: &mut Option<EventStream>) -> Option<io::Result<Event>> {
    let keys = keys.as_mut()?;
    poll_fn(|context| Pin::new(&mut *keys).poll_next(context)).await
}
