//! Each signal of a profile missing, stuck at ready and stuck at busy: the other signals must
//! compensate.
//!
//! The recordings are the real ones. The reports of one signal are removed from their bytes, so
//! that everything else stays as the program wrote it.

use crate::score::score;
use crate::{card, profile, recording, truth};
use std::fmt::Write as _;
use turnkeep_session::detector::{
    Entry, Profile, ProfileSpec, Recorded, TtyMode, Turn, presets, replay,
};

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
    Marks,
    Title,
    Rows,
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

/// A recording with a mark that never changes. No recorded shell prints marks, so they are added.
fn with_marks(name: &str, fault: Fault) -> Vec<Entry> {
    let marks: &[u8] = match fault {
        Fault::Missing => b"",
        Fault::StuckReady => b"\x1b]133;A\x07\x1b]133;B\x07",
        Fault::StuckBusy | Fault::StuckBusyLater => b"\x1b]133;B\x07\x1b]133;C\x07",
    };
    let mut entries = recording(name);
    let first = entries.iter_mut().find_map(|entry| match &mut entry.what {
        Recorded::Output(bytes) => Some(bytes),
        _ => None,
    });
    first.unwrap().splice(0..0, marks.iter().copied());
    entries
}

/// The signals that a profile declares.
fn signals_of(spec: &ProfileSpec) -> Vec<Which> {
    let prompt = spec.prompt.as_ref();
    [
        (Which::Status, spec.status),
        (Which::Marks, spec.marks),
        (Which::Title, spec.title.is_some()),
        (Which::Rows, spec.rows.is_some()),
        (Which::Tty, prompt.is_some_and(|prompt| prompt.tty)),
        (Which::Paste, prompt.is_some_and(|prompt| prompt.paste)),
    ]
    .into_iter()
    .filter_map(|(which, declared)| declared.then_some(which))
    .collect()
}

/// The recordings on which the signals of each shipped profile are broken.
const PROFILES: [(&str, &[&str]); 20] = [
    ("aider", &["aider"]),
    ("bash", &["bash"]),
    ("claude", &["claude"]),
    ("cn", &["cn"]),
    ("codex", &["codex", "codex-odd-live"]),
    ("copilot", &["copilot"]),
    ("fish", &["fish-plain"]),
    ("gdb", &["gdb-repl"]),
    ("gemini", &["gemini"]),
    ("ipython", &["ipython-repl"]),
    ("kilo", &["kilo"]),
    ("node", &["node"]),
    ("opencode", &["opencode"]),
    ("pi", &["pi"]),
    ("psql", &["psql", "psql-repl"]),
    ("python", &["python3.11", "python3.13"]),
    ("qwen", &["qwen"]),
    ("sqlite3", &["sqlite3"]),
    ("vibe", &["vibe", "vibe-live"]),
    ("zsh", &["zsh-plain"]),
];

/// Faults that no other signal makes up for: the recording, the signal, what is wrong with it, and
/// what goes wrong then.
const NOT_MADE_UP_FOR: [(&str, Which, Fault, &str); 4] = [
    // vibe reports no status before its first turn, so only the title shows its first prompt.
    ("vibe-live", Which::Title, Fault::Missing, "brief: missed"),
    ("vibe-live", Which::Title, Fault::StuckBusy, "brief: missed"),
    // Without the switch of the paste mode, output that has no line feed looks like the prompt.
    ("zsh-plain", Which::Paste, Fault::Missing, "nonl: missed"),
    ("zsh-plain", Which::Paste, Fault::StuckBusy, "nonl: missed"),
];

fn replay_broken(name: &str, which: Which, fault: Fault) -> Vec<Turn> {
    match which {
        Which::Rows => replay(with_rows(name, fault), &recording(name)),
        Which::Marks => replay(profile(name), &with_marks(name, fault)),
        _ => replay(profile(name), &weakened(name, which, fault)),
    }
}

#[test]
fn every_signal_of_every_profile_may_be_missing_or_stuck() {
    let known = presets();
    let profiles: Vec<&str> = PROFILES.iter().map(|(preset, _)| *preset).collect();
    let shipped = known.names();
    let shipped: Vec<&str> = shipped
        .into_iter()
        .filter(|name| *name != "generic")
        .collect();
    assert_eq!(profiles, shipped, "a profile is not tested");
    let mut wrong = String::new();
    for (preset, names) in PROFILES {
        let signals = signals_of(known.spec(preset).unwrap());
        for name in names {
            let whole = card(name).faults;
            for (which, fault) in signals
                .iter()
                .flat_map(|which| FROM_THE_START.map(|fault| (*which, fault)))
            {
                let score = score(&truth(name), &replay_broken(name, which, fault));
                println!("{name:22} {score}  {which:?} {fault:?}");
                if signals.len() == 1 && which == Which::Rows {
                    // Nothing else says when the program is ready, so nothing may be found, and
                    // nothing may be invented.
                    if score.invented + score.early > 0 {
                        writeln!(wrong, "{name}, {which:?} {fault:?}: {:?}", score.faults).unwrap();
                    }
                    continue;
                }
                let expected = |found: &str| {
                    let allowed = NOT_MADE_UP_FOR.iter();
                    let mut allowed = allowed
                        .filter(|(of, by, how, _)| (*of, *by, *how) == (*name, which, fault));
                    allowed.any(|(_, _, _, what)| *what == found)
                };
                for found in &score.faults {
                    if !whole.contains(found) && !expected(found) {
                        writeln!(wrong, "{name}, {which:?} {fault:?}: {found}").unwrap();
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Programs without a profile, whose status `generic` believes once it has moved.
#[test]
fn a_status_that_is_stuck_does_not_silence_the_screen_of_a_program_without_a_profile() {
    let generic = presets().get("generic").unwrap();
    let mut wrong = String::new();
    for name in ["codex", "vibe-live", "vibe"] {
        let mut found_without = 0;
        for fault in FROM_THE_START {
            let turns = replay(generic.clone(), &weakened(name, Which::Status, fault));
            let score = score(&truth(name), &turns);
            println!("{name:22} {score}  generic, status {fault:?}");
            found_without = found_without.max(score.found);
            let is_as_good = score.found == found_without && score.found * 2 > score.turns;
            if score.invented + score.early > 0 || !is_as_good {
                writeln!(wrong, "{name}, status {fault:?}: {:?}", score.faults).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Line programs without a profile, with marks that never change.
#[test]
fn marks_that_are_stuck_do_not_silence_the_lines_of_a_program_without_a_profile() {
    let generic = presets().get("generic").unwrap();
    for name in ["bash", "python3.13", "sqlite3"] {
        let whole = replay(generic.clone(), &recording(name));
        assert!(!whole.is_empty(), "{name}");
        for fault in FROM_THE_START {
            let turns = replay(generic.clone(), &with_marks(name, fault));
            assert_eq!(turns.len(), whole.len(), "{name}, marks {fault:?}");
        }
    }
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
    let shows_dialogs = matches!(fault, Fault::StuckBusy | Fault::StuckBusyLater);
    rows.dialog = rows.dialog.take().filter(|_| shows_dialogs);
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
