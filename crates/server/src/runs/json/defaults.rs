//! What a node may do when its request does not say it.

use turnkeep_runtime::node::{Capabilities, Permissions};
use turnkeep_runtime::words::CliPermissions;

/// The roles whose nodes do not write code by themselves.
const NO_CODE_ROLES: &[&str] = &["orchestrator", "planner", "reviewer"];
/// The role that changes the graph without asking.
const LEADING_ROLE: &str = "orchestrator";
const RESET_COMMANDS: [&str; 2] = ["/new", "/clear"];

/// The settings of a node that its request may leave out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeDefaults {
    pub(crate) capabilities: Capabilities,
    pub(crate) permissions: Permissions,
    pub(crate) reset_commands: Vec<String>,
}

impl NodeDefaults {
    /// The defaults of a role. A role template may give other capabilities. `cli` says whether the
    /// program can ask and should.
    pub(crate) fn of_role(role: &str, cli: CliPermissions) -> Self {
        let leads = role.eq_ignore_ascii_case(LEADING_ROLE);
        let writes_no_code = NO_CODE_ROLES
            .iter()
            .any(|known| role.eq_ignore_ascii_case(known));
        Self {
            capabilities: Capabilities {
                spawn_nodes: leads,
                write_code: !writes_no_code,
                write_docs: true,
                run_commands: true,
                delegate_only: false,
            },
            permissions: Permissions {
                cli,
                spawn_requires_approval: !leads,
            },
            reset_commands: RESET_COMMANDS.map(str::to_owned).to_vec(),
        }
    }
}
