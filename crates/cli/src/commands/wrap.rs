//! `turnkeep wrap`: runs a program in its own terminal and captures its turns.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use turnkeep_client::broker::socket_path;
use turnkeep_pty::wrap::{
    BrokerOutlet, BrokerSession, ChildEnding, Fault, HookSetup, Hooks, Injector, Options,
    PasteFraming, SessionCounts, SessionLabel, SharedTerminal, StoreOutlet, StoreProblems,
    TurnFinder, TurnFinderOptions, TurnOutlet, WrapError, die_of_signal, inject_queue,
};
use turnkeep_session::detector::{ContentKind, Presets, Profile};
use turnkeep_types::broker::{
    BadSessionName, FoundTurn, Register, SessionId, TEXT_BYTES_MAX, check_session_name,
};

use super::App;
use super::detect::ProfileChoice;
use crate::broker::fit;
use crate::broker::store_link::StoreLink;
use crate::config::{Config, process_environment};
use crate::data_dir::{DataDir, random_bytes};
use crate::desktop::runtime_dir;
use crate::failure::Failure;
use crate::local::WallClock;
use crate::names::STORE_KINDS;
use crate::runtime::{block_on, single_thread};
use crate::session::{Need, StoreSession, server_on};

/// Exit codes of a shell that cannot start a program.
const CODE_NOT_FOUND: i32 = 127;
const CODE_NOT_STARTED: i32 = 126;
/// Painted bytes that --keep-raw keeps of one turn.
const RAW_BYTES_MAX: usize = 4 << 20;

/// Run a program and capture its turns
///
/// The program runs as it would without turnkeep: every byte passes unchanged, and the command ends
/// as the program ended. Each answer of the program becomes a turn that `turnkeep turns` lists,
/// when a broker runs. Nothing captured touches a disk, unless --keep or --record asks for it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep wrap -- claude
  turnkeep wrap --name review --keep -- codex
  turnkeep wrap --pattern '^db> ' -- mydb --interactive
  turnkeep wrap --record session.jsonl -- bash")]
pub(crate) struct WrapArgs {
    /// Profile by which turns are detected [default: by the program's name, else generic]
    #[arg(long, value_name = "NAME", conflicts_with = "pattern")]
    preset: Option<String>,
    /// Regular expression of the program's prompt, matched in each line
    #[arg(long, value_name = "REGEX")]
    pattern: Option<String>,
    /// A name for the session, beside its id
    #[arg(long, value_name = "LABEL")]
    name: Option<String>,
    /// Append every completed turn to the turn store
    #[arg(long)]
    keep: bool,
    /// Keep the bytes that painted each turn beside its text
    #[arg(long)]
    keep_raw: bool,
    /// Let you watch the terminal from elsewhere: `turnkeep watch`, or a browser
    #[arg(long)]
    share: bool,
    /// Write a recording of the session to this new file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Tell the program that its status reports (OSC 7501) are understood [default: inside tmux,
    /// GNU screen and zellij, where programs do not show their state in the title]
    #[arg(long)]
    status_protocol: bool,
    /// Never answer the program's query for status reports
    #[arg(long, conflicts_with = "status_protocol")]
    no_status_protocol: bool,
    /// Add the program's own hooks, which give a turn's exact text
    #[arg(long)]
    hooks: bool,
    /// Frame pastes when the program asks for it (bracketed paste)
    #[arg(long)]
    bracketed: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run_wrap(args: &WrapArgs, app: &mut App) -> Result<()> {
    let config = app.config()?;
    check_names(args)?;
    let session = WrappedSession {
        args,
        profile: choose_profile(args, &config.presets)?,
        // 128 bits cannot collide by accident.
        id: SessionId::from_random(random_bytes()?),
        share: args.share.then(SharedTerminal::new),
        counts: SessionCounts::default(),
    };
    let (injector, injected) = inject_queue(paste_framing(args))?;
    let broker = session.connect_broker(injector)?;
    let store = session.connect_store(config, broker.as_ref())?;
    let (hooks, setup) = session.open_hooks()?;
    let finder = session.turn_finder(hooks, boxed_outlets(broker, store.outlet));
    let report = turnkeep_pty::wrap::run(&session.options(setup), Box::new(finder), injected);
    let report = report.map_err(explain_wrap_error)?;
    // The program has given the terminal back, so messages can no longer disturb its screen.
    let notes = report.notes.into_iter().chain(store.problems.take());
    for note in notes.chain(session.hint_for_person()) {
        eprintln!("turnkeep: {note}");
    }
    end_as(report.ending)
}

/// The session that the command runs: its options, its profile and its id.
struct WrappedSession<'a> {
    args: &'a WrapArgs,
    profile: Profile,
    id: SessionId,
    share: Option<SharedTerminal>,
    counts: SessionCounts,
}

/// Where completed turns are kept, and the problems that it had.
#[derive(Default)]
struct StoreSide {
    /// `None` without `--keep`.
    outlet: Option<StoreOutlet>,
    problems: StoreProblems,
}

fn boxed_outlets(
    broker: Option<BrokerOutlet>,
    store: Option<StoreOutlet>,
) -> Vec<Box<dyn TurnOutlet>> {
    let mut outlets: Vec<Box<dyn TurnOutlet>> = Vec::new();
    if let Some(broker) = broker {
        outlets.push(Box::new(broker));
    }
    if let Some(store) = store {
        outlets.push(Box::new(store));
    }
    outlets
}

impl WrappedSession<'_> {
    /// The connection to the broker. Without a runtime directory there can be no broker.
    fn connect_broker(&self, injector: Injector) -> Result<Option<BrokerOutlet>> {
        let Some(runtime_dir) = runtime_dir() else {
            return self.refuse_share_without_broker().map(|()| None);
        };
        let session = BrokerSession {
            register: self.registration(),
            injector,
            share: self.share.clone(),
        };
        let outlet = BrokerOutlet::start(socket_path(&runtime_dir), session)?;
        Ok(Some(outlet))
    }

    fn refuse_share_without_broker(&self) -> Result<()> {
        // Turns may also go to the store, but a shared terminal is seen through the broker only.
        if self.share.is_none() {
            return Ok(());
        }
        Failure::usage("--share needs XDG_RUNTIME_DIR, where the broker listens")
            .hint("set it to a directory of your own, mode 0700, or leave --share out")
            .fail()
    }

    fn registration(&self) -> Register {
        Register {
            session: self.id.to_string(),
            pid: std::process::id(),
            pattern: self.profile.pattern().to_owned(),
            name: self.args.name.clone(),
            preset: Some(self.profile.name().to_owned()),
            // The program has not been started yet.
            child_pid: None,
            shared: self.share.is_some(),
            bracketed: self.args.bracketed,
            dialogs: self.profile.content() == ContentKind::Screen,
        }
    }

    /// The connection to the turn store, with `--keep`. The broker then learns of a turn after the
    /// store.
    fn connect_store(&self, config: Config, broker: Option<&BrokerOutlet>) -> Result<StoreSide> {
        if !self.args.keep {
            return Ok(StoreSide::default());
        }
        block_on(check_store(&config))?;
        let label = SessionLabel {
            name: self.args.name.clone(),
            preset: Some(self.profile.name().to_owned()),
        };
        let answers = broker.map(BrokerOutlet::hold_for_store);
        let (outlet, problems) = StoreOutlet::start(label, answers, keep_turns(config)?)?;
        Ok(StoreSide {
            outlet: Some(outlet),
            problems,
        })
    }

    /// Sets up the program's own hooks, if `--hooks` is given.
    fn open_hooks(&self) -> Result<(Option<Hooks>, HookSetup)> {
        if !self.args.hooks {
            return Ok((None, HookSetup::default()));
        }
        let runtime_dir = runtime_dir().ok_or_else(|| {
            Failure::usage(
                "--hooks needs XDG_RUNTIME_DIR, where the program hands its messages over",
            )
            .hint("set it to a directory of your own, mode 0700, or leave --hooks out")
        })?;
        let hooks = Hooks::open(&runtime_dir, self.id.as_str())
            .context("cannot make the pipe for hooks")?;
        let preset = self.profile.name();
        let setup = hooks
            .setup(preset)
            .context("cannot set up the program's hooks")?;
        // Better an error than a session that silently lacks what was asked for.
        if setup == HookSetup::default() {
            return Failure::usage(format!("the profile {preset} has no hooks"))
                .hint("claude, codex and gemini have them; leave --hooks out")
                .fail();
        }
        Ok((Some(hooks), setup))
    }

    fn turn_finder(&self, hooks: Option<Hooks>, outlets: Vec<Box<dyn TurnOutlet>>) -> TurnFinder {
        TurnFinder::new(TurnFinderOptions {
            session: self.id.to_string(),
            profile: self.profile.clone(),
            raw_bytes_max: self.args.keep_raw.then_some(RAW_BYTES_MAX),
            hooks,
            clock: Arc::new(WallClock),
            share: self.share.clone(),
            counts: self.counts.clone(),
            outlets,
        })
    }

    fn options(&self, setup: HookSetup) -> Options {
        let is_set = |variable: &str| std::env::var_os(variable).is_some();
        Options {
            command: with_arguments(&self.args.command, setup.arguments),
            environment: setup.environment,
            record: self.args.record.clone(),
            answers_status: answers_status(self.args, is_set),
            fault: requested_fault(),
        }
    }

    /// What to do about a profile that does not fit the program. Only a person at a terminal gets
    /// it: in a script it would be noise.
    fn hint_for_person(&self) -> Option<String> {
        let is_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let counts = &self.counts;
        let hint = fit::wrap_hint(self.profile.name(), counts.turns(), counts.unanswered());
        hint.filter(|_| is_person)
    }
}

fn paste_framing(args: &WrapArgs) -> PasteFraming {
    if args.bracketed {
        PasteFraming::Bracketed
    } else {
        PasteFraming::Plain
    }
}

/// Variables that a terminal multiplexer sets for the programs inside it.
const MULTIPLEXER_VARIABLES: [&str; 3] = ["TMUX", "STY", "ZELLIJ"];

/// Whether the wrapper answers the program's query for status reports. Inside a multiplexer it does
/// by default, because claude does not show its state in the title there.
fn answers_status(args: &WrapArgs, is_set: impl Fn(&str) -> bool) -> bool {
    let is_inside = || {
        MULTIPLEXER_VARIABLES
            .iter()
            .any(|variable| is_set(variable))
    };
    !args.no_status_protocol && (args.status_protocol || is_inside())
}

/// Refuses names that the broker would not accept, or that could not name the session later.
fn check_names(args: &WrapArgs) -> Result<()> {
    if let Some(name) = &args.name {
        check_label(name)?;
    }
    let pattern = args.pattern.as_deref().unwrap_or_default();
    // The broker's protocol carries the pattern in a field of this length.
    if pattern.len() > TEXT_BYTES_MAX {
        return Failure::usage(format!("--pattern is longer than {TEXT_BYTES_MAX} bytes"))
            .hint("put it into a profile")
            .fail();
    }
    Ok(())
}

fn check_label(name: &str) -> Result<()> {
    if let Err(error) = check_session_name(name) {
        let hint = match error {
            BadSessionName::Empty => "leave it out, or give a name",
            BadSessionName::TooLong => "give a shorter one",
            BadSessionName::MeansElse => {
                "`NAME:3` is the third turn of a session and `@last` the latest session"
            }
        };
        return Failure::usage(format!("--name {error}")).hint(hint).fail();
    }
    if STORE_KINDS.contains(&name) {
        return Failure::usage(format!("--name {name} means something else"))
            .hint(format!(
                "`{name}:3` is an object of the store; choose another name"
            ))
            .fail();
    }
    Ok(())
}

/// The profile by which the program's turns are detected.
fn choose_profile(args: &WrapArgs, presets: &Presets) -> Result<Profile> {
    let program = args
        .command
        .first()
        .map(|program| program.to_string_lossy());
    ProfileChoice {
        pattern: args.pattern.as_deref(),
        preset: args.preset.as_deref(),
        program: &program.unwrap_or_default(),
    }
    .find(presets)
}

/// The function that keeps turns. Its connection to the store lives on a runtime of its own.
fn keep_turns(
    config: Config,
) -> Result<impl FnMut(&[FoundTurn]) -> Vec<Result<(), String>> + Send + 'static> {
    let runtime = single_thread()?;
    let link = StoreLink::new(config);
    Ok(
        move |turns: &[FoundTurn]| match runtime.block_on(link.keep(turns)) {
            Ok(kept) => kept
                .into_iter()
                .map(|kept| kept.map(drop).map_err(|error| error.to_string()))
                .collect(),
            Err(error) => vec![Err(format!("{error:#}")); turns.len()],
        },
    )
}

/// Refuses a store that cannot be written, before the program runs: later, a message would disturb
/// the program's screen. A store that another command holds for a moment is no error.
async fn check_store(config: &Config) -> Result<()> {
    if is_taken(config).await {
        return Ok(());
    }
    match StoreSession::open(config, Need::Write).await {
        Ok(mut store) => {
            let reached = store.binary_client().await.map(drop);
            store.close().await;
            reached
        }
        // Another command may have taken the lock since the first look.
        Err(_) if is_taken(config).await => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether another command holds the store's lock and serves no other commands.
async fn is_taken(config: &Config) -> bool {
    let dir = DataDir::new(&config.data.value);
    config.server.value.is_none() && dir.is_held() && server_on(&dir).await.is_none()
}

/// The command with more arguments between the program and the user's own arguments.
fn with_arguments(command: &[OsString], more: Vec<String>) -> Vec<OsString> {
    let (program, rest) = command.split_at(command.len().min(1));
    program
        .iter()
        .cloned()
        .chain(more.into_iter().map(OsString::from))
        .chain(rest.iter().cloned())
        .collect()
}

/// Ends this process as the program ended.
pub(super) fn end_as(ending: ChildEnding) -> ! {
    let code = match ending {
        ChildEnding::Exited(code) => code,
        ChildEnding::Killed(signal) => {
            // Returns only if the signal does not kill this process. Then the exit code is a
            // shell's: 128 and the signal's number.
            die_of_signal(signal);
            128 + signal
        }
    };
    std::process::exit(code)
}

/// Explains why the program did not run. A program that cannot be started ends the process with a
/// shell's exit code.
pub(super) fn explain_wrap_error(error: WrapError) -> anyhow::Error {
    let code = match &error {
        WrapError::NotFound(_) => CODE_NOT_FOUND,
        WrapError::NotStarted { .. } => CODE_NOT_STARTED,
        WrapError::Record { .. } => {
            return Failure::usage(format!("{:#}", anyhow::Error::new(error)))
                .hint("name a file that is not there yet, in a directory that is")
                .into();
        }
        WrapError::Pty(_) => return error.into(),
    };
    eprintln!("error: {:#}", anyhow::Error::new(error));
    std::process::exit(code)
}

/// The fault that a test wants to inject; never one in a release build.
fn requested_fault() -> Option<Fault> {
    let wanted = process_environment("TURNKEEP_WRAP_FAULT").filter(|_| cfg!(debug_assertions))?;
    match &*wanted {
        "byte-path" => Some(Fault::BytePath),
        "stack" => Some(Fault::Stack),
        "observer" => Some(Fault::Observer),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: WrapArgs,
    }

    #[test]
    fn status_reports_are_answered_on_request_and_inside_a_multiplexer() {
        for (option, variable, expect) in [
            (None, None, false),
            (Some("--status-protocol"), None, true),
            (None, Some("TMUX"), true),
            (None, Some("STY"), true),
            (None, Some("ZELLIJ"), true),
            (None, Some("TERM"), false),
            (Some("--no-status-protocol"), Some("TMUX"), false),
        ] {
            let words = ["wrap"].into_iter().chain(option).chain(["--", "claude"]);
            let line = <Line as clap::Parser>::parse_from(words);
            let found = answers_status(&line.args, |name| Some(name) == variable);
            assert_eq!(found, expect, "{option:?} {variable:?}");
        }
    }
}
