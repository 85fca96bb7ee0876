//! The processes under test: the bare server, and `turnkeep up` as a user runs it.
//!
//! Both are children of this program in a hidden mode that first asks the kernel to end it when its
//! parent dies, so that nothing is left behind whatever happens to the benchmark.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use super::scratch::ScratchDir;

/// A server that has not told its address by then is given up.
const START_MAX: Duration = Duration::from_mins(1);
/// How often to look whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The unit of processor times in `/proc`. Linux uses this one on every platform we run on.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// What a child process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Role {
    /// Serve as the bare server
    BareServer,
    /// Become `turnkeep up`
    Server,
}

/// Plays a child's role; returns only when it is over.
pub(super) fn play_role(role: Role, dir: &Path, payload: usize) -> Result<()> {
    // Survives exec, so `turnkeep up` inherits it.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    match role {
        Role::BareServer => super::bare_server::serve_bare(dir, payload),
        Role::Server => Err(anyhow!(up_command(dir)?.exec()).context("cannot run `turnkeep up`")),
    }
}

fn up_command(data: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    // Free ports: a server of the user's own may have the usual ones.
    command.args(["up", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.arg("--data").arg(data);
    // The user's own settings must not change what is measured.
    command
        .env_clear()
        .env("HOME", data)
        .env("XDG_CONFIG_HOME", data)
        .env("XDG_RUNTIME_DIR", data);
    Ok(command)
}

fn child_command(role: &str, dir: &Path, payload: usize) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "--child", role]);
    command.args(["--payload", &payload.to_string()]);
    command.arg("--dir").arg(dir);
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
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Both fail only when the child is gone already.
        if self.0.kill().is_ok() && self.0.wait().is_err() {
            crate::report_progress("a child process could not be waited for");
        }
    }
}

/// The running bare server.
pub(super) struct BareProcess {
    pub(super) endpoint: Endpoint,
    _child: ChildGuard,
}

impl BareProcess {
    /// Starts it in a folder of its own.
    pub(super) fn start(scratch: &ScratchDir, payload: usize) -> Result<Self> {
        let folder = scratch.create_folder("bare")?;
        let mut command = child_command("bare-server", &folder, payload)?;
        let mut child = ChildGuard(command.stdout(Stdio::piped()).spawn()?);
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
pub(super) struct ServerProcess {
    pub(super) endpoint: Endpoint,
    pub(super) http: SocketAddr,
    child: ChildGuard,
}

impl ServerProcess {
    /// Starts `turnkeep up` on a data directory and waits until it has said where it listens.
    pub(super) fn start(data: &Path) -> Result<Self> {
        // A server that was killed left its note, which names an address that is free by now.
        let note = data.join("run/server.json");
        if note.exists() {
            fs::remove_file(&note)?;
        }
        let log = data.with_extension("log");
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = child_command("server", data, 1024)?;
        let child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
        let mut child = ChildGuard(child);
        let Some(Addresses { tcp, http }) = wait_for_note(&note, &mut child)? else {
            let output = fs::read_to_string(&log).unwrap_or_default();
            bail!("`turnkeep up` did not start: {output}");
        };
        let token = fs::read_to_string(data.join("token"))?.trim().to_owned();
        let endpoint = Endpoint {
            address: tcp,
            token: Some(token),
        };
        Ok(Self {
            endpoint,
            http,
            child,
        })
    }

    /// Bytes of memory that no file backs.
    pub(super) fn anonymous_bytes(&self) -> Result<u64> {
        self.read_status("RssAnon:")
    }

    /// Bytes of memory, with the pages of the mapped log.
    pub(super) fn resident_bytes(&self) -> Result<u64> {
        self.read_status("VmRSS:")
    }

    /// A number of the process's status, in bytes. The lines are like `VmRSS:      1234 kB`.
    fn read_status(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.0.id()))?;
        let mut lines = status.lines();
        let value = lines.find_map(|line| line.strip_prefix(name));
        let kib = value.and_then(|value| value.trim().strip_suffix(" kB"));
        let kib = kib.with_context(|| format!("no {name} in /proc"))?;
        Ok(kib.trim().parse::<u64>()? * 1024)
    }

    /// The processor time that the process has used so far.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.0.id()))?;
        // The name of the program may have spaces, so the fields are counted behind it.
        let (_, fields) = stat.rsplit_once(") ").context("no fields in /proc")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = |at: usize| -> Result<u64> {
            let field = fields.get(at).context("too few fields in /proc")?;
            Ok(field.parse()?)
        };
        // The fields `utime` and `stime`.
        let ticks = u32::try_from(ticks(11)? + ticks(12)?)?;
        Ok(TICK * ticks)
    }
}

/// Where a server listens.
struct Addresses {
    tcp: SocketAddr,
    http: SocketAddr,
}

/// Waits until a server leaves its note. `None`: it has ended, or takes too long.
fn wait_for_note(note: &Path, child: &mut ChildGuard) -> Result<Option<Addresses>> {
    let deadline = Instant::now() + START_MAX;
    loop {
        if let Some(addresses) = read_note(note) {
            return Ok(Some(addresses));
        }
        // A server that has ended will never write its note.
        if child.0.try_wait()?.is_some() || Instant::now() > deadline {
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The addresses in the note that a server leaves in its data directory when it is ready.
fn read_note(note: &Path) -> Option<Addresses> {
    let note: Value = serde_json::from_slice(&fs::read(note).ok()?).ok()?;
    let address = |name: &str| note.get(name)?.as_str()?.parse().ok();
    Some(Addresses {
        tcp: address("tcp")?,
        http: address("http")?,
    })
}
