//! `turnkeep keep`: appends a captured turn to the turn store.

use anyhow::Result;
use serde_json::json;

use super::{App, turn};
use crate::broker::store_link::StoreLink;
use crate::names::CapturedName;
use crate::output::Style;
use crate::render::printable;

/// Keep a captured turn in the turn store
///
/// It is appended to the context of its session, which is made when its first turn is kept. Keeping
/// a turn again changes nothing. The context has the labels session, name and preset, by which it
/// is found.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep keep review:3
  turnkeep keep @last --json | jq -r .context_id
  turnkeep ctx list --label name=review   # where a session's turns are kept
  turnkeep log 1                          # what was kept of it")]
pub(crate) struct KeepArgs {
    /// The turn, such as review:3 or @last:3; a session alone means its latest
    #[arg(value_name = "SESSION[:NUMBER]")]
    turn: CapturedName,
}

pub(crate) async fn run_keep(args: &KeepArgs, app: &mut App) -> Result<()> {
    // This closes the connection to the broker before the store is opened: that may take long.
    let turn = turn::fetch_captured(&args.turn, false)?;
    let kept = StoreLink::new(app.config()?).keep_one(&turn).await?;
    if app.out.is_json() {
        let ack = json!({
            "captured": turn.info.turn_id,
            "context_id": kept.context.to_string(),
            "turn_id": kept.ack.turn.to_string(),
        });
        return app.out.json(&ack);
    }
    let id = app.out.paint(Style::Id, &format!("turn:{}", kept.ack.turn));
    app.out.line(format!(
        "kept {} as {id} of ctx:{}",
        printable(&turn.info.turn_id),
        kept.context
    ))
}
