//! `turnkeep bench`: what this machine's disk and network allow, and how near the store comes to
//! it.
//!
//! Each figure of the store stands beside a bare one of the same run: a server that only parses
//! frames, checks hashes and group-commits, and a file that is only written and synced. Client and
//! server are two processes. Everything is bounded in count and time, works in a scratch directory
//! and leaves nothing behind; a child ends with the benchmark even when that is killed.

mod append;
mod bare_file;
mod bare_server;
mod broker;
mod child;
mod connect;
mod engine;
mod figures;
mod http;
mod http_client;
mod kept;
mod ledger;
mod load;
mod memory;
mod payload;
mod protocol;
mod reads;
mod report;
mod runs;
mod scratch;
mod table;
mod wrap;

use std::path::PathBuf;

use anyhow::Result;

use self::child::{BareProcess, ServerProcess};
use self::scratch::ScratchDir;
use self::table::Table;

/// Measure this machine: the store beside a bare server and a bare file.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  turnkeep bench                      the whole table, about four minutes
  turnkeep bench --only append64      one row
  turnkeep bench --quick              see that it works; the figures mean nothing
  turnkeep bench --write docs/performance.md
  turnkeep bench ledger               search over a ledger: quality, speed and size
  turnkeep bench runs                 runs of agents: a large one, and many that stream")]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: Option<BenchCommand>,
    /// Run everything once and tiny, to see that it works
    #[arg(long)]
    quick: bool,
    /// Measure only this; may be given several times
    #[arg(long, value_enum, value_name = "NAME")]
    only: Vec<Measurement>,
    /// Bytes of a payload
    #[arg(long, default_value_t = 1024, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=65_536))]
    payload: u32,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Rounds of each measurement; the median counts
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Where to write; must be on the disk in question [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the table with its method to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Run as a child process of the benchmark, on `--dir`
    #[arg(long, hide = true, value_enum, requires = "dir")]
    child: Option<child::Role>,
}

/// Measurements with a table of their own.
#[derive(Debug, Clone, clap::Subcommand)]
enum BenchCommand {
    Ledger(ledger::BenchLedgerArgs),
    Runs(runs::BenchRunsArgs),
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Measurement {
    /// Appends on one connection, one in flight
    Append1,
    /// Appends on 8 connections, one in flight each
    Append8,
    /// Appends on 64 connections, one in flight each
    Append64,
    /// Appends on 8 connections, 64 in flight each
    Pipelined,
    /// Reads of the last 64 turns with payload
    Reads,
    /// The store in process against a bare file
    Engine,
    /// Memory, disk and restart at a million small turns
    Memory,
    /// Typed pages of 64 turns over HTTP
    Http,
    /// Connect and HELLO
    Connect,
    /// The wrapper against `script`, and against no wrapper
    Wrap,
    /// Turns that `wrap --keep` makes durable
    Kept,
    /// The broker with 200 sessions, and captures meanwhile
    Broker,
}

/// How much to do, resolved from the arguments.
#[derive(Debug, Clone)]
struct Effort {
    payload: usize,
    rounds: usize,
    /// Of one measurement.
    millis: u64,
    /// In the test of memory and restart.
    turns: usize,
    quick: bool,
}

impl Effort {
    fn from_args(args: &BenchArgs) -> Self {
        let payload = args.payload as usize;
        if args.quick {
            return Self {
                payload,
                rounds: 1,
                millis: 50,
                turns: 4_096,
                quick: true,
            };
        }
        let millis = u64::from(args.seconds) * 1000;
        Self {
            payload,
            rounds: args.rounds as usize,
            millis,
            turns: 1_000_000,
            quick: false,
        }
    }

    /// The first value in a quick run, else the second.
    fn quick_or<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// Runs the benchmark, or the part of a child process.
pub fn run_bench(args: &BenchArgs, json: bool) -> Result<()> {
    match &args.command {
        Some(BenchCommand::Ledger(args)) => return ledger::run_bench_ledger(args, json),
        Some(BenchCommand::Runs(args)) => return runs::run_bench_runs(args, json),
        None => {}
    }
    if let (Some(role), Some(dir)) = (args.child, &args.dir) {
        return child::play_role(role, dir, args.payload as usize);
    }
    let scratch = ScratchDir::create(args.dir.as_deref())?;
    let effort = Effort::from_args(args);
    let table = measure_all(args, &effort, &scratch)?;
    if json {
        println!("{}", table.to_json_text());
    } else {
        print!("{}", table.to_text());
    }
    match &args.write {
        Some(path) => report::write_report(path, &table, &effort, &scratch),
        None => Ok(()),
    }
}

impl BenchArgs {
    fn wants(&self, name: Measurement) -> bool {
        self.only.is_empty() || self.only.contains(&name)
    }
}

fn measure_all(args: &BenchArgs, effort: &Effort, scratch: &ScratchDir) -> Result<Table> {
    let mut table = Table::new(!effort.quick);
    measure_with_server(&mut table, args, effort, scratch)?;
    // These start servers of their own, and want the machine for themselves.
    if args.wants(Measurement::Memory) {
        table.add_rows(memory::measure_memory(effort, scratch)?);
    }
    if args.wants(Measurement::Wrap) {
        table.add_rows(wrap::measure_wrap(effort, scratch)?);
    }
    if args.wants(Measurement::Kept) {
        table.add_rows(kept::measure_kept(effort, scratch)?);
    }
    if args.wants(Measurement::Broker) {
        table.add_rows(broker::measure_broker(effort, scratch)?);
    }
    Ok(table)
}

/// Measures what can share one server, which ends with this call.
fn measure_with_server(
    table: &mut Table,
    args: &BenchArgs,
    effort: &Effort,
    scratch: &ScratchDir,
) -> Result<()> {
    let bare = BareProcess::start(scratch, effort.payload)?;
    let server = ServerProcess::start(&scratch.create_folder("server")?)?;
    for shape in append::SHAPES.iter().filter(|shape| args.wants(shape.name)) {
        table.add_rows(append::measure_shape(shape, effort, &bare, &server)?);
    }
    if args.wants(Measurement::Reads) {
        table.add_rows(reads::measure_reads(effort, &bare, &server)?);
    }
    if args.wants(Measurement::Engine) {
        table.add_rows(engine::measure_engine(effort, scratch)?);
    }
    if args.wants(Measurement::Http) {
        table.add_rows(http::measure_pages(effort, &server)?);
    }
    if args.wants(Measurement::Connect) {
        table.add_rows(connect::measure_connect(effort, &bare, &server)?);
    }
    Ok(())
}

/// Tells the person at the terminal what is going on; figures go to standard output only.
fn report_progress(what: &str) {
    eprintln!("bench: {what}");
}
