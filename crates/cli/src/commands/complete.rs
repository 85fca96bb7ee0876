//! `turnkeep complete`: what a shell may suggest for a line that is being typed. The scripts of
//! `turnkeep completions` call it.
//!
//! It never fails and never waits for long: a shell that suggests nothing is better than one that
//! hangs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use turnkeep_client::broker::Connection;
use turnkeep_types::broker::Role;

use super::App;
use crate::answer::text_of;
use crate::broker::broker_socket_path;
use crate::command_line;
use crate::completion::{Completion, ValueKind, complete_line};
use crate::config::ReachFlags;
use crate::http::{Call, Http};
use crate::runtime::block_on;
use crate::session::{Need, StoreSession};

/// The longest that a key press may wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Things that are suggested of one kind.
const VALUES_MAX: usize = 200;
const SINKS: [&str; 5] = ["inject", "clipboard", "file", "store", "node"];

/// Print what may complete a command line, one word a line
#[derive(Debug, clap::Args)]
pub(crate) struct CompleteArgs {
    /// The words of the line so far; the last one is being typed
    #[arg(last = true)]
    words: Vec<String>,
}

pub(crate) fn run_complete(args: &CompleteArgs, app: &mut App) -> Result<()> {
    let typed = args.words.last().map(String::as_str).unwrap_or_default();
    let (kept, typed) = match typed.split_once('=') {
        Some((option, value)) if option.starts_with("--") => (format!("{option}="), value),
        _ => (String::new(), typed),
    };
    let words = match complete_line(&command_line(), &args.words) {
        Completion::Words(words) => words,
        Completion::Values(kind) => values_of_kind(kind, &args.words, app).unwrap_or_default(),
        Completion::Anything => Vec::new(),
    };
    // The shell inserts a word as it is, and names come from other programs: a name such as
    // `x;reboot` must not become a command.
    let is_plain = |word: &&String| {
        word.chars()
            .all(|c| c.is_ascii_alphanumeric() || "._@:/=+-".contains(c))
    };
    let fitting = words
        .iter()
        .filter(is_plain)
        .filter(|word| word.starts_with(typed));
    fitting
        .take(VALUES_MAX)
        .try_for_each(|word| app.out.line(format!("{kept}{word}")))
}

fn values_of_kind(kind: ValueKind, words: &[String], app: &mut App) -> Result<Vec<String>> {
    match kind {
        ValueKind::Sinks => Ok(SINKS.map(str::to_owned).to_vec()),
        ValueKind::Sessions => session_names(),
        ValueKind::Presets => Ok(app
            .config()?
            .presets
            .names()
            .into_iter()
            .map(str::to_owned)
            .collect()),
        ValueKind::Worlds | ValueKind::Contexts | ValueKind::Types => {
            let reach = reach_flags_in(words, &app.reach);
            let config = App {
                reach,
                out: crate::output::Output::silent(),
            }
            .config()?;
            block_on(async {
                let asked = async {
                    let mut session = StoreSession::open(&config, Need::Read).await?;
                    let found = stored_names(kind, &mut session.http).await;
                    session.close().await;
                    found
                };
                tokio::time::timeout(ANSWER_WITHIN, asked).await?
            })
        }
    }
}

/// The store that the line is about.
fn reach_flags_in(words: &[String], given: &ReachFlags) -> ReachFlags {
    // The `--data` of an append is the turn's.
    let ours = words.iter().take_while(|word| *word != "append");
    let ours: Vec<&str> = ours.map(String::as_str).collect();
    let value = |flag: &str| {
        let joined = format!("{flag}=");
        let behind = ours
            .windows(2)
            .find(|pair| pair.first() == Some(&flag))
            .and_then(|pair| pair.get(1));
        behind
            .copied()
            .or_else(|| ours.iter().find_map(|word| word.strip_prefix(&joined)))
    };
    let path = |flag: &str| value(flag).map(PathBuf::from);
    ReachFlags {
        data: path("--data").or_else(|| given.data.clone()),
        server: value("--server")
            .map(str::to_owned)
            .or_else(|| given.server.clone()),
        token: value("--token")
            .map(str::to_owned)
            .or_else(|| given.token.clone()),
        tls_ca: path("--tls-ca").or_else(|| given.tls_ca.clone()),
        config: path("--config").or_else(|| given.config.clone()),
    }
}

/// Names and ids of sessions.
fn session_names() -> Result<Vec<String>> {
    let mut broker = Connection::open(&broker_socket_path()?, Role::Client, ANSWER_WITHIN)?;
    let sessions = broker.sessions(true)?;
    let names = sessions.iter().map(|session| {
        session
            .name
            .clone()
            .unwrap_or_else(|| session.session.clone())
    });
    let mut names: Vec<String> = names.collect();
    if sessions.iter().any(|session| session.has_turn) {
        names.push("@last".to_owned());
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// The worlds, contexts or types of a store.
async fn stored_names(kind: ValueKind, http: &mut Http) -> Result<Vec<String>> {
    let (call, list, name) = match kind {
        ValueKind::Worlds => (Call::get("/v1/worlds"), "worlds", "world_id"),
        ValueKind::Types => (Call::get("/v1/registry/types"), "types", "type_id"),
        _ => (
            Call::get("/v1/contexts").query("limit", VALUES_MAX),
            "contexts",
            "context_id",
        ),
    };
    let answer = http.json(call).await?;
    let items = answer
        .get(list)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let names = items.iter().flat_map(|item| {
        let name = text_of(item, name).to_owned();
        let versions = item.get("versions").and_then(Value::as_array).cloned();
        match versions.filter(|_| kind == ValueKind::Types) {
            Some(versions) => versions
                .iter()
                .map(|version| format!("{name}@{version}"))
                .collect(),
            None => vec![name],
        }
    });
    Ok(names.collect())
}
