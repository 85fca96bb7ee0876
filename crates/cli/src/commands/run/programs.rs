//! The agent programs that the server finds on its machine.

use anyhow::Result;
use turnkeep_wire::runs::{NodeView, Provider, ProviderHealth, ProviderList};

use super::client::RunsClient;
use crate::commands::App;
use crate::failure::Failure;
use crate::http::Call;
use crate::render::printable;

/// The programs that nodes can use, in the order in which they are tried.
pub(crate) async fn fetch_programs(client: &mut RunsClient) -> Result<Vec<ProviderHealth>> {
    let list: ProviderList = client.fetch(Call::get("/api/providers")).await?.view;
    Ok(list.providers)
}

/// The named program, or the first that can work: one that is logged in, else one that is found.
pub(crate) fn choose_program<'a>(
    programs: &'a [ProviderHealth],
    wanted: Option<&str>,
) -> Result<&'a ProviderHealth, Failure> {
    if let Some(name) = wanted {
        return find_program(programs, name);
    }
    let ready = programs.iter().find(|program| can_work(program));
    let found = || programs.iter().find(|program| program.found);
    ready.or_else(found).ok_or_else(|| {
        let failure = Failure::new("the server finds no agent program");
        failure.hint(install_hint(programs))
    })
}

/// Whether a program is found and logged in. One that does not say whether it is logged in may well be.
pub(crate) fn can_work(program: &ProviderHealth) -> bool {
    program.found && program.logged_in != Some(false)
}

fn find_program<'a>(
    programs: &'a [ProviderHealth],
    name: &str,
) -> Result<&'a ProviderHealth, Failure> {
    let called = programs
        .iter()
        .find(|program| program.name.eq_ignore_ascii_case(name));
    called.ok_or_else(|| {
        let names: Vec<String> = programs
            .iter()
            .map(|program| printable(&program.name))
            .collect();
        Failure::usage(format!("there is no program `{}`", printable(name)))
            .hint(format!("there are: {}", names.join(", ")))
    })
}

fn install_hint(programs: &[ProviderHealth]) -> String {
    let hints = programs
        .iter()
        .filter_map(|program| program.hint.as_deref());
    let hints: Vec<String> = hints.map(printable).collect();
    if hints.is_empty() {
        return "install claude, codex or gemini, and start the server where they are in PATH"
            .to_owned();
    }
    hints.join("; ")
}

/// Says what is missing before a program can work. The person may be about to install it or to log
/// in, so this is no failure.
pub(crate) fn note_unready_program(program: &ProviderHealth, app: &App) {
    if can_work(program) || app.out.is_json() {
        return;
    }
    if let Some(hint) = &program.hint {
        eprintln!("note: {}", printable(hint));
    }
}

/// The name of the program behind a node.
pub(crate) fn program_name(node: &NodeView) -> &str {
    let configured = node.provider_name.as_deref();
    configured.unwrap_or(node.provider.word())
}

/// The program behind a node, as requests name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeProgram {
    pub(crate) provider: Provider,
    /// The name of a configured program.
    pub(crate) provider_name: Option<String>,
}

impl NodeProgram {
    /// The program that a person names. The server checks that it knows a configured one.
    pub(crate) fn called(name: &str) -> Self {
        let kinds = Provider::ALL.iter().copied();
        let mut known = kinds.filter(|kind| *kind != Provider::Custom);
        match known.find(|kind| kind.word().eq_ignore_ascii_case(name)) {
            Some(provider) => Self {
                provider,
                provider_name: None,
            },
            None => Self {
                provider: Provider::Custom,
                provider_name: Some(name.to_owned()),
            },
        }
    }

    /// A program that the server finds.
    pub(crate) fn of(program: &ProviderHealth) -> Self {
        let is_custom = program.provider == Provider::Custom;
        Self {
            provider: program.provider,
            provider_name: is_custom.then(|| program.name.clone()),
        }
    }
}

/// A program in one line: its name, version and place, and whether it is logged in.
pub(crate) fn program_text(program: &ProviderHealth) -> String {
    let mut text = program.name.clone();
    if let Some(version) = &program.version {
        text = format!("{text} {version}");
    }
    if let Some(path) = &program.path {
        text = format!("{text} at {path}");
    }
    let state = match (program.found, program.logged_in) {
        (false, _) => ", not found",
        (true, Some(true)) => ", logged in",
        (true, Some(false)) => ", not logged in",
        (true, None) => "",
    };
    printable(&format!("{text}{state}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn program(name: &str, found: bool, logged_in: Option<bool>) -> ProviderHealth {
        serde_json::from_value(json!({
            "name": name, "provider": "claude", "found": found, "loggedIn": logged_in,
            "version": "2.1", "path": format!("/bin/{name}"),
            "features": { "resume": true, "steer": false, "approvals": true, "editArgs": true,
                          "usage": true, "cost": true, "mcp": true, "planMode": true },
        }))
        .unwrap()
    }

    #[test]
    fn a_program_is_a_known_kind_or_a_configured_one() {
        fn check(name: &str, provider: Provider, provider_name: Option<&str>) {
            let provider_name = provider_name.map(str::to_owned);
            let expect = NodeProgram {
                provider,
                provider_name,
            };
            assert_eq!(NodeProgram::called(name), expect);
        }
        check("Claude", Provider::Claude, None);
        check("mine", Provider::Custom, Some("mine"));
        check("custom", Provider::Custom, Some("custom"));
    }

    #[test]
    fn the_first_program_that_can_work_is_chosen() {
        let check = |programs: &[ProviderHealth], wanted, expect: &str| {
            let chosen = choose_program(programs, wanted);
            let chosen = chosen.map_or_else(|error| error.to_string(), program_text);
            assert_eq!(chosen, expect);
        };
        let programs = [
            program("codex", false, None),
            program("claude", true, Some(false)),
            program("gemini", true, None),
        ];
        check(&programs, None, "gemini 2.1 at /bin/gemini");
        check(
            &programs[..2],
            None,
            "claude 2.1 at /bin/claude, not logged in",
        );
        check(&programs[..1], None, "the server finds no agent program");
        check(
            &programs,
            Some("Codex"),
            "codex 2.1 at /bin/codex, not found",
        );
        check(&programs, Some("gpt"), "there is no program `gpt`");
    }
}
