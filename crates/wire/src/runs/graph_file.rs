//! Graph files: the nodes, edges, goal and verification of a run, as people write them in TOML.
//!
//! ```toml
//! goal = "Make the tests pass"
//! verify = ["make test"]
//!
//! [[nodes]]
//! alias = "lead"
//! role = "orchestrator"
//!
//! [[nodes]]
//! alias = "impl"
//! role = "implementer"
//! provider = "claude"
//!
//! [[edges]]
//! from = "lead"
//! to = "impl"
//! ```
//!
//! The fields are those of the requests that make a run, a node and an edge. A node needs only its
//! role. An unknown field is an error: it is likely a typing error. Teams have this format, and
//! `turnkeep run from` reads it. Reading TOML is left to the caller.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    BudgetRequest, CapabilitiesRequest, CreateEdge, CreateNode, CreateRun, EdgeKind, GlobalMode,
    LimitsRequest, PermissionsRequest, Provider, RunMode, WakeOn,
};

/// A file may have so many nodes, and as many edges for each.
const NODES_MAX: usize = 100;

shapes! {
    /// A graph file.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    struct GraphFile {
        #[serde(default)]
        verify: Vec<String>,
        #[serde(default)]
        setup: Vec<String>,
        #[serde(default)]
        nodes: Vec<GraphNode>,
        #[serde(default)]
        edges: Vec<GraphEdge>,
    }
    optional {
        goal: String,
        title: String,
        mode: RunMode,
        global_mode: GlobalMode,
        world: String,
        /// The alias of the node that brings the documents up to date at the end.
        docs_node: String,
        budget: BudgetRequest,
        limits: LimitsRequest,
    }

    /// A node of a graph file.
    #[serde(deny_unknown_fields)]
    struct GraphNode {
        #[serde(alias = "role")]
        role_template: String,
    }
    optional {
        alias: String,
        label: String,
        /// A kind of program or the name of a configured one; the first found unless given.
        provider: String,
        person: String,
        capabilities: CapabilitiesRequest,
        permissions: PermissionsRequest,
        #[serde(alias = "prompt")]
        custom_system_prompt: String,
        wake_on: WakeOn,
    }

    /// An edge of a graph file. It names its nodes by their aliases.
    #[serde(deny_unknown_fields)]
    struct GraphEdge {
        from: String,
        to: String,
    }
    optional {
        #[serde(rename = "type")]
        kind: EdgeKind,
        label: String,
        bidirectional: bool,
        gate: bool,
    }
}

/// The parts of a graph file do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphMistake {
    #[error("there are no nodes")]
    NoNodes,
    #[error("there are more than {NODES_MAX} nodes, or more than {NODES_MAX} edges for each")]
    TooMany,
    #[error("two nodes have the alias `{0}`")]
    AliasTwice(String),
    #[error("no node has the alias `{0}`")]
    UnknownAlias(String),
}

impl GraphMistake {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoNodes => "add at least one [[nodes]] with its role",
            Self::TooMany => "split the graph into several runs",
            Self::AliasTwice(_) => "rename one of them",
            Self::UnknownAlias(_) => "edges name their nodes by alias",
        }
    }
}

impl GraphFile {
    /// Checks that the parts fit together. A run is made by several requests, so most mistakes must
    /// be found before the first.
    pub fn check(&self) -> Result<(), GraphMistake> {
        if self.nodes.is_empty() {
            return Err(GraphMistake::NoNodes);
        }
        if self.nodes.len() > NODES_MAX || self.edges.len() > NODES_MAX * self.nodes.len() {
            return Err(GraphMistake::TooMany);
        }
        let aliases: Vec<String> = self.nodes.iter().filter_map(GraphNode::alias_key).collect();
        for (place, alias) in aliases.iter().enumerate() {
            if aliases.iter().skip(place + 1).any(|other| other == alias) {
                return Err(GraphMistake::AliasTwice(alias.clone()));
            }
        }
        // The server finds nodes without regard to case, so `Lead` in an edge is the node `lead`.
        let ends = self.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
        let mut named = ends.chain(&self.docs_node);
        let unknown = named.find(|name| !aliases.contains(&name.to_lowercase()));
        unknown.map_or(Ok(()), |name| Err(GraphMistake::UnknownAlias(name.clone())))
    }

    /// The request that makes the run, without its nodes.
    pub fn run_request(&self) -> CreateRun {
        CreateRun {
            verify: self.verify.clone(),
            setup: self.setup.clone(),
            goal: self.goal.clone(),
            title: self.title.clone(),
            mode: self.mode,
            global_mode: self.global_mode,
            world: self.world.clone(),
            budget: self.budget.clone(),
            limits: self.limits.clone(),
            ..CreateRun::default()
        }
    }

    /// Fills what a request leaves out with what the file says.
    #[must_use]
    pub fn complete(&self, request: CreateRun) -> CreateRun {
        let or_own = |given: Vec<String>, own: &[String]| {
            if given.is_empty() {
                own.to_vec()
            } else {
                given
            }
        };
        CreateRun {
            verify: or_own(request.verify, &self.verify),
            setup: or_own(request.setup, &self.setup),
            goal: request.goal.or_else(|| self.goal.clone()),
            title: request.title.or_else(|| self.title.clone()),
            mode: request.mode.or(self.mode),
            global_mode: request.global_mode.or(self.global_mode),
            world: request.world.or_else(|| self.world.clone()),
            docs_node: request.docs_node.or_else(|| self.docs_node.clone()),
            budget: request.budget.or_else(|| self.budget.clone()),
            limits: request.limits.or_else(|| self.limits.clone()),
            ..request
        }
    }

    /// Whether a node names no program.
    pub fn needs_program(&self) -> bool {
        self.nodes.iter().any(|node| node.provider.is_none())
    }

    /// The requests that make the edges.
    pub fn edge_requests(&self) -> Vec<CreateEdge> {
        self.edges.iter().map(GraphEdge::request).collect()
    }

    /// The alias of the node that gets the goal, if the server cannot know it: several nodes and not
    /// exactly one orchestrator. Then the first node begins.
    pub fn first_receiver(&self) -> Option<&str> {
        let is_lead = |node: &&GraphNode| node.role_template.eq_ignore_ascii_case("orchestrator");
        let is_clear = self.nodes.len() == 1 || self.nodes.iter().filter(is_lead).count() == 1;
        let first = self.nodes.first().filter(|_| !is_clear);
        first.and_then(|node| node.alias.as_deref())
    }
}

impl GraphNode {
    /// Aliases are unique ignoring case.
    fn alias_key(&self) -> Option<String> {
        self.alias.as_ref().map(|alias| alias.to_lowercase())
    }

    /// The request that makes the node with this program.
    pub fn request(&self, provider: Provider, provider_name: Option<String>) -> CreateNode {
        let label = self.label.as_ref().or(self.alias.as_ref());
        CreateNode {
            label: label.unwrap_or(&self.role_template).clone(),
            role_template: self.role_template.clone(),
            provider,
            provider_name,
            alias: self.alias.clone(),
            person: self.person.clone(),
            capabilities: self.capabilities.clone(),
            permissions: self.permissions.clone(),
            custom_system_prompt: self.custom_system_prompt.clone(),
            wake_on: self.wake_on,
            position: None,
            session: None,
            budget: None,
        }
    }
}

impl GraphEdge {
    /// The request that makes the edge.
    pub fn request(&self) -> CreateEdge {
        CreateEdge {
            from: self.from.clone(),
            to: self.to.clone(),
            kind: self.kind,
            label: self.label.clone(),
            bidirectional: self.bidirectional,
            gate: self.gate,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn mistakes_are_found_before_anything_is_made() {
        #[expect(clippy::needless_pass_by_value, reason = "a table of literals")]
        fn check(file: Value, expect: Result<(), GraphMistake>) {
            let graph: GraphFile = serde_json::from_value(file).unwrap();
            assert_eq!(graph.check(), expect);
        }
        let node = |alias: &str| json!({"role": "implementer", "alias": alias});
        check(json!({}), Err(GraphMistake::NoNodes));
        check(json!({"nodes": [node("a"), node("b")]}), Ok(()));
        check(
            json!({"nodes": [node("a"), node("A")]}),
            Err(GraphMistake::AliasTwice("a".into())),
        );
        check(
            json!({"nodes": [node("a")], "edges": [{"from": "a", "to": "b"}]}),
            Err(GraphMistake::UnknownAlias("b".into())),
        );
        check(
            json!({"nodes": [node("a")], "docsNode": "c"}),
            Err(GraphMistake::UnknownAlias("c".into())),
        );
        check(
            json!({"nodes": vec![json!({"role": "x"}); NODES_MAX + 1]}),
            Err(GraphMistake::TooMany),
        );
        serde_json::from_value::<GraphFile>(json!({"gaol": "x"})).unwrap_err();
    }

    #[test]
    fn a_request_wins_over_the_file() {
        let graph = GraphFile {
            goal: Some("of the file".into()),
            verify: vec!["make test".into()],
            ..GraphFile::default()
        };
        let request = CreateRun {
            goal: Some("of the request".into()),
            cwd: Some("/work".into()),
            ..CreateRun::default()
        };
        let completed = graph.complete(request);
        assert_eq!(completed.goal.as_deref(), Some("of the request"));
        assert_eq!(completed.cwd.as_deref(), Some("/work"));
        assert_eq!(completed.verify, ["make test"]);
    }
}
