//! The text rules of the shipped profiles, each found on recordings of the real program.
//!
//! They are values, not code: a user's profile says the same things in the configuration file.

use super::rules::{Begin, Look, Mark, Rewrite, TextRules};

impl TextRules {
    /// The rules of a shipped screen profile, by its name.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "aider" => Some(aider()),
            "claude" => Some(claude()),
            "codex" => Some(codex()),
            "gemini" => Some(gemini()),
            "opencode" => Some(opencode()),
            _ => None,
        }
    }
}

fn rows(patterns: &[&str]) -> Vec<Mark> {
    patterns.iter().map(|pattern| row(pattern)).collect()
}

fn row(pattern: &str) -> Mark {
    Mark { row: pattern.to_owned(), ..Mark::default() }
}

fn begins(pattern: &str, indent: usize) -> Mark {
    Mark { indent, ..row(pattern) }
}

fn looks(pattern: &str, look: Look) -> Mark {
    Mark { look, ..row(pattern) }
}

const AT_CURSOR: Look = Look {
    dim: None,
    bold: None,
    word_bold: None,
    quiet: None,
    coloured: None,
    shaded: None,
    cursor: Some(true),
};

/// Claude Code: boxes on the main and the alternate screen, and the flat screen-reader rows.
fn claude() -> TextRules {
    let quiet = Look { quiet: Some(true), ..Look::default() };
    let shaded = Look { shaded: Some(true), ..Look::default() };
    TextRules {
        end: rows(&[r"^─{20,}"]),
        end_last: rows(&[r"^\$(\s|$)"]),
        pinned: rows(&[r"^❯\s"]),
        user: vec![looks(r"^❯(\s|$)", shaded), row(r"^you: ")],
        drop: rows(&[
            r"^\s+[◐◑○●◔◕]\s+\w+ · /effort$",
            r"^effort: \w+ · /effort$",
            r"^(auto|manual|plan|accept edits|bypass permissions)( mode)? on( \(| ·|$)",
            r"^✻?\s*\S+ for (\d+h )?(\d+m )?\d+s( · .*)?$",
            r"^[·✢✳✶✻✽*] \S+…",
            r"^Interrupted\s+· What should Claude do instead\?$",
        ]),
        chrome: [
            vec![looks(r"^  \S", quiet), looks(r"^● ", quiet)],
            rows(&[
                r"^\s*⎿",
                r"^● [A-Z]\w*(:\w+)*( \(MCP\))?\(",
                r"^[✻✽✶✳✢·∴] ",
                r"^  (Creating|Running|Reading|Searching|Editing|Writing|Fetching) .* · \d+s$",
                r"^● (Creating|Running|Reading|Searching|Editing|Writing|Fetching) \S+( · \d+s)?$",
            ]),
        ]
        .concat(),
        message: vec![begins(r"^● ", 2), begins(r"^claude: ", 0)],
        ..TextRules::default()
    }
}

/// Codex: the composer's glyph also marks the prompts above it.
fn codex() -> TextRules {
    let loud = Look { dim: Some(false), ..Look::default() };
    let headline = Look { word_bold: Some(true), ..Look::default() };
    TextRules {
        end_last: rows(&[r"^›(\s|$)"]),
        pinned: rows(&[r"^›\s"]),
        user: rows(&[r"^›\s"]),
        drop: rows(&[r"^  Worked for .* • \d\d:\d\d$", r"^─+( Worked for .*)?─*$"]),
        chrome: [
            vec![
                looks(r"^• ", loud),
                looks(
                    r"^• (Explored|Exploring|Updated Plan|Searched|Searching|Viewed|Called|Calling|Ran|Edited|Added|Deleted|Waited|Proposed)\b",
                    headline,
                ),
            ],
            rows(&[r"^[✔✗■⚠✨ℹ◦] ", r"^  [└│] ", r"^• Working \("]),
        ]
        .concat(),
        message: vec![begins(r"^• ", 2)],
        ..TextRules::default()
    }
}

/// Gemini: Ink on the main screen, and the flat screen-reader rows.
fn gemini() -> TextRules {
    TextRules {
        end_last: rows(&[r"^─{20,}$", r"^workspace \(/directory\)$"]),
        user: rows(&[r"^ > ", r"^User:  "]),
        drop: rows(&[r"^ .* \? for shortcuts$", r"^\s*[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] .*esc to cancel"]),
        chrome: rows(&[r"^\s?[ℹ⚠✕✗✓⊶]  ?\S", r"^ ?[╭│╰]", r"^\s*[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] "]),
        message: vec![begins(r"^✦ ", 2), begins(r"^Model:  ", 0)],
        gutter: Some(r"^( {3,}\d+|\d+)( |$)".to_owned()),
        ..TextRules::default()
    }
}

/// Opencode: messages carry no mark, only an indent.
fn opencode() -> TextRules {
    TextRules {
        end_last: rows(&[r"^  ╹▀+"]),
        drop: rows(&[r"^  ┃", r"^     ▣  "]),
        chrome: rows(&[r"^   {0,2}[⚙→←✱◇~%$┃│] "]),
        indent: 5,
        ..TextRules::default()
    }
}

/// Aider: plain rows, rendered by rich in the default mode.
fn aider() -> TextRules {
    let plain = Look { coloured: Some(true), ..Look::default() };
    TextRules {
        end_last: vec![looks(r"^(\w+( \w+)?)?>(\s|$)", AT_CURSOR)],
        begin: Begin::Screen,
        drop: rows(&[
            r"^─{20,}$",
            r"^Tokens: [\d.,]+k? sent, ",
            r"^\^C again to exit$",
            r"^\^C( KeyboardInterrupt)?$",
            r"^The LLM did not conform to the edit format\.$",
            r"^https://aider\.chat/docs/\S+$",
            r"^No filename provided before ``` in file listing$",
        ]),
        rewrite: vec![Rewrite { row: looks(r"^ +(\d+) ", plain), with: "$1. ".to_owned() }],
        repeats: true,
        ..TextRules::default()
    }
}
