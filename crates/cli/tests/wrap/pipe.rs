//! The wrapper without a terminal on one side or the other: pipes, scripts, CI.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::terminal::{TURNKEEP, Terminal};

/// Runs the wrapper with this input in a pipe; a minute is the longest that it may take.
fn piped(input: &[u8], args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command
        .args(["60", TURNKEEP, "wrap", "--"])
        .args(args)
        .env_remove("XDG_RUNTIME_DIR");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn without_a_terminal_it_works_all_the_same() {
    let check = |input: &[u8], args: &[&str], expect: &str, code: i32| {
        let output = piped(input, args);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expect, "{args:?}");
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    };
    check(b"one\ntwo", &["cat"], "one\ntwo", 0);
    check(b"one\n", &["cat"], "one\n", 0);
    check(b"", &["cat"], "", 0);
    check(
        b"",
        &["sh", "-c", "test -t 0 && test -t 1 && stty size; exit 4"],
        "24 80\n",
        4,
    );
}

#[test]
fn what_goes_to_a_file_passes_unchanged_and_standard_error_stays_apart() {
    let script =
        "printf 'out 1\\n'; printf 'err 1\\r\\n' >&2; printf 'out 2\\r\\nno end'; echo err 2 >&2";
    for kept in ["", "echo typed | ", "</dev/null "] {
        let dir = tempfile::tempdir().unwrap();
        let (out, err) = (dir.path().join("out"), dir.path().join("err"));
        let line = format!(
            "{kept}'{TURNKEEP}' wrap -- sh -c \"{script}\" > '{}' 2> '{}'",
            out.display(),
            err.display()
        );
        let mut terminal = Terminal::run(["sh", "-c", &line], &[]);
        assert!(terminal.finish().1.success(), "{line}");
        let read = |path| std::fs::read_to_string(path).unwrap();
        assert_eq!(
            (read(out), read(err)),
            ("out 1\nout 2\r\nno end".into(), "err 1\r\nerr 2\n".into()),
            "{kept}"
        );
    }
}

#[test]
fn a_lot_of_output_on_both_streams_arrives_whole() {
    let script = "i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let output = Command::new("timeout")
        .args(["60", TURNKEEP, "wrap", "--", "sh", "-c", script])
        .env_remove("XDG_RUNTIME_DIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let lines = |word: &str| {
        (0..3000)
            .map(|i| format!("{word} {i}\n"))
            .collect::<Vec<_>>()
            .concat()
    };
    assert!(
        output.stdout == lines("out").as_bytes(),
        "standard output differs"
    );
    assert!(
        output.stderr == lines("err").as_bytes(),
        "standard error differs"
    );
}

#[test]
fn standard_error_alone_can_go_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let err = dir.path().join("err");
    let line = format!(
        "'{TURNKEEP}' wrap -- sh -c 'echo shown; echo kept >&2' 2> '{}'",
        err.display()
    );
    let mut terminal = Terminal::run(["sh", "-c", &line], &[]);
    let (shown, status) = terminal.finish();
    assert!(
        status.success() && shown == b"shown\r\n",
        "{}",
        shown.escape_ascii()
    );
    assert_eq!(std::fs::read_to_string(err).unwrap(), "kept\n");
}

#[test]
fn a_program_that_reads_keys_itself_hears_of_the_pipes_end() {
    let check = |input: &[u8], args: &[&str], expect: &str| {
        let output = piped(input, args);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.code() == Some(0) && said.contains(expect),
            "{args:?}: {} {said:?}",
            output.status
        );
    };
    let bash = ["bash", "--norc", "--noprofile", "-i"];
    check(b"", &bash, "");
    check(b"echo a$((40+2))z\n", &bash, "a42z");
    check(b"sleep 0.3; echo a$((40+2))z\n", &bash, "a42z");
    check(b"print(40+2)\n", &["python3", "-q"], "42");
    check(b"no end", &["sh", "-c", "cat; cat; echo both"], "both");
}

#[test]
fn a_reader_that_has_gone_ends_it_whatever_the_program_ignores() {
    let script = format!(
        "'{TURNKEEP}' wrap -- python3 -c 'while True: print(\"x\" * 100)' 2>/dev/null | head -n 1; \
         '{TURNKEEP}' wrap -- sh -c 'trap \"\" PIPE HUP; while :; do echo y || exit; done' | head -n 1"
    );
    let output = Command::new("timeout")
        .args(["60", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output.status);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("xxx") && said.contains("y\n"), "{said}");
}

#[test]
fn a_terminal_that_hangs_up_ends_a_program_that_ignores_the_signal() {
    let mut terminal = Terminal::wrap(&[
        "--",
        "sh",
        "-c",
        "trap '' HUP; echo ready; cat; echo $? > \"$HOME/end\"",
    ]);
    terminal.until("ready");
    let end = terminal.home().join("end");
    let _home = terminal.hang_up();
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !end.exists() {
        assert!(
            std::time::Instant::now() < deadline,
            "the program still waits for input"
        );
        std::thread::yield_now();
    }
}

#[test]
fn at_rest_it_takes_no_time() {
    let mut terminal = Terminal::wrap(&["--", "sh", "-c", "echo ready; exec cat"]);
    terminal.until("ready");
    // On a busy machine the start goes on for longer, so one idle second shows that it comes to
    // rest. One that never rests, such as a loop that polls, has no such second.
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    loop {
        let used = terminal.cpu_ticks_of_a_second();
        if used < 20 {
            break;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "{used} hundredths of a second in one of rest"
        );
    }
}

#[test]
fn a_program_is_wrapped_without_anything_in_the_environment() {
    let output = Command::new("timeout")
        .args([
            "60",
            "env",
            "-i",
            TURNKEEP,
            "wrap",
            "--",
            "/bin/echo",
            "ran",
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "ran\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_program_that_stops_itself_without_a_terminal_stops_nobody_around_it() {
    // The inner one ends it after a moment, which it can only when it is not stopped itself.
    let script =
        format!("timeout 1 '{TURNKEEP}' wrap -- bash -c 'kill -STOP $$; echo resumed'; echo $?");
    let output = Command::new("timeout")
        .args(["60", "setsid", "--wait", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "124\n",
        "{}",
        output.status
    );
}
