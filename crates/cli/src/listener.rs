//! Finds the turnkeep server of this user that listens on a port.
//!
//! The answer comes from `/proc`: the port's socket, the process that holds it, and the lock file
//! that the process holds. There is no answer if the system has no `/proc`, or if the process is
//! another user's.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";
const PROGRAM: &str = "turnkeep";
const LOCK_FILE: &str = "LOCK";

/// A turnkeep server that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) pid: u32,
    /// Its data directory, if it has one open.
    pub(crate) data: Option<PathBuf>,
}

/// Finds the turnkeep server of this user that occupies an address.
pub(crate) fn find_turnkeep_on(addr: SocketAddr) -> Option<Listener> {
    let sockets = listening_sockets(addr.port());
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        // Only the directories of processes have a number for a name.
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if !is_turnkeep(pid) {
            continue;
        }
        let open = open_files(pid);
        if open.iter().any(|file| sockets.contains(file)) {
            let data = open.iter().find_map(|file| data_dir_of_lock(file));
            return Some(Listener { pid, data });
        }
    }
    None
}

/// The sockets that listen on a port, as `/proc` names them among a process's open files.
fn listening_sockets(port: u16) -> Vec<PathBuf> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .map(|inode| PathBuf::from(format!("socket:[{inode}]")))
        .collect()
}

/// The data directory, if the file is its lock.
fn data_dir_of_lock(file: &Path) -> Option<PathBuf> {
    let is_lock = file.file_name()? == LOCK_FILE;
    file.parent().filter(|_| is_lock).map(Path::to_owned)
}

/// The inodes of sockets that listen on a port, from the kernel's table.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let port = format!(":{port:04X}");
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1)?.ends_with(&port) && *fields.get(3)? == LISTENS;
        fields.get(9)?.parse().ok().filter(|_| is_it)
    };
    table.lines().skip(1).filter_map(inode).collect()
}

fn is_turnkeep(pid: u32) -> bool {
    let dir = PathBuf::from(format!("/proc/{pid}"));
    let is_ours = dir
        .metadata()
        .is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw());
    let name = std::fs::read_to_string(dir.join("comm")).unwrap_or_default();
    // This process has not bound the port: that is why it asks.
    is_ours && name.trim_end() == PROGRAM && pid != std::process::id()
}

/// The files and sockets that a process has open.
fn open_files(pid: u32) -> Vec<PathBuf> {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    descriptors
        .flatten()
        .filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_is_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:2331 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n\
             1: 0100007F:2332 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 22 1\n\
             2: 0100007F:2332 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 33 1\n\
             half a line\n";
        assert_eq!(listening_inodes(table, 0x2332), [22]);
        assert!(listening_inodes(table, 1).is_empty());
        assert!(listening_inodes("", 0x2332).is_empty());
    }
}
