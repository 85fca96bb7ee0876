//! What the keys of the live view do: keys in, a changed selection or a wish out.
//!
//! Nothing here talks to the server. The loop of `run watch` carries out the wishes.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::followed_run::{FollowedRun, OpenApproval};

/// The longest text that can be typed.
const INPUT_CHARS_MAX: usize = 16 << 10;
/// How far a page key scrolls.
const PAGE_LINES: usize = 10;

/// What a person selected and types.
#[derive(Debug, Clone, Default)]
pub(crate) struct Controls {
    node: usize,
    approval: usize,
    /// The line that is being typed.
    pub(crate) input: Option<TypedLine>,
    /// What the last wish led to.
    pub(crate) notice: String,
    /// How many lines above its end the text is shown.
    pub(crate) scrolled: usize,
}

/// A line that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedLine {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
}

/// What a typed line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    Chat { node: String },
    DenyReason { approval: String },
    Answer { approval: String },
}

/// What a person wants to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    Leave,
    Approve {
        approval: String,
    },
    Deny {
        approval: String,
        reason: String,
    },
    /// Opens an editor on the arguments.
    Edit {
        approval: String,
    },
    Answer {
        approval: String,
        text: String,
    },
    Chat {
        node: String,
        text: String,
    },
}

impl Controls {
    /// The place of the selected node. Nodes may have gone since it was selected.
    pub(crate) fn node_index(&self, run: &FollowedRun) -> usize {
        self.node.min(run.nodes.len().saturating_sub(1))
    }

    /// The place of the selected approval.
    pub(crate) fn approval_index(&self, run: &FollowedRun) -> usize {
        self.approval.min(run.approvals.len().saturating_sub(1))
    }

    fn selected_approval<'a>(&self, run: &'a FollowedRun) -> Option<&'a OpenApproval> {
        run.approvals.get(self.approval_index(run))
    }

    /// Reads a key.
    pub(crate) fn press(&mut self, key: KeyEvent, run: &FollowedRun) -> Option<Wish> {
        // Terminals that report releases would type every letter twice.
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Some(Wish::Leave);
        }
        self.notice.clear();
        match self.input.take() {
            Some(line) => self.type_key(line, key, is_control),
            None => self.command_key(key.code, run),
        }
    }

    /// Adds pasted text to the line that is being typed. A paste is never taken for commands.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(line) = &mut self.input {
            let left = INPUT_CHARS_MAX.saturating_sub(line.text.chars().count());
            line.text.extend(text.chars().take(left));
        }
    }

    fn command_key(&mut self, code: KeyCode, run: &FollowedRun) -> Option<Wish> {
        match code {
            KeyCode::Char('q') => return Some(Wish::Leave),
            KeyCode::Up | KeyCode::Char('k') => {
                self.select_node(self.node_index(run).saturating_sub(1));
            }
            KeyCode::Down | KeyCode::Char('j') => self.select_node(self.node_index(run) + 1),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_add(PAGE_LINES),
            KeyCode::PageDown => self.scrolled = self.scrolled.saturating_sub(PAGE_LINES),
            KeyCode::End => self.scrolled = 0,
            KeyCode::Tab => {
                let next = self.approval_index(run) + 1;
                self.approval = if next < run.approvals.len() { next } else { 0 };
            }
            KeyCode::Char('c') | KeyCode::Enter => self.begin_chat(run),
            KeyCode::Char('a') => return self.approve_key(run),
            KeyCode::Char('d') => {
                let approval = self.selected_approval(run)?.id.clone();
                self.begin(Purpose::DenyReason { approval });
            }
            KeyCode::Char('e') => {
                let approval = self.selected_approval(run)?.id.clone();
                return Some(Wish::Edit { approval });
            }
            _ => {}
        }
        None
    }

    fn select_node(&mut self, node: usize) {
        self.node = node;
        self.scrolled = 0;
    }

    /// Approves a call. A question needs an answer instead.
    fn approve_key(&mut self, run: &FollowedRun) -> Option<Wish> {
        let open = self.selected_approval(run)?;
        let approval = open.id.clone();
        if open.is_question {
            self.begin(Purpose::Answer { approval });
            return None;
        }
        Some(Wish::Approve { approval })
    }

    fn begin_chat(&mut self, run: &FollowedRun) {
        if let Some(node) = run.nodes.get(self.node_index(run)) {
            let node = node.id.clone();
            self.begin(Purpose::Chat { node });
        }
    }

    fn begin(&mut self, purpose: Purpose) {
        let text = String::new();
        self.input = Some(TypedLine { purpose, text });
    }

    /// Types into a line. Escape drops it, Enter ends it.
    fn type_key(&mut self, mut line: TypedLine, key: KeyEvent, is_control: bool) -> Option<Wish> {
        match key.code {
            KeyCode::Esc => return None,
            KeyCode::Enter => return finished(line),
            KeyCode::Backspace => {
                line.text.pop();
            }
            KeyCode::Char('u') if is_control => line.text.clear(),
            KeyCode::Char(c) if !is_control && line.text.chars().count() < INPUT_CHARS_MAX => {
                line.text.push(c);
            }
            _ => {}
        }
        self.input = Some(line);
        None
    }
}

/// What a line asks for. An empty message or answer asks for nothing.
fn finished(line: TypedLine) -> Option<Wish> {
    let text = line.text.trim().to_owned();
    match line.purpose {
        Purpose::DenyReason { approval } => Some(Wish::Deny {
            approval,
            reason: text,
        }),
        _ if text.is_empty() => None,
        Purpose::Chat { node } => Some(Wish::Chat { node, text }),
        Purpose::Answer { approval } => Some(Wish::Answer { approval, text }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::run::samples::{event, run, tool};

    fn followed() -> FollowedRun {
        let mut followed = FollowedRun::new(&run(), &[]);
        for (seq, id, kind) in [(11, "a1", "tool"), (12, "a2", "question")] {
            let body = json!({
                "approvalId": id, "kind": kind, "tool": tool("Bash", &json!({})), "context": "x",
                "createdAt": "2026-01-01T12:00:00Z", "options": [],
            });
            followed.apply(&event(seq, "n2", "approval.requested", &body));
        }
        followed
    }

    /// Presses keys: `<` is Escape, `>` is Enter, `|` is Tab, `^` is Up, `v` is Down.
    fn check(keys: &str, expect: &[Wish]) {
        let (run, mut controls) = (followed(), Controls::default());
        let wishes: Vec<Wish> = keys
            .chars()
            .filter_map(|key| {
                let code = match key {
                    '<' => KeyCode::Esc,
                    '>' => KeyCode::Enter,
                    '|' => KeyCode::Tab,
                    '^' => KeyCode::Up,
                    'v' => KeyCode::Down,
                    letter => KeyCode::Char(letter),
                };
                controls.press(KeyEvent::from(code), &run)
            })
            .collect();
        assert_eq!(wishes, expect, "{keys}");
    }

    #[test]
    fn keys_become_wishes() {
        let id = |id: &str| id.to_owned();
        check("q", &[Wish::Leave]);
        check("a", &[Wish::Approve { approval: id("a1") }]);
        check("e", &[Wish::Edit { approval: id("a1") }]);
        check(
            "|anow>",
            &[Wish::Answer {
                approval: id("a2"),
                text: id("now"),
            }],
        );
        check("||a", &[Wish::Approve { approval: id("a1") }]);
        check(
            "d>",
            &[Wish::Deny {
                approval: id("a1"),
                reason: id(""),
            }],
        );
        check(
            "dno>",
            &[Wish::Deny {
                approval: id("a1"),
                reason: id("no"),
            }],
        );
        check("dno<q", &[Wish::Leave]);
        check(
            "cq>",
            &[Wish::Chat {
                node: id("n1"),
                text: id("q"),
            }],
        );
        check(
            "vc hi >",
            &[Wish::Chat {
                node: id("n2"),
                text: id("hi"),
            }],
        );
        check(
            "vvv^c hi>",
            &[Wish::Chat {
                node: id("n1"),
                text: id("hi"),
            }],
        );
        check("c>", &[]);
    }

    #[test]
    fn a_paste_is_no_command() {
        let (run, mut controls) = (followed(), Controls::default());
        controls.paste("q");
        assert_eq!(controls.input, None);
        controls.press(KeyEvent::from(KeyCode::Char('c')), &run);
        controls.paste("two\nlines");
        let wish = controls.press(KeyEvent::from(KeyCode::Enter), &run);
        let text = "two\nlines".to_owned();
        assert_eq!(
            wish,
            Some(Wish::Chat {
                node: "n1".to_owned(),
                text
            })
        );
    }
}
