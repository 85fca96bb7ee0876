//! Reads graph files for `turnkeep run from`: the nodes, edges, goal and verification of a run as
//! TOML. The format is that of teams ([`GraphFile`]).

use anyhow::Result;
use turnkeep_wire::runs::{CreateNode, GraphFile};

use super::programs::NodeProgram;
use crate::failure::Failure;
use crate::render::printable;

/// Reads a file and checks that its parts fit together.
pub(super) fn parse_graph(text: &str, file: &str) -> Result<GraphFile> {
    let graph: GraphFile = toml::from_str(text).map_err(|error| {
        Failure::usage(format!("{file} is not a graph file: {}", error.message()))
            .hint(place_hint(text, error.span()))
    })?;
    if graph
        .goal
        .as_deref()
        .is_some_and(|goal| goal.trim().is_empty())
    {
        return Failure::usage(format!("{file}: the goal is empty"))
            .hint("say what is to be done, or leave it out and give it with --goal")
            .fail();
    }
    match graph.check() {
        Ok(()) => Ok(graph),
        Err(mistake) => Failure::usage(printable(&format!("{file}: {mistake}")))
            .hint(mistake.advice())
            .fail(),
    }
}

/// The requests that make the nodes. A node that names no program gets the given one.
pub(super) fn node_requests(graph: &GraphFile, default: &NodeProgram) -> Vec<CreateNode> {
    let nodes = graph.nodes.iter();
    let request = |node: &turnkeep_wire::runs::GraphNode| {
        let own = node.provider.as_deref().map(NodeProgram::called);
        let program = own.unwrap_or_else(|| default.clone());
        node.request(program.provider, program.provider_name)
    };
    nodes.map(request).collect()
}

/// The line of a mistake.
fn place_hint(text: &str, span: Option<std::ops::Range<usize>>) -> String {
    let before = span.and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("look at line {}", before.matches('\n').count() + 1),
        None => "look at the examples of `turnkeep run from --help`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PAIR: &str = r#"
goal = "Make the tests pass"
mode = "AUTO"
verify = ["make test"]
docsNode = "impl"

[[nodes]]
alias = "Lead"
role = "orchestrator"

[[nodes]]
alias = "impl"
roleTemplate = "implementer"
label = "Backend"
provider = "codex"
permissions = { cliPermissionsMode = "skip" }

[[edges]]
from = "lead"
to = "impl"
"#;

    #[test]
    fn a_file_becomes_requests() {
        let graph = parse_graph(PAIR, "pair.toml").unwrap();
        assert_eq!(
            serde_json::to_value(graph.run_request()).unwrap(),
            json!({ "verify": ["make test"], "setup": [], "goal": "Make the tests pass", "mode": "AUTO" })
        );
        assert!(graph.needs_program());
        let nodes = node_requests(&graph, &NodeProgram::called("claude"));
        assert_eq!(
            serde_json::to_value(nodes).unwrap(),
            json!([
                { "label": "Lead", "roleTemplate": "orchestrator", "provider": "claude", "alias": "Lead" },
                { "label": "Backend", "roleTemplate": "implementer", "provider": "codex", "alias": "impl",
                  "permissions": { "cliPermissionsMode": "skip" } },
            ])
        );
        assert_eq!(
            serde_json::to_value(graph.edge_requests()).unwrap(),
            json!([{ "from": "lead", "to": "impl" }])
        );
        assert_eq!(graph.first_receiver(), None);
    }

    #[test]
    fn mistakes_are_found_before_anything_is_made() {
        fn check(text: &str, expect: &str) {
            let error = parse_graph(text, "x.toml").unwrap_err();
            assert!(error.to_string().starts_with(expect), "{error}");
        }
        check("", "x.toml: there are no nodes");
        check(
            "goal = ' '\n[[nodes]]\nrole = 'r'",
            "x.toml: the goal is empty",
        );
        check(
            "gaol = 1",
            "x.toml is not a graph file: unknown field `gaol`",
        );
        check(
            "[[nodes]]\nalias = 'a'",
            "x.toml is not a graph file: missing field",
        );
        check(
            "[[nodes]]\nrole = 'r'\nalias = 'a'\n[[nodes]]\nrole = 'r'\nalias = 'A'",
            "x.toml: two nodes have the alias `a`",
        );
        check(
            "[[nodes]]\nrole = 'r'\nalias = 'a'\n[[edges]]\nfrom = 'a'\nto = 'b'",
            "x.toml: no node has the alias `b`",
        );
    }

    #[test]
    fn the_goal_goes_to_the_first_node_where_nobody_leads() {
        fn check(nodes: &[(&str, &str)], expect: Option<&str>) {
            let node = |(alias, role): &(&str, &str)| {
                format!("[[nodes]]\nalias='{alias}'\nrole='{role}'\n")
            };
            let text: String = nodes.iter().map(node).collect();
            let graph = parse_graph(&text, "x").unwrap();
            assert_eq!(graph.first_receiver(), expect);
        }
        check(&[("a", "implementer")], None);
        check(&[("a", "implementer"), ("b", "Orchestrator")], None);
        check(&[("a", "implementer"), ("b", "reviewer")], Some("a"));
    }
}
