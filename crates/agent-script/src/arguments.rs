//! The command line: the agent's own options, and those of the program for which it stands in.
//!
//! The agent is started with the arguments of the real program. It reads those that change the
//! conversation, repeats the checks by which the real program refuses to start, and ignores the
//! rest: a newer version of a program may have options that this one has never seen.

use std::path::PathBuf;

/// Names the script when `--script` does not.
pub const SCRIPT_VARIABLE: &str = "TURNKEEP_AGENT_SCRIPT";

/// Which protocol the agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolName {
    StreamJson,
    AppServer,
    Acp,
    Jsonl,
    Raw,
    Pty,
}

const PROTOCOL_NAMES: [(&str, ProtocolName); 6] = [
    ("stream-json", ProtocolName::StreamJson),
    ("app-server", ProtocolName::AppServer),
    ("acp", ProtocolName::Acp),
    ("jsonl", ProtocolName::Jsonl),
    ("raw", ProtocolName::Raw),
    ("pty", ProtocolName::Pty),
];

/// Why the agent does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("{option} needs a value")]
    MissingValue { option: String },
    #[error("unknown protocol {name:?}; use one of: {}", list_protocols())]
    UnknownProtocol { name: String },
    #[error(
        "no protocol: start the agent like the program that it replaces \
         (`-p --input-format stream-json …`, `app-server`, `--acp`), or pass --protocol with one \
         of: {}",
        list_protocols()
    )]
    NoProtocol,
    #[error("no script: pass --script FILE or set {SCRIPT_VARIABLE}")]
    NoScript,
    #[error("--input-format stream-json needs --output-format stream-json")]
    OutputNotStreamed,
    #[error("with -p, --output-format stream-json needs --verbose")]
    NotVerbose,
}

fn list_protocols() -> String {
    PROTOCOL_NAMES.map(|(name, _)| name).join(", ")
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    ShowHelp,
    ShowVersion,
    Play(Box<Arguments>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    pub protocol: ProtocolName,
    pub script: PathBuf,
    pub log: Option<PathBuf>,
    pub state: Option<PathBuf>,
    pub program: ProgramArguments,
}

/// The options of the real programs that change the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramArguments {
    pub model: Option<String>,
    /// The session that goes on.
    pub resume: Option<String>,
    /// The id that a new session has to get.
    pub session_id: Option<String>,
    pub partial_messages: bool,
    /// The other side answers permission requests on standard input.
    pub asks_on_stdio: bool,
    pub skip_permissions: bool,
    pub permission_mode: Option<String>,
    /// Tools that need no permission: names, or `mcp__SERVER` for all tools of a server.
    pub allowed_tools: Vec<String>,
    /// Files, or JSON texts, with MCP servers.
    pub mcp_configs: Vec<String>,
    /// Settings such as `mcp_servers.x.url="…"`.
    pub config_overrides: Vec<String>,
    pub acp_program: AcpProgram,
}

/// Which of the programs that speak ACP the agent resembles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AcpProgram {
    /// Started with `--acp`.
    #[default]
    Gemini,
    /// Started as `acp`.
    OpenCode,
}

/// What surrounds the command line.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The value of [`SCRIPT_VARIABLE`].
    pub script_variable: Option<PathBuf>,
    pub input_is_terminal: bool,
}

/// Reads the arguments, without the program's name.
pub fn read_arguments(
    arguments: Vec<String>,
    surroundings: Surroundings,
) -> Result<Request, ArgumentError> {
    let mut reading = Reading::default();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" | "-h" => return Ok(Request::ShowHelp),
            "--version" | "-V" => return Ok(Request::ShowVersion),
            _ => reading.read_one(&argument, &mut rest)?,
        }
    }
    reading
        .finish(surroundings)
        .map(|arguments| Request::Play(Box::new(arguments)))
}

#[derive(Default)]
struct Reading {
    protocol: Option<ProtocolName>,
    script: Option<PathBuf>,
    log: Option<PathBuf>,
    state: Option<PathBuf>,
    input_format: Option<String>,
    output_format: Option<String>,
    print: bool,
    verbose: bool,
    program: ProgramArguments,
}

impl Reading {
    fn read_one(
        &mut self,
        argument: &str,
        rest: &mut impl Iterator<Item = String>,
    ) -> Result<(), ArgumentError> {
        // Both `--option value` and `--option=value`.
        let (option, inline) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
            _ => (argument, None),
        };
        let mut value = || {
            let missing = ArgumentError::MissingValue {
                option: option.to_owned(),
            };
            inline.clone().or_else(|| rest.next()).ok_or(missing)
        };
        match option {
            "--protocol" => self.protocol = Some(find_protocol(&value()?)?),
            "--script" => self.script = Some(value()?.into()),
            "--log" => self.log = Some(value()?.into()),
            "--state" => self.state = Some(value()?.into()),
            "-p" | "--print" => self.print = true,
            "--verbose" => self.verbose = true,
            "--input-format" => self.input_format = Some(value()?),
            "--output-format" => self.output_format = Some(value()?),
            "--include-partial-messages" => self.program.partial_messages = true,
            "--permission-prompt-tool" => self.program.asks_on_stdio = value()? == "stdio",
            "--permission-mode" | "--approval-mode" => {
                self.program.permission_mode = Some(value()?);
            }
            "--dangerously-skip-permissions" | "--yolo" => self.program.skip_permissions = true,
            "--allowedTools" | "--allowed-tools" => {
                let names = value()?;
                let names = names.split([',', ' ']).filter(|name| !name.is_empty());
                self.program.allowed_tools.extend(names.map(str::to_owned));
            }
            "--model" | "-m" => self.program.model = Some(value()?),
            "--resume" | "-r" => self.program.resume = Some(value()?),
            "--session-id" => self.program.session_id = Some(value()?),
            "--mcp-config" => self.program.mcp_configs.push(value()?),
            "-c" | "--config" => self.program.config_overrides.push(value()?),
            "--acp" | "--experimental-acp" => self.suggest(ProtocolName::Acp),
            "acp" => {
                self.program.acp_program = AcpProgram::OpenCode;
                self.suggest(ProtocolName::Acp);
            }
            "app-server" => self.suggest(ProtocolName::AppServer),
            // The value of an unknown option arrives here too, as the next argument.
            _ => {}
        }
        Ok(())
    }

    /// The form of the command line implies a protocol, unless `--protocol` names one.
    fn suggest(&mut self, protocol: ProtocolName) {
        self.protocol.get_or_insert(protocol);
    }

    fn finish(mut self, surroundings: Surroundings) -> Result<Arguments, ArgumentError> {
        if self.input_format.as_deref() == Some("stream-json") {
            self.check_stream_json()?;
            self.suggest(ProtocolName::StreamJson);
        }
        if surroundings.input_is_terminal {
            self.suggest(ProtocolName::Pty);
        }
        let script = self.script.or(surroundings.script_variable);
        Ok(Arguments {
            protocol: self.protocol.ok_or(ArgumentError::NoProtocol)?,
            script: script.ok_or(ArgumentError::NoScript)?,
            log: self.log,
            state: self.state,
            program: self.program,
        })
    }

    fn check_stream_json(&self) -> Result<(), ArgumentError> {
        if self.output_format.as_deref() != Some("stream-json") {
            return Err(ArgumentError::OutputNotStreamed);
        }
        if self.print && !self.verbose {
            return Err(ArgumentError::NotVerbose);
        }
        Ok(())
    }
}

fn find_protocol(name: &str) -> Result<ProtocolName, ArgumentError> {
    let known = PROTOCOL_NAMES.iter().find(|(known, _)| *known == name);
    let unknown = || ArgumentError::UnknownProtocol {
        name: name.to_owned(),
    };
    known.map(|(_, protocol)| *protocol).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request, ArgumentError> {
        let arguments = line.split_whitespace().map(str::to_owned).collect();
        read_arguments(arguments, Surroundings::default())
    }

    fn check_protocol(line: &str, expect: ProtocolName) {
        match read(&format!("{line} --script s.toml")) {
            Ok(Request::Play(arguments)) => assert_eq!(arguments.protocol, expect, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn check_error(line: &str, expect: &str) {
        let message = read(line)
            .map_err(|error| error.to_string())
            .expect_err(line);
        assert!(message.contains(expect), "{line}: {message}");
    }

    #[test]
    fn the_command_line_of_each_program_implies_its_protocol() {
        let claude = "-p --input-format stream-json --output-format stream-json --verbose";
        check_protocol(claude, ProtocolName::StreamJson);
        let equals = "-p --input-format=stream-json --output-format=stream-json --verbose";
        check_protocol(equals, ProtocolName::StreamJson);
        check_protocol("app-server", ProtocolName::AppServer);
        check_protocol(
            "-c a.b=1 app-server --listen stdio://",
            ProtocolName::AppServer,
        );
        check_protocol("--acp --skip-trust", ProtocolName::Acp);
        check_protocol("acp", ProtocolName::Acp);
        check_protocol("--acp --protocol raw", ProtocolName::Raw);
        check_protocol("--protocol jsonl", ProtocolName::Jsonl);
    }

    #[test]
    fn a_terminal_means_pty() {
        let surroundings = Surroundings {
            script_variable: Some("s.toml".into()),
            input_is_terminal: true,
        };
        let request = read_arguments(Vec::new(), surroundings);
        let Ok(Request::Play(arguments)) = request else {
            panic!("{request:?}")
        };
        assert_eq!(arguments.protocol, ProtocolName::Pty);
        assert_eq!(arguments.script, PathBuf::from("s.toml"));
    }

    #[test]
    fn what_a_real_program_refuses_is_refused() {
        check_error("--script s", "no protocol");
        check_error("--acp", "TURNKEEP_AGENT_SCRIPT");
        check_error(
            "--protocol telex",
            "stream-json, app-server, acp, jsonl, raw, pty",
        );
        check_error("--script", "--script needs a value");
        check_error(
            "--input-format stream-json --script s",
            "--output-format stream-json",
        );
        let quiet = "-p --input-format stream-json --output-format stream-json --script s";
        check_error(quiet, "--verbose");
    }

    #[test]
    fn unknown_options_are_ignored() {
        let line =
            "--acp --shiny-new-option 7 --resume s1 --script s --dangerously-skip-permissions";
        let Ok(Request::Play(arguments)) = read(line) else {
            panic!("not accepted")
        };
        assert_eq!(arguments.program.resume.as_deref(), Some("s1"));
        assert!(arguments.program.skip_permissions);
    }
}
