//! Focus under a real X server: a terminal, the program in it, and the properties that a window
//! manager would set.

use std::fs;
use std::process::Stdio;

use turnkeep_pty::desktop::{SessionProcess, SessionResolver, X11Focus};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, PropMode};
use x11rb::wrapper::ConnectionExt as _;

use crate::program::{Running, eventually, output};
use crate::x_server::XServer;

/// Says what has focus, in the window manager's place.
fn set_active(server: &XServer, window: u32) {
    let (connection, screen) = x11rb::connect(Some(&server.display)).unwrap();
    let root = connection.setup().roots[screen].root;
    let property = connection
        .intern_atom(false, b"_NET_ACTIVE_WINDOW")
        .unwrap()
        .reply()
        .unwrap()
        .atom;
    let kind = AtomEnum::WINDOW;
    connection
        .change_property32(PropMode::REPLACE, root, property, kind, &[window])
        .unwrap()
        .check()
        .unwrap();
}

/// A terminal with a program in it: the terminal, its window, and the program's process.
fn terminal(server: &XServer, name: &str) -> (Running, u32, u32) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600",
        file.display()
    );
    let mut command = server.command("xterm");
    command
        .args(["-T", name, "-e", "sh", "-c", &script])
        .stderr(Stdio::null());
    let running = Running::start(&mut command, "xterm");
    let program = eventually("the program in the terminal starts", || {
        fs::read_to_string(&file).ok()
    });
    let search = ["search", "--sync", "--name", name];
    let found = output(server.command("xdotool").args(search), "xdotool", b"");
    let window = String::from_utf8(found.stdout)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    (running, window, program.trim().parse().unwrap())
}

#[test]
fn the_session_in_the_focused_terminal_is_found() {
    let server = XServer::start();
    let (_one, window_one, program_one) = terminal(&server, "one");
    let (_two, window_two, program_two) = terminal(&server, "two");
    let session = |session: &str, pid| SessionProcess {
        session: session.to_owned(),
        pid,
    };
    let both = [session("a", program_one), session("b", program_two)];
    let mut focus = X11Focus::connect(&server.display).unwrap();
    let mut check = |window, sessions: &[SessionProcess], expect: &str| {
        set_active(&server, window);
        let found = focus
            .focused(sessions)
            .unwrap_or_else(|error| error.to_string());
        assert!(found.starts_with(expect), "{found} instead of {expect}");
    };
    check(window_one, &both, "a");
    check(window_two, &both, "b");
    check(
        window_two,
        &both[..1],
        "no session runs in what has focus (process ",
    );
    let twice = [session("a", program_one), session("c", program_one)];
    check(
        window_one,
        &twice,
        "several sessions run in what has focus: a, c",
    );
    check(0, &both, "nothing has focus");
    check(
        0x00ff_fff0,
        &both,
        "the focused window 0xfffff0 does not say which process it belongs to",
    );
}

#[test]
fn without_a_window_manager_nothing_has_focus() {
    let server = XServer::start();
    let error = X11Focus::connect(&server.display)
        .unwrap()
        .focused(&[])
        .unwrap_err();
    assert_eq!(error.to_string(), "nothing has focus");
}
