//! Two wrapped programs under tmux: a turn of one is captured and delivered byte for byte, as keys of
//! the other, into a file and to standard output.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::desk::Desk;
use crate::program::eventually;
use crate::tmux_server::TmuxServer;

/// The command that wraps a program at this desk, as a pane runs it.
fn wrapped(desk: &Desk, name: &str, program: &str) -> String {
    let (home, run) = (desk.sandbox.path(""), desk.sandbox.path("run"));
    format!(
        "exec env HOME='{}' XDG_RUNTIME_DIR='{}' '{}' wrap --name {name} -- {program}",
        home.display(),
        run.display(),
        env!("CARGO_BIN_EXE_turnkeep")
    )
}

fn session(desk: &Desk, name: &str) -> Option<Value> {
    desk.rows(&["sessions"])
        .into_iter()
        .find(|session| session["name"] == name)
}

/// Types a line at a program that is ready for it, and waits for the turn that answers it.
fn ask(desk: &Desk, tmux: &TmuxServer, line: &str) -> Value {
    let before = eventually("the program shows its prompt", || {
        session(desk, "left").filter(|session| session["state"] == "ready")
    });
    tmux.run(&["send-keys", "-t", ":.0", "-l", line]);
    tmux.run(&["send-keys", "-t", ":.0", "Enter"]);
    eventually("the turn is complete", || {
        session(desk, "left").filter(|session| session["turns"].as_u64() > before["turns"].as_u64())
    })
}

/// What the other program has received, once it is as long as expected.
fn received(path: &Path, length: usize) -> Vec<u8> {
    eventually("the paste arrives", || {
        fs::read(path).ok().filter(|bytes| bytes.len() >= length)
    })
}

#[test]
fn a_turn_goes_from_one_program_to_the_other_to_a_file_and_to_the_command_line() {
    let desk = Desk::with_broker(None);
    let tmux = TmuxServer::start(&wrapped(&desk, "left", "bash --norc --noprofile -i"));
    let taken = desk.sandbox.path("taken");
    // In raw mode the terminal changes no byte on the way in.
    let sink = format!("sh -c 'stty raw -echo; exec cat > {}'", taken.display());
    tmux.run(&["split-window", &wrapped(&desk, "right", &sink)]);
    eventually("the other session is there", || session(&desk, "right"));
    eventually("the other program reads", || fs::metadata(&taken).ok());

    ask(&desk, &tmux, "printf 'first\\tanswer\\n'");
    ask(&desk, &tmux, "seq 1 3; printf '\\033[1mbold\\033[0m\\n'");
    let turns = desk.rows(&["turns", "left"]);
    assert_eq!(turns.len(), 2, "{turns:?}");
    let ids: Vec<&str> = turns
        .iter()
        .map(|turn| turn["turn_id"].as_str().unwrap())
        .collect();
    let newest = desk.bytes(&["turn", ids[0], "--raw"]);
    let text = String::from_utf8(newest.clone()).unwrap();
    assert!(
        text.contains("1\r\n2\r\n3\r\n") && text.contains("\x1b[1mbold\x1b[0m"),
        "{text:?}"
    );
    assert!(
        !text.contains("seq"),
        "the echo is no part of the turn: {text:?}"
    );

    let plain = desk.bytes(&["turn", ids[0], "--text"]);
    assert!(
        String::from_utf8_lossy(&plain).starts_with("1\n2\n3\nbold"),
        "{}",
        plain.escape_ascii()
    );
    assert!(!plain.contains(&0x1b), "{}", plain.escape_ascii());

    desk.bytes(&["capture", "left"]);
    desk.bytes(&["paste", "right"]);
    assert_eq!(received(&taken, plain.len()), plain);
    desk.bytes(&["paste", "right", "--raw"]);
    let both = [plain, newest].concat();
    assert_eq!(received(&taken, both.len()), both);

    let older = desk.bytes(&["turn", ids[1], "--raw"]);
    assert!(String::from_utf8_lossy(&older).contains("first\tanswer"));
    desk.bytes(&["capture", ids[1]]);
    let file = desk.sandbox.path("kept.txt");
    desk.bytes(&["deliver", "file", "--path", file.to_str().unwrap()]);
    assert_eq!(
        fs::read(&file).unwrap(),
        desk.bytes(&["turn", ids[1], "--text"])
    );
    desk.bytes(&["deliver", "file", "--raw", "--path", file.to_str().unwrap()]);
    assert_eq!(fs::read(&file).unwrap(), older);
    desk.bytes(&["deliver", "inject", "--raw", "--session", "right"]);
    assert_eq!(
        received(&taken, both.len() + older.len()),
        [both, older].concat()
    );
}

#[test]
fn what_cannot_be_relayed_is_said() {
    let desk = Desk::with_broker(None);
    let tmux = TmuxServer::start(&wrapped(&desk, "left", "bash --norc --noprofile -i"));
    eventually("the session is there", || session(&desk, "left"));
    for (args, expect) in [
        (&["capture", "left"][..], "no_turn"),
        (&["capture", "nobody"], "nobody"),
        (&["paste", "left"], "buffer_empty"),
        (&["turn", "left:1"], "turn_not_found"),
        (&["deliver", "clipboard"], "buffer_empty"),
        (&["deliver", "pigeon"], "unknown_sink"),
    ] {
        let done = desk.run(args);
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(
            !done.status.success() && said.contains(expect),
            "{args:?}: {said}"
        );
    }
    drop(tmux);
    eventually("the session has ended", || {
        session(&desk, "left").filter(|session| session["connected"] == false)
    });
}
