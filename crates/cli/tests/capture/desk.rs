//! A person's desk: a home, a runtime directory, a broker, and sessions on it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use turnkeep_client::broker::{Connection, socket_path};
use turnkeep_types::broker::{CompletedTurn, Register, Role};

use crate::program::{Running, eventually, output};
use crate::sandbox::{Sandbox, ServerProcess};

const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Desk {
    pub(crate) sandbox: Sandbox,
    pub(crate) broker: Option<ServerProcess>,
}

impl Desk {
    /// A desk without a broker.
    pub(crate) fn bare() -> Self {
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path("run")).unwrap();
        Self {
            sandbox,
            broker: None,
        }
    }

    /// A desk with a broker, which may know a display.
    pub(crate) fn with_broker(display: Option<&str>) -> Self {
        let mut desk = Self::bare();
        let mut command = desk.command(&["broker"]);
        command.envs(display.map(|display| ("DISPLAY", display)));
        desk.broker = Some(ServerProcess::start(&mut command));
        desk
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket_path(&self.sandbox.path("run"))
    }

    /// The binary at this desk.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(args);
        command
            .env("XDG_RUNTIME_DIR", self.sandbox.path("run"))
            .env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        output(&mut self.command(args), "turnkeep", b"")
    }

    /// Runs a command that works; what it prints.
    #[track_caller]
    pub(crate) fn bytes(&self, args: &[&str]) -> Vec<u8> {
        let done = self.run(args);
        assert!(
            done.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        done.stdout
    }

    /// The JSON lines that a command prints.
    #[track_caller]
    pub(crate) fn rows(&self, args: &[&str]) -> Vec<Value> {
        let args = [args, &["--json"]].concat();
        let lines = String::from_utf8(self.bytes(&args)).unwrap();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// A session of a process with one turn, spoken for by this test instead of a wrapper.
    pub(crate) fn session(&self, name: &str, pid: u32, turn: &[u8]) -> Connection {
        let mut wrapper = Connection::open(&self.socket(), Role::Wrapper, PATIENCE).unwrap();
        let session = format!("{:032x}", u128::from(pid));
        let register = Register {
            session: session.clone(),
            pid,
            name: Some(name.to_owned()),
            ..Register::default()
        };
        wrapper.register(register).unwrap();
        let content = turn.to_vec().into();
        wrapper
            .turn_completed(CompletedTurn {
                session,
                content,
                ..CompletedTurn::default()
            })
            .unwrap();
        wrapper
    }
}

/// The next content that the broker sends to a wrapper for injection.
pub(crate) fn injected(wrapper: &mut Connection) -> Vec<u8> {
    wrapper.next_inject(PATIENCE).unwrap().content.to_vec()
}

/// A command under way that says things line by line.
pub(crate) struct Speaking {
    running: Running,
    pub(crate) out: Receiver<String>,
    pub(crate) err: Receiver<String>,
}

impl Speaking {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, err) = (
            lines(child.stdout.take().unwrap()),
            lines(child.stderr.take().unwrap()),
        );
        Self {
            running: Running(child),
            out,
            err,
        }
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.running.0
    }

    pub(crate) fn says(lines: &Receiver<String>) -> String {
        lines.recv_timeout(PATIENCE).expect("it says something")
    }

    /// Its exit code, when it ends.
    pub(crate) fn code(&mut self) -> Option<i32> {
        eventually("the command ends", || self.running.0.try_wait().unwrap()).code()
    }
}

fn lines(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1024);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
