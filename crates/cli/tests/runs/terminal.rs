//! What the commands print on a terminal, whose width they know and whose settings bytes can change.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use serde_json::json;

use super::*;

/// Runs a command whose standard output and error are a terminal of so many columns.
fn output_on_terminal(sandbox: &Sandbox, columns: u16, args: &[&str]) -> String {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let size = Winsize {
        ws_col: columns,
        ws_row: 24,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&master, size).unwrap();
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).unwrap();
    let mut command = sandbox.command(args);
    command.env("NO_COLOR", "1");
    command.stdout(Stdio::from(slave.try_clone().unwrap()));
    command.stderr(Stdio::from(slave));
    let mut child = command.spawn().unwrap();
    // The command holds the terminal's other end, too.
    drop(command);
    let mut shown = Vec::new();
    // Ends with an error when the last program has closed the terminal.
    File::from(master).read_to_end(&mut shown).unwrap_err();
    child.wait().unwrap();
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

fn list_with_goal(goal: &str) -> StubServer {
    let mut listed = summary(RUN, "running", &goal[..80]);
    listed["goal"] = json!(format!("{goal}\nand more"));
    listed["openApprovals"] = json!(0);
    StubServer::start(
        Answers::default().json("GET /api/runs?summary=1", json!({ "runs": [listed] })),
    )
}

#[test]
fn a_title_has_what_is_left_of_the_line_and_is_whole_in_a_pipe() {
    let goal = "Replace the parser of the configuration, keep the old format readable, and say in the changelog what changed";
    let server = list_with_goal(goal);
    let sandbox = Sandbox::new();
    let addr = server.addr();
    let list = ["run", "list", "--server", &addr, "--token", "t"];
    let listed = |columns| {
        let shown = output_on_terminal(&sandbox, columns, &list);
        shown.lines().nth(1).unwrap().to_owned()
    };
    let before = "3f2a  running  1/2    1.5k    $0.42  0s ago   ";
    assert_eq!(
        listed(80),
        format!("{before}Replace the parser of the configu…")
    );
    assert_eq!(listed(200), format!("{before}{goal}"));
    let piped = sandbox.output(&list, b"");
    let piped = String::from_utf8(piped.stdout).unwrap();
    assert_eq!(piped.lines().nth(1), Some(&*format!("{before}{goal}")));
}

#[test]
fn an_archive_is_not_printed_on_a_terminal() {
    let sandbox = Sandbox::new();
    let shown = output_on_terminal(&sandbox, 80, &["run", "export", "@last", "-o", "-"]);
    assert_eq!(
        shown,
        "error: these bytes are not text, and standard output is a terminal\n\
         hint: name a file, or send them on with > or |\n"
    );
}
