//! Who listens on a port of this machine, if that is a turnkeep of the same user.
//!
//! Read from `/proc`: the port's socket, the process that holds it, and the lock file that the
//! process holds. Where the system tells none of it, or the process is another user's, there is no
//! answer.

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

/// Our server that keeps an address from being listened on.
pub(crate) fn find_turnkeep_on(addr: SocketAddr) -> Option<Listener> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|table| listening_inodes(&table, addr.port()))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|pid| is_turnkeep(*pid)).find_map(|pid| {
        let open = open_files(pid);
        let holds = open.iter().any(|file| {
            file.to_str()
                .is_some_and(|file| sockets.iter().any(|it| it == file))
        });
        let lock = open
            .iter()
            .find(|file| file.file_name().is_some_and(|name| name == LOCK_FILE));
        holds.then(|| Listener {
            pid,
            data: lock.and_then(|lock| lock.parent()).map(Path::to_owned),
        })
    })
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
    is_ours && name.trim_end() == PROGRAM && pid != std::process::id()
}

/// What the descriptors of a process stand for.
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
