//! The memory budget for large requests, and its default: a quarter of the machine's memory, or of
//! the limit of the container around this process.
//!
//! A limit of any enclosing control group counts, in both versions of Linux's control groups. Files
//! that are missing or have no number are skipped. On other systems, and if no limit is known, the
//! default is [`BUDGET_BYTES_MIN`].

use std::fs;
use std::path::{Path, PathBuf};

/// The smallest default. It suffices for the largest single request that the default limits allow: a
/// frame of 64 MiB, as much again to compress its payloads, and 32 MiB to unpack one.
pub(super) const BUDGET_BYTES_MIN: usize = 160 << 20;
/// The default is the memory divided by this.
const BUDGET_SHARE: u64 = 4;
/// The smallest value that may be set.
const SET_BYTES_MIN: usize = 16 << 20;

/// The default budget of this machine or container.
pub(super) fn default_budget_bytes() -> usize {
    budget_of(memory_bytes(Path::new("/")))
}

fn budget_of(memory_bytes: Option<u64>) -> usize {
    let share = memory_bytes.unwrap_or(0) / BUDGET_SHARE;
    usize::try_from(share)
        .unwrap_or(usize::MAX)
        .max(BUDGET_BYTES_MIN)
}

/// Reads a size: a number of bytes, or a number of KiB, MiB or GiB.
pub(super) fn parse_budget(text: &str) -> Result<usize, String> {
    let bytes =
        parse_size(text).ok_or("expected a size, such as 512MiB or 536870912".to_owned())?;
    if bytes < SET_BYTES_MIN {
        return Err(format!("expected at least {}MiB", SET_BYTES_MIN >> 20));
    }
    Ok(bytes)
}

fn parse_size(text: &str) -> Option<usize> {
    // `512MiB` is the number 512 and the unit MiB; a minus or a dot makes the number invalid.
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: usize = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return None,
    };
    let number: usize = digits.parse().ok()?;
    number.checked_mul(unit)
}

/// The memory that this process can use: the smallest of the machine's memory and all limits.
fn memory_bytes(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let files = groups.lines().filter_map(|line| limit_files(root, line));
    let limits = files.flatten().filter_map(|file| number_in(&file));
    // A limit may exceed the machine, as in cgroup v1, where "no limit" is a huge number.
    limits.chain(machine_bytes(root)).min()
}

fn machine_bytes(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Where the limits may be that a line of `/proc/self/cgroup` leads to, such as `0::/user/shell` or
/// `7:memory:/user`: in the group itself and in every group around it.
fn limit_files(root: &Path, line: &str) -> Option<Vec<PathBuf>> {
    let (_number, rest) = line.split_once(':')?;
    let (controllers, group) = rest.split_once(':')?;
    let LimitPlace { mounts, file } = limit_place(controllers)?;
    let group = Path::new(group.trim_start_matches('/'));
    let mut files = Vec::new();
    for mount in *mounts {
        let mount = root.join(mount);
        files.extend(group.ancestors().map(|group| mount.join(group).join(file)));
    }
    Some(files)
}

/// Where a version of control groups has its memory limits.
struct LimitPlace {
    mounts: &'static [&'static str],
    file: &'static str,
}

const VERSION_1: LimitPlace = LimitPlace {
    mounts: &["sys/fs/cgroup/memory"],
    file: "memory.limit_in_bytes",
};
const VERSION_2: LimitPlace = LimitPlace {
    // On a system that uses both versions, the second one is mounted below the first.
    mounts: &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
    file: "memory.max",
};

/// The place for a list of controllers, which is empty in version 2 only.
fn limit_place(controllers: &str) -> Option<&'static LimitPlace> {
    if controllers.is_empty() {
        return Some(&VERSION_2);
    }
    let mut names = controllers.split(',');
    names.any(|name| name == "memory").then_some(&VERSION_1)
}

/// The number in a file; none where it says `max`.
fn number_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        memory_bytes(root.path())
    }

    #[test]
    fn the_least_limit_of_all_enclosing_groups_counts() {
        let meminfo = (
            "proc/meminfo",
            "MemTotal:       16777216 kB\nMemFree: 1 kB\n",
        );
        assert_eq!(machine(&[]), None);
        assert_eq!(machine(&[meminfo]), Some(16 * GIB));
        let group = ("proc/self/cgroup", "0::/pods/one\n");
        let none = ("sys/fs/cgroup/pods/one/memory.max", "max\n");
        assert_eq!(machine(&[meminfo, group, none]), Some(16 * GIB));
        let parent = ("sys/fs/cgroup/pods/memory.max", "2147483648\n");
        assert_eq!(machine(&[meminfo, group, none, parent]), Some(2 * GIB));
        let larger = ("sys/fs/cgroup/pods/memory.max", "99999999999999\n");
        assert_eq!(machine(&[meminfo, group, larger]), Some(16 * GIB));
    }

    #[test]
    fn the_first_version_of_control_groups_and_the_mixed_one_count_too() {
        let meminfo = ("proc/meminfo", "MemTotal: 16777216 kB\n");
        let groups = (
            "proc/self/cgroup",
            "9:cpu,memory:/a/b\n3:devices:/\n0::/c\n",
        );
        let unlimited = (
            "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(machine(&[meminfo, groups, unlimited]), Some(16 * GIB));
        // Inside of a container the group's own path is often not mounted, only its root is.
        let mounted = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "3221225472\n");
        assert_eq!(machine(&[meminfo, groups, mounted]), Some(3 * GIB));
        let unified = ("sys/fs/cgroup/unified/c/memory.max", "1073741824\n");
        assert_eq!(machine(&[meminfo, groups, mounted, unified]), Some(GIB));
        let garbage = ("proc/self/cgroup", "no\n::\n0:\n");
        assert_eq!(machine(&[meminfo, garbage]), Some(16 * GIB));
    }

    #[test]
    fn the_default_is_a_quarter_and_never_too_little_for_one_request() {
        assert_eq!(budget_of(Some(2 * GIB)), 512 << 20);
        assert_eq!(budget_of(Some(GIB / 4)), BUDGET_BYTES_MIN);
        assert_eq!(budget_of(None), BUDGET_BYTES_MIN);
        assert!(default_budget_bytes() >= BUDGET_BYTES_MIN);
    }

    #[test]
    fn a_size_has_a_unit_or_is_in_bytes() {
        for (text, expect) in [
            ("536870912", 512 << 20),
            ("512MiB", 512 << 20),
            ("512m", 512 << 20),
            ("2 GiB", 2 << 30),
            ("65536K", 64 << 20),
        ] {
            assert_eq!(parse_budget(text), Ok(expect), "{text}");
        }
        for bad in [
            "",
            "MiB",
            "1TB",
            "-5",
            "1.5GiB",
            "99999999999999999999",
            "18446744073709551615G",
        ] {
            assert!(parse_budget(bad).unwrap_err().contains("512MiB"), "{bad}");
        }
        assert_eq!(
            parse_budget("1MiB"),
            Err("expected at least 16MiB".to_owned())
        );
    }
}
