//! A place to run the real binary: a home of its own, and transcripts that read the same every
//! time.

mod server_process;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use server_process::{ServerProcess, UP};

/// A bundle with one type, `com.example.Message@1`.
pub(crate) const BUNDLE: &str = r#"{
  "registry_version": 1,
  "bundle_id": "example#1",
  "types": {"com.example.Message": {"versions": {"1": {"fields": {
    "1": {"name": "role", "type": "u8", "enum": "com.example.Role"},
    "2": {"name": "text", "type": "string", "optional": true}
  }}}}},
  "enums": {"com.example.Role": {"1": "system", "2": "user", "3": "assistant"}}
}
"#;

/// A home directory with a data directory in it.
pub(crate) struct Sandbox {
    home: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("bundle.json"), BUNDLE).unwrap();
        Self { home }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// The binary in this home, with nothing else in its environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnkeep"));
        command.args(args).current_dir(self.home.path()).env_clear();
        command
            .env("HOME", self.home.path())
            .env("TURNKEEP_DATA", self.data());
        command
            .env("TURNKEEP_LISTEN", "127.0.0.1:0")
            .env("TURNKEEP_HTTP", "127.0.0.1:0");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end with some standard input.
    pub(crate) fn output(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that does not read its input may end before it is written.
        drop(stdin.write_all(input));
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    /// Runs commands, one per line, and writes down what they print. A line may end in ` < TEXT`,
    /// which is the command's standard input.
    pub(crate) fn transcript(&self, session: &str) -> String {
        let mut text = String::new();
        for line in session
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let (words, input) = line.split_once(" < ").unwrap_or((line, ""));
            let args: Vec<&str> = words.split(' ').collect();
            let output = self.output(&args, input.as_bytes());
            writeln!(text, "$ {line}").unwrap();
            text.push_str(&String::from_utf8(output.stdout).unwrap());
            text.push_str(&String::from_utf8(output.stderr).unwrap());
            if !output.status.success() {
                writeln!(text, "[{}]", output.status).unwrap();
            }
        }
        self.normal(&text)
    }

    /// The text without what differs from run to run.
    fn normal(&self, text: &str) -> String {
        let text = text.replace(self.home.path().to_str().unwrap(), "HOME");
        let text = replace(&text, "dddd-dd-dd dd:dd:dd UTC", "DATE");
        let text = replace(&text, "dddd-dd-ddTdd:dd:dd.dddZ", "TIME");
        let text = replace(&text, &"x".repeat(64), "HASH");
        let text = replace(&text, &format!("e_{}", "z".repeat(26)), "ENTRY");
        replace(&text, &format!("t_{}", "z".repeat(26)), "TOKEN")
    }

    /// A JSON line that a command prints.
    pub(crate) fn json(&self, args: &[&str], input: &str) -> Value {
        let output = self.output(args, input.as_bytes());
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Publishes the bundle and makes a context with two turns.
    pub(crate) fn with_turns(self) -> Self {
        let transcript = self.transcript(
            "registry put bundle.json
             ctx new --label agent=demo
             append 1 --type com.example.Message@1 --data - < {\"role\":\"user\",\"text\":\"Why is the sky blue?\"}
             append 1 --type com.example.Message@1 --data - < {\"role\":\"assistant\",\"text\":\"Rayleigh scattering.\"}",
        );
        assert!(!transcript.contains("error"), "{transcript}");
        self
    }

    /// Starts `turnkeep up` on free ports and waits until it listens.
    pub(crate) fn up(&self, more: &[&str]) -> ServerProcess {
        ServerProcess::start(&mut self.command(&[&UP, more].concat()))
    }

    /// Starts it again where another one was.
    pub(crate) fn up_at(&self, tcp: &str, http: &str) -> ServerProcess {
        let args = ["up", "--listen", tcp, "--http", http, "--json"];
        ServerProcess::start(&mut self.command(&args))
    }
}

/// Replaces every run of characters that matches a pattern: `d` is a digit, `x` a hex digit, `z` a
/// digit or small letter, anything else is itself.
fn replace(text: &str, pattern: &str, with: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    let fits = |at: usize| {
        chars.len() - at >= pattern.len()
            && pattern.iter().zip(&chars[at..]).all(|(p, c)| match p {
                'd' => c.is_ascii_digit(),
                'x' => c.is_ascii_hexdigit(),
                'z' => c.is_ascii_digit() || c.is_ascii_lowercase(),
                p => p == c,
            })
    };
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        if fits(at) {
            out.push_str(with);
            at += pattern.len();
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// The permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Compares a transcript with what is expected, both without indentation that the test's source
/// adds.
#[track_caller]
pub(crate) fn check(transcript: &str, expect: &str) {
    let indent = expect
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let expect: Vec<&str> = expect
        .trim_end()
        .lines()
        .map(|line| line.get(indent.unwrap_or(0)..).unwrap_or(""))
        .collect();
    let expect = expect.join("\n");
    let transcript = transcript.trim_end();
    assert!(
        transcript == expect.trim_start_matches('\n'),
        "the transcript is\n{transcript}\n"
    );
}
