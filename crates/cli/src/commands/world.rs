//! `turnkeep world`: ledgers, their people and their tokens.

mod make;
mod people;
mod read;
mod token;
mod verify;
mod write;

use anyhow::Result;
use clap::Subcommand;

use super::App;
use crate::session::{Need, Session};

/// Make, show and check worlds, and manage their people and tokens
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep world new payments --person PLANNER --person CODER
  turnkeep world token payments PLANNER --write --mcp claude
  turnkeep world write payments --as PLANNER --to CODER \"Look twice at the migration.\"
  turnkeep world knew payments CODER --vs PLANNER

`turnkeep invoke`, `stream`, `search` and `capsule` work in a world.")]
pub(crate) enum Command {
    New(make::NewArgs),
    List(make::ListArgs),
    Show(make::ShowArgs),
    Fork(make::ForkArgs),
    Person(people::Args),
    Token(token::Args),
    Write(write::Args),
    Knew(read::KnewArgs),
    Verify(verify::Args),
    Audit(read::AuditArgs),
    Export(read::ExportArgs),
}

pub(crate) async fn run(command: &Command, app: &mut App) -> Result<()> {
    let reads = matches!(
        command,
        Command::List(_)
            | Command::Show(_)
            | Command::Knew(_)
            | Command::Verify(_)
            | Command::Audit(_)
            | Command::Export(_)
    );
    let mut session =
        Session::open(&app.config()?, if reads { Need::Read } else { Need::Write }).await?;
    let done = match command {
        Command::New(args) => make::new(&mut session.http, args, app).await,
        Command::List(args) => make::list(&mut session.http, args, app).await,
        Command::Show(args) => make::show(&mut session.http, args, app).await,
        Command::Fork(args) => make::fork(&mut session.http, args, app).await,
        Command::Person(args) => people::run(&mut session.http, args, app).await,
        Command::Token(args) => token::run(&mut session, args, app).await,
        Command::Write(args) => write::run(&mut session.http, args, app).await,
        Command::Knew(args) => read::knew(&mut session.http, args, app).await,
        Command::Verify(args) => verify::run(&mut session.http, args, app).await,
        Command::Audit(args) => read::audit(&mut session.http, args, app).await,
        Command::Export(args) => read::export(&mut session.http, args, app).await,
    };
    session.close().await;
    done
}
