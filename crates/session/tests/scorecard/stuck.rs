//! Each signal of a profile missing, stuck at ready and stuck at busy: the other signals must
//! compensate.
//!
//! The recordings are the real ones. The reports of one signal are removed from their bytes, so
//! that everything else stays as the program wrote it.

use crate::score::score;
use crate::{profile, recording, truth};
use std::fmt::Write as _;
use turnkeep_session::detector::{Entry, Profile, ProfileSpec, Recorded, TtyMode, presets, replay};

/// What is wrong with a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It never says anything.
    Missing,
    /// It never says busy.
    StuckReady,
    /// It never says ready.
    StuckBusy,
    /// It says ready at the start, busy once, and nothing more.
    StuckBusyLater,
}

/// Which signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Status,
    Title,
    Tty,
    Paste,
}

/// What a sequence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Busy,
    Ready,
    /// Nothing about the state: it stays.
    Else,
}

/// Removes what a signal may not say.
struct Filter {
    which: Which,
    fault: Fault,
    title_busy: Option<regex::Regex>,
    was_busy: bool,
    /// A sequence that is not over.
    held: Vec<u8>,
}

impl Filter {
    fn new(which: Which, fault: Fault, spec: &ProfileSpec) -> Self {
        let title = spec.title.as_ref().map(|title| {
            let blocked = title.blocked.as_deref().unwrap_or("^$");
            regex::Regex::new(&format!("{}|{blocked}", title.busy)).unwrap()
        });
        Self {
            which,
            fault,
            title_busy: title,
            was_busy: false,
            held: Vec::new(),
        }
    }

    fn keeps(&mut self, says: Says) -> bool {
        let was_busy = self.was_busy;
        self.was_busy |= says == Says::Busy;
        says == Says::Else
            || match self.fault {
                Fault::Missing => false,
                Fault::StuckReady => says == Says::Ready,
                Fault::StuckBusy => says == Says::Busy,
                Fault::StuckBusyLater => !was_busy,
            }
    }

    /// What an operating system command or a mode says.
    fn says(&self, sequence: &[u8]) -> Says {
        let text = String::from_utf8_lossy(sequence);
        let text = text
            .trim_start_matches('\x1b')
            .trim_end_matches(['\x07', '\x1b', '\\']);
        let is_busy = |busy: bool| if busy { Says::Busy } else { Says::Ready };
        match self.which {
            Which::Status if text.starts_with("]7501;state=") && !text.contains(":id=") => {
                is_busy(text.contains("=working") || text.contains("=blocked"))
            }
            Which::Title => match text.strip_prefix("]0;").or(text.strip_prefix("]2;")) {
                Some(title) => is_busy(
                    self.title_busy
                        .as_ref()
                        .is_some_and(|busy| busy.is_match(title)),
                ),
                None => Says::Else,
            },
            Which::Paste if text == "[?2004h" => Says::Ready,
            Which::Paste if text == "[?2004l" => Says::Busy,
            _ => Says::Else,
        }
    }

    fn output(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = Vec::new();
        for byte in bytes {
            if *byte == 0x1b && !self.held.starts_with(b"\x1b]") {
                kept.append(&mut self.held);
            }
            if self.held.is_empty() && *byte != 0x1b {
                kept.push(*byte);
                continue;
            }
            self.held.push(*byte);
            if is_whole(&self.held) {
                let sequence = std::mem::take(&mut self.held);
                if self.keeps(self.says(&sequence)) {
                    kept.extend(sequence);
                }
            }
        }
        kept
    }

    fn mode(&mut self, mode: TtyMode) -> Option<TtyMode> {
        let canonical = match self.fault {
            _ if self.which != Which::Tty => mode.canonical,
            Fault::Missing => return None,
            Fault::StuckReady => false,
            Fault::StuckBusy => true,
            Fault::StuckBusyLater => {
                // Canonical is busy, but the mode is canonical before the first prompt too.
                let was_ready = self.was_busy;
                self.was_busy |= !mode.canonical;
                mode.canonical || was_ready
            }
        };
        Some(TtyMode { canonical, ..mode })
    }

    fn entry(&mut self, entry: &Entry) -> Option<Entry> {
        let what = match &entry.what {
            Recorded::Output(bytes) => Recorded::Output(self.output(bytes)),
            Recorded::TtyMode(mode) => Recorded::TtyMode(self.mode(*mode)?),
            other => other.clone(),
        };
        Some(Entry { at: entry.at, what })
    }
}

/// Whether a sequence that begins with ESC is over.
fn is_whole(sequence: &[u8]) -> bool {
    match sequence {
        [0x1b, b']', .., 0x07] | [0x1b, b']', .., 0x1b, b'\\'] => true,
        [0x1b] | [0x1b, b']', ..] => false,
        [0x1b, b'[', rest @ ..] => rest.last().is_some_and(|last| (0x40..=0x7e).contains(last)),
        _ => true,
    }
}

fn weakened(name: &str, which: Which, fault: Fault) -> Vec<Entry> {
    let known = presets();
    let program = name.split(['-', '.']).next().unwrap();
    let mut filter = Filter::new(which, fault, known.spec(known.name_for(program)).unwrap());
    recording(name)
        .iter()
        .filter_map(|entry| filter.entry(entry))
        .collect()
}

const FROM_THE_START: [Fault; 3] = [Fault::Missing, Fault::StuckReady, Fault::StuckBusy];
const LATER: [Fault; 1] = [Fault::StuckBusyLater];

#[test]
fn a_signal_that_is_missing_or_stuck_never_silences_another_that_moves() {
    let all = &FROM_THE_START[..];
    let cases: [(Which, &[Fault], &[&str]); 9] = [
        (
            Which::Status,
            all,
            &[
                "claude-status",
                "claude-tool",
                "codex",
                "codex-tool",
                "codex-wide",
            ],
        ),
        (
            Which::Title,
            all,
            &[
                "claude",
                "claude-hooks",
                "claude-tool",
                "claude-slash",
                "claude-stall",
            ],
        ),
        (
            Which::Title,
            all,
            &[
                "codex",
                "codex-tool",
                "gemini",
                "gemini-stall",
                "gemini-wide",
            ],
        ),
        // That a signal got stuck shows only after a while: not in the recordings in which the user
        // goes on before that, or answers a dialog in the very turn in which it happens.
        (
            Which::Status,
            &LATER,
            &["claude-status", "claude-tool", "codex"],
        ),
        (
            Which::Title,
            &LATER,
            &[
                "claude",
                "claude-hooks",
                "claude-tool",
                "claude-slash",
                "gemini",
            ],
        ),
        (Which::Title, &LATER, &["gemini-stall", "gemini-wide"]),
        (Which::Tty, all, &["aider", "bash", "sqlite3"]),
        (Which::Tty, all, &["python3.11", "node"]),
        (Which::Paste, all, &["aider", "bash", "sqlite3"]),
    ];
    let mut wrong = String::new();
    for (which, faults, names) in cases {
        for (fault, name) in faults
            .iter()
            .flat_map(|fault| names.iter().map(move |name| (*fault, *name)))
        {
            let turns = replay(profile(name), &weakened(name, which, fault));
            let score = score(&truth(name), &turns);
            println!("{name:22} {score}  {which:?} {fault:?}");
            for found in &score.faults {
                writeln!(wrong, "{name}, {which:?} {fault:?}: {found}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A profile whose rows match nothing any more, or always say the same.
fn with_rows(name: &str, fault: Fault) -> Profile {
    let known = presets();
    let preset = known.name_for(name.split(['-', '.']).next().unwrap());
    let mut spec = known.spec(preset).unwrap().clone();
    let rows = spec.rows.as_mut().unwrap();
    let (always, never) = ("", "^\\b$");
    let (busy, ready) = match fault {
        Fault::Missing => (never, never),
        Fault::StuckReady => (never, always),
        Fault::StuckBusy | Fault::StuckBusyLater => (always, rows.ready.as_str()),
    };
    (rows.busy, rows.ready, rows.edge) = (Some(busy.to_owned()), ready.to_owned(), None);
    rows.dialog = rows.dialog.take().filter(|_| fault != Fault::Missing);
    Profile::new(preset, &spec).unwrap()
}

#[test]
fn rows_that_match_nothing_or_always_the_same_do_not_silence_status_and_title() {
    let mut wrong = String::new();
    for fault in FROM_THE_START {
        // Not `claude-status`: its status comes before the last line is painted, and only the rows
        // tell.
        for name in [
            "claude",
            "claude-hooks",
            "claude-stall",
            "gemini",
            "gemini-stall",
        ] {
            let score = score(
                &truth(name),
                &replay(with_rows(name, fault), &recording(name)),
            );
            println!("{name:22} {score}  rows {fault:?}");
            for found in &score.faults {
                writeln!(wrong, "{name}, rows {fault:?}: {found}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
