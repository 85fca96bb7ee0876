//! The processes under test: the bare server, and `turnkeep up` as a user runs it.
//!
//! Both are children of this program in a hidden mode that first asks the kernel to end it when its
//! parent dies, so that nothing is left behind whatever happens to the benchmark.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use super::scratch::Scratch;
use crate::data_dir::{DataDir, ServerNote};

/// A server that has not told its address by then is given up.
const START_MAX: Duration = Duration::from_mins(1);
/// How often to look whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What a child process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Role {
    /// Serve as the bare server
    BareServer,
    /// Become `turnkeep up`
    Server,
}

/// Plays a child's role; returns only when it is over.
pub(super) fn play(role: Role, dir: &Path, payload: usize) -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    match role {
        Role::BareServer => super::bare_server::serve(dir, payload),
        Role::Server => Err(anyhow!(up(dir)?.exec()).context("cannot run `turnkeep up`")),
    }
}

fn up(data: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args([
            "up",
            "--listen",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(data);
    // The user's own settings must not change what is measured.
    command
        .env_clear()
        .env("HOME", data)
        .env("XDG_CONFIG_HOME", data)
        .env("XDG_RUNTIME_DIR", data);
    Ok(command)
}

fn spawn(role: &str, dir: &Path, payload: usize) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args([
            "bench",
            "--child",
            role,
            "--payload",
            &payload.to_string(),
            "--dir",
        ])
        .arg(dir);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Where to connect, and with what.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    pub(super) token: Option<String>,
}

/// A child that is ended with this value.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail only when the child is gone already.
        if self.0.kill().is_ok() && self.0.wait().is_err() {
            super::progress("a child process could not be waited for");
        }
    }
}

/// The running bare server.
pub(super) struct Bare {
    pub(super) endpoint: Endpoint,
    _child: Guard,
}

impl Bare {
    /// Starts it in a folder of its own.
    pub(super) fn start(scratch: &Scratch, payload: usize) -> Result<Self> {
        let folder = scratch.folder("bare")?;
        let mut child = Guard(
            spawn("bare-server", &folder, payload)?
                .stdout(Stdio::piped())
                .spawn()?,
        );
        let stdout = child.0.stdout.take().context("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line
            .trim()
            .parse()
            .context("the bare server did not start")?;
        Ok(Self {
            endpoint: Endpoint {
                address,
                token: None,
            },
            _child: child,
        })
    }
}

/// The running server under test.
pub(super) struct Server {
    pub(super) endpoint: Endpoint,
    pub(super) http: SocketAddr,
    child: Guard,
}

impl Server {
    /// Starts `turnkeep up` on a data directory and waits until it has said where it listens.
    pub(super) fn start(data: &Path) -> Result<Self> {
        let dir = DataDir::new(data);
        // One that was killed left its note.
        dir.remove_note();
        let log = data.with_extension("log");
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = spawn("server", data, 1024)?;
        let mut child = Guard(command.stdout(output.try_clone()?).stderr(output).spawn()?);
        let deadline = Instant::now() + START_MAX;
        let (address, http) = loop {
            if let Some(found) = dir.server_note().as_ref().and_then(addresses) {
                break found;
            }
            if child.0.try_wait()?.is_some() || Instant::now() > deadline {
                bail!(
                    "`turnkeep up` did not start: {}",
                    fs::read_to_string(&log).unwrap_or_default()
                );
            }
            std::thread::sleep(LOOK_EVERY);
        };
        Ok(Self {
            endpoint: Endpoint {
                address,
                token: dir.token()?,
            },
            http,
            child,
        })
    }

    /// Bytes of memory that no file backs.
    pub(super) fn anonymous_bytes(&self) -> Result<u64> {
        let status =
            fs::read_to_string(PathBuf::from(format!("/proc/{}/status", self.child.0.id())))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .context("no RssAnon in /proc")?;
        Ok(kib.trim().parse::<u64>()? * 1024)
    }
}

/// The two addresses in the note that a server leaves in its data directory.
fn addresses(note: &ServerNote) -> Option<(SocketAddr, SocketAddr)> {
    Some((note.tcp.parse().ok()?, note.http.parse().ok()?))
}
