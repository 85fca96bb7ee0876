//! The line that connects an agent: pasted into a shell as it is printed, it gives a client of the
//! Model Context Protocol all that it needs to read, search and write as its person.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use sandbox::Sandbox;
use serde_json::{Value, json};

/// How an agent's program reaches the server.
enum Connection {
    /// By starting this program, with these in its environment.
    Program {
        words: Vec<String>,
        env: Vec<(String, String)>,
    },
    /// By HTTP, with this header.
    Http { url: String, header: String },
}

/// What a program is given when the line is pasted into a shell.
fn paste(line: &str) -> Vec<String> {
    // A function stands for the program: it prints the words that it is given, each on its line.
    let said = r#"said() { for word in "$@"; do printf '%s\n' "$word"; done; }"#;
    let script = format!(
        "{said}\nclaude() {{ said \"$@\"; }}\ncodex() {{ said \"$@\"; }}\ngemini() {{ said \"$@\"; }}\n{line}"
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Reads the words of `mcp add` as the three programs document them.
fn connection(words: &[String]) -> Connection {
    let after = |flag: &str| {
        let places = (0..words.len()).filter(|place| words[*place] == flag);
        places
            .map(|place| words[place + 1].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(words[..2], ["mcp", "add"], "{words:?}");
    if let [header] = &after("--header")[..] {
        assert_eq!(after("--transport"), ["http"], "{words:?}");
        let url = words
            .iter()
            .find(|word| word.starts_with("http://"))
            .unwrap()
            .clone();
        return Connection::Http {
            url,
            header: header.clone(),
        };
    }
    let env = [after("--env"), after("-e")].concat();
    let env = env
        .iter()
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(k, v)| (k.to_owned(), v.to_owned()));
    let from = words.iter().position(|word| word == "turnkeep").unwrap();
    let program: Vec<_> = words[from..]
        .iter()
        .take_while(|word| *word != "-e")
        .cloned()
        .collect();
    assert_eq!(program, ["turnkeep", "mcp"], "{words:?}");
    Connection::Program {
        words: program,
        env: env.collect(),
    }
}

/// A client over either of the two transports.
enum Client {
    Program {
        child: Child,
        stdout: BufReader<ChildStdout>,
    },
    Http {
        url: String,
        header: String,
    },
}

impl Client {
    fn connect(sandbox: &Sandbox, connection: Connection) -> Self {
        match connection {
            Connection::Http { url, header } => Self::Http { url, header },
            Connection::Program { words, env } => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_turnkeep"));
                command
                    .args(&words[1..])
                    .env_clear()
                    .env("HOME", sandbox.path("elsewhere"))
                    .envs(env);
                let mut child = command
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                let stdout = BufReader::new(child.stdout.take().unwrap());
                Self::Program { child, stdout }
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let answer = match self {
            Self::Program { child, stdout } => {
                let stdin = child.stdin.as_mut().unwrap();
                writeln!(stdin, "{message}").unwrap();
                stdin.flush().unwrap();
                let mut line = String::new();
                stdout.read_line(&mut line).unwrap();
                line
            }
            Self::Http { url, header } => post(url, header, &message),
        };
        let answer: Value =
            serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
        answer["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        );
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    fn end(self) {
        if let Self::Program { mut child, .. } = self {
            drop(child.stdin.take());
            assert!(child.wait().unwrap().success());
        }
    }
}

/// Posts a message and gives the body of the answer.
fn post(url: &str, header: &str, message: &str) -> String {
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\n{header}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{message}",
        message.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn ok(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = sandbox.output(args, b"");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn p22_one_pasted_line_connects_a_client_that_reads_searches_and_writes_as_its_person() {
    let sandbox = Sandbox::new();
    ok(
        &sandbox,
        &[
            "world",
            "new",
            "team",
            "--profile",
            "workspace",
            "--person",
            "ANN",
            "--person",
            "BOB",
        ],
    );
    ok(&sandbox, &["invoke", "team", "Ship the refund fix today."]);
    ok(
        &sandbox,
        &[
            "world",
            "write",
            "team",
            "--as",
            "BOB",
            "--to",
            "GEORGE",
            "The blocker is the migration.",
        ],
    );
    for server in [None, Some(sandbox.up(&[]))] {
        for program in ["claude", "codex", "gemini"] {
            let line = ok(
                &sandbox,
                &["world", "token", "team", "ANN", "--write", "--mcp", program],
            );
            let mut client = Client::connect(&sandbox, connection(&paste(&line)));
            let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            assert_eq!(
                client.ask("initialize", &hello)["serverInfo"]["name"],
                "turnkeep",
                "{program}"
            );
            let tools = client.ask("tools/list", &json!({}));
            assert!(
                tools["tools"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|tool| tool["name"] == "ledger_write")
            );
            let page = client.call("ledger_read", &json!({}));
            assert_eq!(
                page["stream"]["entries"][0]["text"],
                "Ship the refund fix today."
            );
            let found = client.call(
                "ledger_search",
                &json!({ "query": "refund blocker migration" }),
            );
            let hits = found["results"].as_array().unwrap();
            assert!(
                hits.iter()
                    .any(|hit| hit["verbatim_excerpt"] == "Ship the refund fix today."),
                "{found}"
            );
            assert!(
                !found.to_string().contains("The blocker is"),
                "it was not for ANN: {found}"
            );
            let text = format!("ANN speaks through {program}.");
            let written = client.call("ledger_write", &json!({ "text": text }));
            let entry = written["entries"][0]["entry_id"].as_str().unwrap();
            let read = client.call("ledger_get", &json!({ "ids": [entry] }));
            assert_eq!(read["results"][0]["author_id"], "ANN", "{read}");
            client.end();
            assert!(
                ok(&sandbox, &["stream", "team"]).contains(&text),
                "{program}"
            );
        }
        drop(server);
    }
}
