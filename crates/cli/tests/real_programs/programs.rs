//! Where the agent programs are, and the settings under which they reach the scripted model.
//!
//! Each program gets an empty home directory, so that no setting and no login of the user matters,
//! and a key that opens nothing.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::json;

use crate::sandbox::Sandbox;

/// What differs between the programs, as far as a client can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each program has these abilities in another combination"
)]
pub(crate) struct RealProgram {
    /// The name of the provider and of the command.
    pub(crate) name: &'static str,
    /// Whether an approval can change the arguments of a call.
    pub(crate) edits_args: bool,
    /// Whether the reason of a denial reaches the model.
    pub(crate) passes_reasons: bool,
    /// Whether a session can be resumed in the minute in which it began. Gemini CLI names the file of
    /// a session by that minute, and then empties it.
    pub(crate) resumes_at_once: bool,
    /// Whether the model gets the tool `ask_user`. Gemini CLI hides every tool of this name in the
    /// mode in which the server runs it, also ours.
    pub(crate) offers_questions: bool,
}

pub(crate) const CLAUDE: RealProgram = RealProgram {
    name: "claude",
    edits_args: true,
    passes_reasons: true,
    resumes_at_once: true,
    offers_questions: true,
};

pub(crate) const CODEX: RealProgram = RealProgram {
    name: "codex",
    edits_args: false,
    passes_reasons: true,
    resumes_at_once: true,
    offers_questions: true,
};

pub(crate) const GEMINI: RealProgram = RealProgram {
    name: "gemini",
    edits_args: false,
    passes_reasons: false,
    resumes_at_once: false,
    offers_questions: false,
};

impl RealProgram {
    fn path(self) -> PathBuf {
        let dir = std::env::var_os("TURNKEEP_REAL_AGENTS");
        let dir = dir.expect("set TURNKEEP_REAL_AGENTS, or run ./x real-agents");
        let path = PathBuf::from(dir).join(self.name);
        assert!(path.exists(), "there is no {}", path.display());
        path
    }

    /// Writes the program's own settings, and returns its part of the server's configuration.
    fn configure(self, sandbox: &Sandbox, model: SocketAddr) -> String {
        let variables = match self.name {
            "claude" => configure_claude(sandbox, model),
            "codex" => configure_codex(sandbox, model),
            _ => configure_gemini(sandbox, model),
        };
        let mut text = format!("[providers.{}]\n", self.name);
        writeln!(text, "command = {}", json!(self.path())).unwrap();
        for (name, value) in variables {
            writeln!(text, "env.{name} = {}", json!(value)).unwrap();
        }
        text
    }
}

/// The configuration of a server with these programs.
pub(crate) fn configure(programs: &[RealProgram], sandbox: &Sandbox, model: SocketAddr) -> String {
    let tables = programs
        .iter()
        .map(|program| program.configure(sandbox, model));
    tables.collect()
}

type Variables = Vec<(&'static str, String)>;

fn configure_claude(sandbox: &Sandbox, model: SocketAddr) -> Variables {
    let settings = json!({"hasCompletedOnboarding": true});
    fs::write(sandbox.path(".claude.json"), settings.to_string()).unwrap();
    let off = || "1".to_owned();
    vec![
        ("ANTHROPIC_BASE_URL", format!("http://{model}")),
        ("ANTHROPIC_API_KEY", "no-key".to_owned()),
        // A limit is reported at once instead of after ten tries.
        ("CLAUDE_CODE_MAX_RETRIES", "0".to_owned()),
        ("DISABLE_TELEMETRY", off()),
        ("DISABLE_AUTOUPDATER", off()),
        ("DISABLE_ERROR_REPORTING", off()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", off()),
    ]
}

fn configure_codex(sandbox: &Sandbox, model: SocketAddr) -> Variables {
    let settings = format!(
        r#"model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[feedback]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "http://{model}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
"#
    );
    fs::create_dir(sandbox.path(".codex")).unwrap();
    fs::write(sandbox.path(".codex/config.toml"), settings).unwrap();
    vec![("SCRIPTED_KEY", "no-key".to_owned())]
}

fn configure_gemini(sandbox: &Sandbox, model: SocketAddr) -> Variables {
    let settings = json!({
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
    });
    fs::create_dir(sandbox.path(".gemini")).unwrap();
    fs::write(sandbox.path(".gemini/settings.json"), settings.to_string()).unwrap();
    vec![
        ("GOOGLE_GEMINI_BASE_URL", format!("http://{model}")),
        ("GEMINI_API_KEY", "no-key".to_owned()),
    ]
}
