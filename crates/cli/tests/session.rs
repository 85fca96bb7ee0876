//! The commands as a person uses them, on a directory without a server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use sandbox::{Sandbox, check};

#[test]
fn a_first_session() {
    let transcript = Sandbox::new().transcript(
        "registry put bundle.json
         registry put bundle.json
         ctx new --label agent=demo
         append 1 --type com.example.Message@1 --data - < {\"role\":\"user\",\"text\":\"Why?\"}
         append ctx:1 --type com.example.Message@1 --data - < {\"role\":\"assistant\",\"text\":\"two\\nlines\"}
         log 1
         ctx fork turn:1
         append 2 --msgpack - < {1
         log 2 --oneline
         ctx list
         ctx show 1
         registry types
         registry types com.example.Message@1",
    );
    check(
        &transcript,
        r#"
        $ registry put bundle.json
        published example#1
        $ registry put bundle.json
        already published example#1
        $ ctx new --label agent=demo
        created ctx:1
        $ append 1 --type com.example.Message@1 --data - < {"role":"user","text":"Why?"}
        appended turn:1 to ctx:1, depth 0
        $ append ctx:1 --type com.example.Message@1 --data - < {"role":"assistant","text":"two\nlines"}
        appended turn:2 to ctx:1, depth 1
        $ log 1
        turn 2 (ctx:1)
        Type:    com.example.Message@1
        Context: ctx:1
        Parent:  turn:1
        Date:    DATE
        Payload: 14 B, blob:HASH

            role: assistant
            text:
                two
                lines

        turn 1
        Type:    com.example.Message@1
        Context: ctx:1
        Date:    DATE
        Payload: 9 B, blob:HASH

            role: user
            text: Why?
        $ ctx fork turn:1
        created ctx:2 from turn:1
        $ append 2 --msgpack - < {1
        appended turn:3 to ctx:2, depth 1
        $ log 2 --oneline
        3 (ctx:2) (no type) h'7b31' (not msgpack)
        1 com.example.Message@1 role=user text=Why?
        $ ctx list
        CONTEXT  HEAD    DEPTH  CREATED                  LABELS
        ctx:2    turn:3  1      DATE
        ctx:1    turn:2  1      DATE  agent=demo
        $ ctx show 1
        Context: ctx:1
        Head:    turn:2, depth 1
        Created: DATE
        Labels:  agent=demo
        $ registry types
        TYPE                 VERSIONS
        com.example.Message  1
        $ registry types com.example.Message@1
        Type:   com.example.Message@1
        Bundle: example#1

        TAG  NAME  TYPE    NOTES
        1    role  u8      enum=com.example.Role
        2    text  string  optional

        Enum: com.example.Role
        NUMBER  LABEL
        1       system
        2       user
        3       assistant
        "#,
    );
}

#[test]
fn a_turn_lacks_no_field_that_its_type_needs_unless_that_is_allowed() {
    let transcript = Sandbox::new().with_turns().transcript(
        "append 1 --type com.example.Message@1 --data - < {\"text\":\"Why?\"}
         append 1 --type com.example.Message@1 --data - --allow-missing < {\"text\":\"Why?\"}
         append 1 --type com.example.Message@1 --data - < {\"role\":\"nobody\"}",
    );
    check(
        &transcript,
        r#"
        $ append 1 --type com.example.Message@1 --data - < {"text":"Why?"}
        error: data.role is missing, and com.example.Message@1 does not mark it optional; allow_missing accepts data without it
        hint: `turnkeep registry types TYPE@VERSION` lists the fields; --allow-missing appends without this one
        [exit status: 1]
        $ append 1 --type com.example.Message@1 --data - --allow-missing < {"text":"Why?"}
        appended turn:3 to ctx:1, depth 2
        $ append 1 --type com.example.Message@1 --data - < {"role":"nobody"}
        error: data.role must be u8 or a label of com.example.Role (system, user, assistant), not "nobody"
        [exit status: 1]
        "#,
    );
    let bytes = Sandbox::new().output(&["append", "1", "--msgpack", "-", "--allow-missing"], b"{1");
    assert_eq!(bytes.status.code(), Some(2), "bytes are never checked");
}

#[test]
fn a_list_that_is_cut_says_so_beside_it() {
    let sandbox = Sandbox::new();
    for _ in 0..3 {
        sandbox.json(&["ctx", "new", "--json"], "");
    }
    let list = |limit: &str| {
        let output = sandbox.output(&["ctx", "list", "-n", limit, "--json"], b"");
        let lines = output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .count();
        (lines, String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(list("3"), (3, String::new()));
    assert_eq!(
        list("2"),
        (
            2,
            "only the newest 2 are listed: -n N lists more\n".to_owned()
        )
    );
}

#[test]
fn branches_are_drawn() {
    let sandbox = Sandbox::new().with_turns();
    let message = "--type com.example.Message@1 --data -";
    sandbox.transcript(&format!(
        "ctx fork turn:1
         append 2 {message} < {{\"role\":\"assistant\",\"text\":\"The ocean.\"}}
         append 1 {message} < {{\"role\":\"user\",\"text\":\"Thanks.\"}}
         ctx new
         append 3 {message} < {{\"role\":\"user\",\"text\":\"Unrelated.\"}}
         ctx fork turn:4"
    ));
    check(
        &sandbox.transcript("log 2 --graph --oneline\nlog 1 --graph -n 1"),
        "
        $ log 2 --graph --oneline
        * 4 (ctx:1, ctx:4) com.example.Message@1 role=user text=Thanks.
        | * 3 (ctx:2) com.example.Message@1 role=assistant text=The ocean.
        * | 2 com.example.Message@1 role=assistant text=Rayleigh scattering.
        |/
        * 1 com.example.Message@1 role=user text=Why is the sky blue?
        $ log 1 --graph -n 1
        * turn 4 (ctx:1, ctx:4)
        | Type:    com.example.Message@1
        | Context: ctx:1
        | Parent:  turn:2
        | Date:    DATE
        | Payload: 12 B, blob:HASH
        |
        |     role: user
        |     text: Thanks.
        |
        ",
    );
}

#[test]
fn failures_say_what_to_do_next() {
    let sandbox = Sandbox::new();
    check(
        &sandbox.transcript("log 1\nctx show 1"),
        "
        $ log 1
        error: there is no store in HOME/data
        hint: `turnkeep up` or `turnkeep ctx new` starts one; --data DIR names another directory, --server ADDR a running server
        [exit status: 1]
        $ ctx show 1
        error: there is no store in HOME/data
        hint: `turnkeep up` or `turnkeep ctx new` starts one; --data DIR names another directory, --server ADDR a running server
        [exit status: 1]
        ",
    );
    assert!(!sandbox.data().exists(), "reading makes nothing");
    let sandbox = sandbox.with_turns();
    check(
        &sandbox.transcript(
            "show ctx:9
             append 1 --type com.example.Other@1 --data - < {}
             append 1 --type com.example.Message@1 --data - < no json
             append 1 --type com.example.Message@1 --data - --expected-head turn:1 < {\"role\":\"user\"}
             append 1 --type com.example.Message@1 --data nowhere.json
             append 1 --type com.example.Message@1 --data - < {\"colour\":1}
             log 1 --follow
             registry get nowhere
             --config nowhere stats
             --server 127.0.0.1:1 stats
             --server ftp://x stats",
        ),
        "
        $ show ctx:9
        error: context 9 does not exist
        hint: `turnkeep ctx list` lists the contexts
        [exit status: 1]
        $ append 1 --type com.example.Other@1 --data - < {}
        error: type com.example.Other@1 is not published: publish its bundle first, or send payload_b64
        hint: publish the type first: turnkeep registry put BUNDLE.json; or send bytes as they are with --msgpack
        [exit status: 1]
        $ append 1 --type com.example.Message@1 --data - < no json
        error: standard input is not JSON: expected ident at line 1 column 2
        hint: --msgpack takes bytes that are not JSON
        [exit status: 1]
        $ append 1 --type com.example.Message@1 --data - --expected-head turn:1 < {\"role\":\"user\"}
        error: the head of context 1 is 2, not the expected 1
        hint: somebody appended first: look with `turnkeep ctx show 1`, then try again with --expected-head 2
        [exit status: 1]
        $ append 1 --type com.example.Message@1 --data nowhere.json
        error: cannot read nowhere.json: No such file or directory (os error 2)
        hint: check the name, and in which directory the command runs
        [exit status: 1]
        $ append 1 --type com.example.Message@1 --data - < {\"colour\":1}
        error: data.colour is not a field of com.example.Message@1
        hint: `turnkeep registry types TYPE@VERSION` lists the fields
        [exit status: 1]
        $ log 1 --follow
        error: no server runs on HOME/data
        hint: start one with `turnkeep up`: new turns arrive through it
        [exit status: 1]
        $ registry get nowhere
        error: bundle `nowhere` does not exist
        hint: `turnkeep registry types` lists the types; `turnkeep registry put FILE` publishes a bundle
        [exit status: 1]
        $ --config nowhere stats
        error: cannot read the configuration nowhere: No such file or directory (os error 2)
        hint: check --config and TURNKEEP_CONFIG, or leave them out
        [exit status: 2]
        $ --server 127.0.0.1:1 stats
        error: cannot reach the server at http://127.0.0.1:1: Connection refused (os error 111)
        hint: start one with `turnkeep up`, or check the address given with --server
        [exit status: 1]
        $ --server ftp://x stats
        error: `ftp://x` is not a server's address
        hint: expected HOST:PORT, http://HOST:PORT or https://HOST:PORT
        [exit status: 2]
        ",
    );
}

#[test]
fn wrong_calls_exit_with_2() {
    let sandbox = Sandbox::new();
    for args in [
        &["nonsense"][..],
        &["append", "1", "--type", "a@1"],
        &["append", "1", "--data", "-"],
        &[
            "append",
            "1",
            "--type",
            "a@1",
            "--data",
            "-",
            "--msgpack",
            "-",
        ],
        &["log", "turn:1"],
        &["show", "12"],
        &["up", "--durability", "never"],
        &["up", "--tls-cert", "cert.pem"],
        &["log", "1", "--graph", "--follow"],
        &["ctx", "new", "--label", "agent"],
        &["up", "--http", "8080"],
        &["--server", "127.0.0.1:1", "up"],
        &["--server", "127.0.0.1:1", "import", "x"],
        &["--server", "127.0.0.1:1", "repair", "x"],
    ] {
        let output = sandbox.output(args, b"");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stderr.starts_with(b"error: "), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_key_makes_commands_repeatable() {
    let sandbox = Sandbox::new().with_turns();
    let append = ["append", "1", "--msgpack", "-", "--key", "k", "--json"];
    let first = sandbox.json(&append, "\u{0}");
    assert_eq!(sandbox.json(&append, "\u{0}"), first);
    let create = ["ctx", "new", "--key", "k", "--json"];
    assert_eq!(
        sandbox.json(&create, "")["context_id"],
        sandbox.json(&create, "")["context_id"]
    );
    let again = sandbox.output(&append[..6], b"\0");
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        "already appended turn:3 to ctx:1, depth 2\n"
    );
    let again = sandbox.output(&create[..4], b"");
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        "already created ctx:2\n"
    );
    let changed = sandbox.output(&append, b"\x01");
    assert_eq!(changed.status.code(), Some(1));
    let said = String::from_utf8(changed.stderr).unwrap();
    assert!(
        said.contains("\"hint\":\"a key stands for one request: take a new one for another\""),
        "{said}"
    );
    let twice = sandbox.output(&["ctx", "new", "--label", "a=1", "--label", "a=2"], b"");
    assert_eq!(twice.status.code(), Some(2));
}

#[test]
fn json_is_one_object_per_line() {
    let sandbox = Sandbox::new().with_turns();
    let lines = |args: &[&str]| {
        let output = sandbox.output(args, b"");
        assert!(output.status.success(), "{args:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .collect::<Vec<_>>()
    };
    let log = lines(&["log", "1", "--json"]);
    assert_eq!(
        log.iter().map(|turn| &turn["turn_id"]).collect::<Vec<_>>(),
        ["2", "1"]
    );
    assert_eq!(log[0]["data"]["text"], "Rayleigh scattering.");
    assert_eq!(
        lines(&["ctx", "list", "--json"])[0]["labels"]["agent"],
        "demo"
    );
    assert_eq!(
        lines(&["show", "turn:1", "--json"])[0]["data"]["role"],
        "user"
    );
    assert_eq!(lines(&["stats", "--json"])[0]["turns"], 2);
    assert_eq!(
        lines(&["registry", "types", "--json"])[0]["type_id"],
        "com.example.Message"
    );
    assert_eq!(
        lines(&["registry", "get", "example#1", "--json"])[0]["bundle_id"],
        "example#1"
    );
    let settings = lines(&["config", "show", "--json"]);
    let data = settings
        .iter()
        .find(|setting| setting["name"] == "data")
        .unwrap();
    assert_eq!(data["source"], "environment TURNKEEP_DATA");
    let value = |name: &str| {
        &settings
            .iter()
            .find(|setting| setting["name"] == name)
            .unwrap()["value"]
    };
    assert_eq!(value("no_auth"), false);
    assert_eq!(value("server"), &serde_json::Value::Null);
    assert_eq!(value("limits.key_bytes_max"), 1024);
    std::fs::write(sandbox.path("three"), "abc").unwrap();
    let put = String::from_utf8(sandbox.output(&["blob", "put", "three"], b"").stdout).unwrap();
    let hash = put.trim();
    let got = &lines(&["blob", "get", hash, "--json"])[0];
    assert_eq!(
        (&got["bytes"], &got["data_b64"]),
        (&3.into(), &"YWJj".into())
    );
    assert_eq!(
        lines(&["blob", "get", hash, "--json", "-o", "out"])[0]["file"],
        "out"
    );
    assert_eq!(
        lines(&["completions", "fish", "--json"])[0]["shell"],
        "fish"
    );
    assert!(
        lines(&["doctor", "--json"])
            .iter()
            .all(|finding| finding["check"].is_string())
    );
}

#[test]
fn a_blob_comes_back_as_it_went_in() {
    let sandbox = Sandbox::new();
    let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(sandbox.path("in"), &bytes).unwrap();
    let put = sandbox.output(&["blob", "put", "in"], b"");
    let hash = String::from_utf8(put.stdout).unwrap().trim().to_owned();
    assert_eq!(sandbox.output(&["blob", "get", &hash], b"").stdout, bytes);
    assert!(
        sandbox
            .output(&["blob", "get", &format!("blob:{hash}"), "-o", "out"], b"")
            .status
            .success()
    );
    assert_eq!(std::fs::read(sandbox.path("out")).unwrap(), bytes);
    let missing = sandbox.output(&["blob", "get", &"0".repeat(64)], b"");
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stdout.is_empty());
}

#[test]
fn colours_come_only_when_asked_for() {
    let sandbox = Sandbox::new().with_turns();
    let escapes = |args: &[&str]| sandbox.output(args, b"").stdout.contains(&0x1b);
    assert!(!escapes(&["log", "1"]));
    assert!(escapes(&["log", "1", "--color", "always"]));
    assert!(!escapes(&["log", "1", "--color", "never"]));
    assert!(!escapes(&["log", "1", "--color", "always", "--json"]));
}

#[test]
fn help_is_coloured_as_asked_for() {
    let escapes = |args: &[&str]| Sandbox::new().output(args, b"").stdout.contains(&0x1b);
    assert!(escapes(&["--color", "always", "--help"]));
    assert!(escapes(&["stats", "--color=always", "--help"]));
    assert!(!escapes(&["--color", "never", "--help"]));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let sandbox = Sandbox::new().with_turns();
    let mut child = sandbox.command(&["completions", "bash"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn every_command_has_help_with_examples() {
    let sandbox = Sandbox::new();
    let commands = [
        "up",
        "ctx",
        "ctx new",
        "ctx list",
        "ctx show",
        "ctx fork",
        "log",
        "append",
        "show",
        "blob",
        "blob put",
        "blob get",
        "registry",
        "registry put",
        "registry get",
        "registry types",
        "stats",
        "verify",
        "repair",
        "export",
        "import",
        "bench",
        "doctor",
        "config",
        "config show",
        "completions",
    ];
    for command in commands {
        let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let output = sandbox.output(&args, b"");
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}");
        assert!(
            help.contains("Examples:\n  "),
            "{command} has no examples:\n{help}"
        );
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script =
            String::from_utf8(sandbox.output(&["completions", shell], b"").stdout).unwrap();
        let has_commands = script.contains("sessions") || script.contains("complete -- ");
        assert!(
            script.contains("turnkeep") && has_commands,
            "{shell}: {script}"
        );
    }
}

#[test]
fn the_examples_of_the_help_work_as_they_are_printed() {
    let sandbox = Sandbox::new();
    let help = String::from_utf8(sandbox.output(&["--help"], b"").stdout).unwrap();
    let example = |word: &str| {
        let line = help
            .lines()
            .map(str::trim)
            .find(|line| line.contains(word))
            .unwrap_or_else(|| panic!("{help}"));
        line.split("  # ").next().unwrap().to_owned()
    };
    for word in ["turnkeep ctx new", "turnkeep append", "turnkeep log 1"] {
        let line = example(word).replace(
            "turnkeep ",
            &format!("'{}' ", env!("CARGO_BIN_EXE_turnkeep")),
        );
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", &line])
            .env("TURNKEEP_DATA", sandbox.data())
            .env("HOME", sandbox.path(""));
        let output = shell.env_remove("XDG_CONFIG_HOME").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {said}");
    }
    assert!(
        sandbox
            .transcript("log 1 --oneline")
            .contains("turnkeep.Note@1 text=hi")
    );
    assert!(
        sandbox
            .transcript("log 1 -o")
            .contains("turnkeep.Note@1 text=hi")
    );
}

#[test]
fn a_blob_is_named_by_the_digits_that_make_it_unique() {
    let sandbox = Sandbox::new();
    let put = |content: &str| {
        let output = sandbox.output(&["blob", "put", "-"], content.as_bytes());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (one, two) = (put("one"), put("two"));
    // As many digits as tell the two apart, also if that is a single one.
    let shared = one.bytes().zip(two.bytes());
    let shared = shared.take_while(|(one, two)| one == two).count();
    for name in [
        &one[..],
        &one[..=shared],
        &one[..4],
        &one[..9],
        &format!("blob:{}", &one[..6]),
    ] {
        assert_eq!(
            sandbox.output(&["blob", "get", name], b"").stdout,
            b"one",
            "{name}"
        );
    }
    let shown = sandbox.transcript(&format!("show blob:{}", &two[..8]));
    assert!(shown.contains("two"), "{shown}");
    let none = if one.starts_with("0000") || two.starts_with("0000") {
        "ffff"
    } else {
        "0000"
    };
    let missing = sandbox.transcript(&format!("blob get {none}"));
    assert!(
        missing.contains(&format!("no blob's hash begins with {none}")),
        "{missing}"
    );
    // Seventeen hashes do not have seventeen first digits.
    let hashes: Vec<String> = (0..17).map(|number| put(&number.to_string())).collect();
    let first_digits = hashes.iter().map(|hash| &hash[..1]);
    let shared = first_digits.clone().find(|digit| {
        let same = first_digits.clone().filter(|other| other == digit);
        same.count() > 1
    });
    let ambiguous = sandbox.transcript(&format!("show blob:{}", shared.unwrap()));
    assert!(
        ambiguous.contains("hint: give more digits, such as "),
        "{ambiguous}"
    );
    assert!(
        sandbox
            .transcript("show blob:ABC")
            .contains("1 to 64 lower-case hex digits")
    );
}

#[test]
fn a_shell_is_told_which_contexts_types_worlds_and_presets_there_are() {
    let sandbox = Sandbox::new().with_turns();
    let complete = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let output = sandbox.output(&[&["complete", "--"], &words[..]].concat(), b"");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{line}: {output:?}"
        );
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(complete("turnkeep log "), ["1"]);
    assert_eq!(
        complete("turnkeep append 1 --type com"),
        ["com.example.Message@1"]
    );
    assert_eq!(
        complete("turnkeep append 1 --type=com"),
        ["--type=com.example.Message@1"]
    );
    sandbox.transcript("world new payments");
    assert_eq!(complete("turnkeep stream pay"), ["payments"]);
    assert_eq!(complete("turnkeep wrap --preset cla"), ["claude"]);
    assert_eq!(complete("turnkeep sess"), ["sessions"]);
    assert_eq!(
        complete("turnkeep turns "),
        [""; 0],
        "without a broker there are none"
    );
    let elsewhere = Sandbox::new();
    let data = elsewhere.data();
    assert_eq!(
        complete(&format!("turnkeep --data {} log ", data.display())),
        [""; 0]
    );
}

#[test]
fn the_script_of_bash_completes_a_line() {
    let sandbox = Sandbox::new().with_turns();
    let turnkeep = std::path::Path::new(env!("CARGO_BIN_EXE_turnkeep"));
    let script = r#"
        source <(turnkeep completions bash)
        try() {
            COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=0
            COMP_WORDBREAKS=$' \t\n"\'><=;|&(:@'
            _turnkeep
            echo "${COMPREPLY[*]}"
        }
        try 'turnkeep log '
        try 'turnkeep completions ba'
        try 'turnkeep append 1 --type com.example.Message@'
    "#;
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script])
        .env("TURNKEEP_DATA", sandbox.data())
        .env("HOME", sandbox.path(""));
    let path = format!(
        "{}:{}",
        turnkeep.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let output = bash.env("PATH", path).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        said,
        "1\nbash\n1\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
