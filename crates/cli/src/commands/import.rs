use super::App;
use anyhow::Result;
/// X
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_: &Args, _: &mut App) -> Result<()> {
    Ok(())
}
