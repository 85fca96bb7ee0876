//! The program's own hooks, which hand over a turn's last message as the model wrote it.
//!
//! A named pipe in a directory of the user's runtime directory takes what the hook is handed; a
//! thread reads it and keeps the newest messages. A message replaces the end of the text from the
//! screen where both agree in most lines, by their letters and digits: rows may have scrolled away
//! unseen, but a program may also call its hook for a turn of its own that it does not show, or
//! hand over something else than it showed. Nothing is written to a disk.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a completed turn waits for its message.
pub(super) const HOOK_PAUSE: Duration = Duration::from_millis(500);
/// How often it looks meanwhile.
pub(super) const HOOK_LOOK: Duration = Duration::from_millis(10);
/// Messages that are kept for the turn to come.
const MESSAGES_MAX: usize = 8;
/// Letters of its first piece that a doubled message may leave out the second time.
const DOUBLED_SHIFT_MAX: usize = 256;
/// Letters of a line below which it proves nothing: `2.` or `ok` stand in many messages.
const TELLING_LETTERS_MIN: usize = 3;
/// The line that stands in a text where rows are missing.
pub(super) const GAP: &str = "[…]";
/// Longest message that is believed.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// What gemini calls the end of a turn.
const GEMINI_EVENT: &str = "AfterAgent";
/// By which a hook in the person's own settings finds the pipe.
const PIPE_VARIABLE: &str = "TURNKEEP_HOOK";

/// What the program is started with beside what the user gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSetup {
    /// Arguments right after the program.
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
}

/// The pipe and what came through it. Dropping it removes the pipe.
#[derive(Debug)]
pub struct Hooks {
    dir: PathBuf,
    messages: Messages,
}

/// The newest messages; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Messages(Arc<Mutex<VecDeque<String>>>);

impl Hooks {
    /// Makes the pipe in a new directory with this name below the user's runtime directory.
    pub fn open(runtime_dir: &Path, session: &str) -> io::Result<Self> {
        let dir = runtime_dir
            .join("turnkeep")
            .join(format!("hooks-{session}"));
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        let hooks = Self {
            dir,
            messages: Messages::default(),
        };
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            hooks.pipe(),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )?;
        // Open for both directions, so that it never ends while we are here.
        let file = File::options().read(true).write(true).open(hooks.pipe())?;
        let messages = hooks.messages.clone();
        std::thread::Builder::new()
            .name("hooks".to_owned())
            .spawn(move || listen(file, &messages))?;
        Ok(hooks)
    }

    fn pipe(&self) -> PathBuf {
        self.dir.join("pipe")
    }

    pub(super) fn messages(&self) -> Messages {
        self.messages.clone()
    }

    /// How the program of this profile is made to call us; nothing for one that has no hooks.
    pub fn setup(&self, profile: &str) -> io::Result<HookSetup> {
        let pipe = format!(
            "'{}'",
            self.pipe().display().to_string().replace('\'', "'\\''")
        );
        let take_input = format!("cat > {pipe}");
        match profile {
            "claude" => Ok(HookSetup {
                arguments: vec![
                    "--settings".to_owned(),
                    hooks_json("Stop", &take_input).to_string(),
                ],
                ..HookSetup::default()
            }),
            "codex" => {
                let command = json!(["sh", "-c", format!("printf %s \"$1\" > {pipe}"), "sh"]);
                Ok(HookSetup {
                    arguments: vec!["-c".to_owned(), format!("notify={command}")],
                    ..HookSetup::default()
                })
            }
            "gemini" => self.gemini(&take_input),
            _ => Ok(HookSetup::default()),
        }
    }
}

impl Hooks {
    /// gemini has no argument for hooks. It reads a settings file of our own only where root alone
    /// may write; everybody else has its hook in the settings of the home directory, once, and is
    /// only told the pipe.
    fn gemini(&self, take_input: &str) -> io::Result<HookSetup> {
        let environment = if is_roots(&self.dir)? {
            let file = self.dir.join("settings.json");
            std::fs::write(&file, hooks_json(GEMINI_EVENT, take_input).to_string())?;
            (
                "GEMINI_CLI_SYSTEM_SETTINGS_PATH".to_owned(),
                file.display().to_string(),
            )
        } else {
            let home = ["GEMINI_CLI_HOME", "HOME"]
                .into_iter()
                .find_map(std::env::var_os);
            has_own_hook(&PathBuf::from(home.unwrap_or_default()).join(".gemini/settings.json"))?;
            (PIPE_VARIABLE.to_owned(), self.pipe().display().to_string())
        };
        Ok(HookSetup {
            environment: vec![environment],
            ..HookSetup::default()
        })
    }
}

/// Whether root owns a directory and all above it, and nobody else may write there.
fn is_roots(dir: &Path) -> io::Result<bool> {
    let dir = dir.canonicalize()?;
    for dir in dir.ancestors() {
        let facts = dir.metadata()?;
        if facts.uid() != 0 || facts.mode() & 0o022 != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Refuses, with what to do, where the settings do not name our pipe.
fn has_own_hook(settings: &Path) -> io::Result<()> {
    if std::fs::read_to_string(settings).is_ok_and(|text| text.contains(PIPE_VARIABLE)) {
        return Ok(());
    }
    let command = format!("cat > \"${{{PIPE_VARIABLE}:-/dev/null}}\"");
    Err(io::Error::other(format!(
        "gemini takes hooks from nowhere but its own settings. Add this to {}, once, or leave --hooks out: {}",
        settings.display(),
        hooks_json(GEMINI_EVENT, &command)
    )))
}

impl Drop for Hooks {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.dir).ok();
    }
}

fn hooks_json(event: &str, command: &str) -> Value {
    json!({ "hooks": { event: [{ "hooks": [{ "type": "command", "command": command, "name": "turnkeep" }] }] } })
}

/// Reads what the hooks hand over, one JSON object after the other. What is none is thrown away,
/// with what the pipe holds behind it: a hook that was killed in mid-message must not stop those
/// after it.
fn listen(mut pipe: File, messages: &Messages) {
    let mut held = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut chunk) {
        held.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let used = take_objects(&held, messages).filter(|_| held.len() <= 2 * MESSAGE_BYTES_MAX);
        held.drain(..used.unwrap_or(held.len()));
    }
}

/// Takes up the objects that are whole and says how many bytes they have; none if what follows is
/// no JSON.
fn take_objects(held: &[u8], messages: &Messages) -> Option<usize> {
    let mut objects = serde_json::Deserializer::from_slice(held).into_iter::<Value>();
    let mut used = 0;
    while let Some(object) = objects.next() {
        match object {
            Ok(object) => messages.take_up(&object),
            Err(error) => return error.is_eof().then_some(used),
        }
        used = objects.byte_offset();
    }
    Some(held.len())
}

/// The last message of a turn, in whichever program's words.
fn message_of(object: &Value) -> Option<&str> {
    let names = [
        "last_assistant_message",
        "last-assistant-message",
        "prompt_response",
    ];
    names.iter().find_map(|name| object.get(name)?.as_str())
}

impl Messages {
    fn take_up(&self, object: &Value) {
        if let Some(message) =
            message_of(object).filter(|message| message.len() <= MESSAGE_BYTES_MAX)
        {
            self.add(message.to_owned());
        }
    }

    fn add(&self, message: String) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.truncate(MESSAGES_MAX - 1);
        messages.push_front(message);
    }

    /// The text with its end as the program itself gave it, if a message says exactly the same.
    pub(super) fn exact(&self, text: &str) -> Option<String> {
        self.replace_end(|message| {
            let once = with_exact_end(text, message);
            once.or_else(|| with_exact_end(text, undoubled(message)?))
        })
    }

    /// The same if a message agrees with the text in most lines. A message of another turn may do so
    /// by chance, so this is asked only when the turn's own message has had its time to come.
    pub(super) fn likely(&self, text: &str, has_lost_rows: bool) -> Option<String> {
        self.replace_end(|message| with_likely_end(text, message, has_lost_rows))
    }

    fn replace_end(&self, fit: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = messages.iter().find_map(|message| fit(message))?;
        messages.clear();
        Some(replaced)
    }

    /// Forgets every message: they belong to turns that are over.
    pub(super) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Whether a line is all there is of a code block's beginning or end, which hardly a screen shows.
fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// The first part of a message whose second part says the end of it again: gemini hands over what
/// it received, and then the pieces in which it came.
fn undoubled(message: &str) -> Option<&str> {
    let places: Vec<(usize, char)> = message
        .char_indices()
        .filter(|(_, c)| c.is_alphanumeric())
        .collect();
    let said: Vec<char> = places.iter().map(|(_, c)| *c).collect();
    let half = said.len().div_ceil(2);
    let is_again = |at: &usize| {
        let (first, again) = said.split_at(*at);
        !again.is_empty() && first.ends_with(again)
    };
    let at = (half..(half + DOUBLED_SHIFT_MAX).min(said.len())).find(is_again)?;
    message
        .get(..places.get(at)?.0)
        .map(|first| first.trim_end_matches(|c: char| c.is_whitespace() || "*`-_#>".contains(c)))
}

/// Replaces the last lines of a text by a message with the same letters and digits; the language
/// that a code block names may be shown or not.
fn with_exact_end(text: &str, message: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = end_that_says(&lines, message, |_| true);
    let at = at.or_else(|| end_that_says(&lines, message, |line| !is_fence(line)))?;
    Some(joined(lines.get(..at).unwrap_or_default(), message))
}

/// Replaces the last lines of a text by a message that agrees with most of them.
///
/// Worked example: the row `- Blue` scrolled away unseen.
///
/// ```text
/// text             message          From the end upwards, `Mixed` and `Red` are found in the message one
/// I look.          - **Red**        before the other, `I look.` is not: the message begins at `- Red`, and
/// - Red            - **Blue**       two of two lines agree. The result is `I look.`, a blank line and the
/// Mixed            Mixed            message.
/// ```
fn with_likely_end(text: &str, message: &str, has_lost_rows: bool) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let said = letters(message);
    let mut until = said.len();
    let (mut agreed, mut counted, mut covered) = (0, 0, 0);
    let mut end = None;
    for (at, line) in lines.iter().enumerate().rev() {
        let shown = letters(line);
        if shown.chars().count() < TELLING_LETTERS_MIN || is_fence(line) {
            continue;
        }
        counted += 1;
        if let Some(found) = said.get(..until).and_then(|before| before.rfind(&*shown)) {
            until = found;
            agreed += 1;
            covered += shown.len();
            // What comes first in the message is also the first line of it.
            end = Some(End {
                at,
                agreed,
                counted,
            });
        }
    }
    let End {
        mut at,
        agreed,
        counted,
    } = end?;
    // A short answer such as `Done.` stands in many messages. Unless the screen lost rows, it must be
    // most of the message.
    let is_most_of_it = covered * 2 > said.len();
    if agreed * 2 <= counted || !(is_most_of_it || has_lost_rows) {
        return None;
    }
    // Rows that are missing in front of the first line are the head of the message.
    while at > 0
        && until > 0
        && lines
            .get(at - 1)
            .is_some_and(|line| line.trim().is_empty() || *line == GAP)
    {
        at -= 1;
    }
    Some(joined(lines.get(..at).unwrap_or_default(), message))
}

/// From which line on a text may be a message, and how many of the lines from there on agree with
/// it.
struct End {
    at: usize,
    agreed: usize,
    counted: usize,
}

/// The lines, and the message behind them.
fn joined(lines: &[&str], message: &str) -> String {
    let before = lines.join("\n");
    let (before, message) = (before.trim_end(), message.trim_end());
    if before.is_empty() {
        message.to_owned()
    } else {
        format!("{before}\n\n{message}")
    }
}

/// From which line on the text says what the message says, of the lines that count.
fn end_that_says(lines: &[&str], message: &str, counts: fn(&str) -> bool) -> Option<usize> {
    let said: String = message
        .lines()
        .filter(|line| counts(line))
        .map(letters)
        .collect();
    let mut left = Some(&*said).filter(|said| !said.is_empty())?;
    for (at, line) in lines
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, line)| counts(line))
    {
        left = left.strip_suffix(&*letters(line))?;
        if left.is_empty() {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_message_replaces_the_end_that_says_the_same() {
        let check = |text: &str, message: &str, expect: Option<&str>| {
            assert_eq!(
                with_exact_end(text, message).as_deref(),
                expect,
                "{text:?} {message:?}"
            );
        };
        check(
            "Red\n- Blue",
            "**Red**\n\n- `Blue`\n",
            Some("**Red**\n\n- `Blue`"),
        );
        check(
            "I look.\n\nDone: 3",
            "Done: **3**",
            Some("I look.\n\nDone: **3**"),
        );
        check("Done: 3", "{\"title\": \"Demo\"}", None);
        check("Done: 3", "Done: 3 Done: 3", None);
        check("not Done", "Done", None);
        let code = "So:\n\n```python\nprint(1)\n```\n\nThat is all.";
        check("So:\n\nprint(1)\n\nThat is all.", code, Some(code));
        check(
            "I look.\n\nSo:\npython\nprint(1)\nThat is all.",
            code,
            Some(&format!("I look.\n\n{code}")),
        );
        check("So:\n```\nprint(1)\n```\nThat is all.", code, Some(code));
        check("So:\nperl\nprint(1)\nThat is all.", code, None);
        check("", "", None);
        check("x", "", None);
    }

    #[test]
    fn a_message_wins_when_it_agrees_with_the_screen_in_most_lines() {
        let check = |text: &str, message: &str, expect: Option<&str>| {
            let messages = Messages::default();
            messages.add(message.to_owned());
            let found = messages.likely(text, text.contains(GAP));
            assert_eq!(found.as_deref(), expect, "{text:?} {message:?}");
        };
        let message = "- **Red**\n- **Blue**\n\nMixed: `violet`.";
        check("- Red\n\nMixed: violet.", message, Some(message));
        check(
            "I look.\n\n- Red\n\nMixed: violet.",
            message,
            Some(&format!("I look.\n\n{message}")),
        );
        check("[…]\n\nMixed: violet.", message, Some(message));
        check(
            "- Red\n[…]\nMixed: violet.\nA notice",
            message,
            Some(message),
        );
        // Another turn's message, a message of an internal thread, and one that shares a word.
        check("Done: all of it\nand more", message, None);
        check("- Red\n\nMixed: violet.", "{\"title\": \"Colours\"}", None);
        check(
            "Red is one of them\nGreen is another\nMixed it is",
            message,
            None,
        );
        check("", message, None);
        // A short answer stands in a long message of the turn before.
        let other = "All tests pass. Done with the refactoring of the parser and its tests.";
        check("Done.", other, None);
        check("Colours", "{\"title\": \"Colours of the rainbow\"}", None);
    }

    #[test]
    fn a_message_that_says_its_end_again_counts_once() {
        let doubled = "The colours:\n\n- **Red**\n- **Blue**\n\nMixed: `x`. colours:\n \n -  **Red**\n -  **Blue**\n \n Mixed:  `x`. ";
        let messages = Messages::default();
        messages.add(doubled.to_owned());
        let exact = messages.exact("The colours:\n\n- Red\n- Blue\n\nMixed: x.");
        assert_eq!(
            exact.as_deref(),
            Some("The colours:\n\n- **Red**\n- **Blue**\n\nMixed: `x`.")
        );
        messages.add("ha ha".to_owned());
        assert_eq!(messages.exact("ha ha").as_deref(), Some("ha ha"));
    }

    #[test]
    fn a_message_may_come_in_pieces() {
        let messages = Messages::default();
        let said = br#"{"last_assistant_message":"one"} {"last_assistant_message":"two"}"#;
        for end in 1..said.len() {
            let whole = if end < 32 {
                0
            } else {
                32 + usize::from(end == 33)
            };
            assert_eq!(
                take_objects(&said[..end], &Messages::default()),
                Some(whole),
                "{end}"
            );
        }
        assert_eq!(take_objects(said, &messages), Some(said.len()));
        assert_eq!(messages.exact("two").as_deref(), Some("two"));
        assert_eq!(take_objects(b"{bad", &messages), None);
    }

    #[test]
    fn each_program_is_asked_in_its_own_way_and_answers_through_the_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let hooks = Hooks::open(dir.path(), "s").unwrap();
        let claude = hooks.setup("claude").unwrap();
        let settings: Value = serde_json::from_str(&claude.arguments[1]).unwrap();
        let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
            .as_str()
            .unwrap();
        let mut shell = std::process::Command::new("sh");
        let mut shell = shell
            .args(["-c", command])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        shell
            .stdin
            .take()
            .unwrap()
            .write_all(br#"{"last_assistant_message":"*Hi*"}"#)
            .unwrap();
        assert!(shell.wait().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut found = None;
        while found.is_none() && Instant::now() < deadline {
            found = hooks.messages().exact("Hi");
        }
        assert_eq!(found.as_deref(), Some("*Hi*"));
        // One that was killed in mid-message, and the next one.
        let mut pipe = File::options().write(true).open(hooks.pipe()).unwrap();
        pipe.write_all(br#"{"last_assistant_message":"cut {"x""#)
            .unwrap();
        found = None;
        while found.is_none() && Instant::now() < deadline {
            pipe.write_all(br#"{"last_assistant_message":"**Again**"}"#)
                .unwrap();
            std::thread::yield_now();
            found = hooks.messages().exact("Again");
        }
        assert_eq!(found.as_deref(), Some("**Again**"));
        assert!(hooks.setup("codex").unwrap().arguments[1].starts_with("notify=[\"sh\""));
        assert_eq!(hooks.setup("bash").unwrap(), HookSetup::default());
        drop(hooks);
        assert_eq!(dir.path().join("turnkeep").read_dir().unwrap().count(), 0);
    }

    #[test]
    fn gemini_is_told_the_pipe_where_its_own_settings_ask_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let settings = dir.path().join("settings.json");
        let said = has_own_hook(&settings).unwrap_err().to_string();
        let (_, advice) = said.split_once("leave --hooks out: ").unwrap();
        std::fs::write(&settings, "{}").unwrap();
        has_own_hook(&settings).unwrap_err();
        // What is advised is what is asked for, and hands its input to the pipe.
        std::fs::write(&settings, advice).unwrap();
        has_own_hook(&settings).unwrap();
        let advice: Value = serde_json::from_str(advice).unwrap();
        let command = advice["hooks"][GEMINI_EVENT][0]["hooks"][0]["command"]
            .as_str()
            .unwrap();
        let taken = dir.path().join("taken");
        for (variable, expect) in [(None, None), (Some(&taken), Some("said"))] {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", command]).env_remove(PIPE_VARIABLE);
            shell.envs(variable.map(|path| (PIPE_VARIABLE, path)));
            let mut shell = shell.stdin(std::process::Stdio::piped()).spawn().unwrap();
            shell.stdin.take().unwrap().write_all(b"said").unwrap();
            assert!(shell.wait().unwrap().success());
            assert_eq!(std::fs::read_to_string(&taken).ok().as_deref(), expect);
        }
    }

    #[test]
    fn a_place_where_others_may_write_is_not_roots_alone() {
        assert!(is_roots(Path::new("/")).unwrap());
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_roots(dir.path()).unwrap());
        is_roots(&dir.path().join("absent")).unwrap_err();
    }
}
