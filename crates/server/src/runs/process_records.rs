//! Files that name the processes which the server has started, so that the next server finds those
//! that outlived it.
//!
//! Every process has a guard that kills it when the server is gone, however the server ended. The
//! records are for the case that the guard was killed too. A record is the file `run/process-PID` of
//! the data directory:
//!
//! ```json
//! {"pid": 4711, "startTime": 8812345, "boot": "0b5f1c9e-8a3d-4c55-9a67-0123456789ab"}
//! ```
//!
//! A process id is used again after its process has ended. So a process is killed only if it has the
//! id, and was started at that time, since that boot. The time is in the kernel's ticks since the
//! boot. A system without `/proc` has no records.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use super::file_remover::FileRemover;

/// How the name of a record begins.
const RECORD_PREFIX: &str = "process-";
/// How the name of a program's private directory begins.
pub(super) const PRIVATE_DIR_PREFIX: &str = "node-";
/// The longest record.
const RECORD_BYTES_MAX: u64 = 4 << 10;
/// The place of the start time among the fields of `/proc/PID/stat` behind the program's name.
const START_TIME_FIELD: usize = 19;

/// The records of a data directory.
#[derive(Debug, Clone)]
pub(super) struct ProcessRecords {
    /// `run` in the data directory; `None` for a store in memory.
    dir: Option<PathBuf>,
    remover: FileRemover,
}

/// The record of a running process. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct ProcessRecord {
    file: Option<PathBuf>,
    remover: FileRemover,
}

/// A process that can be told from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProcessIdentity {
    pid: i32,
    start_time: u64,
    boot: String,
}

/// What became of the leftovers of an earlier server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reaped {
    /// How many processes were killed.
    pub(super) killed: usize,
}

impl ProcessRecords {
    pub(super) fn new(dir: Option<PathBuf>, remover: FileRemover) -> Self {
        Self { dir, remover }
    }

    /// Records a process that leads a group of its own. It blocks. A process that cannot be recorded
    /// runs all the same: its guard is enough in all but the worst case.
    pub(super) fn add(&self, leader: Option<Pid>) -> ProcessRecord {
        let written = match (&self.dir, leader) {
            (Some(dir), Some(leader)) => write_record(dir, leader),
            _ => Ok(None),
        };
        let file = written.unwrap_or_else(|error| {
            tracing::warn!(%error, "a process could not be recorded");
            None
        });
        ProcessRecord {
            file,
            remover: self.remover.clone(),
        }
    }

    /// Kills the recorded processes that still run, with their groups, and removes the private files
    /// of processes that are gone. It blocks. Call it before the first process is started.
    pub(super) fn reap_leftovers(&self) -> io::Result<Reaped> {
        let mut reaped = Reaped::default();
        let Some(dir) = &self.dir else {
            return Ok(reaped);
        };
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(reaped),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(RECORD_PREFIX) {
                // The record goes last: after a crash in between, the next start looks again.
                reaped.killed += usize::from(reap_record(&entry.path()));
                fs::remove_file(entry.path())?;
            } else if name.starts_with(PRIVATE_DIR_PREFIX) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(reaped)
    }
}

impl Drop for ProcessRecord {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.remover.remove(file);
        }
    }
}

fn write_record(dir: &Path, leader: Pid) -> io::Result<Option<PathBuf>> {
    let pid = leader.as_raw_nonzero().get();
    let Some(identity) = identify(pid) else {
        return Ok(None);
    };
    let text = json!({
        "pid": identity.pid,
        "startTime": identity.start_time,
        "boot": identity.boot,
    });
    fs::create_dir_all(dir)?;
    let file = dir.join(format!("{RECORD_PREFIX}{pid}"));
    fs::write(&file, text.to_string())?;
    Ok(Some(file))
}

/// Kills the group of a recorded process, if it is that process. Returns whether it was.
fn reap_record(file: &Path) -> bool {
    let Some(recorded) = read_record(file) else {
        return false;
    };
    if identify(recorded.pid).as_ref() != Some(&recorded) {
        return false;
    }
    let Some(leader) = Pid::from_raw(recorded.pid) else {
        return false;
    };
    rustix::process::kill_process_group(leader, Signal::KILL).is_ok()
}

fn read_record(file: &Path) -> Option<ProcessIdentity> {
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).ok()?;
    opened.take(RECORD_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let record: Value = serde_json::from_slice(&bytes).ok()?;
    Some(ProcessIdentity {
        // A group of zero or of a negative number would be somebody else's.
        pid: i32::try_from(record.get("pid")?.as_i64()?)
            .ok()
            .filter(|pid| *pid > 1)?,
        start_time: record.get("startTime")?.as_u64()?,
        boot: record.get("boot")?.as_str()?.to_owned(),
    })
}

/// What tells a running process from all others; `None` if it does not run.
fn identify(pid: i32) -> Option<ProcessIdentity> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(ProcessIdentity {
        pid,
        start_time: parse_start_time(&stat)?,
        boot: boot.trim().to_owned(),
    })
}

/// The start time in a line of `/proc/PID/stat`: `4711 (name) S 1 …`. The name may hold spaces and
/// brackets, so the fields are counted behind its last bracket.
fn parse_start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields
        .split_ascii_whitespace()
        .nth(START_TIME_FIELD)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Starts a process that leads a group and waits for the end of its input.
    fn start_process() -> Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).process_group(0);
        command.spawn().unwrap()
    }

    fn pid_of(child: &Child) -> Pid {
        Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
    }

    fn records(dir: &Path) -> ProcessRecords {
        ProcessRecords::new(Some(dir.to_owned()), FileRemover::default())
    }

    #[test]
    fn a_recorded_process_is_killed_and_its_record_removed() {
        let dir = tempfile::tempdir().unwrap();
        let records = records(dir.path());
        let mut child = start_process();
        let record = records.add(Some(pid_of(&child)));
        // As a server that is killed: the record stays.
        std::mem::forget(record);
        fs::create_dir(dir.path().join("node-1-2")).unwrap();
        fs::write(dir.path().join("node-1-2/mcp.json"), "secret").unwrap();
        fs::write(dir.path().join("other"), "stays").unwrap();
        assert_eq!(records.reap_leftovers().unwrap(), Reaped { killed: 1 });
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["other"]);
    }

    #[test]
    fn another_process_with_the_same_id_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = start_process();
        let identity = identify(pid_of(&child).as_raw_nonzero().get()).unwrap();
        let records = records(dir.path());
        let write = |name: &str, pid: i64, start_time: u64, boot: &str| {
            let text = json!({"pid": pid, "startTime": start_time, "boot": boot});
            fs::write(dir.path().join(name), text.to_string()).unwrap();
        };
        let pid = i64::from(identity.pid);
        write("process-1", pid, identity.start_time + 1, &identity.boot);
        write("process-2", pid, identity.start_time, "another boot");
        write("process-3", 0, identity.start_time, &identity.boot);
        write("process-4", -pid, identity.start_time, &identity.boot);
        fs::write(dir.path().join("process-5"), "garbage").unwrap();
        assert_eq!(records.reap_leftovers().unwrap(), Reaped { killed: 0 });
        assert!(child.try_wait().unwrap().is_none(), "it still runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_start_time_is_found_behind_any_name() {
        let fields = "S 1 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 8812345 9 10";
        for name in ["sh", "a b", "a) S 9 (b", ""] {
            let stat = format!("4711 ({name}) {fields}\n");
            assert_eq!(parse_start_time(&stat), Some(8_812_345), "{name}");
        }
        assert_eq!(parse_start_time("4711 (sh) S 1"), None);
        assert_eq!(parse_start_time(""), None);
    }
}
