//! `turnkeep wrap`: runs a program in its own terminal and captures its turns.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use turnkeep_client::broker::socket_path;
use turnkeep_journal::{DataDirLock, LockError};
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
    let profile = choose_profile(args, &config.presets)?;
    let (injector, injected) = inject_queue(paste_framing(args))?;
    let session = session_id()?;
    let share = args.share.then(SharedTerminal::new);
    let relay = broker_outlet(args, &session, &profile, (injector, share.clone()))?;
    let (keep, problems) = keep(args, config, &profile, relay.as_ref())?;
    let mut outlets: Vec<Box<dyn TurnOutlet>> = Vec::new();
    outlets.extend(relay.map(|relay| Box::new(relay) as Box<dyn TurnOutlet>));
    outlets.extend(keep.map(|keep| Box::new(keep) as Box<dyn TurnOutlet>));
    let (hooks, setup) = open_hooks(args, &session, &profile)?;
    let (counts, preset) = (SessionCounts::default(), profile.name().to_owned());
    let capture = TurnFinder::new(TurnFinderOptions {
        session: session.to_string(),
        profile,
        raw_bytes_max: args.keep_raw.then_some(RAW_BYTES_MAX),
        hooks,
        clock: Arc::new(WallClock),
        share,
        counts: counts.clone(),
        outlets,
    });
    let options = Options {
        command: with_arguments(&args.command, setup.arguments),
        environment: setup.environment,
        record: args.record.clone(),
        answers_status: answers_status(args, |variable| std::env::var_os(variable).is_some()),
        fault: requested_fault(),
    };
    let report = turnkeep_pty::wrap::run(&options, Box::new(capture), injected);
    let report = report.map_err(explain_wrap_error)?;
    let hint = hint_for_person(&preset, &counts);
    for note in report.notes.into_iter().chain(problems.take()).chain(hint) {
        eprintln!("turnkeep: {note}");
    }
    end_as(report.ending)
}

fn paste_framing(args: &WrapArgs) -> PasteFraming {
    if args.bracketed {
        PasteFraming::Bracketed
    } else {
        PasteFraming::Plain
    }
}

/// What to do about a profile that does not fit the program. Only a person at a terminal gets it:
/// in a script it would be noise.
fn hint_for_person(preset: &str, counts: &SessionCounts) -> Option<String> {
    let is_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let hint = fit::wrap_hint(preset, counts.turns(), counts.unanswered());
    hint.filter(|_| is_person)
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
    let refuse = |what: String, hint: &str| Err(Failure::usage(what).hint(hint).into());
    if let Some(Err(error)) = args.name.as_deref().map(check_session_name) {
        let hint = match error {
            BadSessionName::Empty => "leave it out, or give a name",
            BadSessionName::TooLong => "give a shorter one",
            BadSessionName::MeansElse => {
                "`NAME:3` is the third turn of a session and `@last` the latest session"
            }
        };
        return refuse(format!("--name {error}"), hint);
    }
    if let Some(name) = args
        .name
        .as_deref()
        .filter(|name| STORE_KINDS.contains(name))
    {
        let hint = format!("`{name}:3` is an object of the store; choose another name");
        return refuse(format!("--name {name} means something else"), &hint);
    }
    if args
        .pattern
        .as_ref()
        .is_some_and(|pattern| pattern.len() > TEXT_BYTES_MAX)
    {
        return refuse(
            format!("--pattern is longer than {TEXT_BYTES_MAX} bytes"),
            "put it into a profile",
        );
    }
    Ok(())
}

/// The profile by which the program's turns are detected.
fn choose_profile(args: &WrapArgs, presets: &Presets) -> Result<Profile> {
    if let Some(pattern) = &args.pattern {
        let compiled = Profile::from_pattern(pattern);
        return compiled.map_err(|error| Failure::usage(format!("--pattern: {error}")).into());
    }
    let program = args
        .command
        .first()
        .map(|program| program.to_string_lossy())
        .unwrap_or_default();
    let name = args
        .preset
        .as_deref()
        .unwrap_or_else(|| presets.name_for(&program));
    presets
        .get(name)
        .map_err(|error| Failure::usage(error.to_string()).into())
}

/// 128 random bits.
fn session_id() -> Result<SessionId> {
    // Half of the 32 random bytes: 128 bits cannot collide by accident.
    let [bits @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = random_bytes()?;
    Ok(SessionId::from_random(bits))
}

/// The connection to the turn store, with `--keep`. The broker then learns of a turn after the
/// store.
fn keep(
    args: &WrapArgs,
    config: Config,
    profile: &Profile,
    relay: Option<&BrokerOutlet>,
) -> Result<(Option<StoreOutlet>, StoreProblems)> {
    if !args.keep {
        return Ok((None, StoreProblems::default()));
    }
    block_on(check_store(&config))?;
    let label = SessionLabel {
        name: args.name.clone(),
        preset: Some(profile.name().to_owned()),
    };
    let answers = relay.map(BrokerOutlet::hold_for_store);
    let (keep, problems) = StoreOutlet::start(label, answers, keep_turns(config)?)?;
    Ok((Some(keep), problems))
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
    let is_held = || {
        matches!(
            DataDirLock::acquire(dir.path()),
            Err(LockError::Held { .. })
        )
    };
    config.server.value.is_none() && is_held() && server_on(&dir).await.is_none()
}

/// Sets up the program's own hooks, if `--hooks` is given.
fn open_hooks(
    args: &WrapArgs,
    session: &SessionId,
    profile: &Profile,
) -> Result<(Option<Hooks>, HookSetup)> {
    if !args.hooks {
        return Ok((None, HookSetup::default()));
    }
    let runtime_dir = runtime_dir().ok_or_else(|| {
        Failure::usage("--hooks needs XDG_RUNTIME_DIR, where the program hands its messages over")
            .hint("set it to a directory of your own, mode 0700, or leave --hooks out")
    })?;
    let hooks =
        Hooks::open(&runtime_dir, session.as_str()).context("cannot make the pipe for hooks")?;
    let setup = hooks
        .setup(profile.name())
        .context("cannot set up the program's hooks")?;
    // Better an error than a session that silently lacks what was asked for.
    if setup == HookSetup::default() {
        let failure = Failure::usage(format!("the profile {} has no hooks", profile.name()));
        return Err(failure
            .hint("claude, codex and gemini have them; leave --hooks out")
            .into());
    }
    Ok((Some(hooks), setup))
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

/// The connection to the broker. Without a runtime directory there can be no broker.
fn broker_outlet(
    args: &WrapArgs,
    session: &SessionId,
    profile: &Profile,
    (injector, share): (Injector, Option<SharedTerminal>),
) -> Result<Option<BrokerOutlet>> {
    let Some(runtime_dir) = runtime_dir() else {
        if share.is_some() {
            let failure = Failure::usage("--share needs XDG_RUNTIME_DIR, where the broker listens");
            return Err(failure
                .hint("set it to a directory of your own, mode 0700, or leave --share out")
                .into());
        }
        return Ok(None);
    };
    let register = Register {
        session: session.to_string(),
        pid: std::process::id(),
        pattern: profile.pattern().to_owned(),
        name: args.name.clone(),
        preset: Some(profile.name().to_owned()),
        child_pid: None,
        shared: share.is_some(),
        bracketed: args.bracketed,
        dialogs: profile.content() == ContentKind::Screen,
    };
    let session = BrokerSession {
        register,
        injector,
        share,
    };
    Ok(Some(BrokerOutlet::start(
        socket_path(&runtime_dir),
        session,
    )?))
}

/// Ends this process as the program ended.
fn end_as(ending: ChildEnding) -> ! {
    let code = match ending {
        ChildEnding::Exited(code) => code,
        ChildEnding::Killed(signal) => {
            // Returns only if the signal does not kill this process. Then the exit code says it, as
            // a shell does.
            die_of_signal(signal);
            128 + signal
        }
    };
    std::process::exit(code)
}

/// Explains why the program did not run. A program that cannot be started ends the process with a
/// shell's exit code.
fn explain_wrap_error(error: WrapError) -> anyhow::Error {
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
