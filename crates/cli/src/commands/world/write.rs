//! Writing in a person's name.

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_ledger::fault::explain_rejection;

use crate::commands::App;
use crate::failure::Failure;
use crate::http::{Call, Http, Refused, Written};
use crate::ledger::{Cast, entries, envelope, fresh_id, path};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::text_of;

/// Write an entry in a person's name
///
/// It stays for ever as it is: a correction is a new entry. Without --to everyone may see it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world write payments --as PLANNER \"CODER takes the rounding test.\"
  turnkeep world write payments --as PLANNER --to REVIEWER \"Look twice at the migration.\"
  turnkeep world write payments --as PLANNER --key r-18 \"…\"       the same key again changes nothing")]
pub(crate) struct Args {
    /// The world
    world: String,
    /// In whose name [default: the person whose token it is]
    #[arg(long = "as", value_name = "PERSON")]
    person: Option<String>,
    /// Who may see it besides the author; may be repeated; the operator by label, or as GEORGE
    #[arg(long, value_name = "PERSON")]
    to: Vec<String>,
    /// The request's id: the same again gives the same answer
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The words
    text: String,
}

pub(super) async fn run(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    let request = args.key.clone().map_or_else(fresh_id, Ok)?;
    let cast = Cast::of(http, &args.world).await?;
    let person = author(http, args, &cast)?;
    let readers = args
        .to
        .iter()
        .map(|to| cast.resolve(to))
        .collect::<Result<Vec<_>>>()?;
    let bundle = bundle(args, &person, &readers, &request);
    let body = json!({ "envelope": envelope(&request, ""), "bundle": bundle });
    let call = Call::post(path(&args.world, "/beats"), &body).query("as", &person);
    let Written {
        answer, replayed, ..
    } = http.write(call).await.map_err(rejected)?;
    if app.out.is_json() {
        return app.out.json(&answer);
    }
    let entry = entries(&answer, "/bundle/entries")
        .first()
        .unwrap_or(&Value::Null);
    let id = app.out.paint(Style::Id, text_of(entry, "entry_id"));
    let done = if replayed { "already wrote" } else { "wrote" };
    let to = readers
        .iter()
        .map(|to| printable(cast.name(to)))
        .collect::<Vec<_>>()
        .join(", ");
    let to = if to.is_empty() {
        "everyone".to_owned()
    } else {
        to
    };
    app.out.line(format!("{done} {id} to {to}"))
}

/// Whose name it is: the one that was given, or the token's. The owner's is nobody's.
fn author(http: &Http, args: &Args, cast: &Cast) -> Result<String> {
    if let Some(person) = &args.person {
        let author = cast.resolve(person)?;
        if Cast::is_operator(&author) {
            let failure = Failure::usage("only `turnkeep invoke` speaks as the operator");
            return Err(failure.hint("name a person with --as").into());
        }
        return Ok(author);
    }
    if !http.is_a_person() {
        let failure = Failure::usage("nobody is named in whose name to write");
        return Err(failure
            .hint("name a person with --as; `turnkeep invoke` speaks as the operator")
            .into());
    }
    Ok(cast.view.clone())
}

fn bundle(args: &Args, person: &str, readers: &[String], request: &str) -> Value {
    let visibility = if readers.is_empty() {
        json!({ "scope": "PUBLIC" })
    } else {
        json!({ "scope": "PRIVATE", "visible_to": readers })
    };
    json!({
        "bundle_id": null,
        "request_id": request,
        "proposed_by": { "engine": "turnkeep-cli", "actor": person },
        "entries": [{
            "request_id": request,
            "author": { "author_id": person, "author_class": "PERSON" },
            "visibility": visibility,
            "channel": "PEOPLE",
            "text": args.text,
        }],
        "wrote": true,
    })
}

/// A rejected bundle is no error form: its reason is inside.
fn rejected(error: anyhow::Error) -> anyhow::Error {
    let reason = error
        .downcast_ref::<Refused>()
        .and_then(|refused| refused.rejection.clone());
    let Some(reason) = reason else { return error };
    let failure = Failure::new(format!(
        "the entry was refused: {}",
        explain_rejection(&reason)
    ));
    match reason.split(':').next().unwrap_or_default() {
        "VISIBILITY_INVALID" => {
            failure.hint("`turnkeep world person WORLD list` lists who may be named with --to")
        }
        "TEXT_EMPTY" => failure.hint("give some words"),
        "AUTHOR_UNKNOWN" => failure.hint("`turnkeep world person WORLD add PERSON` adds somebody"),
        _ => failure,
    }
    .into()
}
