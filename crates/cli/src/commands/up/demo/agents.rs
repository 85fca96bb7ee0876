//! The demo's agents: their scripts, and the configuration by which the server starts them.
//!
//! An agent is this very program under the name by which it plays scripts. It needs no key and no
//! network. The provider has a name of its own, so that `claude`, `codex` and `gemini` stay the real
//! programs for a run that a person starts in the demo.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

const TEAM_SCRIPT: &str = include_str!("scripts/team.toml");
const TERMINAL_SCRIPT: &str = include_str!("scripts/terminal.toml");
/// What an agent makes of `receipt.sh`. It is a file of its own because a line of it is named.
const RECEIPT: &str = include_str!("scripts/receipt.sh");
/// Stands for that file in the script.
const RECEIPT_PLACE: &str = "RECEIPT_SH";

/// The file whose line the tour explains.
pub(super) const EXPLAINED_FILE: &str = "receipt.sh";
/// How that line begins.
const EXPLAINED_LINE: &str = "discount=";

/// The name of the provider in the configuration.
pub(super) const PROVIDER: &str = "scripted";

/// The directory with the program, its scripts and the configuration.
#[derive(Debug, Clone)]
pub(super) struct AgentFiles {
    dir: PathBuf,
}

impl AgentFiles {
    /// Writes the files into a new directory.
    pub(super) fn write(dir: PathBuf) -> Result<Self> {
        let files = Self { dir };
        std::fs::create_dir(&files.dir).context("cannot make the directory of the agents")?;
        let turnkeep = std::env::current_exe().context("cannot find the path of turnkeep")?;
        std::os::unix::fs::symlink(turnkeep, files.program())
            .context("cannot link the scripted agent")?;
        let team_script = TEAM_SCRIPT.replace(RECEIPT_PLACE, RECEIPT);
        for (path, content) in [
            (files.team_script(), team_script.as_str()),
            (files.terminal_script(), TERMINAL_SCRIPT),
            (files.config(), files.config_text().as_str()),
        ] {
            std::fs::write(&path, content)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(files)
    }

    /// The program that plays a script.
    pub(super) fn program(&self) -> PathBuf {
        self.dir.join("turnkeep-agent-script")
    }

    fn team_script(&self) -> PathBuf {
        self.dir.join("team.toml")
    }

    /// The script of the agent in the shared terminal.
    pub(super) fn terminal_script(&self) -> PathBuf {
        self.dir.join("terminal.toml")
    }

    /// The configuration of the server.
    pub(super) fn config(&self) -> PathBuf {
        self.dir.join("config.toml")
    }

    fn config_text(&self) -> String {
        // The program gets the address and the token of its tools in its environment.
        let tools = json!({"mcpServers": {"turnkeep": {
            "type": "http",
            "url": "${TURNKEEP_MCP_URL}",
            "headers": {"Authorization": "Bearer ${TURNKEEP_MCP_TOKEN}"},
        }}});
        let script = self.team_script();
        let args = json!([
            "--script",
            script,
            "--protocol",
            "stream-json",
            "--permission-prompt-tool",
            "stdio",
            "--mcp-config",
            tools.to_string(),
        ]);
        format!(
            "{CONFIG}\n[providers.{PROVIDER}]\ncommand = {}\nprotocol = \"stream-json\"\nargs = {args}\n",
            quoted(&self.program())
        )
    }
}

/// A path as a string of TOML, which has the escapes of JSON.
fn quoted(path: &Path) -> String {
    json!(path).to_string()
}

/// Free ports: a server of the user may run. A person may take hours to answer, and the script of an
/// agent begins anew with its process, so no program is ended for its silence.
const CONFIG: &str = r#"listen = "127.0.0.1:0"
http = "127.0.0.1:0"

[runs]
silence_warn_ms = 0
silence_end_ms = 0
turn_end_ms = 0
program_idle_ms = 604800000
"#;

/// The number of the line that the tour explains.
pub(super) fn explained_line() -> Option<u32> {
    let mut lines = RECEIPT.lines();
    let index = lines.position(|line| line.trim_start().starts_with(EXPLAINED_LINE))?;
    u32::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_can_be_played_and_the_line_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let files = AgentFiles::write(dir.path().join("agents")).unwrap();
        for script in [files.team_script(), files.terminal_script()] {
            let text = std::fs::read_to_string(&script).unwrap();
            let parsed = turnkeep_agent_script::script::parse_script(&text);
            assert!(parsed.is_ok(), "{}: {parsed:?}", script.display());
        }
        assert_eq!(explained_line(), Some(7));
    }
}
