//! `turnkeep world write`: writes an entry in a person's name.

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_ledger::fault::explain_rejection;

use crate::answer::{list_at, text_of};
use crate::commands::App;
use crate::failure::Failure;
use crate::http::{Call, Http, HttpRefusal, Written};
use crate::ledger::{Cast, beat_envelope, fresh_id, world_path};
use crate::output::Style;
use crate::render::printable;

/// Write an entry in a person's name
///
/// It stays for ever as it is: a correction is a new entry. Without --to everyone may see it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world write payments --as PLANNER \"CODER takes the rounding test.\"
  turnkeep world write payments --as PLANNER --to REVIEWER \"Look twice at the migration.\"
  turnkeep world write payments --as PLANNER --key r-18 \"…\"       the same key again changes nothing")]
pub(crate) struct WorldWriteArgs {
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

pub(super) async fn run_world_write(
    http: &mut Http,
    args: &WorldWriteArgs,
    app: &mut App,
) -> Result<()> {
    let request = args.key.clone().map_or_else(fresh_id, Ok)?;
    let cast = Cast::load(http, &args.world).await?;
    let person = choose_author(http, args, &cast)?;
    let readers = args.to.iter().map(|to| cast.resolve_name(to));
    let readers = readers.collect::<Result<Vec<_>>>()?;
    let bundle = bundle_body(args, &person, &readers, &request);
    let body = json!({ "envelope": beat_envelope(&request, ""), "bundle": bundle });
    let call = Call::post(world_path(&args.world, "/beats"), &body).query("as", &person);
    let written = http.write(call).await.map_err(explain_rejection_of)?;
    if app.out.is_json() {
        return app.out.json(&written.answer);
    }
    print_written(&written, &readers, &cast, app)
}

fn print_written(written: &Written, readers: &[String], cast: &Cast, app: &mut App) -> Result<()> {
    let entries = list_at(&written.answer, "/bundle/entries");
    let id = text_of(entries.first().unwrap_or(&Value::Null), "entry_id");
    let id = app.out.paint(Style::Id, id);
    let done = if written.replayed {
        "already wrote"
    } else {
        "wrote"
    };
    let names: Vec<String> = readers
        .iter()
        .map(|reader| printable(cast.display_name(reader)))
        .collect();
    let to = if names.is_empty() {
        "everyone".to_owned()
    } else {
        names.join(", ")
    };
    app.out.line(format!("{done} {id} to {to}"))
}

/// The author: the person of `--as`, or else the person whose token it is. The owner's token is not
/// a person's, so the owner has to name one.
fn choose_author(http: &Http, args: &WorldWriteArgs, cast: &Cast) -> Result<String> {
    if let Some(person) = &args.person {
        let author = cast.resolve_name(person)?;
        // The operator's words have their own route, which also asks the attached writer.
        if Cast::is_operator(&author) {
            return Failure::usage("only `turnkeep invoke` speaks as the operator")
                .hint("name a person with --as")
                .fail();
        }
        return Ok(author);
    }
    if !http.has_person_token() {
        return Failure::usage("the author is missing")
            .hint("name a person with --as; `turnkeep invoke` speaks as the operator")
            .fail();
    }
    Ok(cast.view.clone())
}

fn bundle_body(args: &WorldWriteArgs, person: &str, readers: &[String], request: &str) -> Value {
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

/// Turns a rejected bundle into a readable failure. The server answers a rejection with the bundle,
/// and not with the usual form of an error; the reason is inside.
fn explain_rejection_of(error: anyhow::Error) -> anyhow::Error {
    let refused = error.downcast_ref::<HttpRefusal>();
    let Some(reason) = refused.and_then(|refused| refused.rejection.clone()) else {
        return error;
    };
    let explained = explain_rejection(&reason);
    let failure = Failure::new(format!("the entry was refused: {explained}"));
    // Details of a reason follow a colon.
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
