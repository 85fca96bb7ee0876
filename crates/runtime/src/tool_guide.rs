//! How an agent calls the tools of the server.
//!
//! An MCP client shows its model the tools with their arguments. Programs without MCP call tools by
//! lines of text, and their agents know nothing but the prompt. So the prompt has the form of a call,
//! and each tool with its arguments and an example:
//!
//! ```text
//! read_artifact (ref, offset?, limit?): {"tool_call":{"name":"read_artifact","args":{"ref":"artifact://ID"}}}
//! ```
//!
//! The name comes first on the line. A program that prints its prompt again therefore calls nothing: a
//! call is alone on its line.

use crate::node::Node;

/// How the program of a node calls tools. It follows from the protocol alone, so that a prompt does
/// not depend on what a program says when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolCalling {
    /// Over MCP.
    #[default]
    Mcp,
    /// By lines of text.
    Lines,
    /// Over MCP if the program can, else by lines. The program says which when it starts.
    McpOrLines,
}

/// A tool of the server, for an agent that calls it by a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolGuide {
    pub name: &'static str,
    /// The names of the arguments. Those with a `?` may be left out.
    pub arguments: &'static str,
    /// The arguments of an example, as JSON.
    pub example: &'static str,
    audience: ToolAudience,
}

/// Which nodes have a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolAudience {
    Everyone,
    /// Nodes that may spawn.
    Spawners,
    Orchestrators,
}

/// All tools, in the order in which prompts name them.
pub const TOOL_GUIDES: [ToolGuide; 7] = [
    ToolGuide {
        name: "send_handoff",
        arguments: "to, message, structured?, artifacts?, status?, response?, contextRef?",
        example: r#"{"to":"NODE","message":"TEXT"}"#,
        audience: ToolAudience::Everyone,
    },
    ToolGuide {
        name: "list_nodes",
        arguments: "",
        example: "{}",
        audience: ToolAudience::Everyone,
    },
    ToolGuide {
        name: "read_artifact",
        arguments: "ref, offset?, limit?",
        example: r#"{"ref":"artifact://ID"}"#,
        audience: ToolAudience::Everyone,
    },
    ToolGuide {
        name: "ask_user",
        arguments: "question, options?",
        example: r#"{"question":"TEXT","options":["YES","NO"]}"#,
        audience: ToolAudience::Everyone,
    },
    ToolGuide {
        name: "spawn_node",
        arguments: "label, roleTemplate, alias?, provider?, providerName?, instructions?, input?, \
                    capabilities?, permissions?, customSystemPrompt?, connect?",
        example: r#"{"label":"Tester","roleTemplate":"tester","input":"TASK"}"#,
        audience: ToolAudience::Spawners,
    },
    ToolGuide {
        name: "create_edge",
        arguments: "from, to, type?, label?, bidirectional?",
        example: r#"{"from":"NODE","to":"NODE"}"#,
        audience: ToolAudience::Spawners,
    },
    ToolGuide {
        name: "complete_run",
        arguments: "summary, ok, evidence?",
        example: r#"{"summary":"TEXT","ok":true}"#,
        audience: ToolAudience::Orchestrators,
    },
];

impl ToolGuide {
    fn is_for(&self, node: &Node) -> bool {
        match self.audience {
            ToolAudience::Everyone => true,
            ToolAudience::Spawners => node.settings.capabilities.spawn_nodes,
            ToolAudience::Orchestrators => node.is_orchestrator(),
        }
    }

    /// A call as the agent prints it.
    pub fn example_line(&self) -> String {
        let Self { name, example, .. } = self;
        format!(r#"{{"tool_call":{{"name":"{name}","args":{example}}}}}"#)
    }

    fn describe(&self) -> String {
        let arguments = match self.arguments {
            "" => "no arguments",
            arguments => arguments,
        };
        format!("{} ({arguments}): {}", self.name, self.example_line())
    }
}

/// Says which tools a node has, and how its agent calls them.
pub(crate) fn describe_tools(node: &Node, calling: ToolCalling) -> String {
    let tools: Vec<&ToolGuide> = TOOL_GUIDES
        .iter()
        .filter(|tool| tool.is_for(node))
        .collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    let names = format!("Tools of the daemon: {}.", names.join(", "));
    let intro = match calling {
        ToolCalling::Mcp => return names,
        ToolCalling::Lines => "You call a tool",
        ToolCalling::McpOrLines => {
            "The MCP server `turnkeep` has them. If you have no such server, you call a tool"
        }
    };
    let form = format!(
        "{intro} by a line of your answer that is one JSON object and nothing else, outside code \
         fences: {{\"tool_call\":{{\"name\":…,\"args\":{{…}}}}}}. End your answer after your \
         calls. Their results are your next input, and your turn goes on. Each tool with its \
         arguments (`?`: may be left out) and a call:"
    );
    let mut lines = vec![names, form];
    lines.extend(tools.into_iter().map(ToolGuide::describe));
    lines.join("\n")
}
