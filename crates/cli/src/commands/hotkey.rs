//! `turnkeep hotkey`: keys that capture and paste, wherever the focus is.
//!
//! One loop over a closed list of events: keys, the broker, the end. Actions are done one after the
//! other, in the order of the keys. The broker's end is ours; a single action that fails is only
//! told.

mod action;

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use turnkeep_client::broker::AsyncConnection;
use turnkeep_pty::desktop::open::{Opened, default_bindings};
use turnkeep_pty::desktop::{
    Adapter, Binding, DesktopEnvironment, HotkeyProvider, Notifier, Press, RefusedBinding,
    SessionResolver,
};

use super::App;
use crate::config::Desktop;
use crate::desktop;
use crate::failure::Failure;
use crate::shutdown_signals::ShutdownSignals;
use action::{Action, DeliveryOptions};

/// Capture and paste by hotkeys: the session in the focused terminal or tmux pane is meant
///
/// Runs until it is interrupted. The broker must be running; when it ends, so does this.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep hotkey            # Super+Shift+C captures, Super+Shift+V pastes
  turnkeep hotkey --capture Ctrl+Alt+C --paste Ctrl+Alt+V
  turnkeep hotkey --copy Super+Shift+X   # a key that fills the clipboard
  turnkeep hotkey --on tmux  # Alt+Shift+C and Alt+Shift+V in this tmux server

A combination is one or more of Super, Ctrl, Alt, Shift and a key, joined by +. In the configuration
file the same is the table [desktop] with the names capture, paste, copy, hotkeys, focus, clipboard.

What is pasted into a shell runs line by line: look at what you captured before you paste it there.")]
pub(crate) struct HotkeyArgs {
    /// Keys that capture the latest turn of the focused session
    #[arg(long, value_name = "KEYS")]
    capture: Option<Binding>,
    /// Keys that paste what was captured into the focused session
    #[arg(long, value_name = "KEYS")]
    paste: Option<Binding>,
    /// Keys that put what was captured into the clipboard [default: none]
    #[arg(long, value_name = "KEYS")]
    copy: Option<Binding>,
    /// Where keys are pressed and sessions have focus: detect, x11 or tmux [default: detect]
    #[arg(long, value_name = "DESKTOP", value_parser = Adapter::parse_for_keys)]
    on: Option<Adapter>,
    /// Paste and copy the captured bytes instead of the text
    #[arg(long)]
    raw: bool,
    /// Paste also into a program that shows a dialog
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run_hotkey(args: &HotkeyArgs, app: &mut App) -> Result<()> {
    let config = app.config()?.desktop;
    let mut broker = action::connect_async().await?;
    let surroundings = desktop::desktop_environment();
    let hotkeys = surroundings
        .hotkeys(args.on.unwrap_or(config.hotkeys.value))
        .map_err(|error| no_desktop_error(&error))?;
    let adapter = hotkeys.adapter;
    let wanted = choose_bindings(args, &config, adapter)?;
    let mut keys = hotkeys.provider;
    let focus = open_resolver(args, &config, adapter, &surroundings)?;
    let refused = keys.register(
        &wanted
            .iter()
            .map(|(_, binding)| *binding)
            .collect::<Vec<_>>(),
    )?;
    announce_bindings(app, adapter, &wanted, &refused)?;
    let notifier = Notifier::for_hotkeys(adapter, &surroundings);
    let actions = wanted.into_iter().map(|(action, _)| action).collect();
    let delivery = DeliveryOptions {
        raw: args.raw,
        force: args.force,
    };
    let done = HotkeyHandler {
        actions,
        delivery,
        focus: focus.provider,
        notifier,
    }
    .serve_keys(&mut *keys, &mut broker)
    .await;
    let given_back = keys.unregister();
    done?;
    Ok(given_back?)
}

fn no_desktop_error(error: &turnkeep_pty::desktop::DesktopError) -> anyhow::Error {
    let hint = "run it in an X11 session or inside tmux, or name one of them with --on";
    Failure::new(error.to_string()).hint(hint).into()
}

/// Focus comes from where the keys do, unless the configuration says otherwise.
fn open_resolver(
    args: &HotkeyArgs,
    desktop: &Desktop,
    keys: Adapter,
    surroundings: &DesktopEnvironment,
) -> Result<Opened<dyn SessionResolver>> {
    let named = if args.on.is_some() {
        Adapter::Detect
    } else {
        desktop.focus.value
    };
    let adapter = if named == Adapter::Detect {
        keys
    } else {
        named
    };
    surroundings
        .resolver(adapter)
        .map_err(|error| no_desktop_error(&error))
}

/// What each combination does: flags win over the configuration, that over the adapter's default.
fn choose_bindings(
    args: &HotkeyArgs,
    desktop: &Desktop,
    adapter: Adapter,
) -> Result<Vec<(Action, Binding)>> {
    let defaults = default_bindings(adapter);
    let capture = args
        .capture
        .or(desktop.capture.value)
        .or(defaults.first().copied());
    let paste = args
        .paste
        .or(desktop.paste.value)
        .or(defaults.get(1).copied());
    let copy = args.copy.or(desktop.copy.value);
    let all = [
        (Action::Capture, capture),
        (Action::Paste, paste),
        (Action::Copy, copy),
    ];
    let mut found: Vec<(Action, Binding)> = Vec::new();
    for (action, binding) in all
        .into_iter()
        .filter_map(|(action, binding)| Some((action, binding?)))
    {
        if let Some((other, _)) = found.iter().find(|(_, taken)| *taken == binding) {
            return Err(
                Failure::usage(format!("{binding} cannot mean both {other} and {action}")).into(),
            );
        }
        found.push((action, binding));
    }
    Ok(found)
}

/// Says which keys do what; with none of them there is nothing to run for.
fn announce_bindings(
    app: &mut App,
    adapter: Adapter,
    wanted: &[(Action, Binding)],
    refused: &[RefusedBinding],
) -> Result<()> {
    for refused in refused {
        eprintln!(
            "warning: {} cannot be had: {}",
            refused.binding, refused.reason
        );
    }
    if refused.len() == wanted.len() {
        let failure = Failure::new("none of the hotkeys could be had");
        return Err(failure
            .hint("choose others with --capture and --paste")
            .into());
    }
    let is_refused = |index| refused.iter().any(|refused| refused.index == index);
    for (index, (action, binding)) in wanted.iter().enumerate() {
        let (binding, works) = (binding.to_string(), !is_refused(index));
        if app.out.is_json() {
            let row = json!({ "action": action.to_string(), "keys": binding, "on": adapter.name(), "works": works });
            app.out.json(&row)?;
        } else if works {
            app.out.line(format!("{binding}: {action} ({adapter})"))?;
        }
    }
    app.out.flush()
}

/// How often it is looked whether the desktop is still there.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// What can happen.
enum HotkeyEvent {
    Keys(Vec<Press>),
    BrokerGone(turnkeep_client::broker::BrokerError),
    End,
}

/// What the actions work with.
struct HotkeyHandler {
    actions: Vec<Action>,
    delivery: DeliveryOptions,
    focus: Box<dyn SessionResolver>,
    notifier: Option<Notifier>,
}

impl HotkeyHandler {
    /// Acts on keys until the end.
    async fn serve_keys(
        mut self,
        keys: &mut dyn HotkeyProvider,
        broker: &mut AsyncConnection,
    ) -> Result<()> {
        let mut shutdown = ShutdownSignals::listen()?;
        let readable = watch_descriptor(keys).context("cannot wait for keys")?;
        // What was pressed while the keys were taken has been read from the descriptor already.
        let mut event = HotkeyEvent::Keys(keys.pressed()?);
        loop {
            match event {
                HotkeyEvent::Keys(presses) => self.perform_actions(&presses, broker).await?,
                HotkeyEvent::BrokerGone(error) => return Err(error).context("the broker has gone"),
                HotkeyEvent::End => return Ok(()),
            }
            event = next_event(keys, &readable, broker, &mut shutdown).await?;
        }
    }

    async fn perform_actions(
        &mut self,
        presses: &[Press],
        broker: &mut AsyncConnection,
    ) -> Result<()> {
        for press in presses {
            let Some(action) = self.actions.get(press.index).copied() else {
                continue;
            };
            let notice = action
                .perform(self.delivery, *press, broker, &mut *self.focus)
                .await?;
            self.show_notice(&notice);
        }
        Ok(())
    }

    /// Shows a notice, from the first failure on only on standard error.
    fn show_notice(&mut self, notice: &str) {
        let shown = self.notifier.as_ref().map(|notifier| notifier.show(notice));
        match shown {
            Some(Ok(())) => return,
            Some(Err(error)) => tracing::info!(%error, "no notifications here"),
            None => {}
        }
        self.notifier = None;
        eprintln!("{notice}");
    }
}

/// Waits on a descriptor of its own for the same keys, so that it stays valid as long as it is
/// watched.
#[expect(
    deprecated,
    reason = "the way that needs no unsafe; the descriptor is owned, so it stays valid"
)]
fn watch_descriptor(keys: &dyn HotkeyProvider) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(keys.fd().try_clone_to_owned()?, Interest::READABLE)
}

async fn next_event(
    keys: &mut dyn HotkeyProvider,
    readable: &AsyncFd<OwnedFd>,
    broker: &mut AsyncConnection,
    shutdown: &mut ShutdownSignals,
) -> Result<HotkeyEvent> {
    tokio::select! {
        ready = readable.readable() => {
            // Before reading, so that what comes meanwhile wakes us again.
            ready.context("cannot wait for keys")?.clear_ready();
            Ok(HotkeyEvent::Keys(keys.pressed()?))
        }
        said = broker.receive() => match said {
            // The broker says nothing unasked to a client; if it does one day, it is not for us.
            Ok(_) => Ok(HotkeyEvent::Keys(Vec::new())),
            Err(error) => Ok(HotkeyEvent::BrokerGone(error)),
        },
        () = shutdown.requested() => Ok(HotkeyEvent::End),
        () = tokio::time::sleep(LOOK_EVERY) => {
            keys.check_alive().context("the desktop has gone")?;
            Ok(HotkeyEvent::Keys(Vec::new()))
        }
    }
}
