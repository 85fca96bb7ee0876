//! The program's own hooks, which hand over a turn's last message as the model wrote it.
//!
//! A named pipe in the user's runtime directory receives what the hook sends; a thread reads it and
//! keeps the newest messages. A message replaces the end of the screen's text where both agree in
//! most lines, by their letters and digits. Rows may have scrolled away unseen, so the message is
//! better; but a program may also call its hook for a turn of its own that it does not show, or
//! send other text than it showed, so agreement is required. Nothing but gemini's settings file is
//! written to a disk. Without a message the screen's text stays.

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
/// How often it checks meanwhile.
pub(super) const HOOK_CHECK_PAUSE: Duration = Duration::from_millis(10);
/// How many messages are kept for the next turn.
const MESSAGES_MAX: usize = 8;
/// How many letters of its first piece a repeated message may leave out the second time.
const DOUBLED_SHIFT_MAX: usize = 256;
/// Lines with fewer letters prove nothing: `2.` or `ok` occur in many messages.
const TELLING_LETTERS_MIN: usize = 3;
/// The line that marks missing rows in a text.
pub(super) const GAP: &str = "[…]";
/// The longest message that is accepted.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// gemini's name for the end of a turn.
const GEMINI_EVENT: &str = "AfterAgent";
/// The variable by which a hook in the user's own settings finds the pipe.
const PIPE_VARIABLE: &str = "TURNKEEP_HOOK";

/// What the program is started with beside the user's own arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSetup {
    /// Arguments right after the program.
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
}

/// The pipe and the messages that came through it. Dropping it removes the pipe.
#[derive(Debug)]
pub struct Hooks {
    dir: PathBuf,
    messages: HookMessages,
}

/// The newest messages; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct HookMessages(Arc<Mutex<VecDeque<String>>>);

impl Hooks {
    /// Creates the pipe in a new directory of this name below the user's runtime directory.
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
            messages: HookMessages::default(),
        };
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            hooks.pipe_path(),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )?;
        // Open in both directions, so that it never ends while we run.
        let file = File::options()
            .read(true)
            .write(true)
            .open(hooks.pipe_path())?;
        let messages = hooks.messages.clone();
        std::thread::Builder::new()
            .name("hooks".to_owned())
            .spawn(move || read_pipe(file, &messages))?;
        Ok(hooks)
    }

    fn pipe_path(&self) -> PathBuf {
        self.dir.join("pipe")
    }

    pub(super) fn messages(&self) -> HookMessages {
        self.messages.clone()
    }

    /// The setup by which the program of this profile calls its hook; empty for one without hooks.
    pub fn setup(&self, profile: &str) -> io::Result<HookSetup> {
        // The path becomes a word of a shell command: in single quotes, with its own quotes escaped.
        let pipe = format!(
            "'{}'",
            self.pipe_path()
                .display()
                .to_string()
                .replace('\'', "'\\''")
        );
        let take_input = format!("cat > {pipe}");
        // Claude and gemini write to the hook's input; codex passes one JSON argument.
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
            "gemini" => self.setup_gemini(&take_input),
            _ => Ok(HookSetup::default()),
        }
    }
}

impl Hooks {
    /// The setup of gemini, which has no argument for hooks. It reads a settings file of ours only
    /// where root alone may write. Other users have the hook in their own settings, once, and get
    /// only the pipe's path.
    fn setup_gemini(&self, take_input: &str) -> io::Result<HookSetup> {
        let environment = if is_root_only(&self.dir)? {
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
            require_own_hook(
                &PathBuf::from(home.unwrap_or_default()).join(".gemini/settings.json"),
            )?;
            (
                PIPE_VARIABLE.to_owned(),
                self.pipe_path().display().to_string(),
            )
        };
        Ok(HookSetup {
            environment: vec![environment],
            ..HookSetup::default()
        })
    }
}

/// Whether root owns a directory and all above it, and no other user may write there.
fn is_root_only(dir: &Path) -> io::Result<bool> {
    let dir = dir.canonicalize()?;
    for dir in dir.ancestors() {
        let facts = dir.metadata()?;
        if facts.uid() != 0 || facts.mode() & 0o022 != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Rejects settings that do not name our pipe, with what to do.
fn require_own_hook(settings: &Path) -> io::Result<()> {
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

/// Reads the JSON objects that the hooks send. Invalid input is discarded, with everything behind
/// it in the pipe: a hook that was killed in mid-message must not stop those after it.
fn read_pipe(mut pipe: File, messages: &HookMessages) {
    let mut held = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut chunk) {
        held.extend_from_slice(chunk.get(..read).unwrap_or_default());
        // An endless object must not grow the buffer, so it is discarded too.
        let used =
            add_whole_objects(&held, messages).filter(|_| held.len() <= 2 * MESSAGE_BYTES_MAX);
        held.drain(..used.unwrap_or(held.len()));
    }
}

/// Adds the messages of all complete objects and returns how many bytes they took; `None` if the
/// rest is not JSON.
fn add_whole_objects(held: &[u8], messages: &HookMessages) -> Option<usize> {
    let mut objects = serde_json::Deserializer::from_slice(held).into_iter::<Value>();
    let mut used = 0;
    while let Some(object) = objects.next() {
        match object {
            Ok(object) => messages.add_from_object(&object),
            Err(error) => return error.is_eof().then_some(used),
        }
        used = objects.byte_offset();
    }
    Some(held.len())
}

/// The last message of a turn, by the field names of the known programs.
fn message_of(object: &Value) -> Option<&str> {
    let names = [
        "last_assistant_message",
        "last-assistant-message",
        "prompt_response",
    ];
    names.iter().find_map(|name| object.get(name)?.as_str())
}

impl HookMessages {
    fn add_from_object(&self, object: &Value) {
        if let Some(message) =
            message_of(object).filter(|message| message.len() <= MESSAGE_BYTES_MAX)
        {
            self.add(message.to_owned());
        }
    }

    pub(super) fn add(&self, message: String) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.truncate(MESSAGES_MAX - 1);
        messages.push_front(message);
    }

    /// The text with its end as the program itself sent it, if a message says exactly the same.
    pub(super) fn with_exact_message(&self, text: &str) -> Option<String> {
        self.use_first(|message| {
            let once = with_exact_end(text, message);
            once.or_else(|| with_exact_end(text, without_repeat(message)?))
        })
    }

    /// The same if a message agrees with the text in most lines. A message of another turn may
    /// agree by chance, so callers ask for this only when the turn's own message has had its time.
    pub(super) fn with_likely_message(&self, text: &str, has_lost_rows: bool) -> Option<String> {
        self.use_first(|message| with_likely_end(text, message, has_lost_rows))
    }

    /// The newest message that says something, for a turn of which the screen shows no word: there
    /// is nothing that it could contradict.
    pub(super) fn take_newest(&self) -> Option<String> {
        self.use_first(|message| {
            let message = message.trim_end();
            (!message.is_empty()).then(|| message.to_owned())
        })
    }

    fn use_first(&self, fit: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = messages.iter().find_map(|message| fit(message))?;
        // Older messages belong to earlier turns.
        messages.clear();
        Some(text)
    }

    pub(super) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

fn letters_of(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Whether a line only begins or ends a code block; screens rarely show such lines.
fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// The first part of a message whose second part repeats its end: gemini sends what it received,
/// and then the pieces in which it came.
fn without_repeat(message: &str) -> Option<&str> {
    let places: Vec<(usize, char)> = message
        .char_indices()
        .filter(|(_, c)| c.is_alphanumeric())
        .collect();
    let message_letters: Vec<char> = places.iter().map(|(_, c)| *c).collect();
    let half = message_letters.len().div_ceil(2);
    let is_again = |at: &usize| {
        let (first, again) = message_letters.split_at(*at);
        !again.is_empty() && first.ends_with(again)
    };
    let at = (half..(half + DOUBLED_SHIFT_MAX).min(message_letters.len())).find(is_again)?;
    message
        .get(..places.get(at)?.0)
        .map(|first| first.trim_end_matches(|c: char| c.is_whitespace() || "*`-_#>".contains(c)))
}

/// Whether a message that nothing can be compared with is surely whole: no rows are missing, and its
/// end is not a repetition, which only the screen could tell from words that were said twice.
pub(super) fn is_whole(message: &str) -> bool {
    let count_letters = |text: &str| letters_of(text).chars().count();
    let repeated =
        without_repeat(message).map_or(0, |once| count_letters(message) - count_letters(once));
    !message.contains(GAP) && repeated < TELLING_LETTERS_MIN
}

/// Replaces the last lines of a text by a message with the same letters and digits; the language
/// that a code block names may be shown or not.
fn with_exact_end(text: &str, message: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = find_matching_end(&lines, message, |_| true);
    let at = at.or_else(|| find_matching_end(&lines, message, |line| !is_fence(line)))?;
    Some(join_message(lines.get(..at).unwrap_or_default(), message))
}

/// Reads the lines upwards and finds those that the message has, each before the one below it.
fn find_likely_end(lines: &[&str], message_letters: &str) -> Option<LikelyEnd> {
    let mut message_left = message_letters.len();
    let (mut agreed, mut counted, mut covered) = (0, 0, 0);
    let mut end = None;
    for (at, line) in lines.iter().enumerate().rev() {
        let shown = letters_of(line);
        if shown.chars().count() < TELLING_LETTERS_MIN || is_fence(line) {
            continue;
        }
        counted += 1;
        let before = message_letters.get(..message_left);
        if let Some(found) = before.and_then(|before| before.rfind(&*shown)) {
            message_left = found;
            agreed += 1;
            covered += shown.len();
            // The topmost line that agrees is where the message begins.
            end = Some(LikelyEnd {
                at,
                agreed,
                counted,
                covered,
                message_left,
            });
        }
    }
    end
}

/// Replaces the last lines of a text by a message that agrees with most of them.
///
/// Worked example: the row `- Blue` scrolled away unseen.
///
/// ```text
/// text             message          Read upwards, `Mixed` and `Red` are found in the message,
/// I look.          - **Red**        one before the other, and `I look.` is not. So the message
/// - Red            - **Blue**       begins at `- Red`, and two of two lines agree. The result is
/// Mixed            Mixed            `I look.`, a blank line and the message.
/// ```
fn with_likely_end(text: &str, message: &str, has_lost_rows: bool) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let message_letters = letters_of(message);
    let LikelyEnd {
        mut at,
        agreed,
        counted,
        covered,
        message_left,
    } = find_likely_end(&lines, &message_letters)?;
    // Half of the lines or fewer: the message is about something else.
    if agreed * 2 <= counted {
        return None;
    }
    // A short answer such as `Done.` stands in many messages. Unless the screen lost rows, it must
    // be most of the message.
    if covered * 2 <= message_letters.len() && !has_lost_rows {
        return None;
    }
    // Rows that are missing in front of the first line belong to the head of the message.
    while at > 0
        && message_left > 0
        && lines
            .get(at - 1)
            .is_some_and(|line| line.trim().is_empty() || *line == GAP)
    {
        at -= 1;
    }
    Some(join_message(lines.get(..at).unwrap_or_default(), message))
}

/// The line from which on a text may be a message, and how many lines from there on agree with it.
struct LikelyEnd {
    at: usize,
    agreed: usize,
    counted: usize,
    /// The letters of the lines that agree, in bytes.
    covered: usize,
    /// The letters of the message before them, in bytes.
    message_left: usize,
}

/// The lines with the message behind them.
fn join_message(lines: &[&str], message: &str) -> String {
    let before = lines.join("\n");
    let (before, message) = (before.trim_end(), message.trim_end());
    if before.is_empty() {
        message.to_owned()
    } else {
        format!("{before}\n\n{message}")
    }
}

/// The line at which the text begins to agree with the message, by the lines that count.
fn find_matching_end(lines: &[&str], message: &str, counts: fn(&str) -> bool) -> Option<usize> {
    let message_letters: String = message
        .lines()
        .filter(|line| counts(line))
        .map(letters_of)
        .collect();
    // From the last line up: each line must end the rest of the message, and is then cut off it.
    let mut left = Some(&*message_letters).filter(|message_letters| !message_letters.is_empty())?;
    for (at, line) in lines
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, line)| counts(line))
    {
        left = left.strip_suffix(&*letters_of(line))?;
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
    fn a_message_replaces_the_find_matching_end_the_same() {
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
            let messages = HookMessages::default();
            messages.add(message.to_owned());
            let found = messages.with_likely_message(text, text.contains(GAP));
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
        let messages = HookMessages::default();
        messages.add(doubled.to_owned());
        let exact = messages.with_exact_message("The colours:\n\n- Red\n- Blue\n\nMixed: x.");
        assert_eq!(
            exact.as_deref(),
            Some("The colours:\n\n- **Red**\n- **Blue**\n\nMixed: `x`.")
        );
        messages.add("ha ha".to_owned());
        assert_eq!(
            messages.with_exact_message("ha ha").as_deref(),
            Some("ha ha")
        );
    }

    #[test]
    fn a_message_may_come_in_pieces() {
        let messages = HookMessages::default();
        let said = br#"{"last_assistant_message":"one"} {"last_assistant_message":"two"}"#;
        for end in 1..said.len() {
            let whole = if end < 32 {
                0
            } else {
                32 + usize::from(end == 33)
            };
            assert_eq!(
                add_whole_objects(&said[..end], &HookMessages::default()),
                Some(whole),
                "{end}"
            );
        }
        assert_eq!(add_whole_objects(said, &messages), Some(said.len()));
        assert_eq!(messages.with_exact_message("two").as_deref(), Some("two"));
        assert_eq!(add_whole_objects(b"{bad", &messages), None);
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
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut found = None;
        while found.is_none() && Instant::now() < deadline {
            found = hooks.messages().with_exact_message("Hi");
        }
        assert_eq!(found.as_deref(), Some("*Hi*"));
        // One that was killed in mid-message, and the next one.
        let mut pipe = File::options().write(true).open(hooks.pipe_path()).unwrap();
        pipe.write_all(br#"{"last_assistant_message":"cut {"x""#)
            .unwrap();
        found = None;
        while found.is_none() && Instant::now() < deadline {
            pipe.write_all(br#"{"last_assistant_message":"**Again**"}"#)
                .unwrap();
            std::thread::yield_now();
            found = hooks.messages().with_exact_message("Again");
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
        let said = require_own_hook(&settings).unwrap_err().to_string();
        let (_, advice) = said.split_once("leave --hooks out: ").unwrap();
        std::fs::write(&settings, "{}").unwrap();
        require_own_hook(&settings).unwrap_err();
        // The settings that the error advises are accepted, and send the input to the pipe.
        std::fs::write(&settings, advice).unwrap();
        require_own_hook(&settings).unwrap();
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
        assert!(is_root_only(Path::new("/")).unwrap());
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_root_only(dir.path()).unwrap());
        is_root_only(&dir.path().join("absent")).unwrap_err();
    }
}
