//! `turnkeep bench`: what this machine allows, and how near the store comes to it.

use anyhow::Result;

/// Measure this machine
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, _json: bool) -> Result<()> {
    Ok(())
}
