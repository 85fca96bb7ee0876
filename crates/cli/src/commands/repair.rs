use anyhow::Result;
use super::App;
/// X
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_: &Args, _: &mut App) -> Result<()> { Ok(()) }
