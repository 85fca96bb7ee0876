//! A bundle as it came, with every part of the right type and nothing judged yet.
//!
//! Reading a draft is the first check of acceptance: what fails here is SHAPE, wherever in the
//! bundle it is. Ids that only a commit gives and times are left as they are, since faults in them
//! have words of their own.

use serde_json::Value;

use crate::fault::{Code, Fault};
use crate::json::Node;

/// The fields of a proposed bundle.
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

/// The bytes of a foreign field's name that a fault repeats.
const SHOWN_KEY_BYTES_MAX: usize = 64;

/// A proposed bundle.
pub(crate) struct Draft<'a> {
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

/// A range as it was given.
pub(crate) type RangeDraft = (u64, u64);

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

/// Prose that a writer offers, and what it cites.
pub(crate) struct ProseDraft<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) text: &'a str,
    pub(crate) cited: Vec<&'a str>,
}

/// Prose about a person.
pub(crate) struct NoteDraft<'a> {
    pub(crate) person: &'a str,
    pub(crate) prose: ProseDraft<'a>,
}

impl<'a> Draft<'a> {
    /// Reads a bundle.
    pub(crate) fn read(bundle: &'a Value) -> Result<Self, Fault> {
        let root = Node::root(bundle, Code::Shape);
        let request = root.field("request_id")?.text()?;
        let proposed_by = root.field("proposed_by")?;
        let (engine, actor) = (name(&proposed_by, "engine")?, name(&proposed_by, "actor")?);
        let entries = root.field("entries")?.items()?;
        let entries = entries
            .into_iter()
            .map(EntryDraft::read)
            .collect::<Result<_, _>>()?;
        let wrote = root.field("wrote")?.boolean()?;
        not_rejected(&root)?;
        Ok(Self {
            request,
            engine,
            actor,
            entries,
            wrote,
            items: list(&root, "pocket_items", ItemDraft::read)?,
            scene: root
                .optional("scene_change")?
                .map(ProseDraft::read)
                .transpose()?,
            notes: list(&root, "capsule_notes", NoteDraft::read)?,
            root,
        })
    }

    /// The first field outside the entries that is not in the shape.
    pub(crate) fn unknown_field(&self) -> Result<(), Fault> {
        known_fields(&self.root, BUNDLE)?;
        known_fields(&self.root.field("proposed_by")?, PROPOSED_BY)?;
        if let Some(rejection) = self.root.optional("rejection")? {
            known_fields(&rejection, REJECTION)?;
        }
        self.items
            .iter()
            .try_for_each(|item| known_fields(&item.node, ITEM))?;
        self.scene
            .iter()
            .try_for_each(|scene| known_fields(&scene.node, SCENE))?;
        self.notes
            .iter()
            .try_for_each(|note| known_fields(&note.prose.node, NOTE))
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
            visible_to: list(&visibility, "visible_to", |node| node.text())?,
            channel: node.field("channel")?.text()?,
            time: present(&node, "created_at_world")?,
            text: node.field("text")?.text()?,
            reply_to: node
                .optional("reply_to")?
                .map(|node| node.text())
                .transpose()?,
            node,
        })
    }

    /// The first field of the entry that is not in the shape.
    pub(crate) fn unknown_field(&self) -> Result<(), Fault> {
        known_fields(&self.node, ENTRY)?;
        known_fields(&self.node.field("author")?, AUTHOR)?;
        known_fields(&self.node.field("visibility")?, VISIBILITY)
    }

    /// A complaint about one of its fields.
    pub(crate) fn fault(&self, code: Code, field: &str, message: impl Into<String>) -> Fault {
        Fault::new(code, format!("{}.{field}", self.node.path), message.into())
    }
}

impl<'a> ItemDraft<'a> {
    fn read(node: Node<'a>) -> Result<Self, Fault> {
        Ok(Self {
            kind: node.field("kind")?.text()?,
            entry_index: node.field("entry_index")?.count()?,
            title: range(&node, "title")?,
            time: present(&node, "time")?,
            location: range(&node, "location")?,
            notes: range(&node, "notes")?,
            supersedes: node
                .optional("supersedes")?
                .map(|node| node.text())
                .transpose()?,
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

fn present<'a>(node: &Node<'a>, key: &str) -> Result<Option<&'a Value>, Fault> {
    Ok(node.optional(key)?.map(|node| node.value))
}

fn name<'a>(node: &Node<'a>, key: &str) -> Result<&'a str, Fault> {
    let given = node.field(key)?;
    let text = given.text()?;
    if text.is_empty() {
        Err(given.fault("must not be empty"))
    } else {
        Ok(text)
    }
}

/// The items of a list that may be absent.
fn list<'a, T>(
    node: &Node<'a>,
    key: &str,
    read: impl Fn(Node<'a>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let items = node.optional(key)?.map(|node| node.items()).transpose()?;
    items.unwrap_or_default().into_iter().map(read).collect()
}

fn range(node: &Node<'_>, key: &str) -> Result<Option<RangeDraft>, Fault> {
    let Some(given) = node.optional(key)? else {
        return Ok(None);
    };
    match given.items()?.as_slice() {
        [start, end] => Ok(Some((start.count()?, end.count()?))),
        _ => Err(given.fault("must be two numbers: the first byte, and the one after the last")),
    }
}

/// A proposal says nothing about its rejection, or that there is none.
fn not_rejected(root: &Node<'_>) -> Result<(), Fault> {
    let Some(rejection) = root.optional("rejection")? else {
        return Ok(());
    };
    let rejected = rejection.field("rejected")?;
    if rejected.boolean()? {
        return Err(rejected.fault("must be false in a proposal"));
    }
    rejection.optional("reason")?.map_or(Ok(()), |reason| {
        Err(reason.fault("must be null in a proposal"))
    })
}

pub(crate) fn known_fields(node: &Node<'_>, known: &[&str]) -> Result<(), Fault> {
    let Some(path) = node.unknown_field(known)? else {
        return Ok(());
    };
    let shown = path.floor_char_boundary(node.path.len() + SHOWN_KEY_BYTES_MAX);
    let path = path.get(..shown).unwrap_or_default();
    Err(Fault::new(
        Code::UnknownField,
        path,
        format!("is not one of {}", known.join(", ")),
    ))
}
