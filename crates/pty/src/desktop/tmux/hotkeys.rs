//! Hotkeys by `bind-key`: a key in the root table writes a line into a pipe of ours.
//!
//! The line is `INDEX PANE_PID`, so that a press carries its pane. Both sides open the pipe
//! read-write: neither waits for the other, and a key that is pressed after we were killed writes
//! into nothing. A binding left over from a killed process is recognised by the pipe's name and
//! replaced; a key that is bound to anything else is refused.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

use super::Tmux;
use crate::desktop::error::{DesktopError, RefusalReason, RefusedBinding};
use crate::desktop::{Binding, HotkeyProvider, Press};

/// The pipe's name before our process id.
const PIPE_PREFIX: &str = "turnkeep-hotkey-";
const PIPE_SUFFIX: &str = ".fifo";
/// The longest valid line: two numbers.
const LINE_BYTES_MAX: usize = 64;

/// Keys that a tmux server reports to us.
#[derive(Debug)]
pub struct TmuxHotkeys {
    tmux: Tmux,
    path: PathBuf,
    pipe: File,
    unread: Vec<u8>,
    /// How many combinations were requested.
    asked: usize,
    bound: Vec<String>,
}

impl TmuxHotkeys {
    /// Creates the pipe in a directory where no other user may write.
    pub fn new(tmux: Tmux, directory: &Path) -> Result<Self, DesktopError> {
        let path = directory.join(format!("{PIPE_PREFIX}{}{PIPE_SUFFIX}", std::process::id()));
        let io = |error: rustix::io::Errno| {
            DesktopError::io(format!("cannot make the pipe {}", path.display()))(error.into())
        };
        // A killed process with our id may have left one.
        drop(fs::remove_file(&path));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(io)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = File::from(open(&path, flags, Mode::empty()).map_err(io)?);
        Ok(Self {
            tmux,
            path,
            pipe,
            unread: Vec::new(),
            asked: 0,
            bound: Vec::new(),
        })
    }

    fn bind_key(
        &mut self,
        index: usize,
        binding: &Binding,
    ) -> Result<Option<RefusalReason>, DesktopError> {
        let key = match binding.tmux_name() {
            Ok(key) => key,
            Err(lacks) => return Ok(Some(RefusalReason::NotInTerminals(lacks))),
        };
        // tmux fails when nothing is bound to the key.
        let bound = self
            .tmux
            .run_command(&["list-keys", "-T", "root", &key], b"")
            .unwrap_or_default();
        if !is_free(&String::from_utf8_lossy(&bound)) {
            return Ok(Some(RefusalReason::Taken));
        }
        let command = format!(
            "echo {index} #{{pane_pid}} 1<>{}",
            quote_for_shell(&self.path.to_string_lossy())
        );
        match self
            .tmux
            .run_command(&["bind-key", "-n", &key, "run-shell", "-b", &command], b"")
        {
            Ok(_) => self.bound.push(key),
            Err(DesktopError::Program { message, .. }) if message.starts_with("unknown key") => {
                return Ok(Some(RefusalReason::NoSuchKey));
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }
}

impl HotkeyProvider for TmuxHotkeys {
    fn register(&mut self, bindings: &[Binding]) -> Result<Vec<RefusedBinding>, DesktopError> {
        self.unregister()?;
        self.asked = bindings.len();
        let mut refused = Vec::new();
        for (index, binding) in bindings.iter().enumerate() {
            let refusal = self.bind_key(index, binding)?;
            refused.extend(refusal.map(|reason| RefusedBinding {
                index,
                binding: *binding,
                reason,
            }));
        }
        Ok(refused)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    fn pressed(&mut self) -> Result<Vec<Press>, DesktopError> {
        let mut chunk = [0; 4096];
        let mut presses = Vec::new();
        loop {
            match self.pipe.read(&mut chunk) {
                Ok(count) => self
                    .unread
                    .extend_from_slice(chunk.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(presses),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(DesktopError::io("cannot read the pipe of hotkeys")(error));
                }
            }
            presses.extend(take_presses(&mut self.unread, self.asked));
        }
    }

    /// Asks the server, because our own pipe does not show whether it still runs.
    fn check_alive(&mut self) -> Result<(), DesktopError> {
        self.tmux
            .run_command(&["display-message", "-p", ""], b"")
            .map(|_| ())
    }

    fn unregister(&mut self) -> Result<(), DesktopError> {
        while let Some(key) = self.bound.pop() {
            if let Err(error) = self.tmux.run_command(&["unbind-key", "-n", &key], b"") {
                // A server that is gone has taken its bindings along.
                return if self.check_alive().is_err() {
                    // A server that is gone has no bindings left.
                    self.bound.clear();
                    Ok(())
                } else {
                    Err(error)
                };
            }
        }
        Ok(())
    }
}

impl Drop for TmuxHotkeys {
    fn drop(&mut self) {
        if let Err(error) = self.unregister() {
            tracing::warn!(%error, "hotkeys stay bound in tmux");
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the pipe of hotkeys stays");
        }
    }
}

/// Takes the complete lines and drops invalid ones.
fn take_presses(unread: &mut Vec<u8>, bindings: usize) -> Vec<Press> {
    let end = unread
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let lines: Vec<u8> = unread.drain(..end).collect();
    // Another process may write garbage into the pipe.
    if unread.len() > LINE_BYTES_MAX {
        unread.clear();
    }
    let parse = |line: &str| {
        let (index, process) = line.split_once(' ')?;
        let index = index.parse().ok().filter(|index| *index < bindings)?;
        Some(Press {
            index,
            process: process.trim().parse().ok(),
        })
    };
    String::from_utf8_lossy(&lines)
        .lines()
        .filter_map(parse)
        .collect()
}

/// Whether no running process has bound a key, by the output of `list-keys` for it.
fn is_free(listed: &str) -> bool {
    let listed = listed.trim();
    let ours = listed
        .split_once(PIPE_PREFIX)
        .and_then(|(_, rest)| rest.split_once(PIPE_SUFFIX));
    let owner = ours.and_then(|(pid, _)| pid.parse::<u32>().ok());
    listed.is_empty() || owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// Quotes a word for the shell, and escapes tmux's formats in it.
fn quote_for_shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''").replace('#', "##"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_about_our_keys_are_presses() {
        let press = |index, process| Press { index, process };
        for (bytes, expect, rest) in [
            (
                &b"0 12\n1 13\n0 "[..],
                vec![press(0, Some(12)), press(1, Some(13))],
                &b"0 "[..],
            ),
            (b"2 12\n", vec![], b""),
            (b"0 x\n", vec![press(0, None)], b""),
            (b"\xff\n\n0\n", vec![], b""),
            (&[b'9'; 100], vec![], b""),
        ] {
            let mut unread = bytes.to_vec();
            assert_eq!(take_presses(&mut unread, 2), expect);
            assert_eq!(unread, rest);
        }
    }

    #[test]
    fn a_key_is_free_when_its_owner_is_gone() {
        let ours = |pid: u32| {
            format!("bind-key -T root M-C run-shell -b \"… '/run/turnkeep-hotkey-{pid}.fifo'\"")
        };
        assert!(is_free(""));
        assert!(is_free(&ours(u32::MAX)));
        assert!(!is_free(&ours(std::process::id())));
        assert!(!is_free("bind-key -T root M-C new-window"));
    }

    #[test]
    fn a_path_reaches_the_shell_as_it_is() {
        for (text, expect) in [
            ("/a b", "'/a b'"),
            ("/a'b", r"'/a'\''b'"),
            ("/a#b", "'/a##b'"),
        ] {
            assert_eq!(quote_for_shell(text), expect);
        }
    }
}
