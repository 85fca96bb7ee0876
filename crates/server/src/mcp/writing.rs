//! `ledger_write`: entries in the caller's own name, committed together or not at all.
//!
//! The server builds the envelope and the bundle. Nothing in them speaks as the operator, and the
//! author is the token's person. An agent's `request_id` is the agent's own: `mcp:` and the person's
//! id are put in front of it, so two agents may use the same one. Over HTTP, only that person may use
//! such an id, so no other writer can take it first. A calendar item is given in words of the
//! entry's text; the byte ranges that the ledger keeps are found here.

use std::sync::Arc;

use serde_json::{Value, json};
use turnkeep_ledger::audience::Audience;
use turnkeep_ledger::audience_text::audience_text;
use turnkeep_ledger::entry::Entry;
use turnkeep_ledger::fact::{Outcome, PocketItem};
use turnkeep_ledger::fault::explain_rejection;
use turnkeep_ledger::ids::{EntryId, Name, TokenId};
use turnkeep_ledger::json::Node;
use turnkeep_ledger::known_persons::{KnownPerson, Refusal, find_among, known_persons};
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{Code, Fault, Principal, View, World};

use super::arguments::{Arguments, check_known_arguments};
use crate::error::{ApiError, ledger_error_code};
use crate::ledger::WorldHandle;
use crate::memory::MemoryPermit;
use crate::principal::Caller;
use crate::shared::Shared;

/// What the server calls itself in the envelopes that it builds.
const INVOKER: &str = "turnkeep-mcp";
/// The beginning of the ids that the ledger keeps for agents' requests; the person's id follows.
const AGENT_REQUEST_PREFIX: &str = "mcp:";
/// Characters of a request id, as the ledger keeps it.
const REQUEST_ID_CHARACTERS_MAX: usize = 200;
/// The arguments of one entry.
const ENTRY_ARGUMENTS: &[&str] = &["text", "visible_to", "reply_to", "calendar"];
/// The arguments of one calendar item.
const CALENDAR_ARGUMENTS: &[&str] = &["title", "time", "location", "notes", "supersedes"];

/// A person who writes.
#[derive(Clone)]
struct Author {
    handle: Arc<WorldHandle>,
    who: Principal,
    id: Name,
    /// Under which the write is counted.
    token: TokenId,
}

/// Runs the tool.
pub(super) async fn write_entries(
    shared: &Shared,
    caller: &Caller,
    arguments: Arguments,
) -> Result<Value, ApiError> {
    let author = Author::from_caller(caller)?;
    let expected_cursor = arguments
        .optional_text("expected_cursor")?
        .map(str::to_owned);
    let given = arguments.optional_text("request_id")?.map(str::to_owned);
    let request = match &given {
        Some(given) => own_request_id(&author.id, given)?,
        None => format!("mcp-{:032x}", author.handle.ids().draw()),
    };
    let mut draft = read_draft_within_rate(shared, &author, arguments, &request).await?;
    let beat = author.handle.beat(
        &author.who,
        envelope_json(&request),
        draft.take_bundle(&request, &author.id),
        expected_cursor,
        Some(shared.write_allowance(author.token)),
    );
    let answer = beat.await?;
    let outcome = answer
        .outcome
        .ok_or_else(|| ApiError::internal("a beat without an outcome"))?;
    if let Some(reason) = &outcome.rejection {
        return Err(draft.rejection_error(reason));
    }
    let mut written = author
        .handle
        .read(|world| written_json(&world.view(author.who.viewer()), &outcome));
    // The caller's own key, not the longer id under which the ledger keeps it.
    written["request_id"] = given.unwrap_or(request).into();
    written["replayed"] = answer.replayed.into();
    Ok(written)
}

/// Reads the draft, and counts the call only if that fails. A draft that names unknown persons is
/// never written, so only the tool rate limits how often a caller may try one. A draft that can be
/// read counts in the write rate instead, when its beat runs.
async fn read_draft_within_rate(
    shared: &Shared,
    author: &Author,
    arguments: Arguments,
    request: &str,
) -> Result<Draft, ApiError> {
    shared.tool_rate.check(author.token)?;
    let draft = read_draft(shared, author.clone(), arguments, request.to_owned()).await;
    if draft.is_err() {
        shared.tool_rate.admit(author.token)?;
    }
    draft
}

/// Reads the arguments with the author's view. It runs on a blocking thread, because it may have to
/// look up many names.
async fn read_draft(
    shared: &Shared,
    author: Author,
    arguments: Arguments,
    request: String,
) -> Result<Draft, ApiError> {
    let Author {
        handle, who, id, ..
    } = author;
    let read = move |world: &World| {
        let view = world.view(who.viewer());
        let reader = EntryReader {
            view: &view,
            known: &known_persons(&view),
            request: &request,
            author: &id,
        };
        let mut draft = Draft::read(&reader, &arguments.root())?;
        draft.permit = arguments.into_permit();
        Ok::<_, Fault>(draft)
    };
    shared
        .blocking(move || handle.read_long(read).map_err(ApiError::from))
        .await
}

impl Author {
    fn from_caller(caller: &Caller) -> Result<Self, ApiError> {
        let person = caller
            .person()
            .ok_or_else(|| ApiError::internal("the owner has no tool that writes"))?;
        let Principal::Person { id, .. } = &person.who else {
            return Err(ApiError::internal("a person's token without a person"));
        };
        Ok(Self {
            handle: Arc::clone(&person.handle),
            who: person.who.clone(),
            id: id.clone(),
            token: person.token.counted_as(),
        })
    }
}

/// The request id that the ledger records for an agent's own id. If the id is too long with the
/// person's id in front of it, its hash takes its place.
fn own_request_id(person: &Name, given: &str) -> Result<String, Fault> {
    let has_valid_length = (1..=REQUEST_ID_CHARACTERS_MAX).contains(&given.chars().count());
    if !has_valid_length || given.chars().any(char::is_control) {
        let message = "must be 1 to 200 characters without control characters";
        return Err(Fault::new(Code::RequestIdInvalid, "request_id", message));
    }
    let own = format!("{AGENT_REQUEST_PREFIX}{person}:{given}");
    if own.chars().count() <= REQUEST_ID_CHARACTERS_MAX {
        return Ok(own);
    }
    let hash = blake3::hash(given.as_bytes()).to_hex();
    Ok(format!("{AGENT_REQUEST_PREFIX}{person}:{hash}"))
}

/// Rejects a request id over HTTP that is kept for the agents of somebody else than the caller.
pub(crate) fn check_not_of_another_agent(
    who: &Principal,
    request_id: &str,
    path: &str,
) -> Result<(), Fault> {
    let Some(rest) = request_id.strip_prefix(AGENT_REQUEST_PREFIX) else {
        return Ok(());
    };
    let is_own = match who {
        Principal::Person { id, .. } => rest
            .strip_prefix(id.as_str())
            // The colon ends the name: ANN may not use the ids that belong to ANNA.
            .is_some_and(|rest| rest.starts_with(':')),
        Principal::Owner | Principal::System => false,
    };
    if is_own {
        return Ok(());
    }
    let message = "must not begin with `mcp:`, unless your own id and a colon follow: such ids belong to agents";
    Err(Fault::new(Code::RequestIdInvalid, path, message))
}

/// The envelope of a write. Nothing in it speaks as the operator.
fn envelope_json(request: &str) -> Value {
    json!({
        "request_id": request,
        "invoker": { "invoker_id": INVOKER, "invoker_role": "INVOKER", "notes": null },
        "operator": { "operator_id": "GEORGE", "input_text": "" },
        "mode": { "kind": "BEAT", "client_intent": null },
    })
}

/// The entries and items to write, and the argument from which each of them was read.
#[derive(Default)]
struct Draft {
    entries: Vec<Value>,
    items: Vec<Value>,
    entry_paths: Vec<String>,
    item_paths: Vec<String>,
    /// The permit of the arguments: the entries repeat their texts.
    permit: Option<MemoryPermit>,
}

impl Draft {
    fn read(reader: &EntryReader<'_>, arguments: &Node<'_>) -> Result<Self, Fault> {
        let mut draft = Self::default();
        let Some(several) = arguments.optional("entries")? else {
            draft.add_entry(reader, arguments)?;
            return Ok(draft);
        };
        // Not ignored: a reader list beside `entries` would otherwise be lost, and the entries public.
        for name in ENTRY_ARGUMENTS {
            if let Some(single) = arguments.optional(name)? {
                return Err(single.fault("belongs into an entry of `entries`"));
            }
        }
        for node in several.items()? {
            check_known_arguments(&node, ENTRY_ARGUMENTS)?;
            draft.add_entry(reader, &node)?;
        }
        Ok(draft)
    }

    fn add_entry(&mut self, reader: &EntryReader<'_>, node: &Node<'_>) -> Result<(), Fault> {
        let text = node.field("text")?.text()?;
        for (number, item) in node.optional_items("calendar")?.iter().enumerate() {
            self.items
                .push(calendar_item(item, self.entries.len(), text)?);
            self.item_paths
                .push(join_path(&node.path, &format!("calendar[{number}]")));
        }
        self.entries.push(reader.entry(node, text)?);
        self.entry_paths.push(node.path.clone());
        Ok(())
    }

    /// Moves the entries and items into a bundle. The draft must live on, because it holds their
    /// permit.
    fn take_bundle(&mut self, request: &str, author: &Name) -> Value {
        let mut bundle = json!({
            "bundle_id": null,
            "request_id": request,
            "proposed_by": { "engine": "mcp", "actor": author.as_str() },
            "entries": [],
            "wrote": true,
        });
        bundle["entries"] = std::mem::take(&mut self.entries).into();
        if !self.items.is_empty() {
            bundle["pocket_items"] = std::mem::take(&mut self.items).into();
        }
        bundle
    }

    /// The error for a rejected bundle: a sentence, with the code and the path behind it. The reason
    /// has the form `CODE: path`; the error names the path in the caller's arguments instead,
    /// because the caller did not build the bundle.
    fn rejection_error(&self, reason: &str) -> ApiError {
        let (word, path) = reason.split_once(": ").unwrap_or((reason, ""));
        let mut codes = Code::ALL.iter().copied();
        let code = codes.find(|code| code.word() == word);
        let code = ledger_error_code(code.unwrap_or(Code::Shape));
        let path = self.argument_path(path);
        let why = explain_rejection(&format!("{word}: {path}"));
        let message = format!("nothing was written: {why}");
        ApiError::new(code, message).with("path", path)
    }

    /// Translates a path of the bundle: `entries[0].visibility.visible_to` is the argument
    /// `visible_to`, or `entries[0].visible_to` if the caller gave several entries.
    fn argument_path(&self, path: &str) -> String {
        let in_entries = translate_path(path, "entries[", &self.entry_paths);
        in_entries
            .or_else(|| translate_path(path, "pocket_items[", &self.item_paths))
            .unwrap_or_else(|| path.to_owned())
    }
}

/// Replaces the place in a list of the bundle by the argument that was read into it. `None` if the
/// path is not in that list.
fn translate_path(path: &str, list: &str, arguments: &[String]) -> Option<String> {
    let (number, rest) = path.strip_prefix(list)?.split_once(']')?;
    let number: Option<usize> = number.parse().ok();
    let argument = number.and_then(|number| arguments.get(number));
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    // The arguments have no `visibility` around the audience.
    let rest = rest.strip_prefix("visibility.").unwrap_or(rest);
    Some(join_path(argument.map_or("", String::as_str), rest))
}

fn join_path(path: &str, rest: &str) -> String {
    match (path, rest) {
        ("", rest) => rest.to_owned(),
        (path, "") => path.to_owned(),
        (path, rest) => format!("{path}.{rest}"),
    }
}

/// Reads entries as one author gives them.
struct EntryReader<'a> {
    view: &'a View<'a>,
    known: &'a [KnownPerson],
    request: &'a str,
    author: &'a Name,
}

impl EntryReader<'_> {
    fn entry(&self, node: &Node<'_>, text: &str) -> Result<Value, Fault> {
        let answered = self.replied_entry(node)?;
        let readers = match (node.optional("visible_to")?, &answered) {
            (Some(named), _) => Some(self.readers(&named)?),
            // A reply is private if the entry that it answers is. Otherwise a forgotten
            // `visible_to` would show everyone what was said in confidence.
            (None, Some(answered)) => answered.readers.clone(),
            (None, None) => None,
        };
        let visibility = match readers {
            None => json!({ "scope": "PUBLIC" }),
            Some(readers) => json!({ "scope": "PRIVATE", "visible_to": readers }),
        };
        let mut entry = json!({
            "request_id": self.request,
            "author": { "author_id": self.author.as_str(), "author_class": "PERSON" },
            "visibility": visibility,
            "channel": "PEOPLE",
            "text": text,
        });
        if let Some(answered) = answered {
            entry["reply_to"] = answered.id.to_string().into();
        }
        Ok(entry)
    }

    fn readers(&self, named: &Node<'_>) -> Result<Vec<String>, Fault> {
        let mut readers: Vec<String> = Vec::new();
        for node in named.items()? {
            let refusal = Refusal {
                code: Code::VisibilityInvalid,
                path: &node.path,
            };
            let reader = find_among(self.known, self.view, node.text()?, refusal)?.to_string();
            // A label and an id may name the same person.
            if !readers.contains(&reader) {
                readers.push(reader);
            }
        }
        Ok(readers)
    }

    /// The entry that is replied to. An unknown one and a hidden one are rejected alike, so that an
    /// answer does not reveal which ids exist.
    fn replied_entry(&self, node: &Node<'_>) -> Result<Option<RepliedEntry>, Fault> {
        let Some(given) = node.optional("reply_to")? else {
            return Ok(None);
        };
        let id: Option<EntryId> = given.text()?.parse().ok();
        let Some(entry) = id.and_then(|id| self.view.entry(id)) else {
            let message = "is no entry that you may see: give an entry_id that you were shown";
            return Err(Fault::new(Code::ProvenanceInvalid, given.path, message));
        };
        let readers = match Audience::of_entry(entry) {
            Audience::Public => None,
            Audience::Readers(readers) => Some(self.readers_besides_author(&readers)),
        };
        Ok(Some(RepliedEntry {
            id: entry.id,
            readers,
        }))
    }

    /// The readers besides the author, or the author alone if there is no other.
    fn readers_besides_author(&self, readers: &[Name]) -> Vec<String> {
        let others: Vec<String> = readers
            .iter()
            .filter(|reader| *reader != self.author)
            .map(Name::to_string)
            .collect();
        if others.is_empty() {
            vec![self.author.to_string()]
        } else {
            others
        }
    }
}

/// An entry that is replied to, and who else may see it; `None` means everyone.
struct RepliedEntry {
    id: EntryId,
    readers: Option<Vec<String>>,
}

/// A calendar item whose words are parts of the entry's text.
fn calendar_item(node: &Node<'_>, entry_index: usize, text: &str) -> Result<Value, Fault> {
    check_known_arguments(node, CALENDAR_ARGUMENTS)?;
    let mut item = json!({ "kind": "CALENDAR", "entry_index": entry_index });
    for part in ["title", "location", "notes"] {
        if let Some(words) = node.optional(part)? {
            item[part] = range_of(&words, text)?;
        }
    }
    for field in ["time", "supersedes"] {
        if let Some(value) = node.optional(field)? {
            item[field] = value.text()?.into();
        }
    }
    Ok(item)
}

/// The byte range of words in a text.
fn range_of(words: &Node<'_>, text: &str) -> Result<Value, Fault> {
    let wanted = words.text()?;
    // The empty text would be found at the beginning of every text.
    if let Some(start) = text.find(wanted).filter(|_| !wanted.is_empty()) {
        return Ok(json!([start, start + wanted.len()]));
    }
    let message = "must be words of the entry's text, letter by letter";
    Err(Fault::new(Code::PocketInvalid, words.path.clone(), message))
}

/// What was written, without its words: the caller has them.
fn written_json(view: &View<'_>, outcome: &Outcome) -> Value {
    let mut entries: Vec<Value> = Vec::new();
    let mut items: Vec<Value> = Vec::new();
    if let Some(id) = outcome.bundle {
        let written = view.entries_of_bundle(id);
        entries.extend(written.map(|(_, entry)| written_entry(view, entry)));
        items.extend(view.items_of_bundle(id).map(written_item));
    }
    let mut answer = json!({
        "bundle_id": outcome.bundle.map(|id| id.to_string()),
        "entries": entries,
        "cursor_after": outcome.cursor_after,
    });
    if !items.is_empty() {
        answer["calendar"] = items.into();
    }
    answer
}

fn written_entry(view: &View<'_>, entry: &Entry) -> Value {
    let mut shown = json!({
        "entry_id": entry.id.to_string(),
        "created_at_world": entry.time.as_str(),
        "audience": audience_text(view, entry),
    });
    if let Some(answered) = entry.reply_to {
        shown["reply_to"] = answered.to_string().into();
    }
    shown
}

fn written_item(item: &PocketItem) -> Value {
    json!({
        "item_id": item.id.to_string(),
        "entry_id": item.entry.to_string(),
        "time": item.time.as_ref().map(WorldTime::as_str),
    })
}
