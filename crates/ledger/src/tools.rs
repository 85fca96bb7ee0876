//! Tools: mechanical questions to the ledger, each answered from one view.
//!
//! Tools decide nothing, write nothing and move no clock. A request is checked in a fixed order,
//! and the first fault is the answer:
//!
//! 1. Its shape, from the outside in and in the order of the fields: `TOOL_REQUEST_INVALID`, with
//!    `UNKNOWN_FIELD` before the fields of each object, and `UNKNOWN_TOOL` and `BAD_LIMIT` at their
//!    fields.
//! 2. In a beat: `REQUEST_MISMATCH`, `DUPLICATE_TOOL_ID`.
//! 3. The caller: `ACTOR_MISMATCH`, `VIEW_FORBIDDEN`.
//! 4. The constraints: `TIME_FORMAT`, `TIME_AMBIGUOUS`, `BAD_WINDOW`, and the person of a capsule.
//!
//! No answer and no fault depends on an entry that the view may not see.

use serde_json::Value;

use crate::anchor::Anchor;
use crate::audience::Viewer;
use crate::capsule::Capsule;
use crate::config::Registry;
use crate::draft::check_known_fields;
use crate::fault::{Code, Fault};
use crate::ids::{Name, PUBLIC, VIEW_SUFFIX};
use crate::json::{self, Node};
use crate::principal::{Grant, Principal};
use crate::retrieval::{self, LIMIT_MAX, SearchRequest, TimeWindow, WindowText};
use crate::view::View;
use crate::world::World;

mod beat;

pub use beat::{CALLS_MAX, PACK_BYTES_MAX, ToolLoop};

const ID_CHARACTERS_MAX: usize = 200;
const QUERY_BYTES_MAX: usize = 4 << 10;

/// The tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Finds entries by text.
    LedgerSearch,
    /// Returns entries by id.
    LedgerGet,
    /// Returns the capsule of a person.
    CapsuleGet,
    /// Returns the scene anchor.
    ScenePackBuild,
}

impl Tool {
    const WORDS: &[(&str, Self)] = &[
        ("LEDGER_SEARCH", Self::LedgerSearch),
        ("LEDGER_GET", Self::LedgerGet),
        ("CAPSULE_GET", Self::CapsuleGet),
        ("SCENE_PACK_BUILD", Self::ScenePackBuild),
    ];

    /// The tool's name in requests.
    pub fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, tool)| *tool == self)
            .map_or("", |(word, _)| word)
    }
}

/// A tool request of the right shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRequest {
    /// The id of the tool request.
    pub tool_request_id: String,
    /// The id of the beat's request, or one that the caller chose.
    pub request_id: String,
    /// The software that asks.
    pub engine: String,
    /// The name in which it asks.
    pub actor: String,
    /// The view that the caller wants to use.
    pub knowledge_view: String,
    /// The tool.
    pub tool: Tool,
    /// Words to match, or ids. Never interpreted as an instruction.
    pub query_text: String,
    /// The start of the time window.
    pub from: Option<String>,
    /// The end of the time window.
    pub to: Option<String>,
    /// The maximal number of results.
    pub limit: Option<u32>,
    /// The maximal number of context entries among them.
    pub context: Option<u32>,
    /// The author of the results, or the person of the capsule.
    pub person_id: Option<String>,
    /// The fingerprint of the whole request.
    pub(crate) body: [u8; 32],
}

/// The ids of a tool request, which its answer repeats.
#[derive(Debug, Clone, Copy)]
pub struct RequestIds<'a> {
    /// The id of the tool request.
    pub tool_request_id: &'a str,
    /// The id of the beat's request, or one that the caller chose.
    pub request_id: &'a str,
}

impl RequestIds<'_> {
    /// Adds the ids to a pack.
    pub fn add_to(self, mut pack: Value) -> Value {
        if let Some(fields) = pack.as_object_mut() {
            fields.insert("tool_request_id".to_owned(), self.tool_request_id.into());
            fields.insert("request_id".to_owned(), self.request_id.into());
        }
        pack
    }
}

fn read_id(node: &Node<'_>) -> Result<String, Fault> {
    let text = node.text()?;
    let fits = !text.is_empty() && text.chars().count() <= ID_CHARACTERS_MAX;
    if fits {
        Ok(text.to_owned())
    } else {
        Err(node.fault("must be 1 to 200 characters"))
    }
}

fn read_tool_name(node: &Node<'_>) -> Result<Tool, Fault> {
    let text = node.text()?;
    let found = Tool::WORDS
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, tool)| *tool);
    let names = || {
        Tool::WORDS
            .iter()
            .map(|(word, _)| *word)
            .collect::<Vec<_>>()
            .join(", ")
    };
    found.ok_or_else(|| {
        Fault::new(
            Code::UnknownTool,
            node.path.clone(),
            format!("is not one of {}", names()),
        )
    })
}

/// Reads a maximal number of results, which is at least `least`.
pub fn read_limit(node: &Node<'_>, least: u32) -> Result<u32, Fault> {
    let given = node.value.as_u64().map(u32::try_from);
    match given {
        Some(Ok(limit)) if (least..=LIMIT_MAX).contains(&limit) => Ok(limit),
        _ => {
            let message = format!("must be a whole number from {least} to {LIMIT_MAX}");
            Err(Fault::new(Code::BadLimit, node.path.clone(), message))
        }
    }
}

/// Reads the words of a query.
pub fn read_query<'a>(node: &Node<'a>) -> Result<&'a str, Fault> {
    let text = node.text()?;
    if text.len() > QUERY_BYTES_MAX {
        return Err(node.fault("must be at most 4096 bytes"));
    }
    Ok(text)
}

impl ToolRequest {
    /// Reads a tool request.
    pub fn parse(body: &Value) -> Result<Self, Fault> {
        let root = Node::root(body, Code::ToolRequestInvalid);
        check_known_fields(
            &root,
            &["tool_request_id", "request_id", "requested_by", "tool"],
        )?;
        let tool_request_id = read_id(&root.field("tool_request_id")?)?;
        let request_id = read_id(&root.field("request_id")?)?;
        let by = root.field("requested_by")?;
        check_known_fields(&by, &["engine", "actor", "knowledge_view"])?;
        let engine = by.field("engine")?;
        if engine.text()?.is_empty() {
            return Err(engine.fault("must not be empty"));
        }
        let mut request = Self {
            tool_request_id,
            request_id,
            engine: engine.text()?.to_owned(),
            actor: by.field("actor")?.text()?.to_owned(),
            knowledge_view: by.field("knowledge_view")?.text()?.to_owned(),
            tool: Tool::LedgerSearch,
            query_text: String::new(),
            from: None,
            to: None,
            limit: None,
            context: None,
            person_id: None,
            body: json::fingerprint(body),
        };
        request.read_tool(&root.field("tool")?)?;
        Ok(request)
    }

    fn read_tool(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        check_known_fields(node, &["name", "query_text", "constraints"])?;
        self.tool = read_tool_name(&node.field("name")?)?;
        if let Some(query) = node.optional("query_text")? {
            read_query(&query)?.clone_into(&mut self.query_text);
        }
        match node.optional("constraints")? {
            Some(constraints) => self.read_constraints(&constraints),
            None => Ok(()),
        }
    }

    fn read_constraints(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        check_known_fields(node, &["time_window", "limit", "context", "person_id"])?;
        if let Some(window) = node.optional("time_window")? {
            check_known_fields(&window, &["from", "to"])?;
            self.from = window.optional_text("from")?.map(str::to_owned);
            self.to = window.optional_text("to")?.map(str::to_owned);
        }
        self.limit = node.read_optional("limit", |node| read_limit(&node, 1))?;
        // Unlike a limit, the number of context results may be 0: matches only.
        self.context = node.read_optional("context", |node| read_limit(&node, 0))?;
        self.person_id = node.optional_text("person_id")?.map(str::to_owned);
        Ok(())
    }

    fn window_text(&self) -> WindowText<'_> {
        WindowText {
            from: self.from.as_deref(),
            to: self.to.as_deref(),
            from_path: "tool.constraints.time_window.from",
            to_path: "tool.constraints.time_window.to",
            window_path: "tool.constraints.time_window",
        }
    }

    fn search_request<'a>(&'a self, window: &'a TimeWindow) -> SearchRequest<'a> {
        SearchRequest {
            text: &self.query_text,
            author: self.person_id.as_deref(),
            window,
            limit: self.limit,
            context_max: self.context,
        }
    }

    /// The ids that the answer repeats.
    pub fn ids(&self) -> RequestIds<'_> {
        RequestIds {
            tool_request_id: &self.tool_request_id,
            request_id: &self.request_id,
        }
    }

    fn required_person(&self) -> Result<&str, Fault> {
        let missing = || {
            Fault::new(
                Code::ToolRequestInvalid,
                "tool.constraints.person_id",
                "is missing",
            )
        };
        self.person_id.as_deref().ok_or_else(missing)
    }
}

/// The views that a caller may use. Every caller may use the public one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedViews {
    /// The caller's own.
    Own(Viewer),
    /// Those of the persons in whose names the attached writer may write.
    OfGrant(Grant),
}

/// The caller of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name that its requests must have as actor.
    pub identity: String,
    /// The views that it may use.
    pub views: AllowedViews,
}

impl Caller {
    /// The caller who holds a token.
    pub fn from_principal(principal: &Principal) -> Self {
        let viewer = principal.viewer();
        Self {
            identity: viewer.as_str().to_owned(),
            views: AllowedViews::Own(viewer),
        }
    }
}

/// Resolves the name of a view. A view that is not the caller's is forbidden, whether such a person
/// exists or not.
pub fn knowledge_view(name: &str, caller: &Caller, world: &World) -> Result<Viewer, Fault> {
    if name == PUBLIC {
        return Ok(Viewer::Public);
    }
    // `BOB` and `BOB_VIEW` name the same view.
    let person = Name::new(name.strip_suffix(VIEW_SUFFIX).unwrap_or(name));
    let is_allowed = |person: &Name| match &caller.views {
        AllowedViews::Own(own) => *own == Viewer::Reader(person.clone()),
        AllowedViews::OfGrant(grant) => {
            grant.covers_person(person) && is_person(world, grant, person)
        }
    };
    person
        .filter(is_allowed)
        .map(Viewer::Reader)
        .ok_or_else(|| {
            let message = "must be a view of the caller's, such as its own, or PUBLIC";
            Fault::new(Code::ViewForbidden, "requested_by.knowledge_view", message)
        })
}

/// Whether a name is a person: added, named in the grant, or, in an open world, met as an author or
/// reader.
fn is_person(world: &World, grant: &Grant, name: &Name) -> bool {
    let open = world.config.registry == Registry::Open;
    // A name that could not be added is no person, even if the grant names it.
    let possible = world
        .people
        .resolve(name.as_str(), world.config.registry)
        .is_ok();
    let named = matches!(grant, Grant::These(_));
    let met = || {
        // A reader with more classes than the public was addressed or wrote privately.
        let own = world.view(Viewer::Reader(name.clone())).classes().len();
        let public = world.view(Viewer::Public);
        own > public.classes().len()
            || world
                .authored_by(name.as_str())
                .iter()
                .any(|number| public.is_visible(*number))
    };
    possible && (world.people.get(name.as_str()).is_some() || open && (named || met()))
}

/// The anchor that an attached writer was sent.
#[derive(Debug, Clone, Copy)]
pub struct EpochAnchor<'a> {
    /// The reader of its view.
    pub viewer: &'a Viewer,
    /// The recorded scene anchor pack.
    pub pack: &'a str,
}

/// Answers a tool request from the world as it was with `at` entries.
pub fn answer(
    world: &World,
    at: u32,
    caller: &Caller,
    request: &ToolRequest,
    epoch: Option<EpochAnchor<'_>>,
) -> Result<Value, Fault> {
    // Checked before the view, so that a wrong name learns nothing about views.
    if request.actor != caller.identity {
        let message = "is not the caller's own name";
        return Err(Fault::new(
            Code::ActorMismatch,
            "requested_by.actor",
            message,
        ));
    }
    let view = world.view_at(knowledge_view(&request.knowledge_view, caller, world)?, at);
    let window = request.window_text().parse(&world.clock.timezone)?;
    let ids = request.ids();
    match request.tool {
        Tool::LedgerSearch => {
            let found = retrieval::search(&view, &request.search_request(&window));
            Ok(found.to_json(ids))
        }
        Tool::LedgerGet => Ok(retrieval::get(&view, request, &window).to_json(ids)),
        Tool::CapsuleGet => {
            let capsule = Capsule::build(&view, request.required_person()?);
            Ok(ids.add_to(capsule.pack()))
        }
        Tool::ScenePackBuild => Ok(ids.add_to(scene_pack(&view, request, epoch)?)),
    }
}

/// Returns the epoch's anchor again, or builds one that is not recorded.
fn scene_pack(
    view: &View<'_>,
    request: &ToolRequest,
    epoch: Option<EpochAnchor<'_>>,
) -> Result<Value, Fault> {
    match epoch.filter(|epoch| *epoch.viewer == view.viewer) {
        Some(epoch) => serde_json::from_str(epoch.pack)
            .map_err(|e| Fault::new(Code::Corrupt, "", e.to_string())),
        None => Ok(Anchor::build(view).pack(&request.request_id)),
    }
}
