//! Hotkeys under a real X server, pressed by synthetic key events.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use turnkeep_pty::desktop::{
    Binding, HotkeyProvider, Press, RefusalReason, RefusedBinding, X11Hotkeys,
};

use crate::program::output;
use crate::x_server::XServer;

fn bindings(texts: &[&str]) -> Vec<Binding> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The next press, by the descriptor as a program would wait for it.
fn next_press(hotkeys: &mut X11Hotkeys, keys: &str) -> Vec<Press> {
    loop {
        let presses = hotkeys.pressed().unwrap();
        if !presses.is_empty() {
            return presses;
        }
        let patience = Timespec {
            tv_sec: 30,
            tv_nsec: 0,
        };
        let ready = poll(
            &mut [PollFd::from_borrowed_fd(hotkeys.fd(), PollFlags::IN)],
            Some(&patience),
        );
        assert_ne!(ready.unwrap(), 0, "{keys} was not reported");
    }
}

#[test]
fn a_synthetic_key_press_is_reported_whatever_the_locks_are() {
    let server = XServer::start();
    let mut hotkeys = X11Hotkeys::connect(&server.display).unwrap();
    let refused = hotkeys
        .register(&bindings(&[
            "Super+Shift+C",
            "Super+Shift+V",
            "Ctrl+Alt+Home",
        ]))
        .unwrap();
    assert_eq!(refused, []);
    for lock in ["", "Num_Lock", "Caps_Lock", "Num_Lock"] {
        if !lock.is_empty() {
            server.press(lock);
        }
        for (keys, index) in [
            ("super+shift+c", 0),
            ("super+shift+v", 1),
            ("ctrl+alt+Home", 2),
        ] {
            // A key that is not bound causes no press before the bound one.
            server.press("super+c");
            server.press(keys);
            assert_eq!(
                next_press(&mut hotkeys, &format!("{keys} after {lock}")),
                [Press {
                    index,
                    process: None
                }]
            );
        }
    }
}

#[test]
fn a_held_key_is_one_press() {
    let server = XServer::start();
    let mut hotkeys = X11Hotkeys::connect(&server.display).unwrap();
    assert_eq!(
        hotkeys
            .register(&bindings(&["Super+Shift+C", "Super+Shift+V"]))
            .unwrap(),
        []
    );
    // Held for longer than it takes the server to repeat it several times.
    let held = [
        "keydown",
        "super+shift+c",
        "sleep",
        "1.2",
        "keyup",
        "super+shift+c",
    ];
    let done = output(server.command("xdotool").args(held), "xdotool", b"");
    assert!(done.status.success(), "{done:?}");
    server.press("super+shift+v");
    let mut presses = Vec::new();
    while !presses.contains(&1) {
        presses.extend(
            next_press(&mut hotkeys, "super+shift+v")
                .iter()
                .map(|press| press.index),
        );
    }
    assert_eq!(presses, [0, 1]);
}

#[test]
fn a_taken_binding_is_reported_and_the_rest_work() {
    let server = XServer::start();
    let mut first = X11Hotkeys::connect(&server.display).unwrap();
    assert_eq!(first.register(&bindings(&["Super+Shift+C"])).unwrap(), []);
    let mut second = X11Hotkeys::connect(&server.display).unwrap();
    let wanted = bindings(&["Super+Shift+C", "Super+Shift+V", "Alt+ю"]);
    let refused = second.register(&wanted).unwrap();
    let refusal = |index: usize, reason| RefusedBinding {
        index,
        binding: wanted[index],
        reason,
    };
    assert_eq!(
        refused,
        [
            refusal(0, RefusalReason::Taken),
            refusal(2, RefusalReason::NoSuchKey)
        ]
    );
    server.press("super+shift+v");
    assert_eq!(
        next_press(&mut second, "super+shift+v"),
        [Press {
            index: 1,
            process: None
        }]
    );
    server.press("super+shift+c");
    assert_eq!(
        next_press(&mut first, "super+shift+c"),
        [Press {
            index: 0,
            process: None
        }]
    );
}

#[test]
fn bindings_that_were_given_back_can_be_taken() {
    let server = XServer::start();
    let mut first = X11Hotkeys::connect(&server.display).unwrap();
    let wanted = bindings(&["Super+Shift+C"]);
    assert_eq!(first.register(&wanted).unwrap(), []);
    first.unregister().unwrap();
    let mut second = X11Hotkeys::connect(&server.display).unwrap();
    assert_eq!(second.register(&wanted).unwrap(), []);
    assert_eq!(
        second.register(&wanted).unwrap(),
        [],
        "registering again takes the place of the first"
    );
    server.press("super+shift+c");
    assert_eq!(
        next_press(&mut second, "super+shift+c"),
        [Press {
            index: 0,
            process: None
        }]
    );
    assert_eq!(first.pressed().unwrap(), []);
}

#[test]
fn a_display_that_is_not_there_is_named() {
    let error = X11Hotkeys::connect(":4242").unwrap_err().to_string();
    assert!(
        error.starts_with("cannot connect to the X display `:4242`: "),
        "{error}"
    );
}
