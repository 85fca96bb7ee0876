//! Checks of the machine: disk, clock, limits.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};

use super::Finding;
use crate::data_dir::DataDir;
use crate::output::bytes_text;

const SPACE_BYTES_LOW: u64 = 1 << 30;
const SPACE_BYTES_MIN: u64 = 128 << 20;
const FILES_LOW: u64 = 4096;
const SYNCS: usize = 32;
const SYNC_SLOW: Duration = Duration::from_millis(20);
/// 2026-01-01: a clock before it is not set.
const CLOCK_MIN: Duration = Duration::from_hours(490_896);

/// The directory, or the nearest one above it that exists.
fn nearest_existing_dir(dir: &DataDir) -> PathBuf {
    // A relative path has no parents to search until it is absolute.
    let absolute = std::path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned());
    absolute
        .ancestors()
        .find(|path| path.is_dir())
        .map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// Checks the free space of the disk.
pub(super) fn check_space(dir: &DataDir) -> Finding {
    const CHECK: &str = "space";
    let stat = match statvfs(nearest_existing_dir(dir)) {
        Ok(stat) => stat,
        Err(error) => {
            return Finding::warn(CHECK, error.to_string(), "check that the disk is mounted");
        }
    };
    // The blocks for unprivileged users. The others are reserved for root.
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let message = format!("{} free", bytes_text(free));
    match free {
        0..SPACE_BYTES_MIN => Finding::fail(
            CHECK,
            message,
            "free some: writes fail when the disk is full",
        ),
        SPACE_BYTES_MIN..SPACE_BYTES_LOW => {
            Finding::warn(CHECK, message, "free some before the disk is full")
        }
        _ => Finding::ok(CHECK, message),
    }
}

/// Checks how long the disk takes to sync: every group of appends waits for it.
pub(super) fn check_sync_speed(dir: &DataDir) -> Finding {
    const CHECK: &str = "sync speed";
    match median_sync(&nearest_existing_dir(dir)) {
        Ok(median) if median < SYNC_SLOW => {
            Finding::ok(CHECK, format!("{median:.1?} for 4 KiB and fdatasync"))
        }
        Ok(median) => {
            let advice = "every group of appends waits so long: a faster disk helps, --durability os waits less and promises less";
            Finding::warn(
                CHECK,
                format!("{median:.1?} for 4 KiB and fdatasync"),
                advice,
            )
        }
        Err(error) => Finding::warn(
            CHECK,
            format!("cannot be measured: {error}"),
            "check who owns the directory",
        ),
    }
}

fn median_sync(dir: &Path) -> io::Result<Duration> {
    let path = dir.join(format!(".turnkeep-doctor-{}", std::process::id()));
    // A name of its own in the same file system, so the measurement disturbs no file of the store.
    let mut file = File::create_new(&path)?;
    let measured = (0..SYNCS)
        .map(|_| time_one_sync(&mut file))
        .collect::<io::Result<Vec<_>>>();
    // Before the results are looked at, so a failed measurement leaves no file behind.
    fs::remove_file(&path)?;
    let mut times = measured?;
    times.sort_unstable();
    Ok(times.get(SYNCS / 2).copied().unwrap_or_default())
}

fn time_one_sync(file: &mut File) -> io::Result<Duration> {
    let start = Instant::now();
    file.write_all(&[0x5a; 4096])?;
    file.sync_data()?;
    Ok(start.elapsed())
}

/// Checks that the clock is set, and not behind the last write.
pub(super) fn check_clock(dir: &DataDir) -> Finding {
    const CHECK: &str = "clock";
    const ADVICE: &str = "set the clock: new turns would be stamped with the time of the last one";
    #[expect(
        clippy::disallowed_methods,
        reason = "this check is about the machine's clock"
    )]
    let now = SystemTime::now();
    if now
        .duration_since(UNIX_EPOCH)
        .is_ok_and(|since| since < CLOCK_MIN)
    {
        return Finding::fail(CHECK, "the clock is not set", ADVICE);
    }
    let behind = newest_write(dir).and_then(|written| written.duration_since(now).ok());
    match behind {
        // File systems round times, so less than a second proves nothing.
        Some(behind) if behind > Duration::from_secs(1) => {
            Finding::warn(CHECK, format!("{behind:.0?} behind the last write"), ADVICE)
        }
        _ => Finding::ok(CHECK, "set, and not behind the last write"),
    }
}

fn newest_write(dir: &DataDir) -> Option<SystemTime> {
    let segments = fs::read_dir(dir.path().join("log")).ok()?;
    segments
        .filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok())
        .max()
}

/// Checks the limit of open files: each connection takes one.
pub(super) fn check_file_limit() -> Finding {
    const CHECK: &str = "file limit";
    // The hard limit counts: the server raises its soft limit to it at the start.
    match getrlimit(Resource::Nofile).maximum {
        Some(hard) if hard < FILES_LOW => {
            let advice =
                "each connection takes one: raise the hard limit (ulimit -Hn) for many clients";
            Finding::warn(CHECK, format!("{hard} files at most"), advice)
        }
        Some(hard) => Finding::ok(CHECK, format!("{hard} files at most")),
        None => Finding::ok(CHECK, "unlimited"),
    }
}
