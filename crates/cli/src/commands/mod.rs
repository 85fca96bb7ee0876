//! The commands: one file each, an `Args` whose docs are the help and a `run`.

mod append;
mod bench;
mod blob;
mod broker;
mod capsule;
mod capture;
mod complete;
mod completions;
mod config;
mod ctx;
mod deliver;
mod detect;
mod doctor;
mod export;
mod hotkey;
mod import;
mod invoke;
mod keep;
mod log;
mod mcp;
mod paste;
mod registry;
mod repair;
mod search;
mod sessions;
mod show;
mod stats;
mod stream;
mod turn;
mod turns;
mod up;
mod verify;
mod watch;
mod world;
mod wrap;

use anyhow::Result;
use clap::Subcommand;

use crate::config::{Config, ReachFlags, ServeFlags, process_environment};
use crate::failure::Failure;
use crate::output::Output;
use crate::runtime::block_on;

/// What a command works with.
pub(crate) struct App {
    pub(crate) reach: ReachFlags,
    pub(crate) out: Output,
}

impl App {
    /// The configuration for a command that does not serve.
    pub(crate) fn config(&self) -> Result<Config> {
        self.config_with(&ServeFlags::default())
    }

    /// The configuration for a command that works on the files of the data directory.
    pub(crate) fn config_of_files(&self, serve: &ServeFlags) -> Result<Config> {
        if self.reach.server.is_some() {
            let failure =
                Failure::usage("this command works on the data directory itself, not on a server");
            return Err(failure
                .hint("leave --server out and name the directory with --data DIR")
                .into());
        }
        self.config_with(serve)
    }

    /// The configuration with the flags of a command that serves.
    pub(crate) fn config_with(&self, serve: &ServeFlags) -> Result<Config> {
        Config::resolve(&self.reach, serve, &process_environment)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(up::Args),
    #[command(subcommand)]
    Ctx(ctx::Command),
    Log(log::Args),
    Append(append::Args),
    Show(show::Args),
    #[command(subcommand)]
    Blob(blob::Command),
    #[command(subcommand)]
    Registry(registry::Command),
    #[command(subcommand)]
    World(world::Command),
    Invoke(invoke::Args),
    Stream(stream::Args),
    Search(search::Args),
    Capsule(capsule::Args),
    Mcp(mcp::Args),
    Broker(broker::Args),
    Sessions(sessions::Args),
    Turns(turns::Args),
    Turn(turn::Args),
    Capture(capture::Args),
    Paste(paste::Args),
    Deliver(deliver::Args),
    Keep(keep::Args),
    Hotkey(hotkey::Args),
    Stats(stats::Args),
    Verify(verify::Args),
    Repair(repair::Args),
    Export(export::Args),
    Import(import::Args),
    Bench(bench::Args),
    Detect(detect::Args),
    Doctor(doctor::Args),
    #[command(subcommand)]
    Config(config::Command),
    Completions(completions::Args),
    #[command(hide = true)]
    Complete(complete::Args),
    Watch(watch::Args),
    Wrap(wrap::Args),
}

/// Runs the command.
pub(crate) fn run(command: &Command, app: &mut App) -> Result<()> {
    match command {
        Command::Up(args) => block_on(up::run(args, app)),
        Command::Ctx(command) => block_on(ctx::run(command, app)),
        Command::Log(args) => block_on(log::run(args, app)),
        Command::Append(args) => block_on(append::run(args, app)),
        Command::Show(args) => block_on(show::run(args, app)),
        Command::Blob(command) => block_on(blob::run(command, app)),
        Command::Registry(command) => block_on(registry::run(command, app)),
        Command::World(command) => block_on(world::run(command, app)),
        Command::Invoke(args) => block_on(invoke::run(args, app)),
        Command::Stream(args) => block_on(stream::run(args, app)),
        Command::Search(args) => block_on(search::run(args, app)),
        Command::Capsule(args) => block_on(capsule::run(args, app)),
        Command::Mcp(args) => block_on(mcp::run(args, app)),
        Command::Broker(args) => block_on(broker::run(args, app)),
        Command::Sessions(args) => sessions::run(args, app),
        Command::Turns(args) => turns::run(args, app),
        Command::Turn(args) => turn::run(args, app),
        Command::Capture(args) => capture::run(args, app),
        Command::Paste(args) => paste::run(args, app),
        Command::Deliver(args) => deliver::run(args, app),
        Command::Keep(args) => block_on(keep::run(args, app)),
        Command::Hotkey(args) => block_on(hotkey::run(args, app)),
        Command::Stats(args) => block_on(stats::run(args, app)),
        Command::Verify(args) => verify::run(args, app),
        Command::Repair(args) => repair::run(args, app),
        Command::Export(args) => block_on(export::run(args, app)),
        Command::Import(args) => import::run(args, app),
        Command::Bench(args) => bench::run(args, app.out.is_json()),
        Command::Detect(args) => detect::run(args, app),
        Command::Doctor(args) => block_on(doctor::run(args, app)),
        Command::Config(command) => config::run(command, app),
        Command::Completions(args) => completions::run(args, app),
        Command::Complete(args) => complete::run(args, app),
        Command::Watch(args) => block_on(watch::run(args, app)),
        Command::Wrap(args) => wrap::run(args, app),
    }
}
