//! `turnkeep hotkey` under a real X server and a real tmux, with keys that are really pressed.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, CreateWindowAux, PropMode, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::desk::{Desk, Speaking, injected};
use crate::program::{Running, noise, output};
use crate::tmux_server::TmuxServer;
use crate::x_server::XServer;

/// A process that waits, as a terminal's program would.
fn waiting() -> Running {
    Running::start(std::process::Command::new("sleep").arg("600"), "coreutils")
}

/// Makes a window of a process and gives it focus, in the window manager's place.
fn focus(connection: &RustConnection, process: u32) {
    let root = connection.setup().roots[0].root;
    let atom = |name: &[u8]| {
        connection
            .intern_atom(false, name)
            .unwrap()
            .reply()
            .unwrap()
            .atom
    };
    let window = connection.generate_id().unwrap();
    let class = WindowClass::INPUT_ONLY;
    connection
        .create_window(
            0,
            window,
            root,
            0,
            0,
            1,
            1,
            0,
            class,
            0,
            &CreateWindowAux::new(),
        )
        .unwrap();
    for (of, property, kind, value) in [
        (window, atom(b"_NET_WM_PID"), AtomEnum::CARDINAL, process),
        (root, atom(b"_NET_ACTIVE_WINDOW"), AtomEnum::WINDOW, window),
    ] {
        connection
            .change_property32(PropMode::REPLACE, of, property, kind, &[value])
            .unwrap()
            .check()
            .unwrap();
    }
}

fn hotkey(desk: &Desk, server: &XServer, args: &[&str]) -> Speaking {
    let mut command = desk.command(&[&["hotkey"], args].concat());
    Speaking::start(command.env("DISPLAY", &server.display))
}

#[test]
fn keys_capture_paste_and_copy_where_the_focus_is() {
    let server = XServer::start();
    let desk = Desk::with_broker(Some(&server.display));
    let (left, right) = (waiting(), waiting());
    let turn = noise(3 << 20);
    let _left = desk.session("left", left.0.id(), &turn);
    let mut wrapper = desk.session("right", right.0.id(), b"something else");
    let mut hotkey = hotkey(&desk, &server, &["--raw", "--copy", "Super+Shift+X"]);
    for expect in [
        "Super+Shift+C: capture (x11)",
        "Super+Shift+V: paste (x11)",
        "Super+Shift+X: copy (x11)",
    ] {
        assert_eq!(Speaking::says(&hotkey.out), expect);
    }
    let (screen, _) = RustConnection::connect(Some(&server.display)).unwrap();
    let press = |process: u32, keys: &str, expect: &str| {
        focus(&screen, process);
        server.press(keys);
        let said = Speaking::says(&hotkey.err);
        // The notice of a capture quotes the turn's first words.
        assert!(said.starts_with(expect), "{keys}: {said}");
    };
    press(
        right.0.id(),
        "super+shift+v",
        "cannot paste: nothing was captured yet",
    );
    press(left.0.id(), "super+shift+c", "captured 3.0 MiB from left");
    press(right.0.id(), "super+shift+v", "pasted into right");
    assert!(
        injected(&mut wrapper) == turn,
        "what was captured is what is pasted"
    );
    press(right.0.id(), "super+shift+x", "copied to the clipboard");
    let xclip = ["-selection", "clipboard", "-o", "-t", "UTF8_STRING"];
    let copied = output(server.command("xclip").args(xclip), "xclip", b"");
    assert!(
        copied.stdout == turn,
        "what was captured is what xclip reads"
    );
    let nobody = waiting();
    let expect = format!(
        "nothing to capture: no session runs in what has focus (process {})",
        nobody.0.id()
    );
    press(nobody.0.id(), "super+shift+c", &expect);
    let test = std::process::id();
    focus(&screen, test);
    server.press("super+shift+c");
    let said = Speaking::says(&hotkey.err);
    assert!(
        said.starts_with("nothing to capture: several sessions run in what has focus: "),
        "{said}"
    );

    kill_process(Pid::from_child(hotkey.child()), Signal::TERM).unwrap();
    assert_eq!(hotkey.code(), Some(0));
}

#[test]
fn the_end_of_the_broker_is_an_error() {
    let server = XServer::start();
    let mut desk = Desk::with_broker(None);
    let mut hotkey = hotkey(&desk, &server, &["--json"]);
    let row: serde_json::Value = serde_json::from_str(&Speaking::says(&hotkey.out)).unwrap();
    assert_eq!(row["action"], "capture");
    assert_eq!(row["works"], true);
    drop(desk.broker.take());
    assert_eq!(hotkey.code(), Some(1));
    let said: serde_json::Value = serde_json::from_str(&Speaking::says(&hotkey.err)).unwrap();
    assert!(
        said["error"]
            .as_str()
            .unwrap()
            .starts_with("the broker has gone: "),
        "{said}"
    );
}

#[test]
fn a_taken_key_is_reported_and_with_none_left_it_ends() {
    let server = XServer::start();
    let desk = Desk::with_broker(None);
    let first = hotkey(&desk, &server, &["--capture", "Alt+A", "--paste", "Alt+B"]);
    assert_eq!(Speaking::says(&first.out), "Alt+A: capture (x11)");
    let second = hotkey(&desk, &server, &["--capture", "Alt+A", "--paste", "Alt+C"]);
    assert_eq!(
        Speaking::says(&second.err),
        "warning: Alt+A is not available: another program has taken it"
    );
    assert_eq!(Speaking::says(&second.out), "Alt+C: paste (x11)");
    let mut third = hotkey(&desk, &server, &["--capture", "Alt+A", "--paste", "Alt+B"]);
    let said: Vec<String> = (0..4).map(|_| Speaking::says(&third.err)).collect();
    assert_eq!(said[2], "error: none of the hotkeys is available");
    assert_eq!(third.code(), Some(1));
}

#[test]
fn what_cannot_work_is_said_before_anything_runs() {
    let desk = Desk::bare();
    for (args, code, expect) in [
        (&["hotkey", "--capture", "C"][..], 2, "`C` has no modifier"),
        (
            &["hotkey", "--paste", "Super+Foo"],
            2,
            "`Foo` in `Super+Foo` is no key",
        ),
        (
            &["hotkey", "--on", "windows"],
            2,
            "expected detect, x11 or tmux",
        ),
        (
            &["hotkey", "--on", "wayland"],
            2,
            "wayland and osc52 have a clipboard and nothing else",
        ),
        (&["hotkey"], 1, "hint: start it with `turnkeep broker`"),
    ] {
        let done = desk.run(args);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(expect), "{args:?}: {said}");
    }
    let desk = Desk::with_broker(None);
    for (args, code, expect) in [
        (
            &["hotkey"][..],
            1,
            "found no desktop that offers hotkeys: tmux: TMUX is not set; x11: DISPLAY is not set",
        ),
        (&["hotkey", "--on", "tmux"], 1, "TMUX is not set"),
    ] {
        let done = desk.run(args);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(
            (done.status.code(), said.contains(expect)),
            (Some(code), true),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn one_key_cannot_mean_two_things() {
    let server = XServer::start();
    let desk = Desk::with_broker(None);
    let mut hotkey = hotkey(&desk, &server, &["--capture", "Alt+A", "--paste", "alt+a"]);
    assert_eq!(
        Speaking::says(&hotkey.err),
        "error: Alt+A cannot mean both capture and paste"
    );
    assert_eq!(hotkey.code(), Some(2));
}

#[test]
fn in_tmux_the_pane_of_the_key_is_meant() {
    let desk = Desk::with_broker(None);
    let (inner, outer) = TmuxServer::attached("exec sleep 600");
    inner.run(&["split-window", "exec sleep 600"]);
    let panes = [
        inner.number("#{pane_pid}", ":.0"),
        inner.number("#{pane_pid}", ":.1"),
    ];
    let _left = desk.session("left", panes[0], b"from \x1b[1mthe\x1b[m left");
    let mut right = desk.session("right", panes[1], b"from the right");
    let tmux: PathBuf = inner.socket();
    let mut command = desk.command(&["hotkey"]);
    let hotkey = Speaking::start(command.env("TMUX", format!("{},1,0", tmux.display())));
    for expect in ["Alt+Shift+C: capture (tmux)", "Alt+Shift+V: paste (tmux)"] {
        assert_eq!(Speaking::says(&hotkey.out), expect);
    }
    for (pane, key) in [(":.0", "M-C"), (":.1", "M-V")] {
        inner.run(&["select-pane", "-t", pane]);
        outer.run(&["send-keys", key]);
    }
    assert_eq!(
        injected(&mut right),
        b"from the left",
        "the text, without the program's colours"
    );
}

#[test]
fn the_end_of_the_tmux_server_is_an_error() {
    let desk = Desk::with_broker(None);
    let tmux = TmuxServer::start("exec sleep 600");
    let mut command = desk.command(&["hotkey", "--on", "tmux"]);
    let mut hotkey =
        Speaking::start(command.env("TMUX", format!("{},1,0", tmux.socket().display())));
    assert_eq!(Speaking::says(&hotkey.out), "Alt+Shift+C: capture (tmux)");
    drop(tmux);
    assert_eq!(hotkey.code(), Some(1));
    let said = Speaking::says(&hotkey.err);
    assert!(
        said.starts_with("error: the desktop has gone: `tmux display-message` failed: "),
        "{said}"
    );
}
