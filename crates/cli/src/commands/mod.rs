//! The commands, one file each. The file of `show` has `ShowArgs`, whose doc comments are the help,
//! and `run_show`.

pub(crate) mod agent_terminal;
mod append;
mod approvals;
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
mod diff;
mod doctor;
mod edge;
mod export;
mod hotkey;
mod import;
mod inbox;
mod invoke;
mod keep;
mod log;
mod mcp;
mod node;
mod paste;
mod registry;
mod repair;
pub(crate) mod run;
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
mod why;
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

/// The command of a command line.
#[derive(Debug, Subcommand)]
pub(crate) enum TurnkeepCommand {
    Up(up::UpArgs),
    #[command(subcommand)]
    Ctx(ctx::CtxCommand),
    Log(log::LogArgs),
    Append(append::AppendArgs),
    Show(show::ShowArgs),
    #[command(subcommand)]
    Blob(blob::BlobCommand),
    #[command(subcommand)]
    Registry(registry::RegistryCommand),
    #[command(subcommand)]
    World(world::WorldCommand),
    Invoke(invoke::InvokeArgs),
    Stream(stream::StreamArgs),
    Search(search::SearchArgs),
    Capsule(capsule::CapsuleArgs),
    Mcp(mcp::McpArgs),
    Broker(broker::BrokerArgs),
    Sessions(sessions::SessionsArgs),
    Turns(turns::TurnsArgs),
    Turn(turn::TurnArgs),
    Capture(capture::CaptureArgs),
    Paste(paste::PasteArgs),
    Deliver(deliver::DeliverArgs),
    Keep(keep::KeepArgs),
    Hotkey(hotkey::HotkeyArgs),
    #[command(subcommand)]
    Run(run::RunCommand),
    #[command(subcommand)]
    Node(node::NodeCommand),
    #[command(subcommand)]
    Edge(edge::EdgeCommand),
    Approvals(approvals::ApprovalsArgs),
    Inbox(inbox::InboxArgs),
    Diff(diff::DiffArgs),
    Why(why::WhyArgs),
    Stats(stats::StatsArgs),
    Verify(verify::VerifyArgs),
    Repair(repair::RepairArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Bench(turnkeep_bench::BenchArgs),
    Detect(detect::DetectArgs),
    Doctor(doctor::DoctorArgs),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Complete(complete::CompleteArgs),
    #[command(hide = true)]
    AgentTerminal(agent_terminal::AgentTerminalArgs),
    Watch(watch::WatchArgs),
    Wrap(wrap::WrapArgs),
}

/// Runs the command.
pub(crate) fn run_command(command: &TurnkeepCommand, app: &mut App) -> Result<()> {
    match command {
        TurnkeepCommand::Up(args) => block_on(up::run_up(args, app)),
        TurnkeepCommand::Ctx(command) => block_on(ctx::run_ctx(command, app)),
        TurnkeepCommand::Log(args) => block_on(log::run_log(args, app)),
        TurnkeepCommand::Append(args) => block_on(append::run_append(args, app)),
        TurnkeepCommand::Show(args) => block_on(show::run_show(args, app)),
        TurnkeepCommand::Blob(command) => block_on(blob::run_blob(command, app)),
        TurnkeepCommand::Registry(command) => block_on(registry::run_registry(command, app)),
        TurnkeepCommand::World(command) => block_on(world::run_world(command, app)),
        TurnkeepCommand::Invoke(args) => block_on(invoke::run_invoke(args, app)),
        TurnkeepCommand::Stream(args) => block_on(stream::run_stream(args, app)),
        TurnkeepCommand::Search(args) => block_on(search::run_search(args, app)),
        TurnkeepCommand::Capsule(args) => block_on(capsule::run_capsule(args, app)),
        TurnkeepCommand::Mcp(args) => block_on(mcp::run_mcp(args, app)),
        TurnkeepCommand::Broker(args) => block_on(broker::run_broker(args, app)),
        TurnkeepCommand::Sessions(args) => sessions::run_sessions(args, app),
        TurnkeepCommand::Turns(args) => turns::run_turns(args, app),
        TurnkeepCommand::Turn(args) => turn::run_turn(args, app),
        TurnkeepCommand::Capture(args) => capture::run_capture(args, app),
        TurnkeepCommand::Paste(args) => paste::run_paste(args, app),
        TurnkeepCommand::Deliver(args) => deliver::run_deliver(args, app),
        TurnkeepCommand::Keep(args) => block_on(keep::run_keep(args, app)),
        TurnkeepCommand::Hotkey(args) => block_on(hotkey::run_hotkey(args, app)),
        TurnkeepCommand::Run(command) => block_on(run::run_run(command, app)),
        TurnkeepCommand::Node(command) => block_on(node::run_node(command, app)),
        TurnkeepCommand::Edge(command) => block_on(edge::run_edge(command, app)),
        TurnkeepCommand::Approvals(args) => block_on(approvals::run_approvals(args, app)),
        TurnkeepCommand::Inbox(args) => block_on(inbox::run_inbox(args, app)),
        TurnkeepCommand::Diff(args) => block_on(diff::run_diff(args, app)),
        TurnkeepCommand::Why(args) => block_on(why::run_why(args, app)),
        TurnkeepCommand::Stats(args) => block_on(stats::run_stats(args, app)),
        TurnkeepCommand::Verify(args) => verify::run_verify(args, app),
        TurnkeepCommand::Repair(args) => repair::run_repair(args, app),
        TurnkeepCommand::Export(args) => block_on(export::run_export(args, app)),
        TurnkeepCommand::Import(args) => import::run_import(args, app),
        TurnkeepCommand::Bench(args) => turnkeep_bench::run_bench(args, app.out.is_json()),
        TurnkeepCommand::Detect(args) => detect::run_detect(args, app),
        TurnkeepCommand::Doctor(args) => block_on(doctor::run_doctor(args, app)),
        TurnkeepCommand::Config(command) => config::run_config(command, app),
        TurnkeepCommand::Completions(args) => completions::run_completions(args, app),
        TurnkeepCommand::Complete(args) => complete::run_complete(args, app),
        TurnkeepCommand::Watch(args) => block_on(watch::run_watch(args, app)),
        TurnkeepCommand::AgentTerminal(args) => agent_terminal::run_agent_terminal(args, app),
        TurnkeepCommand::Wrap(args) => wrap::run_wrap(args, app),
    }
}
