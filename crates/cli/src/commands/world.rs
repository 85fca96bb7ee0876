//! `turnkeep world`: makes, reads and checks worlds, and manages their people and tokens.

mod make;
mod people;
mod read;
mod token;
mod verify;
mod write;

use anyhow::Result;
use clap::Subcommand;

use super::App;
use crate::session::{Need, StoreSession, with_store};

/// Make, show and check worlds, and manage their people and tokens
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep world new payments --person PLANNER --person CODER
  turnkeep world token payments PLANNER --write --mcp claude
  turnkeep world write payments --as PLANNER --to CODER \"Look twice at the migration.\"
  turnkeep world knew payments CODER --vs PLANNER

`turnkeep invoke`, `stream`, `search` and `capsule` work in a world.")]
pub(crate) enum WorldCommand {
    New(make::WorldNewArgs),
    List(make::WorldListArgs),
    Show(make::WorldShowArgs),
    Fork(make::WorldForkArgs),
    Person(people::WorldPersonArgs),
    Token(token::WorldTokenArgs),
    Write(write::WorldWriteArgs),
    Knew(read::WorldKnewArgs),
    Verify(verify::WorldVerifyArgs),
    Audit(read::WorldAuditArgs),
    Export(read::WorldExportArgs),
}

pub(crate) async fn run_world(command: &WorldCommand, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let work = async |session: &mut StoreSession| dispatch_world(command, session, app).await;
    with_store(&config, command.need(), work).await
}

impl WorldCommand {
    fn need(&self) -> Need {
        match self {
            Self::New(_) | Self::Fork(_) | Self::Person(_) | Self::Token(_) | Self::Write(_) => {
                Need::Write
            }
            Self::List(_)
            | Self::Show(_)
            | Self::Knew(_)
            | Self::Verify(_)
            | Self::Audit(_)
            | Self::Export(_) => Need::Read,
        }
    }
}

async fn dispatch_world(
    command: &WorldCommand,
    session: &mut StoreSession,
    app: &mut App,
) -> Result<()> {
    let http = &mut session.http;
    match command {
        WorldCommand::New(args) => make::run_world_new(http, args, app).await,
        WorldCommand::List(args) => make::run_world_list(http, args, app).await,
        WorldCommand::Show(args) => make::run_world_show(http, args, app).await,
        WorldCommand::Fork(args) => make::run_world_fork(http, args, app).await,
        WorldCommand::Person(args) => people::run_world_person(http, args, app).await,
        WorldCommand::Token(args) => token::run_world_token(session, args, app).await,
        WorldCommand::Write(args) => write::run_world_write(http, args, app).await,
        WorldCommand::Knew(args) => read::run_world_knew(http, args, app).await,
        WorldCommand::Verify(args) => verify::run_world_verify(http, args, app).await,
        WorldCommand::Audit(args) => read::run_world_audit(http, args, app).await,
        WorldCommand::Export(args) => read::run_world_export(http, args, app).await,
    }
}
