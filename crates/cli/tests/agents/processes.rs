//! What a test can see of the processes that a server starts.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::team::{ANSWER_MAX, Team};

/// Waits until something holds that no event tells.
pub(crate) fn wait_until(what: &str, check: impl Fn() -> bool) {
    let deadline = Instant::now() + ANSWER_MAX;
    while !check() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// Waits for a file with the id of a process.
pub(crate) fn read_pid(file: &Path) -> i32 {
    let read = || fs::read_to_string(file).ok()?.trim().parse().ok();
    wait_until("no process wrote its id", || read().is_some());
    read().unwrap()
}

/// The fields of `/proc/PID/stat` behind the program's name.
fn stat_fields(pid: i32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Whether a process runs. A zombie does not: it has ended, and its parent has not read its status.
pub(crate) fn is_alive(pid: i32) -> bool {
    stat_fields(pid).is_some_and(|fields| fields[0] != "Z")
}

/// When a process was started, in the kernel's ticks.
pub(crate) fn start_time(pid: i32) -> u64 {
    stat_fields(pid).unwrap()[19].parse().unwrap()
}

/// The living processes of a group.
pub(crate) fn group_members(group: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_member = |pid: &i32| {
        let fields = stat_fields(*pid);
        fields.is_some_and(|fields| fields[0] != "Z" && fields[2] == group.to_string())
    };
    ids.filter(is_member).collect()
}

/// The processes that the server has recorded.
pub(crate) fn recorded(team: &Team) -> Vec<i32> {
    let entries = fs::read_dir(team.sandbox.data().join("run"));
    let names = entries.into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut pids: Vec<i32> = names
        .filter_map(|name| name.strip_prefix("process-")?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids
}
