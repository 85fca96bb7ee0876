//! `turnkeep hotkey`: keys that capture and paste in the focused session.
//!
//! One loop handles three events: keys, the end of the broker, and the request to stop. Actions run
//! one after the other, in the order of the keys. The command ends with the broker. An action that
//! fails only shows a notice.

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
use crate::broker::connect_to_broker_async;
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
    let mut broker = connect_to_broker_async().await?;
    let environment = desktop::desktop_environment();
    let hotkeys = environment.hotkeys(args.on.unwrap_or(config.hotkeys.value));
    let Opened {
        adapter,
        provider: mut keys,
    } = hotkeys.map_err(|error| no_desktop_error(&error))?;
    let wanted = choose_bindings(args, &config, adapter)?;
    let focus = open_resolver(args, &config, adapter, &environment)?;
    let combinations: Vec<Binding> = wanted.iter().map(|bound| bound.keys).collect();
    let refused = keys.register(&combinations)?;
    announce_bindings(app, adapter, &wanted, &refused)?;
    let handler = HotkeyHandler {
        // In the order of the registered keys, because a press names its keys by their index.
        actions: wanted.iter().map(|bound| bound.action).collect(),
        delivery: DeliveryOptions {
            raw: args.raw,
            force: args.force,
        },
        focus: focus.provider,
        notifier: Notifier::for_hotkeys(adapter, &environment),
    };
    let done = handler.serve_keys(&mut *keys, &mut broker).await;
    // The keys go back to the desktop even after a failure.
    let given_back = keys.unregister();
    done?;
    Ok(given_back?)
}

/// An action and the keys that start it.
struct BoundAction {
    action: Action,
    keys: Binding,
}

fn no_desktop_error(error: &turnkeep_pty::desktop::DesktopError) -> anyhow::Error {
    let hint = "run it in an X11 session or inside tmux, or name one of them with --on";
    Failure::new(error.to_string()).hint(hint).into()
}

/// Finds the focused session in the place where the keys are pressed, unless the configuration names
/// another adapter.
fn open_resolver(
    args: &HotkeyArgs,
    desktop: &Desktop,
    keys: Adapter,
    environment: &DesktopEnvironment,
) -> Result<Opened<dyn SessionResolver>> {
    let adapter = match desktop.focus.value {
        // `--on` is about both, so it also wins over a configured place for the focus.
        named if args.on.is_none() && named != Adapter::Detect => named,
        _ => keys,
    };
    let resolver = environment.resolver(adapter);
    resolver.map_err(|error| no_desktop_error(&error))
}

/// The keys of each action. Flags win over the configuration, which wins over the adapter's default.
fn choose_bindings(
    args: &HotkeyArgs,
    desktop: &Desktop,
    adapter: Adapter,
) -> Result<Vec<BoundAction>> {
    let defaults = default_bindings(adapter);
    let default = |index: usize| defaults.get(index).copied();
    let capture = args.capture.or(desktop.capture.value).or(default(0));
    let paste = args.paste.or(desktop.paste.value).or(default(1));
    // Copying has no default: a key that is registered is taken from all other programs.
    let copy = args.copy.or(desktop.copy.value);
    let mut bound: Vec<BoundAction> = Vec::new();
    bind_action(&mut bound, Action::Capture, capture)?;
    bind_action(&mut bound, Action::Paste, paste)?;
    bind_action(&mut bound, Action::Copy, copy)?;
    Ok(bound)
}

fn bind_action(bound: &mut Vec<BoundAction>, action: Action, keys: Option<Binding>) -> Result<()> {
    let Some(keys) = keys else { return Ok(()) };
    if let Some(other) = bound.iter().find(|other| other.keys == keys) {
        let other = other.action;
        let message = format!("{keys} cannot mean both {other} and {action}");
        return Failure::usage(message).fail();
    }
    bound.push(BoundAction { action, keys });
    Ok(())
}

/// Prints which keys do what. Fails if the desktop refused all of them: there is nothing to wait for.
fn announce_bindings(
    app: &mut App,
    adapter: Adapter,
    wanted: &[BoundAction],
    refused: &[RefusedBinding],
) -> Result<()> {
    for refused in refused {
        eprintln!(
            "warning: {} is not available: {}",
            refused.binding, refused.reason
        );
    }
    if refused.len() == wanted.len() {
        return Failure::new("none of the hotkeys is available")
            .hint("choose others with --capture and --paste")
            .fail();
    }
    for (index, bound) in wanted.iter().enumerate() {
        let works = !refused.iter().any(|refused| refused.index == index);
        print_binding(bound, adapter, works, app)?;
    }
    // The command waits from here on, and the person has to know the keys.
    app.out.flush()
}

fn print_binding(bound: &BoundAction, adapter: Adapter, works: bool, app: &mut App) -> Result<()> {
    let BoundAction { action, keys } = bound;
    if app.out.is_json() {
        return app.out.json(&json!({
            "action": action.to_string(),
            "keys": keys.to_string(),
            "on": adapter.name(),
            "works": works,
        }));
    }
    // A warning has named the keys that do not work.
    if works {
        app.out.line(format!("{keys}: {action} ({adapter})"))?;
    }
    Ok(())
}

/// How often the loop checks that the desktop still exists.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// What the loop waits for.
enum HotkeyEvent {
    Keys(Vec<Press>),
    BrokerGone(turnkeep_client::broker::BrokerError),
    End,
}

/// What the actions need.
struct HotkeyHandler {
    actions: Vec<Action>,
    delivery: DeliveryOptions,
    focus: Box<dyn SessionResolver>,
    notifier: Option<Notifier>,
}

impl HotkeyHandler {
    /// Performs the actions of pressed keys until the command ends.
    async fn serve_keys(
        mut self,
        keys: &mut dyn HotkeyProvider,
        broker: &mut AsyncConnection,
    ) -> Result<()> {
        let mut shutdown = ShutdownSignals::listen()?;
        let readable = watch_descriptor(keys).context("cannot wait for keys")?;
        // Registering may have read key presses from the descriptor, so it would not become readable
        // for them.
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

    /// Shows a notice on the desktop. After the first failure it goes to standard error instead.
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

/// Watches a duplicate of the keys' descriptor, which stays valid as long as it is watched.
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
            // Cleared before reading: a key press in between makes the descriptor ready again.
            ready.context("cannot wait for keys")?.clear_ready();
            Ok(HotkeyEvent::Keys(keys.pressed()?))
        }
        said = broker.receive() => match said {
            // The broker sends nothing to a client that did not ask. A message of a newer broker is
            // not for this command.
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
