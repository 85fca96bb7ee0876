//! `turnkeep wrap` in a real terminal: a program behaves as it does without it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

mod ending;
mod job;
mod paste;
mod pipe;
mod recording;
mod relay;
#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "../sandbox/server_process.rs"]
mod server_process;
mod share;
mod terminal;

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use terminal::{TURNKEEP, Terminal};

/// Bytes of every kind, the same in every run.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn output_arrives_unchanged() {
    for (seed, bytes) in [(1, 1), (2, 4095), (3, 65_537), (4, 3_000_000)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("noise");
        let sent = noise(seed, bytes);
        std::fs::write(&file, &sent).unwrap();
        let script = format!("stty raw -echo; cat '{}'", file.display());
        for preset in ["generic", "claude"] {
            let mut terminal = Terminal::wrap(&["--preset", preset, "--", "sh", "-c", &script]);
            let (came, status) = terminal.finish();
            assert!(status.success(), "{status}");
            assert!(
                came == sent,
                "seed {seed}, {preset}: {} bytes came of {}",
                came.len(),
                sent.len()
            );
        }
    }
}

#[test]
fn input_arrives_unchanged() {
    for (seed, bytes) in [(5, 1), (6, 5000), (7, 300_000)] {
        let sent = noise(seed, bytes);
        let script = format!("stty raw -echo; echo ready; head -c {bytes} > \"$HOME/came\"");
        let mut terminal = Terminal::wrap(&["--", "sh", "-c", &script]);
        terminal.until("ready");
        terminal.type_bytes(&sent);
        let (_, status) = terminal.finish();
        assert!(status.success(), "{status}");
        assert!(
            std::fs::read(terminal.home().join("came")).unwrap() == sent,
            "seed {seed}"
        );
    }
}

#[test]
fn odd_endings_arrive_whole() {
    let check = |script: &str, expect: &[u8]| {
        let mut terminal = Terminal::wrap(&["--", "sh", "-c", script]);
        let (came, status) = terminal.finish();
        assert_eq!((&*came, status.code()), (expect, Some(0)), "{script}");
    };
    check("exit 0", b"");
    check("sleep 0.2", b"");
    check("printf 'no newline'", b"no newline");
    check("printf '\\033[3'", b"\x1b[3");
    check("printf '\\303'", b"\xc3");
    check("printf '\\033]0;no end'", b"\x1b]0;no end");
    check(
        "(sleep 60 >/dev/null 2>&1 </dev/null & echo left one behind)",
        b"left one behind\r\n",
    );
}

#[test]
fn the_exit_code_is_the_programs() {
    for code in [0, 1, 7, 255] {
        let mut terminal = Terminal::wrap(&["--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(terminal.finish().1.code(), Some(code));
    }
    let check = |program: &str, code: i32| {
        let mut terminal = Terminal::wrap(&["--", program]);
        let (said, status) = terminal.finish();
        assert_eq!(status.code(), Some(code), "{program}");
        assert!(
            String::from_utf8_lossy(&said).contains(program),
            "{}",
            said.escape_ascii()
        );
    };
    check("no-such-program", 127);
    check("/etc/passwd", 126);
}

#[test]
fn death_by_a_signal_is_passed_on() {
    for signal in [
        Signal::TERM,
        Signal::KILL,
        Signal::SEGV,
        Signal::PIPE,
        Signal::HUP,
    ] {
        let script = format!("kill -{} $$", signal.as_raw());
        let mut terminal = Terminal::wrap(&["--", "sh", "-c", &script]);
        assert_eq!(terminal.finish().1.signal(), Some(signal.as_raw()));
    }
}

#[test]
fn the_program_sees_the_window_and_its_changes() {
    let script = "trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done";
    let mut terminal = Terminal::wrap(&["--", "sh", "-c", script]);
    terminal.until("30 100");
    terminal.resize(120, 40);
    terminal.until("40 120");
    terminal.resize(0, 0);
    terminal.until("0 0");
    terminal.type_bytes(b"\x03");
    terminal.finish();
}

#[test]
fn signals_reach_the_program() {
    for (name, signal) in [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
    ] {
        let script = format!(
            "trap 'echo got {name}; exit 3' {name}; echo ready; while :; do sleep 0.02; done"
        );
        let mut terminal = Terminal::wrap(&["--", "sh", "-c", &script]);
        terminal.until("ready");
        terminal.signal(signal);
        terminal.until(&format!("got {name}"));
        assert_eq!(terminal.finish().1.code(), Some(3), "{name}");
    }
}

#[test]
fn a_typed_interrupt_is_the_programs_own() {
    let mut terminal = Terminal::wrap(&["--", "sh", "-c", "echo ready; exec cat"]);
    terminal.until("ready");
    terminal.wait_for("raw mode", Terminal::is_raw);
    terminal.type_bytes(b"\x03");
    assert_eq!(terminal.finish().1.signal(), Some(Signal::INT.as_raw()));
    // In raw mode it is a byte like any other.
    let mut terminal =
        Terminal::wrap(&["--", "sh", "-c", "stty raw; echo ready; head -c 1 | od -c"]);
    terminal.until("ready");
    terminal.type_bytes(b"\x03");
    terminal.until("003");
    assert!(terminal.finish().1.success());
}

#[test]
fn a_program_started_to_ignore_hangups_still_does() {
    let script = format!("trap '' HUP; exec '{TURNKEEP}' wrap -- grep SigIgn /proc/self/status");
    let mut terminal = Terminal::run(["sh", "-c", &script], &[]);
    let (said, _) = terminal.finish();
    let said = String::from_utf8_lossy(&said);
    let mask = said
        .split_whitespace()
        .last()
        .and_then(|mask| u64::from_str_radix(mask, 16).ok());
    assert_eq!(mask.map(|mask| mask & 1), Some(1), "{said}");
}

/// What the wrapper must put back.
pub(crate) fn essence(settings: &rustix::termios::Termios) -> String {
    let (input, output) = (settings.input_modes, settings.output_modes);
    format!(
        "{input:?} {output:?} {:?} {:?}",
        settings.control_modes, settings.local_modes
    )
}

#[test]
fn the_terminal_gets_its_settings_back() {
    type Act = fn(&mut Terminal);
    /// Its name, the environment, what to do when the program runs, the exit code, the signal.
    type Way = (
        &'static str,
        &'static [(&'static str, &'static str)],
        Act,
        Option<i32>,
        Option<i32>,
    );
    let ways: [Way; 12] = [
        (
            "exit",
            &[],
            |terminal| terminal.type_bytes(b"\x04"),
            Some(0),
            None,
        ),
        (
            "kill -TERM",
            &[],
            |terminal| terminal.signal(Signal::TERM),
            None,
            Some(Signal::TERM.as_raw()),
        ),
        (
            "kill -HUP",
            &[],
            |terminal| terminal.signal(Signal::HUP),
            None,
            Some(Signal::HUP.as_raw()),
        ),
        (
            "kill -XCPU",
            &[],
            |terminal| terminal.signal(Signal::XCPU),
            None,
            Some(Signal::XCPU.as_raw()),
        ),
        (
            "kill -ABRT",
            &[],
            |terminal| terminal.signal(Signal::ABORT),
            None,
            Some(Signal::ABORT.as_raw()),
        ),
        (
            "kill -FPE",
            &[],
            |terminal| terminal.signal(Signal::FPE),
            None,
            Some(Signal::FPE.as_raw()),
        ),
        (
            "kill -SEGV",
            &[],
            |terminal| terminal.signal(Signal::SEGV),
            None,
            Some(Signal::SEGV.as_raw()),
        ),
        (
            "kill -34",
            &[],
            |terminal| terminal.signal_number(34),
            None,
            Some(34),
        ),
        (
            "kill -64",
            &[],
            |terminal| terminal.signal_number(64),
            None,
            Some(64),
        ),
        (
            "typed interrupt",
            &[],
            |terminal| terminal.type_bytes(b"\x03"),
            None,
            Some(Signal::INT.as_raw()),
        ),
        (
            "panic",
            &[("TURNKEEP_WRAP_FAULT", "byte-path")],
            |terminal| terminal.type_bytes(b"x\n"),
            Some(101),
            None,
        ),
        (
            "stack overflow",
            &[("TURNKEEP_WRAP_FAULT", "stack")],
            |terminal| terminal.type_bytes(b"x\n"),
            None,
            Some(Signal::SEGV.as_raw()),
        ),
    ];
    for (name, env, act, code, signal) in ways {
        let mut terminal = Terminal::wrap_with(&["--", "cat"], env);
        let before = essence(&terminal.first_settings);
        terminal.wait_for("raw mode", Terminal::is_raw);
        act(&mut terminal);
        let (said, status) = terminal.finish();
        let said = said.escape_ascii();
        assert_eq!(
            (status.code(), status.signal()),
            (code, signal),
            "{name}: {said}"
        );
        assert_eq!(essence(&terminal.settings()), before, "{name}: {said}");
    }
}

#[test]
fn a_detector_that_panics_takes_nothing_with_it() {
    let mut terminal = Terminal::wrap_with(&["--", "cat"], &[("TURNKEEP_WRAP_FAULT", "observer")]);
    terminal.wait_for("raw mode", Terminal::is_raw);
    terminal.type_bytes(b"still here\n");
    terminal.until("still here\r\nstill here\r\n");
    terminal.type_bytes(b"\x04");
    let (said, status) = terminal.finish();
    let said = String::from_utf8_lossy(&said);
    assert!(
        status.success() && said.contains("detection stopped early"),
        "{status}: {said}"
    );
}

#[test]
fn memory_is_bounded_whatever_the_program_prints() {
    // (preset, what begins it, its bytes, the bytes after it)
    let starts = [
        ("generic", "", 0, 256_000_000),
        ("claude", "", 0, 20_000_000),
        ("claude", "\\033]0;", 4, 20_000_000),
        ("generic", "\\033P", 2, 20_000_000),
    ];
    for (preset, start, start_bytes, endless_bytes) in starts {
        let endless = format!(
            "python3 -c 'for _ in range({endless_bytes} // 50000): print(\"x\" * 50000, end=\"\")'"
        );
        let script =
            format!("stty raw -echo; printf '{start}'; {endless}; printf '\\nready\\n'; head -c 1");
        let mut terminal = Terminal::wrap(&["--preset", preset, "--", "sh", "-c", &script]);
        let came = terminal.count_until("\nready\n");
        let kib: u64 = terminal
            .status_line("VmHWM")
            .trim_end_matches(" kB")
            .parse()
            .unwrap();
        assert!(kib < 128 << 10, "{preset}, {start}: {kib} KiB");
        assert_eq!(came, endless_bytes + start_bytes);
        terminal.type_bytes(b"q");
        assert!(terminal.finish().1.success());
    }
}
