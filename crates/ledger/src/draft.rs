//! A bundle as it was sent, with every part of the right JSON type and nothing else checked.
//!
//! Reading a draft is the first check of acceptance. Whatever fails here has the code SHAPE. Preset
//! ids and times stay unparsed, because their faults have codes of their own.

use serde_json::Value;

use crate::fault::{Code, Fault};
use crate::json::Node;

/// The fields of a bundle.
const BUNDLE: &[&str] = &[
    "bundle_id",
    "request_id",
    "proposed_by",
    "entries",
    "wrote",
    "rejection",
    "pocket_items",
    "scene_change",
    "capsule_notes",
];
const PROPOSED_BY: &[&str] = &["engine", "actor"];
const REJECTION: &[&str] = &["rejected", "reason"];
const ENTRY: &[&str] = &[
    "entry_id",
    "bundle_id",
    "request_id",
    "created_at_world",
    "author",
    "visibility",
    "channel",
    "text",
    "reply_to",
];
const AUTHOR: &[&str] = &["author_id", "author_class"];
const VISIBILITY: &[&str] = &["scope", "visible_to"];
const ITEM: &[&str] = &[
    "kind",
    "entry_index",
    "title",
    "time",
    "location",
    "notes",
    "supersedes",
];
const SCENE: &[&str] = &["text", "used_entry_ids"];
const NOTE: &[&str] = &["person_id", "text", "used_entry_ids"];

/// How many bytes of an unknown field's name a fault repeats.
const SHOWN_KEY_BYTES_MAX: usize = 64;

/// A bundle as it was sent.
pub(crate) struct BundleDraft<'a> {
    pub(crate) root: Node<'a>,
    pub(crate) request: &'a str,
    pub(crate) engine: &'a str,
    pub(crate) actor: &'a str,
    pub(crate) wrote: bool,
    pub(crate) entries: Vec<EntryDraft<'a>>,
    pub(crate) items: Vec<ItemDraft<'a>>,
    pub(crate) scene: Option<ProseDraft<'a>>,
    pub(crate) notes: Vec<NoteDraft<'a>>,
}

/// A proposed entry.
pub(crate) struct EntryDraft<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) request: &'a str,
    pub(crate) author_id: &'a str,
    pub(crate) author_class: &'a str,
    pub(crate) scope: &'a str,
    pub(crate) visible_to: Vec<&'a str>,
    pub(crate) channel: &'a str,
    pub(crate) time: Option<&'a Value>,
    pub(crate) text: &'a str,
    pub(crate) reply_to: Option<&'a str>,
}

/// A byte range as it was sent.
#[derive(Clone, Copy)]
pub(crate) struct RangeDraft {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A proposed pocket item.
pub(crate) struct ItemDraft<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) kind: &'a str,
    pub(crate) entry_index: u64,
    pub(crate) title: Option<RangeDraft>,
    pub(crate) time: Option<&'a Value>,
    pub(crate) location: Option<RangeDraft>,
    pub(crate) notes: Option<RangeDraft>,
    pub(crate) supersedes: Option<&'a str>,
}

/// Text that a writer offers, and the entries that it cites.
pub(crate) struct ProseDraft<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) text: &'a str,
    pub(crate) cited: Vec<&'a str>,
}

/// A note about a person.
pub(crate) struct NoteDraft<'a> {
    pub(crate) person: &'a str,
    pub(crate) prose: ProseDraft<'a>,
}

impl<'a> BundleDraft<'a> {
    /// Reads a bundle, or returns the first SHAPE fault.
    pub(crate) fn read(bundle: &'a Value) -> Result<Self, Fault> {
        // The order of these lines is the order of their faults, so it never changes.
        let root = Node::root(bundle, Code::Shape);
        let request = root.field("request_id")?.text()?;
        let proposed_by = root.field("proposed_by")?;
        let engine = read_name(&proposed_by, "engine")?;
        let actor = read_name(&proposed_by, "actor")?;
        let entries = root.field("entries")?.items()?;
        let entries: Result<_, Fault> = entries.into_iter().map(EntryDraft::read).collect();
        let entries = entries?;
        let wrote = root.field("wrote")?.boolean()?;
        check_not_rejected(&root)?;
        Ok(Self {
            request,
            engine,
            actor,
            entries,
            wrote,
            items: read_list(&root, "pocket_items", ItemDraft::read)?,
            scene: root.read_optional("scene_change", ProseDraft::read)?,
            notes: read_list(&root, "capsule_notes", NoteDraft::read)?,
            root,
        })
    }

    /// Rejects the first unknown field outside the entries.
    pub(crate) fn check_fields(&self) -> Result<(), Fault> {
        check_known_fields(&self.root, BUNDLE)?;
        check_known_fields(&self.root.field("proposed_by")?, PROPOSED_BY)?;
        if let Some(rejection) = self.root.optional("rejection")? {
            check_known_fields(&rejection, REJECTION)?;
        }
        for item in &self.items {
            check_known_fields(&item.node, ITEM)?;
        }
        if let Some(scene) = &self.scene {
            check_known_fields(&scene.node, SCENE)?;
        }
        for note in &self.notes {
            check_known_fields(&note.prose.node, NOTE)?;
        }
        Ok(())
    }
}

impl<'a> EntryDraft<'a> {
    fn read(node: Node<'a>) -> Result<Self, Fault> {
        let author = node.field("author")?;
        let visibility = node.field("visibility")?;
        Ok(Self {
            request: node.field("request_id")?.text()?,
            author_id: author.field("author_id")?.text()?,
            author_class: author.field("author_class")?.text()?,
            scope: visibility.field("scope")?.text()?,
            visible_to: read_list(&visibility, "visible_to", |node| node.text())?,
            channel: node.field("channel")?.text()?,
            time: optional_value(&node, "created_at_world")?,
            text: node.field("text")?.text()?,
            reply_to: node.optional_text("reply_to")?,
            node,
        })
    }

    /// Rejects the first unknown field of the entry.
    pub(crate) fn check_fields(&self) -> Result<(), Fault> {
        check_known_fields(&self.node, ENTRY)?;
        check_known_fields(&self.node.field("author")?, AUTHOR)?;
        check_known_fields(&self.node.field("visibility")?, VISIBILITY)
    }

    /// A fault of one of its fields.
    pub(crate) fn fault(&self, code: Code, field: &str, message: impl Into<String>) -> Fault {
        Fault::new(code, format!("{}.{field}", self.node.path), message.into())
    }
}

impl<'a> ItemDraft<'a> {
    fn read(node: Node<'a>) -> Result<Self, Fault> {
        Ok(Self {
            kind: node.field("kind")?.text()?,
            entry_index: node.field("entry_index")?.count()?,
            title: read_range(&node, "title")?,
            time: optional_value(&node, "time")?,
            location: read_range(&node, "location")?,
            notes: read_range(&node, "notes")?,
            supersedes: node.optional_text("supersedes")?,
            node,
        })
    }
}

impl<'a> ProseDraft<'a> {
    fn read(node: Node<'a>) -> Result<Self, Fault> {
        let cited = node.field("used_entry_ids")?.items()?;
        Ok(Self {
            text: node.field("text")?.text()?,
            cited: cited.iter().map(Node::text).collect::<Result<_, _>>()?,
            node,
        })
    }
}

impl<'a> NoteDraft<'a> {
    fn read(node: Node<'a>) -> Result<Self, Fault> {
        Ok(Self {
            person: node.field("person_id")?.text()?,
            prose: ProseDraft::read(node)?,
        })
    }
}

fn optional_value<'a>(node: &Node<'a>, key: &str) -> Result<Option<&'a Value>, Fault> {
    Ok(node.optional(key)?.map(|node| node.value))
}

fn read_name<'a>(node: &Node<'a>, key: &str) -> Result<&'a str, Fault> {
    let given = node.field(key)?;
    let text = given.text()?;
    if text.is_empty() {
        Err(given.fault("must not be empty"))
    } else {
        Ok(text)
    }
}

/// Reads the items of a list that may be missing.
fn read_list<'a, T>(
    node: &Node<'a>,
    key: &str,
    read: impl Fn(Node<'a>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    node.optional_items(key)?.into_iter().map(read).collect()
}

fn read_range(node: &Node<'_>, key: &str) -> Result<Option<RangeDraft>, Fault> {
    let Some(given) = node.optional(key)? else {
        return Ok(None);
    };
    match given.items()?.as_slice() {
        [start, end] => Ok(Some(RangeDraft {
            start: start.count()?,
            end: end.count()?,
        })),
        _ => Err(given.fault("must be two numbers: the first byte, and the one after the last")),
    }
}

/// Rejects a proposal that calls itself rejected.
fn check_not_rejected(root: &Node<'_>) -> Result<(), Fault> {
    let Some(rejection) = root.optional("rejection")? else {
        return Ok(());
    };
    let rejected = rejection.field("rejected")?;
    if rejected.boolean()? {
        return Err(rejected.fault("must be false in a proposal"));
    }
    match rejection.optional("reason")? {
        Some(reason) => Err(reason.fault("must be null in a proposal")),
        None => Ok(()),
    }
}

/// Rejects the first field that is not in the list.
pub(crate) fn check_known_fields(node: &Node<'_>, known: &[&str]) -> Result<(), Fault> {
    let Some(path) = node.unknown_field(known)? else {
        return Ok(());
    };
    // A foreign key may be huge; the fault repeats only its beginning.
    let shown = path.floor_char_boundary(node.path.len() + SHOWN_KEY_BYTES_MAX);
    let path = path.get(..shown).unwrap_or_default();
    Err(Fault::new(
        Code::UnknownField,
        path,
        format!("is not one of {}", known.join(", ")),
    ))
}
