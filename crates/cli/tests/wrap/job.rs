//! Job control around the wrapper and inside it.

use rustix::process::Signal;

use crate::essence;
use crate::terminal::{TURNKEEP, Terminal};

#[test]
fn the_shells_job_control_works_on_it() {
    let mut terminal = Terminal::run(["bash", "--norc", "--noprofile", "-i"], &[]);
    terminal.until("$ ");
    terminal.type_bytes(format!("'{TURNKEEP}' wrap -- cat\n").as_bytes());
    terminal.until("wrap -- cat\r\n");
    terminal.type_bytes(b"before\n");
    terminal.until("before\r\nbefore\r\n");
    terminal.type_bytes(b"\x1a");
    terminal.until("Stopped");
    terminal.until("$ ");
    terminal.type_bytes(
        b"stty -a | tr -s ' ;' '\\n\\n' | grep -xE '.?(icanon|echo)' | tr '\\n' ,; fg\n",
    );
    let said = terminal.until("wrap -- cat\r\n");
    assert!(
        said.contains("icanon,echo,"),
        "the shell's settings are not back: {said}"
    );
    terminal.type_bytes(b"after\n");
    terminal.until("after\r\nafter\r\n");
    terminal.type_bytes(b"\x04");
    terminal.until("$ ");
    terminal.type_bytes(b"echo code $?; exit\n");
    terminal.until("code 0");
}

#[test]
fn job_control_inside_the_program_is_its_own() {
    let mut terminal = Terminal::wrap(&["--", "bash", "--norc", "--noprofile", "-i"]);
    terminal.until("$ ");
    // The terminal echoes only keys that come after the shell has given it away.
    terminal.type_bytes(b"sh -c 'echo begun; exec cat'\n");
    terminal.until("begun\r\n");
    terminal.type_bytes(b"in cat\n");
    terminal.until("in cat\r\nin cat\r\n");
    terminal.type_bytes(b"\x1a");
    terminal.until("Stopped");
    terminal.until("$ ");
    terminal.type_bytes(b"fg\n");
    terminal.until("exec cat'\r\n");
    // The shell names the job before it gives the terminal back; once it answers, it has it.
    terminal.type_bytes(b"again\n");
    terminal.until("again\r\n");
    terminal.until("again\r\n");
    terminal.type_bytes(b"\x03");
    terminal.until("$ ");
    terminal.type_bytes(b"exit 5\n");
    assert_eq!(terminal.finish().1.code(), Some(5));
}

#[test]
fn a_stop_signal_suspends_the_wrapper_and_a_continue_resumes_it() {
    let mut terminal = Terminal::wrap(&["--", "sh", "-c", "trap '' TSTP; echo ready; exec cat"]);
    let before = essence(&terminal.first_settings);
    terminal.until("ready");
    terminal.wait_for("raw mode", Terminal::is_raw);
    terminal.signal(Signal::TSTP);
    terminal.wait_for("suspended", |terminal| {
        terminal.status_line("State").starts_with('T')
    });
    assert_eq!(essence(&terminal.settings()), before);
    terminal.resize(90, 20);
    terminal.signal(Signal::CONT);
    terminal.wait_for("raw mode again", Terminal::is_raw);
    terminal.type_bytes(b"resumed\n");
    terminal.until("resumed\r\nresumed\r\n");
    terminal.type_bytes(b"\x04");
    assert!(terminal.finish().1.success());
}

#[test]
fn a_script_or_a_pipe_around_it_stops_with_it() {
    // With its output in a pipe the wrapper leaves the terminal's output settings to the program
    // behind the pipe.
    let script = (
        "sh -c \"'TURNKEEP' wrap -- cat; echo over\"",
        Terminal::is_raw as fn(&Terminal) -> bool,
    );
    let pipe = (
        "'TURNKEEP' wrap -- cat | cat",
        Terminal::is_uncooked as fn(&Terminal) -> bool,
    );
    for (around, is_wrapped) in [script, pipe] {
        let line = around.replace("TURNKEEP", TURNKEEP);
        let mut terminal = Terminal::run(["bash", "--norc", "--noprofile", "-i"], &[]);
        terminal.until("$ ");
        terminal.type_bytes(format!("{line}\n").as_bytes());
        terminal.wait_for("raw mode", is_wrapped);
        terminal.type_bytes(b"before\n");
        terminal.until("before\r\nbefore\r\n");
        terminal.type_bytes(b"\x1a");
        terminal.until("Stopped");
        terminal.until("$ ");
        terminal.type_bytes(b"fg\n");
        terminal.until("wrap -- cat");
        terminal.wait_for("raw mode", is_wrapped);
        terminal.type_bytes(b"after\n");
        terminal.until("after\r\nafter\r\n");
        terminal.type_bytes(b"\x04");
        terminal.until("$ ");
    }
}

#[test]
fn where_nobody_could_resume_it_a_stop_key_does_nothing() {
    let script = format!("'{TURNKEEP}' wrap -- cat; true");
    let mut terminal = Terminal::run(["sh", "-c", &script], &[]);
    terminal.wait_for("raw mode", Terminal::is_raw);
    terminal.type_bytes(b"before\n");
    terminal.until("before\r\nbefore\r\n");
    terminal.type_bytes(b"\x1a");
    terminal.type_bytes(b"after\n");
    terminal.until("after\r\n");
    terminal.type_bytes(b"\x04");
    assert!(terminal.finish().1.success());
}

#[test]
fn a_stop_that_cannot_be_caught_leaves_no_mark_after_it() {
    let mut terminal = Terminal::run(["bash", "--norc", "--noprofile", "-i"], &[]);
    terminal.until("$ ");
    // The wrapper is the parent of the program's parent.
    let program = "sh -c 'kill -STOP $(cut -d\" \" -f4 /proc/$PPID/stat); exec cat'";
    terminal.type_bytes(format!("'{TURNKEEP}' wrap -- {program}\n").as_bytes());
    terminal.until("Stopped");
    terminal.until("$ ");
    terminal.type_bytes(b"fg\n");
    terminal.wait_for("raw mode", Terminal::is_raw);
    terminal.type_bytes(b"again\n");
    terminal.until("again\r\nagain\r\n");
    terminal.type_bytes(b"\x04");
    terminal.until("$ ");
}
