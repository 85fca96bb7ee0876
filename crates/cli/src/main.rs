//! `turnkeep`, the one binary: reads the command line, sets up logging, runs a command and chooses
//! the exit code.
//!
//! The exit code is 0 for success, 1 for a failure and 2 for a wrong command line. Results go to
//! standard output, errors and the log go to standard error.

mod answer;
mod broker;
mod commands;
mod completion;
mod config;
mod data_dir;
mod desktop;
mod download;
mod failure;
mod fresh_dir;
mod help;
mod http;
mod ledger;
mod listener;
mod local;
mod names;
mod output;
mod progress;
mod render;
mod runtime;
mod session;
mod shutdown_signals;
mod token_file;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use tracing_subscriber::EnvFilter;

use crate::commands::App;
use crate::config::{DATA_DIR, ReachFlags, process_environment};
use crate::output::{ColorChoice, Output};

/// The server allocates commands on one thread and frees them on the writer's. The system's
/// allocator takes a lock for that; mimalloc does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The system of record for AI agents: a durable, branchable, typed turn store.
///
/// Commands talk to the running server of the data directory, or to --server; with no server they
/// open the directory themselves.
#[derive(Debug, Parser)]
#[command(
    name = "turnkeep",
    version,
    max_term_width = 100,
    propagate_version = true
)]
#[command(after_help = "Examples:
  turnkeep up                          # start the server, print the link
  turnkeep ctx new --label agent=demo  # make a context
  echo '{\"text\":\"hi\"}' | turnkeep append 1 --type turnkeep.Note@1 --data -
  turnkeep log 1 --graph               # its history, with branches
  turnkeep wrap -- claude              # run an agent and capture its turns
  turnkeep sessions                    # what the wrapped agents do
  turnkeep invoke default \"Good morning.\"   # speak in a world
  turnkeep run new \"Fix the failing test\"   # let an agent work on it

Things are named the same way everywhere: ctx:12, turn:345 and blob:af13 in the store, and among captured \
turns @last, review or 3f2a for a session and review:3 for a turn. docs/broker.md has the whole grammar.

Every setting can also be given as TURNKEEP_NAME in the environment (a limit as TURNKEEP_LIMITS_NAME) \
or in the configuration file: `turnkeep config show` shows them all and where each comes from.")]
pub(crate) struct Cli {
    #[command(flatten)]
    reach: ReachFlags,
    /// Print JSON: one object per line for lists, one object otherwise
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    /// When to use colours
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true,
        help_heading = "Global options"
    )]
    color: ColorChoice,
    /// Say more about what happens; twice for everything
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = "Global options")]
    verbose: u8,
    #[command(subcommand)]
    command: commands::TurnkeepCommand,
}

/// The name under which this binary is the scripted agent.
const SCRIPTED_AGENT: &str = "turnkeep-agent-script";

fn main() -> ExitCode {
    if is_called(SCRIPTED_AGENT) {
        return turnkeep_agent_script::run_program(std::env::args().skip(1).collect());
    }
    // Everything after `--` belongs to the wrapped program.
    let args: Vec<OsString> = std::env::args_os().take_while(|arg| arg != "--").collect();
    let is_json = args.iter().any(|arg| arg == "--json");
    let matches = command_line().color(clap_color(&args)).try_get_matches();
    let matches = matches.unwrap_or_else(|error| failure::end_by_usage(&error, is_json));
    let cli = Cli::from_arg_matches(&matches)
        .unwrap_or_else(|error| failure::end_by_usage(&error, is_json));
    start_log(cli.verbose, &cli.command);
    let mut app = App {
        reach: ReachFlags {
            data: data_dir_flag(&matches),
            ..cli.reach
        },
        out: Output::stdout(cli.json, cli.color, is_without_color()),
    };
    let done = commands::run_command(&cli.command, &mut app).and_then(|()| app.out.flush());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The output before the failure is still worth reading. A second failure, of the
            // output itself, would add nothing.
            app.out.flush().ok();
            failure::report_error(&error, app.out.is_json())
        }
    }
}

/// Whether the program was started under this name, by a link to it.
fn is_called(name: &str) -> bool {
    let path = std::env::args_os().next();
    path.is_some_and(|path| std::path::Path::new(&path).file_name() == Some(name.as_ref()))
}

/// Whether the environment forbids colours.
fn is_without_color() -> bool {
    let is_dumb = process_environment("TERM").is_some_and(|term| term == "dumb");
    is_dumb || process_environment("NO_COLOR").is_some()
}

/// The value of `--color`, for help and errors that clap prints before it has parsed the command
/// line.
fn clap_color(args: &[OsString]) -> clap::ColorChoice {
    let says = |word: &str| {
        let joined = OsString::from(format!("--color={word}"));
        args.contains(&joined)
            || args
                .windows(2)
                .any(|pair| matches!(pair, [flag, value] if flag == "--color" && value == word))
    };
    match () {
        () if says("never") => clap::ColorChoice::Never,
        () if says("always") => clap::ColorChoice::Always,
        () => clap::ColorChoice::Auto,
    }
}

/// The whole command line. `--data DIR` may stand before every command and after every one but
/// `append`.
pub(crate) fn command_line() -> clap::Command {
    let cli = Cli::command();
    let data_dir = cli
        .get_arguments()
        .find(|arg| arg.get_id() == DATA_DIR)
        .cloned()
        .map(|arg| arg.global(true));
    let cli = cli.mut_subcommands(|sub| match &data_dir {
        // clap would refuse two options with one name.
        Some(data_dir) if sub.get_name() != "append" => sub.arg(data_dir),
        _ => sub,
    });
    help::arrange_help(cli)
}

/// The value of `--data`. The flag may stand at several levels of the command line; the innermost
/// wins.
fn data_dir_flag(matches: &ArgMatches) -> Option<PathBuf> {
    let inner = matches
        .subcommand()
        .and_then(|(_, inner)| data_dir_flag(inner));
    inner.or_else(|| {
        matches
            .try_get_one::<PathBuf>(DATA_DIR)
            .ok()
            .flatten()
            .cloned()
    })
}

/// Starts logging to standard error, at the level of `TURNKEEP_LOG` or `--verbose`, or else
/// warnings. The server inside a command logs nothing: the command reports its failures.
fn start_log(verbose: u8, command: &commands::TurnkeepCommand) {
    use commands::TurnkeepCommand::{Broker, Complete, Up, Wrap};
    let level = match (verbose, command) {
        // A log line would appear on the screen of the wrapped program, or among the completions
        // that a shell suggests.
        (0, Wrap(_) | Complete(_)) => "off",
        (0, Up(_) | Broker(_)) => "warn",
        (0, _) => "warn,turnkeep_server=off,turnkeep_store=off,turnkeep_journal=off",
        (1, _) => "info",
        _ => "debug",
    };
    let wanted = process_environment("TURNKEEP_LOG").unwrap_or_else(|| level.to_owned());
    let filter = EnvFilter::try_new(&wanted).unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}
