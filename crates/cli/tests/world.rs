//! Worlds as a person uses them: on a directory without a server, with one, and by an agent's
//! tools.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "world/lost_answers.rs"]
mod lost_answers;
#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use sandbox::{Sandbox, check};
use serde_json::{Value, json};

/// The words of a command line, with a text that has spaces at its end.
fn words<'a>(line: &'a str, text: &'a str) -> Vec<&'a str> {
    line.split(' ').chain([text]).collect()
}

impl Sandbox {
    /// Runs a command that succeeds and gives what it printed.
    fn ok(&self, args: &[&str]) -> String {
        let output = self.output(args, b"");
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// A token of somebody in the team.
    fn token_of(&self, person: &str) -> String {
        let token = self.json(&["world", "token", "team", person, "--write", "--json"], "");
        token["token"].as_str().unwrap().to_owned()
    }

    fn with_team(self) -> Self {
        self.ok(&[
            "world",
            "new",
            "team",
            "--profile",
            "WORKSPACE",
            "--person",
            "ANN",
            "--person",
            "BOB",
        ]);
        self.ok(&words("invoke team", "Ship the refund fix today."));
        self.ok(&words(
            "world write team --as BOB",
            "I take the rounding test.",
        ));
        self.ok(&words(
            "world write team --as BOB --to GEORGE",
            "The blocker is the migration.",
        ));
        self
    }
}

#[test]
fn a_world_from_its_making_to_who_knew_what() {
    let sandbox = Sandbox::new().with_team();
    let transcript = sandbox.transcript(
        "world list
         stream team --as ANN
         search team \"blocker\"
         search team \"blocker\" --as ANN
         world knew team ANN --vs GEORGE
         capsule team BOB --as ANN
         world person team add CARL --human
         world verify team
         world write team --as CARL --to DAVE hello
         world write team --as DAVE hello
         stream team --as DAVE
         stream nowhere
         world fork team copy
         world token team
         world token team ANN --write",
    );
    check(
        &transcript,
        "
        $ world list
        WORLD    PROFILE    PEOPLE  WRITER   TIME
        default  narrative  0       silence  DATE
        team     workspace  2       silence  DATE
        $ stream team --as ANN
        ENTRY DATE Operator to everyone
            Ship the refund fix today.
        ENTRY DATE BOB to everyone
            I take the rounding test.
        $ search team \"blocker\"
        ENTRY DATE BOB (private)
            The blocker is the migration.
        $ search team \"blocker\" --as ANN
        nothing found
        $ world knew team ANN --vs GEORGE
        Operator could see, and ANN could not:
        ENTRY DATE BOB to Operator only
            The blocker is the migration.
        ANN could see nothing that Operator could not
        $ capsule team BOB --as ANN
        as it was written
            I take the rounding test.
        $ world person team add CARL --human
        team has CARL, a human
        $ world verify team
        sound: 3 entries in 3 bundles, 3 answers made again
        $ world write team --as CARL --to DAVE hello
        error: there is no person `DAVE` in this world
        hint: there are: ANN, BOB, CARL, Operator
        [exit status: 2]
        $ world write team --as DAVE hello
        error: there is no person `DAVE` in this world
        hint: there are: ANN, BOB, CARL, Operator
        [exit status: 2]
        $ stream team --as DAVE
        error: there is no person `DAVE` in team; there are: ANN, BOB, CARL, Operator (the operator)
        hint: `turnkeep world person WORLD list` lists those who were added, `… add` adds one
        [exit status: 1]
        $ stream nowhere
        error: there is no world `nowhere`
        hint: `turnkeep world list` lists the worlds; `turnkeep world new` makes one
        [exit status: 1]
        $ world fork team copy
        made copy from team
        $ world token team
        TOKEN  PERSON  MAY  MADE  ENDS
        $ world token team ANN --write
        Token:  tkp.team.HASH
        Id:     TOKEN
        Person: ANN of team
        May:    read and write
        Ends:   never
        It is shown this once.
        ",
    );
}

#[test]
fn every_command_speaks_json() {
    let sandbox = Sandbox::new().with_team();
    let json = |args: &[&str]| sandbox.json(&[args, &["--json"]].concat(), "");
    assert_eq!(json(&["world", "show", "team"])["world_id"], "team");
    assert_eq!(json(&["world", "verify", "team"])["sound"], true);
    assert_eq!(json(&["world", "knew", "team", "ANN"])["count"], 2);
    assert_eq!(json(&["capsule", "team", "ANN"])["person_id"], "ANN");
    assert_eq!(
        json(&["search", "team", "blocker", "-n", "1"])["verbatim_excerpt"],
        "The blocker is the migration."
    );
    let said = json(&["invoke", "team", "Again.", "--key", "k"]);
    assert_eq!(
        json(&["invoke", "team", "Again.", "--key", "k"]),
        said,
        "the same key, the same answer"
    );
    let token = json(&["world", "token", "team", "ANN"]);
    let id = token["token_id"].as_str().unwrap();
    assert_eq!(
        json(&["world", "token", "team", "--revoke", id])["revoked"],
        true
    );
    let exported = sandbox.ok(&["world", "export", "team"]);
    assert_eq!(exported.lines().count(), 4, "{exported}");
    let audit = sandbox.ok(&["world", "audit", "team", "--json"]);
    for what in [
        "acting-as",
        "audit-read",
        "token-minted",
        "token-revoked",
        "configured",
    ] {
        assert!(
            audit.contains(&format!("\"what\":\"{what}\"")),
            "{what}: {audit}"
        );
    }
}

#[test]
fn a_stream_is_followed_with_somebody_s_eyes() {
    let sandbox = Sandbox::new().with_team();
    let server = sandbox.up(&[]);
    let mut child = sandbox
        .command(&["stream", "team", "--as", "ANN", "--follow", "--json"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["text"], "Ship the refund fix today.");
    assert_eq!(next()["text"], "I take the rounding test.");
    sandbox.ok(&words(
        "world write team --as BOB --to GEORGE",
        "Nothing for ANN.",
    ));
    sandbox.ok(&words("world write team --as BOB", "Done."));
    assert_eq!(next()["text"], "Done.");
    child.kill().unwrap();
    child.wait().unwrap();
    server.terminate();
}

/// `turnkeep mcp` as an agent runs it.
struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Agent {
    fn start(sandbox: &Sandbox, token: &str) -> Self {
        Self::start_at(sandbox, token, None)
    }

    /// The same, with the server at this address.
    fn start_at(sandbox: &Sandbox, token: &str, server: Option<&str>) -> Self {
        let mut command = sandbox.command(&["mcp"]);
        let mut child = command
            .env("TURNKEEP_TOKEN", token)
            .envs(server.map(|server| ("TURNKEEP_SERVER", server)))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut agent = Self {
            child,
            stdin,
            stdout,
            last: 0,
        };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        assert_eq!(
            agent.ask("initialize", &hello)["result"]["serverInfo"]["name"],
            "turnkeep"
        );
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: &Value) {
        self.say(&message.to_string());
    }

    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }),
        );
        let answer = self.hear();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        );
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// Ends without a word.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Hangs up, and waits until it has ended well.
    fn end(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn p22_one_pasted_line_connects_an_agent_that_reads_searches_and_writes_as_its_person() {
    let sandbox = Sandbox::new().with_team();
    let line = sandbox.ok(&["world", "token", "team", "ANN", "--write", "--mcp", "codex"]);
    assert!(line.trim_end().ends_with("-- turnkeep mcp"), "{line}");
    let token = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix("TURNKEEP_TOKEN="))
        .unwrap();
    for server in [None, Some(sandbox.up(&[]))] {
        let mut agent = Agent::start(&sandbox, token);
        assert_eq!(agent.call("whoami", &json!({}))["person_id"], "ANN");
        let written = agent.call("ledger_write", &json!({ "text": "ANN was here." }));
        assert_eq!(written["entries"][0]["audience"], "everyone");
        let found = agent.call("ledger_search", &json!({ "query": "blocker" }));
        assert_eq!(found["results"], json!([]), "it was not for ANN");
        let page = agent.call("ledger_read", &json!({}));
        let texts: Vec<_> = page["stream"]["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["text"].clone())
            .collect();
        assert!(texts.contains(&json!("ANN was here.")), "{texts:?}");
        agent.say("no message at all");
        assert_eq!(agent.hear()["error"]["code"], -32700);
        // Other commands find the store while an agent has it open.
        assert!(sandbox.ok(&["stream", "team"]).contains("ANN was here."));
        agent.end();
        drop(server);
    }
}

#[test]
fn agents_outlive_the_one_whose_directory_they_shared() {
    let sandbox = Sandbox::new().with_team();
    let (ann, bob) = (sandbox.token_of("ANN"), sandbox.token_of("BOB"));
    let write =
        |agent: &mut Agent, text: &str| agent.call("ledger_write", &json!({ "text": text }));
    for how in ["closed", "killed"] {
        let end = |agent: Agent| {
            if how == "closed" {
                agent.end();
            } else {
                agent.kill();
            }
        };
        let first = Agent::start(&sandbox, &ann);
        let mut second = Agent::start(&sandbox, &bob);
        let mut third = Agent::start(&sandbox, &ann);
        write(&mut second, &format!("Before the first was {how}."));
        end(first);
        write(&mut second, &format!("After the first was {how}."));
        write(&mut third, &format!("The third too, when it was {how}."));
        let said = sandbox.ok(&["stream", "team"]);
        for text in [
            format!("After the first was {how}."),
            format!("The third too, when it was {how}."),
        ] {
            assert_eq!(said.matches(&text).count(), 1, "{said}");
        }
        end(second);
        let server = sandbox.up(&[]);
        write(&mut third, &format!("By the server, when they were {how}."));
        server.kill();
        write(&mut third, &format!("By itself, when they were {how}."));
        third.end();
    }
}

#[test]
fn a_message_over_the_limit_is_an_error_and_the_next_one_is_answered() {
    let sandbox = Sandbox::new().with_team();
    let mut agent = Agent::start(&sandbox, &sandbox.token_of("ANN"));
    let arguments = json!({ "text": "x".repeat(3 << 20) });
    let answer = agent.ask(
        "tools/call",
        &json!({ "name": "ledger_write", "arguments": arguments }),
    );
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("2 MiB"),
        "{answer}"
    );
    agent.call("ledger_write", &json!({ "text": "Shorter." }));
    assert!(sandbox.ok(&["stream", "team"]).contains("Shorter."));
    agent.end();
}

#[test]
fn a_read_that_waits_holds_up_nobody_and_can_be_cancelled() {
    let sandbox = Sandbox::new().with_team();
    let mut agent = Agent::start(&sandbox, &sandbox.token_of("ANN"));
    let now = agent.call("whoami", &json!({}))["cursor_now"].clone();
    let wait = |id: &str| {
        let arguments = json!({ "cursor": now, "wait_seconds": 50 });
        let params = json!({ "name": "ledger_read", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    agent.send(&wait("cancelled"));
    agent.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "cancelled" },
    }));
    agent.send(&wait("waits"));
    assert_eq!(
        agent.ask("ping", &json!({}))["result"],
        json!({}),
        "the next request is answered at once"
    );
    let params = json!({ "name": "ledger_write", "arguments": { "text": "News." } });
    agent.send(
        &json!({ "jsonrpc": "2.0", "id": "wrote", "method": "tools/call", "params": params }),
    );
    let mut answers = [agent.hear(), agent.hear()];
    answers.sort_by_key(|answer| answer["id"].to_string());
    assert_eq!(answers[0]["id"], "waits", "{answers:?}");
    let read = &answers[0]["result"]["structuredContent"]["stream"]["entries"];
    assert_eq!(
        (read[0]["text"].as_str(), &answers[1]["id"]),
        (Some("News."), &json!("wrote"))
    );
    agent.end();
}

#[test]
fn a_subscription_over_standard_output_tells_of_news_until_it_is_cancelled() {
    let sandbox = Sandbox::new().with_team();
    let mut agent = Agent::start(&sandbox, &sandbox.token_of("ANN"));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = agent.ask("server/discover", &json!({ "_meta": meta }));
    assert_eq!(found["result"]["resultType"], "complete", "{found}");
    let wanted = json!({ "resourceSubscriptions": ["turnkeep://worlds/team/stream"] });
    let listen = json!({ "_meta": meta, "notifications": wanted });
    agent
        .send(&json!({ "jsonrpc": "2.0", "id": "news", "method": "subscriptions/listen", "params": listen }));
    assert_eq!(
        agent.hear()["method"],
        "notifications/subscriptions/acknowledged"
    );
    sandbox.ok(&words(
        "world write team --as BOB --to GEORGE",
        "Not for ANN.",
    ));
    sandbox.ok(&words("world write team --as BOB", "For all."));
    let news = agent.hear();
    assert_eq!(news["method"], "notifications/resources/updated", "{news}");
    agent.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "news" },
    }));
    let call = json!({ "_meta": meta, "name": "ledger_write", "arguments": { "text": "After." } });
    assert_eq!(agent.ask("tools/call", &call)["result"]["isError"], false);
    agent.end();
}

#[test]
fn an_agent_s_own_server_is_not_what_a_pasted_line_names() {
    let sandbox = Sandbox::new().with_team();
    let agent = Agent::start(&sandbox, &sandbox.token_of("ANN"));
    let output = sandbox.output(&["world", "token", "team", "BOB", "--mcp", "claude"], b"");
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(
        line.contains("TURNKEEP_DATA=") && !line.contains("http"),
        "{line}"
    );
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("`turnkeep up`"), "{note}");
    let up = sandbox.output(&["up"], b"");
    let said = String::from_utf8(up.stderr).unwrap();
    assert!(
        !up.status.success() && said.contains("close that agent"),
        "{said}"
    );
    agent.end();
}

#[test]
fn a_refusal_does_not_tell_an_agent_where_more_rights_are() {
    let sandbox = Sandbox::new().with_team();
    let token = sandbox.token_of("ANN");
    // A token may end in any digit, so the wrong one must end in another.
    let (head, last) = token.split_at(token.len() - 1);
    let revoked = format!("{head}{}", if last == "0" { "1" } else { "0" });
    let server = sandbox.up(&[]);
    for (token, args, expect) in [
        (
            &token,
            &["world", "list"][..],
            "opens what is that person's, and nothing else",
        ),
        (
            &token,
            &["world", "knew", "team", "BOB"],
            "opens what is that person's, and nothing else",
        ),
        (
            &token,
            &["stream", "team", "--as", "BOB"],
            "opens what is that person's, and nothing else",
        ),
        (&token, &["stream", "other"], "there is no world `other`"),
        (
            &token,
            &["ctx", "list"],
            "opens what is that person's, and nothing else",
        ),
        (
            &revoked,
            &["stream", "team"],
            "whoever gave it to you can mint another",
        ),
    ] {
        let output = sandbox.output(&[&["--token", token], args].concat(), b"");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains(expect),
            "{args:?}: {said}"
        );
        for word in ["data directory", "--data", "token is in", "world list"] {
            assert!(!said.contains(word), "{args:?}: {said}");
        }
    }
    let doctor = sandbox.output(&["--token", &token, "doctor"], b"");
    let said = String::from_utf8(doctor.stdout).unwrap();
    assert!(
        said.contains("the token is a person's") && !said.contains("start it again"),
        "{said}"
    );
    server.terminate();
}

#[test]
fn a_token_that_is_none_opens_nothing() {
    let sandbox = Sandbox::new().with_team();
    let mut child = sandbox.command(&["mcp"]);
    let child = child
        .env("TURNKEEP_TOKEN", "tkp.team.0")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.as_ref().unwrap();
    drop(writeln!(
        stdin,
        "{}",
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
    ));
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("the token is wrong"));
}

#[test]
fn an_empty_token_is_refused_and_does_not_become_the_owner_s() {
    let sandbox = Sandbox::new().with_team();
    let refused = |args: &[&str], environment: &[(&str, &str)]| {
        let output = sandbox
            .command(args)
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?} {environment:?}: {said}"
        );
        assert!(
            output.stdout.is_empty() && said.contains("the token is empty"),
            "{args:?}: {said}"
        );
    };
    let every = |server: &[(&'static str, &str)]| {
        for args in [
            &["mcp"][..],
            &["stream", "team"],
            &["world", "list"],
            &["ctx", "list"],
        ] {
            for token in ["", " "] {
                refused(args, &[server, &[("TURNKEEP_TOKEN", token)]].concat());
            }
            refused(&[&["--token", ""], args].concat(), server);
        }
    };
    every(&[]);
    let server = sandbox.up(&[]);
    every(&[]);
    every(&[("TURNKEEP_SERVER", server.http())]);
    refused(&["stream", "team", "--follow"], &[("TURNKEEP_TOKEN", "")]);
    server.terminate();
}

#[test]
fn the_line_to_paste_names_the_server_or_the_directory() {
    let sandbox = Sandbox::new().with_team();
    let line = |program| sandbox.ok(&["world", "token", "team", "ANN", "--mcp", program]);
    for program in ["claude", "codex", "gemini"] {
        let line = line(program);
        assert!(
            line.starts_with(&format!("{program} mcp add ")) && line.lines().count() == 1,
            "{line}"
        );
        assert!(line.contains(sandbox.data().to_str().unwrap()), "{line}");
    }
    let server = sandbox.up(&[]);
    for program in ["claude", "codex", "gemini"] {
        assert!(
            line(program).contains(&format!("http://{}", server.http())),
            "{program}"
        );
    }
    server.terminate();
}

/// Whether a process runs; one that has ended and was not yet waited for does not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

/// Waits until something holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A writer that notes its children when it is asked, reads no more, and never answers.
const HANGING: &str =
    "cmd: read -r line; sleep 1000 & echo $! $$ > asked.new; mv asked.new asked; wait";

#[test]
fn a_server_that_is_killed_leaves_no_writer_behind() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    sandbox.ok(&["world", "new", "play", "--writer", HANGING]);
    let mut invoke = sandbox
        .command(&["invoke", "play", "Hello?"])
        .spawn()
        .unwrap();
    let asked = sandbox.path("asked");
    wait_until("the writer", || asked.exists());
    let started = std::fs::read_to_string(&asked).unwrap();
    assert!(started.split(' ').all(runs), "{started}");
    server.kill();
    wait_until("the writer's end", || !started.split(' ').any(runs));
    invoke.wait().unwrap();
}

#[test]
fn a_stop_ends_a_writer_that_hangs_and_the_words_are_answered() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    sandbox.ok(&["world", "new", "play", "--writer", HANGING]);
    let invoke = sandbox
        .command(&["invoke", "play", "Hello?"])
        .spawn()
        .unwrap();
    wait_until("the writer", || sandbox.path("asked").exists());
    assert!(server.terminate().success());
    let output = invoke.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("Hello?"));
    assert!(sandbox.ok(&["stream", "play"]).contains("Hello?"));
    let started = std::fs::read_to_string(sandbox.path("asked")).unwrap();
    wait_until("the writer's end", || !started.split(' ').any(runs));
}

#[test]
fn an_invocation_says_that_the_writer_failed() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["world", "new", "play", "--writer", "cmd: ./no-such-writer"]);
    for args in [
        &["invoke", "play", "Hello?"][..],
        &["invoke", "play", "Hello?", "--json"],
    ] {
        let output = sandbox.output(args, b"");
        assert!(output.status.success() && !output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("there is no such program") && said.contains("world audit play"),
            "{said}"
        );
    }
}

#[test]
fn a_person_s_token_searches_in_its_own_name() {
    let sandbox = Sandbox::new().with_team();
    for (person, expect) in [
        ("ANN", "nothing found\n"),
        ("BOB", "The blocker is the migration."),
    ] {
        let token = sandbox.json(&["world", "token", "team", person, "--json"], "");
        let found = sandbox.ok(&[
            "--token",
            token["token"].as_str().unwrap(),
            "search",
            "team",
            "blocker",
        ]);
        assert!(found.contains(expect), "{person}: {found}");
    }
}

#[test]
fn a_person_s_token_shows_what_that_person_knew_and_writes_in_its_name() {
    let sandbox = Sandbox::new().with_team();
    let token = sandbox.token_of("ANN");
    let as_ann = |args: &[&str]| sandbox.output(&[&["--token", &token], args].concat(), b"");
    let wrote = as_ann(&["world", "write", "team", "In my own name."]);
    assert!(
        wrote.status.success(),
        "{}",
        String::from_utf8_lossy(&wrote.stderr)
    );
    let knew = String::from_utf8(as_ann(&["world", "knew", "team", "ANN"]).stdout).unwrap();
    assert!(
        knew.starts_with("ANN could see 3 entries")
            && knew.contains("ANN to everyone\n    In my own name."),
        "{knew}"
    );
    for args in [
        &["world", "knew", "team", "BOB"][..],
        &["world", "knew", "team", "ANN", "--vs", "BOB"],
    ] {
        assert!(!as_ann(args).status.success(), "{args:?}");
    }
    let nobody = sandbox.output(&["world", "write", "team", "In whose name?"], b"");
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert_eq!(nobody.status.code(), Some(2), "{said}");
    assert!(said.contains("name a person with --as"), "{said}");
}

#[test]
fn nothing_is_cut_or_left_out_without_a_word() {
    let sandbox = Sandbox::new().with_team();
    for (args, expect) in [
        (
            &["world", "knew", "team", "ANN", "-n", "1"][..],
            "only the newest are shown: -n 2 shows more",
        ),
        (
            &["world", "knew", "team", "ANN", "--vs", "BOB"],
            "BOB could see, and ANN could not:",
        ),
        (
            &["world", "verify", "team", "--leaks"],
            "no long run of words",
        ),
        (
            &[
                "world",
                "fork",
                "team",
                "early",
                "--at",
                "2001-01-01T00:00:00Z",
            ],
            "nothing that the operator may see",
        ),
        (&["world", "new", "story"], "made story"),
        (
            &["invoke", "story", "", "--time", "2096-11-16T09:00:00Z"],
            "nothing new; the world's time is 2096-11-16",
        ),
        (
            &["world", "person", "team", "add", "ANN", "--human"],
            "team has ANN, a human",
        ),
        (
            &["world", "person", "team", "add", "ANN", "--label", "Ann"],
            "team has ANN, a human",
        ),
        (
            &["world", "person", "team", "add", "ANN", "--not-human"],
            "team has ANN\n",
        ),
    ] {
        let output = sandbox.output(args, b"");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(
            output.status.success() && said.contains(expect),
            "{args:?}: {said}"
        );
    }
    assert!(
        !sandbox
            .ok(&["world", "knew", "team", "ANN", "-n", "2"])
            .contains("only the newest")
    );
}

#[test]
fn a_fault_names_the_option_and_is_a_sentence() {
    let sandbox = Sandbox::new().with_team();
    for (args, expect) in [
        (
            &["world", "new", "team"][..],
            "world_id is the name of a world that there is already",
        ),
        (
            &["world", "new", "_x"],
            "the first of them a letter or a digit",
        ),
        (
            &["world", "new", "TEAM"],
            "differs from the name of the world `team` by upper and lower case only",
        ),
        (
            &["world", "new", "ｔｅａｍ"],
            "must be 1 to 64 letters, digits",
        ),
        (
            &["world", "new", "te\u{200b}am"],
            "must be 1 to 64 letters, digits",
        ),
        (
            &["world", "person", "team", "add", "ann"],
            "in another spelling",
        ),
        (
            &["world", "person", "team", "add", "ＡＮＮ"],
            "must be 1 to 64 letters, digits",
        ),
        (
            &["world", "person", "team", "add", "AN\u{200d}N"],
            "must be 1 to 64 letters, digits",
        ),
        (
            &["world", "fork", "team", "Team"],
            "by upper and lower case only",
        ),
        (
            &["world", "write", "team", "--as", "ANN", " "],
            "the text holds nothing but white space (TEXT_EMPTY: entries[0].text)",
        ),
        (
            &["invoke", "team", "x", "--time", "2001-01-01T00:00:00Z"],
            "--time is before the world's time, ",
        ),
        (
            &["invoke", "team", "x", "--time", "tomorrow"],
            "--time must be a time such as",
        ),
        (
            &["invoke", "team", "x", "--time", "9999-12-31T00:00:00Z"],
            "before 9999-12-30T22:00:00Z",
        ),
        (
            &["invoke", "team", "x", "--timezone", "Nowhere"],
            "--timezone is not a time zone",
        ),
        (
            &["search", "team", "x", "--from", "never"],
            "--from must be a time such as",
        ),
        (&["search", "team", "x", "-n", "0"], "error: -n must be"),
    ] {
        let output = sandbox.output(args, b"");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains(expect),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_stream_says_for_whom_and_the_operator_has_one_name() {
    let sandbox = Sandbox::new();
    sandbox.ok(&[
        "world",
        "new",
        "lab",
        "--operator-label",
        "Dana",
        "--person",
        "ANN",
        "--person",
        "BOB",
    ]);
    assert!(
        sandbox.ok(&["world", "show", "lab"]).contains("workspace"),
        "the default profile"
    );
    sandbox.ok(&words("invoke lab", "Ship it."));
    let told = sandbox.ok(&words(
        "world write lab --as ANN --to BOB --to Dana",
        "Between us.",
    ));
    assert!(told.contains("to BOB, Dana"), "{told}");
    let seen = sandbox.ok(&["stream", "lab"]);
    assert!(seen.contains("Dana to everyone\n    Ship it."), "{seen}");
    assert!(
        seen.contains("ANN to BOB, Dana only\n    Between us."),
        "{seen}"
    );
    for args in [
        &["stream", "lab", "--as", "BOB"][..],
        &["search", "lab", "ship"],
        &["world", "knew", "lab", "BOB", "--vs", "GEORGE"],
        &["world", "knew", "lab", "Dana"],
        &["invoke", "lab", "Again."],
        &["world", "show", "lab"],
        &["world", "audit", "lab"],
    ] {
        let said = sandbox.ok(args);
        assert!(
            said.contains("Dana") && !said.contains("GEORGE"),
            "{args:?}: {said}"
        );
    }
    let quoted = sandbox.ok(&["capsule", "lab", "Dana"]);
    assert!(
        quoted.contains("Ship it.") && !quoted.contains("GEORGE"),
        "{quoted}"
    );
    let json: Value = serde_json::from_str(
        sandbox
            .ok(&["stream", "lab", "--json"])
            .lines()
            .nth(1)
            .unwrap(),
    )
    .unwrap();
    assert_eq!(
        json["visibility"],
        json!({ "scope": "PRIVATE", "visible_to": ["BOB", "GEORGE"] })
    );
}

#[test]
fn a_search_leaves_out_what_only_stands_beside_a_match() {
    let sandbox = Sandbox::new().with_team();
    let found = |args: &[&str]| sandbox.ok(&[&["search", "team"], args].concat());
    assert!(!found(&["rounding"]).contains("Ship the refund fix"));
    let around = found(&["rounding", "--context", "1"]);
    assert_eq!(around.matches("(beside a match)").count(), 1, "{around}");
    let all = found(&["rounding", "--context", "5"]);
    assert_eq!(all.matches("(beside a match)").count(), 2, "{all}");
    let refused = sandbox.output(&["search", "team", "rounding", "--context", "201"], b"");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && said.contains("--context must be"),
        "{said}"
    );
}

#[test]
fn a_repair_says_which_worlds_stay_closed() {
    for whole_frame in [false, true] {
        let sandbox = Sandbox::new().with_team();
        sandbox.ok(&["invoke", "team", "Later."]);
        sandbox.ok(&["world", "new", "other"]);
        let segment = sandbox.data().join("log/0000000001.seg");
        let mut bytes = std::fs::read(&segment).unwrap();
        let words = bytes
            .windows(13)
            .position(|text| text == b"rounding test")
            .unwrap();
        let frame = bytes[..words]
            .windows(4)
            .rposition(|magic| magic == b"TKF1")
            .unwrap();
        bytes[if whole_frame { frame + 60 } else { words }] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
        let report = sandbox.json(&["repair", "as-json", "--json"], "");
        assert_eq!(report["closed_worlds"], json!(["team"]));
        let said = sandbox.ok(&["repair", "repaired"]);
        assert!(
            said.contains("The world team stays closed") && !said.contains("world other"),
            "{said}"
        );
        let log = said
            .split('`')
            .find_map(|command| command.strip_prefix("turnkeep "))
            .unwrap();
        let args: Vec<&str> = log.split(' ').chain(["--data", "repaired"]).collect();
        let left = sandbox.output(&args, b"");
        assert!(
            String::from_utf8_lossy(&left.stdout).contains("turnkeep.ledger."),
            "{left:?}"
        );
        for command in [
            &["stream", "team"][..],
            &["invoke", "team", "On top of it."],
        ] {
            let args = [command, &["--data", "repaired"]].concat();
            assert!(
                !sandbox.output(&args, b"").status.success(),
                "{whole_frame}: {args:?}"
            );
        }
    }
}

#[test]
fn a_hint_fits_what_was_refused() {
    let sandbox = Sandbox::new().with_team();
    let said = |args: &[&str], input: &[u8]| {
        let output = sandbox.output(args, input);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let label = said(
        &["ctx", "new", "--label", "turnkeep.ledger.world=team"],
        b"",
    );
    assert!(
        label.contains("the server's own") && !label.contains("--allow-host"),
        "{label}"
    );
    let contexts = sandbox.ok(&[
        "ctx",
        "list",
        "--all",
        "--label",
        "turnkeep.ledger.world=team",
        "--json",
    ]);
    let context: Value = serde_json::from_str(contexts.lines().next().unwrap()).unwrap();
    let id = context["context_id"].as_str().unwrap();
    let append = said(&["append", id, "--type", "x@1", "--msgpack", "-"], b"\x80");
    assert!(
        append.contains("`turnkeep world write` and `turnkeep invoke` write to a world"),
        "{append}"
    );
}

/// What readers are answered, with what differs from start to start.
fn answers(sandbox: &Sandbox) -> Vec<String> {
    let mut answers = Vec::new();
    for person in [None, Some("ANN"), Some("BOB")] {
        let seat: Vec<&str> = person
            .map(|person| vec!["--as", person])
            .unwrap_or_default();
        for line in [
            &["stream", "team", "--json"][..],
            &["search", "team", "refund migration test", "--json"],
            &["capsule", "team", "BOB", "--json"],
        ] {
            answers.push(sandbox.ok(&[line, &seat].concat()));
        }
    }
    answers.push(sandbox.ok(&["invoke", "team", "Again.", "--key", "k", "--json"]));
    answers
}

#[test]
fn p19_without_its_indexes_a_store_gives_the_same_answers() {
    let sandbox = Sandbox::new().with_team();
    sandbox.ok(&["invoke", "team", "Again.", "--key", "k"]);
    let before = answers(&sandbox);
    let index = sandbox.data().join("index");
    assert!(
        std::fs::read_dir(&index).unwrap().next().is_some(),
        "there are indexes"
    );
    std::fs::remove_dir_all(&index).unwrap();
    assert_eq!(answers(&sandbox), before);
    assert!(
        sandbox
            .ok(&["world", "verify", "team"])
            .starts_with("sound")
    );
}

#[test]
fn n12_an_entry_that_is_edited_on_the_disk_is_found() {
    let sandbox = Sandbox::new().with_team();
    let mut edited = 0;
    for segment in std::fs::read_dir(sandbox.data().join("log")).unwrap() {
        let path = segment.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes
            .windows(15)
            .position(|window| window == b"I take the roun");
        if let Some(at) = at {
            bytes[at + 2] = b'f';
            std::fs::write(&path, bytes).unwrap();
            edited += 1;
        }
    }
    assert_eq!(edited, 1, "the words are in the log as they are");
    assert!(!sandbox.output(&["verify"], b"").status.success());
    let world = sandbox.output(&["world", "verify", "team"], b"");
    let (shown, said) = (
        String::from_utf8_lossy(&world.stdout),
        String::from_utf8_lossy(&world.stderr),
    );
    assert_eq!(world.status.code(), Some(1), "{shown}{said}");
    assert!(
        shown.contains("turn:") && shown.contains("1 faults"),
        "{shown}{said}"
    );
    // No server runs here, so none is to be stopped, started or asked to listen.
    assert!(!said.contains("server"), "{said}");
    let read = sandbox.output(&["stream", "team"], b"");
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(
        said.contains("turnkeep world verify") && !said.contains("restart"),
        "{said}"
    );
}

#[test]
fn the_contexts_of_worlds_are_apart_and_a_graph_leaves_no_line_in_them() {
    let sandbox = Sandbox::new().with_turns().with_team();
    let contexts = |args: &[&str]| {
        let listed = sandbox.ok(&[&["ctx", "list", "--json"][..], args].concat());
        listed
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect::<Vec<_>>()
    };
    let own = contexts(&[]);
    assert_eq!(
        own.iter()
            .map(|context| &context["labels"])
            .collect::<Vec<_>>(),
        [&json!({ "agent": "demo" })]
    );
    let all = contexts(&["--all"]);
    assert!(all.len() > own.len() && all.contains(&own[0]), "{all:?}");
    let stats = sandbox.json(&["stats", "--json"], "");
    assert_eq!(
        (&stats["contexts"], &stats["world_contexts"]),
        (&json!(all.len()), &json!(all.len() - 1))
    );
    assert!(
        sandbox
            .ok(&["stats"])
            .contains(&format!("Contexts: 1, and {} of worlds", all.len() - 1))
    );

    let id = own[0]["context_id"].as_str().unwrap();
    let graph = sandbox.ok(&["log", id, "--graph", "--oneline"]);
    assert_eq!(graph.lines().count(), 2, "{graph}");
    let after = sandbox.json(&["stats", "--json"], "");
    assert_eq!(
        after["events"], stats["events"],
        "nothing was written to any world"
    );
}
