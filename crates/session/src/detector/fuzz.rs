//! Plays arbitrary bytes as a session, for fuzzers: no panic, limited memory, and cutting changes
//! nothing.
//!
//! The first byte chooses a profile. Then each step is a kind, a length and, for output and input,
//! that many bytes. A step that is cut short plays the bytes it has.

use super::{Detection, Detector, Event, Presets, Profile, Size, TtyMode, presets};
use crate::screen::Mirror;
use std::sync::OnceLock;
use std::time::Duration;

/// What a detector may hold for such short input; more is a leak.
const HELD_BYTES_MAX: usize = 1024 * 1024;

/// What two screens of 20 by 6 may take with different colours in every cell and half a string
/// behind them.
const REPAINT_BYTES_MAX: usize = 32 * 1024;

/// How often a detector may ask for a tick after the last event.
const WAKES_MAX: usize = 32;

const SCREEN: &str = "content = 'screen'\nstatus = true\n[title]\nbusy = '^b'\nready = '^r'\n[rows]\n\
                      busy = 'busy'\nready = '^>'\ndialog = '^ >'\n[interrupt]\nescapes = 1\nrow = 'stop'";

fn profiles() -> &'static [Profile] {
    static PROFILES: OnceLock<Vec<Profile>> = OnceLock::new();
    PROFILES.get_or_init(|| {
        let mut known: Presets = presets();
        assert!(
            known.add_toml("screen", SCREEN).is_ok(),
            "the profile is valid"
        );
        ["generic", "bash", "python", "screen"]
            .iter()
            .filter_map(|name| known.get(name).ok())
            .collect()
    })
}

/// Plays the bytes as a session, whole and byte by byte, and compares the results.
pub fn play_any(bytes: &[u8]) {
    let Some((first, script)) = bytes.split_first() else {
        return;
    };
    let Some(profile) = profiles().get(usize::from(*first) % profiles().len()) else {
        return;
    };
    let whole = play_script(profile.clone(), script, usize::MAX);
    assert!(
        whole == play_script(profile.clone(), script, 1),
        "cutting the bytes changed the turns"
    );
    play_mirror(script);
}

/// Shows the bytes on a shared terminal and checks that a repaint stays as small as its window.
fn play_mirror(script: &[u8]) {
    let size = Size { cols: 20, rows: 6 };
    let mut mirror = Mirror::new(size);
    for (at, part) in script.chunks(64).enumerate() {
        mirror.feed(part);
        if at % 4 == 3 {
            let side = u16::from(part.first().copied().unwrap_or_default() % 32);
            mirror.resize(Size {
                cols: side,
                rows: side / 2,
            });
        }
    }
    mirror.resize(size);
    let repaint = mirror.repaint();
    assert!(
        repaint.len() <= REPAINT_BYTES_MAX,
        "{} bytes of repaint",
        repaint.len()
    );
    let mut other = Mirror::new(size);
    other.feed(&repaint);
}

fn play_script(profile: Profile, script: &[u8], piece: usize) -> Vec<Detection> {
    let mut detector = Detector::new(profile, Size { cols: 20, rows: 6 });
    let mut now = Duration::ZERO;
    let mut out = Vec::new();
    let mut rest = script;
    while let [kind, length, after @ ..] = rest {
        let (bytes, later) = after.split_at(usize::from(*length).min(after.len()));
        rest = if kind % 8 < 5 { later } else { after };
        match kind % 8 {
            0..=2 => bytes
                .chunks(piece)
                .for_each(|part| out.extend(detector.feed(now, Event::Output(part)))),
            3 | 4 => bytes
                .chunks(piece)
                .for_each(|part| out.extend(detector.feed(now, Event::Input(part)))),
            5 => now += Duration::from_millis(u64::from(*length) * 2),
            6 => out.extend(detector.feed(now, tty_mode_event(*length))),
            _ => out.extend(detector.feed(now, other_event(*length))),
        }
        assert!(
            detector.held_bytes() <= HELD_BYTES_MAX,
            "{} bytes are held",
            detector.held_bytes()
        );
    }
    for _ in 0..WAKES_MAX {
        let Some(due) = detector.deadline() else {
            return out;
        };
        out.extend(detector.feed(due, Event::Tick));
    }
    panic!("the detector wants to be woken for ever");
}

fn tty_mode_event(bits: u8) -> Event<'static> {
    Event::TtyMode(TtyMode {
        canonical: bits & 1 == 1,
        echo: bits & 2 == 2,
    })
}

fn other_event(choice: u8) -> Event<'static> {
    match choice % 4 {
        0 => Event::Interrupt,
        1 => Event::Gap,
        2 => Event::Tick,
        _ => Event::Resize(Size {
            cols: u16::from(choice),
            rows: u16::from(choice / 8),
        }),
    }
}
