//! `turnkeep up` as a process, and commands that find it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock, inotify};
use sandbox::{Sandbox, ServerProcess, check, mode};
use serde_json::Value;

#[test]
fn up_says_where_it_is_and_commands_find_it() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    assert_eq!(server.said["durability"], "fsync");
    let token = std::fs::read_to_string(sandbox.data().join("token")).unwrap();
    let link = format!("http://{}/?token={}", server.http(), token.trim());
    assert_eq!(server.said["link"], link);
    for (path, expect) in [("", 0o700), ("token", 0o600), ("run/server.json", 0o600)] {
        assert_eq!(mode(&sandbox.data().join(path)), expect, "{path}");
    }
    let sandbox = sandbox.with_turns();
    check(
        &sandbox.transcript("ctx show 1\nlog 1 --oneline --graph"),
        "
        $ ctx show 1
        Context: ctx:1
        Head:    turn:2, depth 1
        Created: DATE
        Labels:  agent=demo
        $ log 1 --oneline --graph
        * 2 (ctx:1) com.example.Message@1 role=assistant text=Rayleigh scattering.
        * 1 com.example.Message@1 role=user text=Why is the sky blue?
        ",
    );
    let elsewhere = Sandbox::new();
    let named = [
        "--server",
        server.http(),
        "--token",
        token.trim(),
        "stats",
        "--json",
    ];
    assert_eq!(elsewhere.json(&named, "")["turns"], 2);
    let doctor = elsewhere.json(&[&named[..4], &["doctor", "--json"]].concat(), "");
    assert_eq!(
        (&doctor["check"], &doctor["status"]),
        (&"server".into(), &"ok".into())
    );
    let graph = [&named[..4], &["log", "1", "--graph", "--oneline"]].concat();
    assert_eq!(
        elsewhere
            .output(&graph, b"")
            .stdout
            .split(|byte| *byte == b'\n')
            .count(),
        3
    );
    let binary = ["--server", server.tcp(), "stats"];
    let binary = String::from_utf8(elsewhere.output(&binary, b"").stderr).unwrap();
    assert!(
        binary.contains("hint: --server takes the HTTP address"),
        "{binary}"
    );
    let graph = [
        "--server",
        server.http(),
        "--token",
        token.trim(),
        "log",
        "1",
        "--graph",
        "--oneline",
    ];
    let graph = String::from_utf8(elsewhere.output(&graph, b"").stdout).unwrap();
    assert_eq!(graph.lines().count(), 2, "{graph}");
    let refused = elsewhere.output(
        &["--server", server.http(), "--token", "wrong", "stats"],
        b"",
    );
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.contains("hint: give the server's token with --token"),
        "{refused}"
    );
    assert!(server.terminate().success());
    assert!(
        !sandbox.data().join("run/server.json").exists(),
        "the note is taken away"
    );
    assert_eq!(sandbox.json(&["stats", "--json"], "")["turns"], 2);
}

#[test]
fn the_owner_reads_the_settings_over_http_as_config_show_prints_them() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("config.toml"), "strict_types = true\n").unwrap();
    let config = sandbox.path("config.toml");
    let config = config.to_str().unwrap();
    let server = sandbox.up(&["--config", config]);
    let served = get_json(&server, "/v1/settings");
    assert_eq!(served["file"], config);
    let shown = sandbox.output(&["config", "show", "--json", "--config", config], b"");
    let shown = String::from_utf8(shown.stdout).unwrap();
    let shown: Vec<Value> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let served = served["settings"].as_array().unwrap();
    let strict = served.iter().find(|row| row["name"] == "strict_types");
    assert_eq!(strict.unwrap()["source"], format!("file {config}"));
    // The server was given free ports by flags, which this command was not.
    let is_address = |row: &&Value| ["listen", "http"].contains(&row["name"].as_str().unwrap());
    let differences: Vec<&Value> = served.iter().filter(|row| !shown.contains(row)).collect();
    assert!(differences.iter().all(is_address), "{differences:#?}");
    assert_eq!(served.len(), shown.len());
}

/// What the server answers its owner.
fn get_json(server: &ServerProcess, path: &str) -> Value {
    let address = server.http().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let token = server.token();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    serde_json::from_str(body).unwrap()
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    let second = sandbox.output(
        &["up", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
        b"",
    );
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.starts_with("error: the data directory "), "{said}");
    assert!(
        said.contains(&format!("its server listens on {}", server.http())),
        "{said}"
    );
    assert!(
        sandbox.data().join("run/server.json").exists(),
        "the first one's note stays"
    );
}

/// Counts how often a file was opened, from its making on.
struct OpenCount {
    inotify: std::os::fd::OwnedFd,
    opens: usize,
}

impl OpenCount {
    fn of(file: &std::path::Path) -> Self {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let inotify = inotify::init(flags).unwrap();
        // The system merges equal events in a row, so closing is watched too.
        let watched = inotify::WatchFlags::OPEN | inotify::WatchFlags::CLOSE;
        inotify::add_watch(&inotify, file, watched).unwrap();
        Self { inotify, opens: 0 }
    }

    fn now(&mut self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&self.inotify, &mut buffer);
        while let Ok(event) = events.next() {
            self.opens += usize::from(event.events().contains(inotify::ReadFlags::OPEN));
        }
        self.opens
    }
}

#[test]
fn up_waits_for_a_lock_that_is_being_released() {
    let sandbox = Sandbox::new().with_turns();
    let lock = turnkeep_journal::DataDirLock::acquire(&sandbox.data()).unwrap();
    let mut tries = OpenCount::of(&sandbox.data().join("LOCK"));
    let mut up = sandbox.command(&["up", "--json"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    // Its second try shows that it has found the lock held, and waits for it.
    while tries.now() < 2 {
        assert_eq!(up.try_wait().unwrap(), None, "it did not wait");
        assert!(Instant::now() < deadline, "it does not try again");
        std::thread::yield_now();
    }
    drop(lock);
    let server = ServerProcess::wait_for_first_line(up);
    assert!(server.said["http"].is_string(), "{}", server.first_line);
}

#[test]
fn a_taken_port_is_named() {
    let sandbox = Sandbox::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let refused = sandbox.output(&["up", "--listen", "127.0.0.1:0", "--http", &addr], b"");
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.starts_with(&format!("error: cannot listen on {addr}: ")),
        "{said}"
    );
}

#[test]
fn a_port_that_another_server_of_ours_has_is_named_with_that_server() {
    let (first, second) = (Sandbox::new(), Sandbox::new());
    let server = first.up(&[]);
    let refused = second.output(
        &["up", "--listen", "127.0.0.1:0", "--http", server.http()],
        b"",
    );
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    let data = first.data().canonicalize().unwrap();
    let expect = format!(
        "error: {} is taken by the turnkeep server of {}, process {}\n",
        server.http(),
        data.display(),
        server.said["pid"]
    );
    assert!(said.starts_with(&expect), "{said}");
    assert!(server.terminate().success());
}

#[test]
fn a_server_that_stops_says_good_bye() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["up", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let mut server = ServerProcess::start(&mut command);
    assert!(server.first_line.contains("is up"), "{}", server.first_line);
    // The server prints its greeting in one piece, after it has begun to listen for signals.
    let (status, rest) = server.end_by(rustix::process::Signal::TERM);
    assert!(status.success());
    assert!(
        rest.ends_with("turnkeep has stopped. Good-bye: everything acknowledged is kept.\n"),
        "{rest}"
    );
}

#[test]
fn exposure_without_tls_is_refused() {
    let sandbox = Sandbox::new();
    let refused = sandbox.output(&["up", "--http", "0.0.0.0:0"], b"");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("--tls-cert")
    );
}

#[test]
fn what_a_killed_server_acknowledged_is_there() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    let sandbox = sandbox.with_turns();
    server.kill();
    assert!(
        sandbox.data().join("run/server.json").exists(),
        "a killed server leaves its note"
    );
    assert_eq!(sandbox.json(&["stats", "--json"], "")["turns"], 2);
    let server = sandbox.up(&[]);
    assert_eq!(sandbox.json(&["stats", "--json"], "")["turns"], 2);
    assert!(server.terminate().success());
}

#[test]
fn a_note_that_a_killed_server_left_leads_nowhere() {
    let other = Sandbox::new();
    let server = other.up(&["--no-auth"]);
    let sandbox = Sandbox::new().with_turns();
    let stale = std::fs::read(other.data().join("run/server.json")).unwrap();
    let path = sandbox.data().join("run/server.json");
    std::fs::create_dir(sandbox.data().join("run")).unwrap();
    std::fs::write(&path, &stale).unwrap();
    let lock = turnkeep_journal::DataDirLock::acquire(&sandbox.data()).unwrap();
    let busy = sandbox.output(&["stats"], b"");
    let said = String::from_utf8(busy.stderr).unwrap();
    assert!(
        said.contains(&format!(
            "in use by another process (pid {})",
            std::process::id()
        )),
        "{said}"
    );
    drop(lock);
    assert_eq!(
        sandbox.json(&["stats", "--json"], "")["turns"],
        2,
        "its own store, not the other one"
    );
    assert!(
        !path.exists(),
        "whoever takes the directory takes the note away"
    );
    assert!(server.terminate().success());
}

/// A program that a killed server was just starting has the server's lock and address until it begins.
#[test]
fn up_waits_until_the_programs_of_a_killed_server_have_let_go() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    let address = server.http().to_owned();
    server.kill();
    let left_lock = File::open(sandbox.data().join("LOCK")).unwrap();
    flock(&left_lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let left_socket = TcpListener::bind(&address).unwrap();
    std::thread::scope(|scope| {
        let next = scope.spawn(|| sandbox.up(&[]));
        // It has found the lock held, and asks whether the server that wrote the note answers.
        left_socket.accept().unwrap();
        drop(left_lock);
        assert!(next.join().unwrap().terminate().success());
    });
}

#[test]
fn follow_shows_the_newest_turns_and_then_what_comes() {
    let sandbox = Sandbox::new();
    let _server = sandbox.up(&[]);
    let sandbox = sandbox.with_turns();
    let mut follow = sandbox
        .command(&["log", "1", "--follow", "--oneline", "-n", "1"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(
        next(),
        "2 com.example.Message@1 role=assistant text=Rayleigh scattering."
    );
    sandbox.transcript(
        "append 1 --type com.example.Message@1 --data - < {\"role\":\"user\",\"text\":\"And the sea?\"}
         append 1 --msgpack - < 1",
    );
    assert_eq!(
        next(),
        "3 com.example.Message@1 role=user text=And the sea?"
    );
    assert_eq!(next(), "4 (no type) 49");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn follow_shows_what_was_appended_while_the_server_was_away() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    let sandbox = sandbox.with_turns();
    let mut follow = sandbox
        .command(&["log", "1", "--follow", "--oneline", "-n", "1"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(
        next(),
        "2 com.example.Message@1 role=assistant text=Rayleigh scattering."
    );
    let (tcp, http) = (server.said["tcp"].clone(), server.said["http"].clone());
    server.kill();
    sandbox.transcript("append 1 --msgpack - < 1");
    let _server = sandbox.up_at(tcp.as_str().unwrap(), http.as_str().unwrap());
    assert_eq!(next(), "3 (no type) 49");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn strict_types_and_no_auth_do_what_they_say() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&["--strict-types", "--no-auth"]);
    assert_eq!(server.said["link"], format!("http://{}/", server.http()));
    let elsewhere = Sandbox::new();
    check(
        &elsewhere
            .transcript(&format!(
                "--server {0} ctx new
             --server {0} append 1 --type a.b@1 --msgpack - < x",
                server.http()
            ))
            .replace(server.http(), "ADDR"),
        "
        $ --server ADDR ctx new
        created ctx:1
        $ --server ADDR append 1 --type a.b@1 --msgpack - < x
        error: type a.b@1 is not in the registry and this server is strict: publish its bundle first
        hint: publish the type first: turnkeep registry put BUNDLE.json
        [exit status: 1]
        ",
    );
}

#[test]
fn with_tls_commands_trust_the_certificate_that_the_server_shows() {
    let sandbox = Sandbox::new();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/http/tls");
    let (cert, key) = (format!("{files}/cert.pem"), format!("{files}/key.pem"));
    let server = sandbox.up(&["--tls-cert", &cert, "--tls-key", &key]);
    assert!(
        server.said["link"]
            .as_str()
            .unwrap()
            .starts_with("https://127.0.0.1:")
    );
    let sandbox = sandbox.with_turns();
    check(
        &sandbox.transcript("log 1 --oneline --graph -n 1"),
        "
        $ log 1 --oneline --graph -n 1
        * 2 (ctx:1) com.example.Message@1 role=assistant text=Rayleigh scattering.
        ",
    );
    let token = std::fs::read_to_string(sandbox.data().join("token")).unwrap();
    let address = format!("https://{}", server.http());
    let named = [
        "--server",
        &address,
        "--tls-ca",
        &cert,
        "--token",
        token.trim(),
        "stats",
        "--json",
    ];
    assert_eq!(Sandbox::new().json(&named, "")["turns"], 2);
    let untrusted = Sandbox::new().output(&["--server", &address, "stats"], b"");
    assert_eq!(untrusted.status.code(), Some(2));
}

#[test]
fn a_self_signed_certificate_works_as_openssl_makes_it() {
    let sandbox = Sandbox::new();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls");
    let (cert, key) = (format!("{files}/cert.pem"), format!("{files}/key.pem"));
    let server = sandbox.up(&["--tls-cert", &cert, "--tls-key", &key]);
    let sandbox = sandbox.with_turns();
    let token = std::fs::read_to_string(sandbox.data().join("token")).unwrap();
    let address = format!("https://{}", server.http());
    let named = [
        "--server",
        &address,
        "--tls-ca",
        &cert,
        "--token",
        token.trim(),
        "stats",
        "--json",
    ];
    assert_eq!(Sandbox::new().json(&named, "")["turns"], 2);
    let other = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../server/tests/http/tls/cert.pem"
    );
    let named = [
        "--server",
        &address,
        "--tls-ca",
        other,
        "--token",
        token.trim(),
        "stats",
    ];
    let refused = String::from_utf8(Sandbox::new().output(&named, b"").stderr).unwrap();
    assert!(
        refused.contains("openssl req -x509") && refused.contains("IP:127.0.0.1"),
        "{refused}"
    );
}

#[test]
fn a_token_file_that_others_can_read_stops_the_start() {
    let sandbox = Sandbox::new();
    assert!(sandbox.up(&[]).terminate().success());
    let token = sandbox.data().join("token");
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let refused = sandbox.output(&["up"], b"");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && said.contains("has mode 0644") && said.contains("chmod 600"),
        "{said}"
    );
}

/// A name that is only the common name counts nowhere, and clients say so.
#[test]
fn a_certificate_without_alternative_names_is_refused_with_the_remedy() {
    let sandbox = Sandbox::new();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls");
    let cert = format!("{files}/cn-only.pem");
    let key = format!("{files}/cn-only-key.pem");
    let server = sandbox.up(&["--tls-cert", &cert, "--tls-key", &key]);
    let token = std::fs::read_to_string(sandbox.data().join("token")).unwrap();
    let address = format!("https://{}", server.http());
    let named = ["--server", &address, "--tls-ca", &cert];
    let args = [&named[..], &["--token", token.trim(), "stats"]].concat();
    let refused = Sandbox::new().output(&args, b"");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("openssl req -x509") && said.contains("subjectAltName"),
        "{said}"
    );
}
