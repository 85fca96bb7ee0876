//! `turnkeep complete`: prints the words that a shell may suggest for a line that is being typed.
//! The scripts of `turnkeep completions` call it at every key.
//!
//! It never fails and never waits for long: a shell without suggestions is better than one that
//! hangs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use turnkeep_client::broker::Connection;
use turnkeep_types::broker::{Role, SessionInfo};

use super::App;
use super::run::words::{approval_words, node_words, run_words};
use crate::answer::{list_at, text_of};
use crate::broker::broker_socket_path;
use crate::command_line;
use crate::completion::{Completion, ValueKind, complete_line};
use crate::config::ReachFlags;
use crate::http::{Call, Http};
use crate::output::Output;
use crate::runtime::block_on;
use crate::session::{Need, StoreSession, with_store};

/// The longest that a key press may wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The most suggestions of one kind.
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
    // In `--option=value` only the value is completed. The shell replaces the whole word, so the
    // part before the value is printed again.
    let (kept, typed) = match typed.split_once('=') {
        Some((option, value)) if option.starts_with("--") => (format!("{option}="), value),
        _ => (String::new(), typed),
    };
    let mut words = suggestions(&args.words, app);
    words.retain(|word| word.starts_with(typed) && is_plain_word(word));
    for word in words.iter().take(VALUES_MAX) {
        app.out.line(format!("{kept}{word}"))?;
    }
    Ok(())
}

/// The words that may stand at the end of the line, whatever has been typed of the last one.
fn suggestions(words: &[String], app: &mut App) -> Vec<String> {
    match complete_line(&command_line(), words) {
        Completion::Words(words) => words,
        // An error would appear in the middle of the line that the person types.
        Completion::Values(kind) => values_of_kind(kind, words, app).unwrap_or_default(),
        Completion::Anything => Vec::new(),
    }
}

/// Whether a word can be inserted into a command line without quotes. The shell inserts it as it
/// is, and names come from other programs: a name such as `x;reboot` must not become a command.
fn is_plain_word(word: &str) -> bool {
    word.chars()
        .all(|c| c.is_ascii_alphanumeric() || "._@:/=+-".contains(c))
}

fn values_of_kind(kind: ValueKind, words: &[String], app: &mut App) -> Result<Vec<String>> {
    match kind {
        ValueKind::Sinks => Ok(SINKS.map(str::to_owned).to_vec()),
        ValueKind::Sessions => session_names(),
        ValueKind::Presets => {
            let presets = app.config()?.presets;
            Ok(presets.names().into_iter().map(str::to_owned).collect())
        }
        ValueKind::Worlds => names_in_store(StoredNames::WORLDS, words, app),
        ValueKind::Contexts => names_in_store(StoredNames::CONTEXTS, words, app),
        ValueKind::Types => names_in_store(StoredNames::TYPES, words, app),
        ValueKind::Runs => served_words(run_words, words, app),
        ValueKind::Nodes => served_words(node_words, words, app),
        ValueKind::Approvals => served_words(approval_words, words, app),
    }
}

/// Asks the running server that the line names. Runs have no other place.
fn served_words(
    fetch: impl AsyncFnOnce(&App) -> Result<Vec<String>>,
    words: &[String],
    app: &App,
) -> Result<Vec<String>> {
    let app = App {
        reach: reach_flags_in(words, &app.reach),
        out: Output::silent(),
    };
    block_on(async { tokio::time::timeout(ANSWER_WITHIN, fetch(&app)).await? })
}

/// Asks the store that the line names, and gives up before the person would notice.
fn names_in_store(stored: StoredNames, words: &[String], app: &App) -> Result<Vec<String>> {
    let config = App {
        reach: reach_flags_in(words, &app.reach),
        out: Output::silent(),
    }
    .config()?;
    let fetch = async |session: &mut StoreSession| stored.fetch(&mut session.http).await;
    block_on(async {
        tokio::time::timeout(ANSWER_WITHIN, with_store(&config, Need::Read, fetch)).await?
    })
}

/// The flags that choose the store, from the line that is being typed. They are not parsed by clap:
/// the line is not complete yet.
fn reach_flags_in(words: &[String], given: &ReachFlags) -> ReachFlags {
    // Behind `append`, `--data` is the turn's.
    let ours = words.iter().take_while(|word| *word != "append");
    let ours: Vec<&str> = ours.map(String::as_str).collect();
    let text = |flag: &str| flag_value(&ours, flag).map(str::to_owned);
    let path = |flag: &str| flag_value(&ours, flag).map(PathBuf::from);
    ReachFlags {
        data: path("--data").or_else(|| given.data.clone()),
        server: text("--server").or_else(|| given.server.clone()),
        token: text("--token").or_else(|| given.token.clone()),
        tls_ca: path("--tls-ca").or_else(|| given.tls_ca.clone()),
        config: path("--config").or_else(|| given.config.clone()),
    }
}

/// The value of a flag, written as `--flag value` or `--flag=value`.
fn flag_value<'a>(words: &[&'a str], flag: &str) -> Option<&'a str> {
    let joined = format!("{flag}=");
    for (at, word) in words.iter().enumerate() {
        if *word == flag {
            return words.get(at + 1).copied();
        }
        if let Some(value) = word.strip_prefix(&joined) {
            return Some(value);
        }
    }
    None
}

/// Names and ids of sessions.
fn session_names() -> Result<Vec<String>> {
    // A shorter time limit than for other commands: a person waits at the keyboard.
    let mut broker = Connection::open(&broker_socket_path()?, Role::Client, ANSWER_WITHIN)?;
    let sessions = broker.sessions(true)?;
    let name_of = |session: &SessionInfo| session.name.as_ref().unwrap_or(&session.session).clone();
    let mut names: Vec<String> = sessions.iter().map(name_of).collect();
    // Without a turn, `@last` names no session.
    if sessions.iter().any(|session| session.has_turn) {
        names.push("@last".to_owned());
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// A list in the store, and the field of its items that is a name.
#[derive(Clone, Copy)]
struct StoredNames {
    path: &'static str,
    list: &'static str,
    name: &'static str,
}

impl StoredNames {
    const WORLDS: Self = Self {
        path: "/v1/worlds",
        list: "/worlds",
        name: "world_id",
    };
    const CONTEXTS: Self = Self {
        path: "/v1/contexts",
        list: "/contexts",
        name: "context_id",
    };
    const TYPES: Self = Self {
        path: "/v1/registry/types",
        list: "/types",
        name: "type_id",
    };

    async fn fetch(&self, http: &mut Http) -> Result<Vec<String>> {
        // Only contexts are many. The other routes take no limit.
        let limit = (self.path == Self::CONTEXTS.path).then_some(VALUES_MAX);
        let call = Call::get(self.path).query_if("limit", limit);
        let answer = http.json(call).await?;
        let mut names = Vec::new();
        for item in list_at(&answer, self.list) {
            let name = text_of(item, self.name);
            match list_at(item, "/versions") {
                [] => names.push(name.to_owned()),
                versions => {
                    names.extend(versions.iter().map(|version| format!("{name}@{version}")));
                }
            }
        }
        Ok(names)
    }
}
