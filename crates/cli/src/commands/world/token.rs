//! `turnkeep world token`: mints, lists and revokes a person's tokens, and prints the shell line
//! that gives an agent one.

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::answer::{is_true, list_at, text_of};
use crate::commands::App;
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::ledger::world_path;
use crate::output::Style;
use crate::render::turn::date_text;
use crate::session::StoreSession;

/// A warning for agents that share a directory.
const NO_SERVER: &str = "no server stays on this directory: with several agents let `turnkeep up` run, best before \
     they start; else the first agent's `turnkeep mcp` serves the others while it is open";

/// Mint a token for a person, list a world's tokens, or revoke one
///
/// A token opens one world as one person: it reads what that person may see and, with --write,
/// writes in that person's name. It is shown this once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world token payments CODER --write --mcp claude     mint one and print the line to paste
  turnkeep world token payments CODER --expires 2027-01-01T00:00:00Z
  turnkeep world token payments                                list them
  turnkeep world token payments --revoke t_0abc…               from now on it opens nothing")]
pub(crate) struct WorldTokenArgs {
    /// The world
    world: String,
    /// The person; without one the world's tokens are listed
    person: Option<String>,
    /// The token may write in the person's name
    #[arg(long, requires = "person")]
    write: bool,
    /// When it ends, such as 2027-01-01T00:00:00Z [default: never]
    #[arg(long, value_name = "TIME", requires = "person")]
    expires: Option<String>,
    /// Print the line that connects this program
    #[arg(long, value_name = "PROGRAM", value_enum, requires = "person")]
    mcp: Option<McpProgram>,
    /// Revoke this token
    #[arg(long, value_name = "ID", conflicts_with = "person")]
    revoke: Option<String>,
}

/// A program that speaks the Model Context Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum McpProgram {
    Claude,
    Codex,
    Gemini,
}

pub(super) async fn run_world_token(
    session: &mut StoreSession,
    args: &WorldTokenArgs,
    app: &mut App,
) -> Result<()> {
    match (&args.person, &args.revoke) {
        (_, Some(id)) => revoke_token(&mut session.http, &args.world, id, app).await,
        (Some(person), None) => mint_token(session, args, person, app).await,
        (None, None) => list_tokens(&mut session.http, &args.world, app).await,
    }
}

async fn mint_token(
    session: &mut StoreSession,
    args: &WorldTokenArgs,
    person: &str,
    app: &mut App,
) -> Result<()> {
    let body = json!({ "person_id": person, "write": args.write, "expires_at": args.expires });
    let call = Call::post(world_path(&args.world, "/tokens"), &body);
    let mut token = session.http.json(call).await?;
    let secret = text_of(&token, "token");
    let reach = ServerReach::find(session, app)?;
    let connect = |program| reach.connect_line(program, &args.world, person, secret);
    let line = args.mcp.map(connect);
    if app.out.is_json() {
        if let Some(line) = line {
            token["mcp"] = line.into();
        }
        return app.out.json(&token);
    }
    if let Some(line) = line {
        // The note goes to standard error: the line is meant for `eval` or for copying.
        if matches!(reach, ServerReach::Directory(_)) {
            eprintln!("note: {NO_SERVER}");
        }
        return app.out.line(line);
    }
    print_minted(&token, args, person, app)
}

fn print_minted(token: &Value, args: &WorldTokenArgs, person: &str, app: &mut App) -> Result<()> {
    let secret = app.out.paint(Style::Name, text_of(token, "token"));
    app.out.pairs(&[
        ("Token", secret),
        ("Id", text_of(token, "token_id").to_owned()),
        ("Person", format!("{person} of {}", args.world)),
        ("May", rights_text(args.write, " and ")),
        ("Ends", end_text(token)),
    ])?;
    app.out.line("It is shown this once.")
}

/// What a token may do.
fn rights_text(may_write: bool, joined_by: &str) -> String {
    if may_write {
        format!("read{joined_by}write")
    } else {
        "read".to_owned()
    }
}

fn end_text(token: &Value) -> String {
    match text_of(token, "expires_at") {
        "" => "never".to_owned(),
        time => date_text(time),
    }
}

async fn revoke_token(http: &mut Http, world: &str, id: &str, app: &mut App) -> Result<()> {
    let token = format!("/tokens/{}", turnkeep_wire::percent_encode(id));
    http.bytes(Call::delete(world_path(world, &token))).await?;
    if app.out.is_json() {
        return app.out.json(&json!({ "token_id": id, "revoked": true }));
    }
    app.out.line(format!("revoked {id}"))
}

async fn list_tokens(http: &mut Http, world: &str, app: &mut App) -> Result<()> {
    let answer = http.json(Call::get(world_path(world, "/tokens"))).await?;
    let tokens = list_at(&answer, "/tokens");
    if app.out.is_json() {
        return app.out.json_lines(tokens);
    }
    let rows: Vec<_> = tokens.iter().map(token_row).collect();
    app.out
        .table(&["TOKEN", "PERSON", "MAY", "MADE", "ENDS"], &rows)
}

fn token_row(token: &Value) -> Vec<String> {
    vec![
        text_of(token, "token_id").to_owned(),
        text_of(token, "person_id").to_owned(),
        rights_text(is_true(token, "write"), ", "),
        date_text(text_of(token, "created_at")),
        end_text(token),
    ]
}

/// How another program on this machine reaches the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerReach {
    /// A server that stays.
    Server(String),
    /// No server stays: `turnkeep mcp` opens the directory when it is started.
    Directory(String),
}

impl ServerReach {
    fn find(session: &StoreSession, app: &App) -> Result<Self> {
        if session.outlives_command() {
            return Ok(Self::Server(session.http.target().to_string()));
        }
        let directory = std::path::absolute(&app.config()?.data.value)?;
        let text = directory.to_str().map(str::to_owned);
        text.map(Self::Directory)
            .ok_or_else(|| Failure::new("the data directory's path is not UTF-8").into())
    }

    /// The shell line that connects a program.
    pub(super) fn connect_line(
        &self,
        program: McpProgram,
        world: &str,
        person: &str,
        secret: &str,
    ) -> String {
        // The programs accept letters, digits, hyphens and underscores in a name, but no dots.
        let name = format!("turnkeep-{world}-{person}").replace('.', "-");
        let bearer = format!("--header \"Authorization: Bearer {secret}\"");
        let token = format!("TURNKEEP_TOKEN={secret}");
        match (self, program) {
            (Self::Server(url), McpProgram::Claude) => {
                format!("claude mcp add --transport http {name} {url}/mcp {bearer}")
            }
            (Self::Server(url), McpProgram::Gemini) => {
                format!("gemini mcp add --transport http {name} {url}/mcp {bearer}")
            }
            // codex takes the token of an HTTP server from the environment only, so it gets the
            // stdio bridge instead.
            (Self::Server(url), McpProgram::Codex) => {
                format!(
                    "codex mcp add {name} --env {token} --env TURNKEEP_SERVER={url} -- turnkeep mcp"
                )
            }
            (Self::Directory(data), McpProgram::Claude | McpProgram::Codex) => {
                let (program, data) = (program.executable(), shell_word(data));
                format!(
                    "{program} mcp add {name} --env {token} --env TURNKEEP_DATA={data} -- turnkeep mcp"
                )
            }
            (Self::Directory(data), McpProgram::Gemini) => {
                let data = shell_word(data);
                format!("gemini mcp add {name} turnkeep mcp -e {token} -e TURNKEEP_DATA={data}")
            }
        }
    }
}

impl McpProgram {
    fn executable(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }
}

/// The text as one word of a shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_one_that_a_shell_takes() {
        for (text, expect) in [
            ("a.b-c", "a.b-c"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), expect);
        }
        let server = ServerReach::Server("http://127.0.0.1:9010".to_owned());
        assert_eq!(
            server.connect_line(McpProgram::Claude, "w", "ANN", "tkp.w.0"),
            "claude mcp add --transport http turnkeep-w-ANN http://127.0.0.1:9010/mcp --header \"Authorization: Bearer tkp.w.0\""
        );
        let directory = ServerReach::Directory("/home/me/my data".to_owned());
        assert_eq!(
            directory.connect_line(McpProgram::Codex, "w", "ANN", "tkp.w.0"),
            "codex mcp add turnkeep-w-ANN --env TURNKEEP_TOKEN=tkp.w.0 --env TURNKEEP_DATA='/home/me/my data' -- turnkeep mcp"
        );
    }
}
