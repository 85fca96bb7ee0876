//! The CLIPBOARD selection against `xclip`, in both directions, small and large.

use std::io::Write;
use std::process::Stdio;

use turnkeep_pty::desktop::{ClipboardProvider, X11Clipboard};

use crate::program::{Running, eventually, noise, output};
use crate::x_server::XServer;

const SIZES: [usize; 6] = [0, 10, 128 << 10, (128 << 10) + 1, 1 << 20, 5 << 20];

fn xclip(server: &XServer, target: &str) -> Result<Vec<u8>, String> {
    let args = ["-selection", "clipboard", "-o", "-t", target];
    let done = output(server.command("xclip").args(args), "xclip", b"");
    if done.status.success() {
        Ok(done.stdout)
    } else {
        Err(String::from_utf8(done.stderr).unwrap())
    }
}

/// Another program that owns the clipboard, until it is dropped.
fn other_owner(server: &XServer, content: &[u8]) -> Running {
    let mut command = server.command("xclip");
    command.args(["-selection", "clipboard", "-i", "-quiet"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut running = Running::start(&mut command, "xclip");
    running.0.stdin.take().unwrap().write_all(content).unwrap();
    running
}

#[test]
fn xclip_reads_back_what_was_written() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    for size in SIZES {
        let content = noise(size);
        clipboard.write(&content).unwrap();
        for target in [
            "UTF8_STRING",
            "TEXT",
            "text/plain;charset=utf-8",
            "application/octet-stream",
        ] {
            assert!(
                xclip(&server, target).unwrap() == content,
                "{size} bytes as {target}"
            );
        }
        assert!(
            clipboard.read().unwrap() == content,
            "{size} bytes read by ourselves"
        );
        assert!(clipboard.is_owner());
    }
}

#[test]
fn the_targets_are_those_that_the_content_has() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    for (content, has_string) in [("ascii only", true), ("naïve", false)] {
        clipboard.write(content.as_bytes()).unwrap();
        let targets = String::from_utf8(xclip(&server, "TARGETS").unwrap()).unwrap();
        let targets: Vec<&str> = targets.lines().collect();
        assert!(
            ["TARGETS", "TIMESTAMP", "MULTIPLE", "UTF8_STRING"]
                .iter()
                .all(|name| targets.contains(name))
        );
        assert_eq!(targets.contains(&"STRING"), has_string, "{content}");
        assert_eq!(xclip(&server, "STRING").is_ok(), has_string, "{content}");
        assert!(xclip(&server, "image/png").is_err());
    }
}

#[test]
fn many_readers_of_a_large_content_are_served_at_once() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    let content = noise(5 << 20);
    clipboard.write(&content).unwrap();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| xclip(&server, "UTF8_STRING")))
            .collect();
        for reader in readers {
            assert!(reader.join().unwrap().unwrap() == content);
        }
    });
}

#[test]
fn what_another_program_owns_is_read_and_ends_our_ownership() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    for size in [10, 5 << 20] {
        clipboard.write(b"ours").unwrap();
        let content = noise(size);
        let _owner = other_owner(&server, &content);
        eventually("the other program owns the clipboard", || {
            (!clipboard.is_owner()).then_some(())
        });
        assert!(clipboard.read().unwrap() == content, "{size} bytes");
    }
}

#[test]
fn a_clipboard_that_nobody_owns_is_empty() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    assert_eq!(
        clipboard.read().unwrap_err().to_string(),
        "the clipboard holds no text"
    );
    clipboard.write(b"for a moment").unwrap();
    drop(clipboard);
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    assert_eq!(
        clipboard.read().unwrap_err().to_string(),
        "the clipboard holds no text"
    );
}

#[test]
fn a_requestor_that_dies_in_the_middle_harms_nobody() {
    let server = XServer::start();
    let mut clipboard = X11Clipboard::connect(&server.display).unwrap();
    let content = noise(5 << 20);
    clipboard.write(&content).unwrap();
    for _ in 0..5 {
        let mut command = server.command("xclip");
        command
            .args(["-selection", "clipboard", "-o", "-t", "UTF8_STRING"])
            .stdout(Stdio::piped());
        let mut running = Running::start(&mut command, "xclip");
        // Its first bytes: it is in the middle of the transfer, or behind it with a full pipe.
        std::io::Read::read_exact(running.0.stdout.as_mut().unwrap(), &mut [0; 16]).unwrap();
    }
    assert!(xclip(&server, "UTF8_STRING").unwrap() == content);
    assert!(clipboard.is_owner());
}
