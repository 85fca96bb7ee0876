//! Command lines, and where the token is.

use super::*;

fn options(access: Access, permissions: Permissions) -> StartOptions {
    StartOptions {
        session: None,
        cwd: "/work/demo".to_owned(),
        mcp: None,
        permissions,
        access,
    }
}

fn with_mcp() -> StartOptions {
    StartOptions {
        mcp: Some(McpServer {
            name: "turnkeep".to_owned(),
            url: "http://127.0.0.1:7/mcp".to_owned(),
            token: "s3cret".to_owned(),
        }),
        ..options(Access::Write, Permissions::Gated)
    }
}

fn program(kind: ProgramKind) -> AgentProgram {
    AgentProgram {
        args: vec!["--extra".to_owned()],
        ..AgentProgram::new(kind, "agent")
    }
}

fn plan(kind: ProgramKind, options: &StartOptions) -> Launch {
    plan_launch(&program(kind), options, "/private")
}

const CLAUDE: &str = "-p --input-format stream-json --output-format stream-json --verbose \
                      --include-partial-messages";

#[test]
fn each_program_has_its_flags() {
    use Access::{ReadOnly, Write};
    use Permissions::{Gated, Skip};
    use ProgramKind::{Claude, Codex, Gemini};
    let ask = "--permission-prompt-tool stdio";
    let plan_mode = "--permission-mode plan --disallowedTools ExitPlanMode";
    let rows = [
        (
            Claude,
            Write,
            Gated,
            format!("{CLAUDE} --permission-mode default {ask}"),
        ),
        (
            Claude,
            Write,
            Skip,
            format!("{CLAUDE} --dangerously-skip-permissions"),
        ),
        (
            Claude,
            ReadOnly,
            Gated,
            format!("{CLAUDE} {plan_mode} {ask}"),
        ),
        (Claude, ReadOnly, Skip, format!("{CLAUDE} {plan_mode}")),
        (Codex, Write, Gated, "app-server".to_owned()),
        (Codex, ReadOnly, Skip, "app-server".to_owned()),
        (Gemini, Write, Gated, "--acp --skip-trust".to_owned()),
        (
            Gemini,
            Write,
            Skip,
            "--acp --skip-trust --approval-mode yolo".to_owned(),
        ),
        (
            Gemini,
            ReadOnly,
            Skip,
            "--acp --skip-trust --approval-mode plan".to_owned(),
        ),
    ];
    for (kind, access, permissions, expect) in rows {
        let launch = plan(kind, &options(access, permissions));
        let expect = format!("{expect} --extra");
        assert_eq!(launch.args.join(" "), expect, "{kind:?}");
        assert_eq!((launch.env.len(), launch.files.len()), (0, 0));
        assert_eq!(launch.cwd, "/work/demo");
    }
    let custom = ProgramKind::Custom(CustomProtocol::Raw);
    assert_eq!(plan(custom, &options(Write, Gated)).args, ["--extra"]);
}

#[test]
fn only_a_plain_session_name_is_an_argument() {
    let rows = [
        ("7abc2fbd-c90d_1", true),
        ("--dangerously-skip-permissions", false),
        ("-", false),
        ("a b", false),
        ("", false),
        ("é", false),
    ];
    for (name, is_used) in rows {
        let mut options = options(Access::Write, Permissions::Skip);
        options.session = Some(name.to_owned());
        let launch = plan(ProgramKind::Claude, &options);
        assert_eq!(
            launch.args.contains(&"--resume".to_owned()),
            is_used,
            "{name}"
        );
    }
    assert!(!is_plain_name(&"a".repeat(129)));
}

#[test]
fn the_token_is_never_an_argument_and_never_printed() {
    let kinds = [
        ProgramKind::Claude,
        ProgramKind::Codex,
        ProgramKind::Gemini,
        ProgramKind::Custom(CustomProtocol::Jsonl),
    ];
    for kind in kinds {
        let options = with_mcp();
        let launch = plan(kind, &options);
        assert!(!launch.args.concat().contains("s3cret"), "{kind:?}");
        assert!(
            !format!("{launch:?} {options:?}").contains("s3cret"),
            "{kind:?}"
        );
    }
}

#[test]
fn claude_reads_its_server_from_a_private_file() {
    let launch = plan(ProgramKind::Claude, &with_mcp());
    let expect = "--mcp-config /private/mcp.json --allowedTools mcp__turnkeep --extra";
    assert!(launch.args.join(" ").ends_with(expect), "{:?}", launch.args);
    let [file] = &launch.files[..] else {
        panic!("one file, not {:?}", launch.files);
    };
    assert_eq!(file.path, "/private/mcp.json");
    let config: Value = serde_json::from_str(&file.contents).unwrap();
    assert_eq!(
        config,
        json!({"mcpServers": {"turnkeep": {
            "type": "http",
            "url": "http://127.0.0.1:7/mcp",
            "headers": {"Authorization": "Bearer s3cret"},
        }}})
    );
}

#[test]
fn codex_and_custom_programs_read_the_token_from_the_environment() {
    let launch = plan(ProgramKind::Codex, &with_mcp());
    let url = r#"-c mcp_servers.turnkeep.url="http://127.0.0.1:7/mcp""#;
    let token = r#"-c mcp_servers.turnkeep.bearer_token_env_var="TURNKEEP_MCP_TOKEN""#;
    let args = launch.args.join(" ");
    assert!(args.contains(url) && args.contains(token), "{args}");
    let names = |launch: &Launch| {
        let names = launch.env.iter().map(|variable| variable.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&launch), ["TURNKEEP_MCP_TOKEN"]);
    let custom = plan(ProgramKind::Custom(CustomProtocol::Raw), &with_mcp());
    assert_eq!(names(&custom), ["TURNKEEP_MCP_URL", "TURNKEEP_MCP_TOKEN"]);
    assert_eq!(custom.env[1].value, "s3cret");
}

#[test]
fn a_launcher_comes_before_the_program() {
    let mut program = program(ProgramKind::Custom(CustomProtocol::Pty));
    let words = ["/bin/bridge", "agent-terminal", "--"];
    program.launcher = words.map(str::to_owned).to_vec();
    let launch = plan_launch(
        &program,
        &options(Access::Write, Permissions::Gated),
        "/private",
    );
    assert_eq!(launch.command, "/bin/bridge");
    let args = launch.args.join(" ");
    let own = [&program.command, &program.args.join(" ")]
        .map(String::as_str)
        .join(" ");
    assert_eq!(args, format!("agent-terminal -- {own}"));
}

#[test]
fn a_program_in_a_terminal_promises_nothing() {
    let program = program(ProgramKind::Custom(CustomProtocol::Pty));
    // Its commands for a new session can be typed.
    let promised = crate::Features {
        resets_in_process: true,
        ..crate::Features::default()
    };
    assert_eq!(program.new_machine().features(), promised);
}
