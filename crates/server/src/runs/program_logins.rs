//! Whether a known agent program is logged in, without a conversation and without reading a secret.
//!
//! | program | how it is found out |
//! |---|---|
//! | Codex | `codex login status` exits with 0, or says `Not logged in` |
//! | Claude Code | a variable of the environment, or `.credentials.json` in `~/.claude` |
//! | Gemini CLI | a variable of the environment, or `oauth_creds.json` in `~/.gemini` |
//!
//! The answer is "unknown" where a login may be kept elsewhere: in the keychain of macOS, or by a
//! settings file that names a helper or another method. A wrapper under another name is unknown too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;
use turnkeep_agents::launch::{AgentProgram, ProgramKind};

/// How long Codex may take to answer.
const STATUS_WITHIN: Duration = Duration::from_secs(5);

/// Where a program keeps its login.
struct LoginPlaces {
    /// Each of these variables is a login, or chooses one that needs no file.
    variables: &'static [&'static str],
    /// Names the directory instead of the one in the home directory.
    dir_variable: Option<&'static str>,
    dir_in_home: &'static str,
    /// Exists while the program is logged in.
    login_file: &'static str,
    /// May say that the login is elsewhere.
    other_files: &'static [&'static str],
    uses_keychain: bool,
}

const CLAUDE: LoginPlaces = LoginPlaces {
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
    ],
    dir_variable: Some("CLAUDE_CONFIG_DIR"),
    dir_in_home: ".claude",
    login_file: ".credentials.json",
    other_files: &["settings.json"],
    uses_keychain: cfg!(target_os = "macos"),
};

const GEMINI: LoginPlaces = LoginPlaces {
    variables: &[
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_GCA",
    ],
    dir_variable: None,
    dir_in_home: ".gemini",
    login_file: "oauth_creds.json",
    other_files: &["settings.json", ".env"],
    uses_keychain: false,
};

/// Whether the program at this path is logged in; `None` if nothing says so.
pub(super) async fn is_logged_in(program: &AgentProgram, path: &Path) -> Option<bool> {
    let is_called = |name: &str| path.file_name().is_some_and(|file| file == name);
    let look_up = |name: &str| find_variable(program, name);
    match program.kind {
        ProgramKind::Claude if is_called("claude") => find_login(&CLAUDE, &look_up),
        ProgramKind::Gemini if is_called("gemini") => find_login(&GEMINI, &look_up),
        ProgramKind::Codex if is_called("codex") => ask_codex(program, path).await,
        _ => None,
    }
}

/// A variable as the program will see it. An empty one says nothing.
fn find_variable(program: &AgentProgram, name: &str) -> Option<OsString> {
    let mut own = program.env.iter();
    let own = own.find(|variable| variable.name == name);
    let value = match own {
        Some(variable) => Some(OsString::from(&variable.value)),
        None => std::env::var_os(name),
    };
    value.filter(|value| !value.is_empty())
}

fn find_login(places: &LoginPlaces, look_up: &impl Fn(&str) -> Option<OsString>) -> Option<bool> {
    if places.variables.iter().any(|name| look_up(name).is_some()) {
        return Some(true);
    }
    let named = places.dir_variable.and_then(look_up).map(PathBuf::from);
    let dir = named.or_else(|| Some(PathBuf::from(look_up("HOME")?).join(places.dir_in_home)))?;
    if dir.join(places.login_file).exists() {
        return Some(true);
    }
    let mut other_files = places.other_files.iter();
    let may_be_elsewhere = places.uses_keychain || other_files.any(|file| dir.join(file).exists());
    (!may_be_elsewhere).then_some(false)
}

async fn ask_codex(program: &AgentProgram, path: &Path) -> Option<bool> {
    let variables = program.env.iter();
    let asked = Command::new(path)
        .args(["login", "status"])
        .envs(variables.map(|variable| (&variable.name, &variable.value)))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let answer = tokio::time::timeout(STATUS_WITHIN, asked).await;
    read_codex_status(&answer.ok()?.ok()?)
}

fn read_codex_status(answer: &Output) -> Option<bool> {
    if answer.status.success() {
        return Some(true);
    }
    // Older versions do not know the command, and fail in the same way.
    let says_no = |text: &[u8]| String::from_utf8_lossy(text).contains("Not logged in");
    (says_no(&answer.stderr) || says_no(&answer.stdout)).then_some(false)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use turnkeep_agents::launch::EnvVariable;

    use super::*;

    #[test]
    fn a_variable_or_a_file_is_a_login_and_a_settings_file_leaves_it_open() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".gemini");
        fs::create_dir(&dir).unwrap();
        let find = |variables: &[&str]| {
            let look_up = |name: &str| match name {
                "HOME" => Some(home.path().into()),
                name => variables.contains(&name).then(|| OsString::from("x")),
            };
            find_login(&GEMINI, &look_up)
        };
        assert_eq!(find(&[]), Some(false));
        assert_eq!(find(&["GEMINI_API_KEY"]), Some(true));
        fs::write(dir.join("settings.json"), "").unwrap();
        assert_eq!(find(&[]), None);
        fs::write(dir.join("oauth_creds.json"), "").unwrap();
        assert_eq!(find(&[]), Some(true));
    }

    #[test]
    fn a_variable_names_another_directory() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".credentials.json"), "").unwrap();
        let look_up = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| home.path().into());
        assert_eq!(find_login(&CLAUDE, &look_up), Some(true));
    }

    #[tokio::test]
    async fn codex_is_asked_and_a_program_under_another_name_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let script =
            "#!/bin/sh\n[ \"$*\" = 'login status' ] || exit 9\necho \"$SAYS\" >&2\nexit $EXITS\n";
        let is_logged_in_as = async |name: &str, says: &str, exits: &str| {
            let path = dir.path().join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            let mut program = AgentProgram::new(ProgramKind::Codex, name);
            for (name, value) in [("SAYS", says), ("EXITS", exits)] {
                let (name, value) = (name.to_owned(), value.to_owned());
                program.env.push(EnvVariable { name, value });
            }
            is_logged_in(&program, &path).await
        };
        let yes = "Logged in using ChatGPT";
        assert_eq!(is_logged_in_as("codex", yes, "0").await, Some(true));
        let no = "Not logged in";
        assert_eq!(is_logged_in_as("codex", no, "1").await, Some(false));
        let old = "error: unrecognized subcommand 'status'";
        assert_eq!(is_logged_in_as("codex", old, "2").await, None);
        assert_eq!(is_logged_in_as("wrapper", yes, "0").await, None);
    }
}
