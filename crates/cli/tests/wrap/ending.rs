//! How the wrapper ends when something beside the byte path does not: it says so, and waits no
//! longer than the user does.

use std::process::{Command, Stdio};

use turnkeep_journal::DataDirLock;

use crate::relay::{Broker, ask, client, is_ready, session};
use crate::terminal::{TURNKEEP, Terminal};

#[test]
fn a_store_that_cannot_be_written_to_is_told_before_the_program_runs() {
    let mut terminal = Terminal::wrap_with(
        &["--keep", "--", "sh", "-c", "echo ran"],
        &[("XDG_DATA_HOME", "/dev/null")],
    );
    let (said, status) = terminal.finish();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains("/dev/null") && !said.contains("ran"),
        "{said}"
    );
}

#[test]
fn ctrl_c_ends_the_wait_for_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("turnkeep");
    std::fs::create_dir(&data).unwrap();
    let _held = DataDirLock::acquire(&data).unwrap();
    let broker = Broker::start(folder.path());
    let mut client = client(folder.path());
    let folder = folder.path().to_str().unwrap();
    let args = [
        "--keep",
        "--name",
        "one",
        "--",
        "bash",
        "--norc",
        "--noprofile",
        "-i",
    ];
    let mut terminal = Terminal::wrap_with(
        &args,
        &[("XDG_DATA_HOME", folder), ("XDG_RUNTIME_DIR", folder)],
    );
    terminal.until("$ ");
    session(&mut client, &mut terminal, "one", is_ready);
    // The broker hears of it although the store does not answer.
    ask(&mut terminal, &mut client, "one", 1);
    terminal.type_bytes(b"exit\r");
    terminal.until("exit\r\n");
    terminal.wait_for("the settings are back", |terminal| !terminal.is_raw());
    terminal.type_bytes(b"\x03");
    let (said, _) = terminal.finish();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("detection was not finished"), "{said}");
    broker.stop();
}

#[test]
fn output_that_cannot_be_written_is_told() {
    let script = format!("'{TURNKEEP}' wrap -- echo lost > /dev/full");
    let output = Command::new("timeout")
        .args(["60", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("the output could not be written: No space left"),
        "{said}"
    );
}

#[test]
fn a_process_with_thousands_of_files_open_can_be_wrapped() {
    let script = format!(
        "ulimit -n 8192; for fd in {{3..4200}}; do eval \"exec $fd</dev/null\"; done; \
         exec '{TURNKEEP}' wrap -- echo ran"
    );
    let output = Command::new("timeout")
        .args(["60", "bash", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "ran\n", "{}", String::from_utf8_lossy(&output.stderr));
}
