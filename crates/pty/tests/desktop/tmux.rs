//! The tmux adapters under real servers: panes, keys, buffers, and the effect of OSC 52 on them.

use turnkeep_pty::desktop::{
    Binding, ClipboardProvider, HotkeyProvider, Osc52, Osc52Framing, Press, RefusalReason,
    SessionProcess, SessionResolver, TmuxBuffers, TmuxFocus, TmuxHotkeys,
};

use crate::program::{eventually, noise};
use crate::tmux_server::TmuxServer;

const WAITS: &str = "exec sleep 600";

fn bindings(texts: &[&str]) -> Vec<Binding> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn the_session_in_the_active_pane_is_found() {
    let (inner, _outer) = TmuxServer::attached("sh -c 'sleep 600; exit'");
    inner.run(&["split-window", WAITS]);
    let panes = [
        inner.number("#{pane_pid}", ":.0"),
        inner.number("#{pane_pid}", ":.1"),
    ];
    let sessions =
        [("first", panes[0]), ("second", panes[1])].map(|(session, pid)| SessionProcess {
            session: session.to_owned(),
            pid,
        });
    let mut focus = TmuxFocus::new(inner.tmux());
    for (pane, expect) in [(":.0", "first"), (":.1", "second"), (":.0", "first")] {
        inner.run(&["select-pane", "-t", pane]);
        assert_eq!(focus.focused(&sessions).unwrap(), expect);
    }
    let error = focus.focused(&sessions[1..]).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("no session runs in what has focus (process {})", panes[0])
    );
}

#[test]
fn a_server_that_nobody_looks_at_has_no_focus() {
    let server = TmuxServer::start(WAITS);
    let error = TmuxFocus::new(server.tmux()).focused(&[]).unwrap_err();
    assert_eq!(error.to_string(), "nothing has focus");
}

#[test]
fn a_key_typed_at_the_client_is_reported_with_its_pane() {
    let (inner, outer) = TmuxServer::attached(WAITS);
    inner.run(&["bind-key", "-n", "M-x", "display-message", "mine"]);
    let folder = tempfile::Builder::new()
        .prefix("it's # a % dir ")
        .tempdir()
        .unwrap();
    let mut hotkeys = TmuxHotkeys::new(inner.tmux(), folder.path()).unwrap();
    let wanted = bindings(&["Alt+X", "Super+C", "Alt+Shift+C", "Alt+Shift+V", "Alt+;"]);
    let refused = hotkeys.register(&wanted).unwrap();
    let refused: Vec<_> = refused
        .into_iter()
        .map(|refused| (refused.index, refused.reason))
        .collect();
    assert_eq!(
        refused,
        [
            (0, RefusalReason::Taken),
            (1, RefusalReason::NotInTerminals("Super"))
        ]
    );

    let pane = inner.number("#{pane_pid}", ":.0");
    for (key, index) in [("M-C", 2), ("M-V", 3), ("M-C", 2), ("M-\\;", 4)] {
        outer.run(&["send-keys", key]);
        let presses = eventually("the key is reported", || {
            let presses = hotkeys.pressed().unwrap();
            (!presses.is_empty()).then_some(presses)
        });
        assert_eq!(
            presses,
            [Press {
                index,
                process: Some(pane)
            }],
            "{key}"
        );
    }
    let mut second = TmuxHotkeys::new(inner.tmux(), inner.folder.path()).unwrap();
    assert_eq!(
        second.register(&wanted[2..3]).unwrap()[0].reason,
        RefusalReason::Taken
    );
    drop(hotkeys);
    assert_eq!(
        second.register(&wanted[2..3]).unwrap(),
        [],
        "dropping gives the keys back"
    );
    drop(second);
    let left = inner.run(&["list-keys", "-T", "root"]);
    assert!(!left.contains("turnkeep") && left.contains("M-x"), "{left}");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "the pipe is removed"
    );
}

#[test]
fn buffers_hold_every_byte() {
    let server = TmuxServer::start(WAITS);
    let mut buffers = TmuxBuffers::new(server.tmux());
    assert_eq!(
        buffers.read().unwrap_err().to_string(),
        "the clipboard holds no text"
    );
    let nothing = buffers.write(b"").unwrap_err().to_string();
    assert_eq!(
        nothing,
        "there is nothing to copy: tmux holds no empty clipboard and keeps the one before"
    );
    for size in [10, 5 << 20] {
        let content = noise(size);
        buffers.write(&content).unwrap();
        assert!(buffers.read().unwrap() == content, "{size} bytes");
        assert!(
            server.bytes(&["save-buffer", "-"]) == content,
            "{size} bytes by tmux itself"
        );
    }
}

#[test]
fn tmux_takes_an_osc_52_as_its_buffer() {
    let server = TmuxServer::start(WAITS);
    server.run(&["set-option", "-s", "set-clipboard", "on"]);
    let terminal = server.run(&["display-message", "-p", "-t", ":.0", "#{pane_tty}"]);
    let mut clipboard = Osc52::new(terminal, Osc52Framing::Plain);
    for size in [10, 70_000] {
        let content = noise(size);
        clipboard.write(&content).unwrap();
        let mut buffers = TmuxBuffers::new(server.tmux());
        eventually("the buffer is what was written", || {
            buffers
                .read()
                .is_ok_and(|read| read == content)
                .then_some(())
        });
    }
}

#[test]
fn an_osc_52_framed_for_tmux_passes_through_it() {
    let (inner, outer) = TmuxServer::attached(WAITS);
    inner.run(&["set-option", "-g", "allow-passthrough", "on"]);
    outer.run(&["set-option", "-s", "set-clipboard", "on"]);
    let terminal = inner.run(&["display-message", "-p", "-t", ":.0", "#{pane_tty}"]);
    Osc52::new(terminal, Osc52Framing::Tmux)
        .write(b"through two")
        .unwrap();
    let mut buffers = TmuxBuffers::new(outer.tmux());
    eventually("the outer buffer is what was written", || {
        buffers
            .read()
            .is_ok_and(|read| read == b"through two")
            .then_some(())
    });
    assert!(
        TmuxBuffers::new(inner.tmux()).read().is_err(),
        "the inner server only passes it on"
    );
}

#[test]
fn a_server_that_is_gone_is_an_error_and_not_a_wait() {
    let server = TmuxServer::start(WAITS);
    let tmux = server.tmux();
    let folder = tempfile::tempdir().unwrap();
    let mut hotkeys = TmuxHotkeys::new(server.tmux(), folder.path()).unwrap();
    assert_eq!(hotkeys.register(&bindings(&["Alt+Shift+C"])).unwrap(), []);
    hotkeys.check_alive().unwrap();
    drop(server);
    hotkeys.check_alive().unwrap_err();
    hotkeys.unregister().expect("its bindings went with it");
    let error = TmuxBuffers::new(tmux).write(b"x").unwrap_err().to_string();
    assert!(error.starts_with("`tmux load-buffer` failed: "), "{error}");
}
