//! Carries out the player's actions: the only part that touches files, processes and time.
//!
//! One thread reads standard input and one runs the tool in progress; both send [`Event`]s to the
//! runner's thread, which alone owns the player, the protocol and standard output. Whatever the
//! runner waits for, it waits on that one channel, so an interrupt reaches every step.

mod files;
mod input;
mod tools;

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::arguments::Arguments;
use crate::mcp::McpSession;
use crate::player::{Action, Decision, Ending, Play, Player, Prompt, Show};
use crate::protocol::{Asked, Framing, Incoming, Outbox, Protocol, open_protocol};
use crate::script::Script;
use crate::tool::ToolOutcome;
use files::PromptLog;

/// A full queue only makes the reader wait.
const EVENTS_QUEUED_MAX: usize = 64;
/// Prompts that arrive while a turn runs.
const PROMPTS_QUEUED_MAX: usize = 1000;
/// How often a file that does not exist yet is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A turn that waits for something that never comes ends the process after this time, so that a
/// test that died leaves no process behind for ever.
const PATIENCE: Duration = Duration::from_mins(10);

/// Something that happened outside the runner's thread.
enum Event {
    /// One line, or one read of a terminal.
    Input(Vec<u8>),
    InputEnded,
    ToolDone(Box<ToolDone>),
}

/// A tool that ran in a thread of its own.
struct ToolDone {
    job: u64,
    outcome: ToolOutcome,
    /// The MCP session to use for the next call.
    session: Option<McpSession>,
}

/// What an event means for a turn in progress. Prompts are queued elsewhere.
enum Signal {
    Interrupt,
    Steer(String),
    Decision(Decision),
    CallAnswer(ToolOutcome),
    ToolDone(Box<ToolDone>),
    InputEnded,
}

/// The process ends with this code.
pub(crate) struct Exit {
    pub(crate) code: u8,
}

/// How a wait ended.
enum Wake<T> {
    Found(T),
    TimedOut,
    Interrupted,
}

/// What follows an action.
enum Flow {
    GoOn,
    Interrupted,
    Ended,
}

pub(crate) struct Runner {
    player: Player,
    protocol: Box<dyn Protocol>,
    out: Outbox,
    sender: SyncSender<Event>,
    events: Receiver<Event>,
    signals: VecDeque<Signal>,
    prompts: VecDeque<String>,
    input_ended: bool,
    prompt_log: Option<PromptLog>,
    state_file: Option<PathBuf>,
    session: Option<McpSession>,
    jobs_started: u64,
    /// Children that outlive their turn, on purpose.
    children: Vec<Child>,
}

impl Runner {
    pub(crate) fn open(script: Script, arguments: &Arguments) -> Result<Runner, String> {
        let settings = &script.settings;
        let seed = now_ms() ^ u64::from(std::process::id()) << 44;
        // The protocol may need an id before it is asked to say anything.
        let mut out = Outbox::new(seed);
        out.now_ms = now_ms();
        let protocol = open_protocol(arguments, settings, &mut out)?;
        let log = arguments.log.clone().or_else(|| settings.log.clone());
        let state_file = arguments.state.clone().or_else(|| settings.state.clone());
        let progress = state_file.as_deref().map(files::read_state).transpose()?;
        let (sender, events) = sync_channel(EVENTS_QUEUED_MAX);
        Ok(Runner {
            protocol,
            out,
            sender,
            events,
            signals: VecDeque::new(),
            prompts: VecDeque::new(),
            input_ended: false,
            prompt_log: log.map(PromptLog::open).transpose()?,
            state_file,
            session: None,
            jobs_started: 0,
            children: Vec::new(),
            player: Player::new(script, &progress.unwrap_or_default()),
        })
    }

    /// Plays turns until the input ends.
    pub(crate) fn run(mut self) -> u8 {
        match self.run_until_exit() {
            Ok(()) => self.protocol.exit_code(),
            Err(Exit { code }) => code,
        }
    }

    fn run_until_exit(&mut self) -> Result<(), Exit> {
        input::start_reader(self.protocol.framing(), self.sender.clone()).map_err(fail)?;
        self.speak(|protocol, out| protocol.start(out))?;
        while let Some(prompt) = self.next_prompt()? {
            self.play_turn(&prompt)?;
        }
        Ok(())
    }

    fn next_prompt(&mut self) -> Result<Option<String>, Exit> {
        loop {
            // A signal that arrives between two turns belongs to none.
            self.signals.clear();
            if let Some(prompt) = self.prompts.pop_front() {
                return Ok(Some(prompt));
            }
            if self.input_ended {
                return Ok(None);
            }
            match self.events.recv() {
                Ok(event) => self.take_event(event)?,
                Err(_) => return Ok(None),
            }
        }
    }

    /// Sorts an event into prompts and signals.
    fn take_event(&mut self, event: Event) -> Result<(), Exit> {
        let incoming = match event {
            Event::ToolDone(done) => {
                self.signals.push_back(Signal::ToolDone(done));
                return Ok(());
            }
            Event::Input(input) => self.speak(|protocol, out| protocol.receive(&input, out))?,
            Event::InputEnded => {
                self.input_ended = true;
                self.signals.push_back(Signal::InputEnded);
                return Ok(());
            }
        };
        for incoming in incoming {
            match incoming {
                Incoming::Prompt(text) => self.queue_prompt(text)?,
                Incoming::Steer(text) => self.signals.push_back(Signal::Steer(text)),
                Incoming::Interrupt => self.signals.push_back(Signal::Interrupt),
                Incoming::Decision(decision) => self.signals.push_back(Signal::Decision(decision)),
                Incoming::CallAnswer(outcome) => {
                    self.signals.push_back(Signal::CallAnswer(outcome));
                }
                Incoming::Exit => return Err(Exit { code: 0 }),
            }
        }
        Ok(())
    }

    fn queue_prompt(&mut self, text: String) -> Result<(), Exit> {
        if self.prompts.len() == PROMPTS_QUEUED_MAX {
            return Err(fail(format!("more than {PROMPTS_QUEUED_MAX} prompts wait")));
        }
        self.prompts.push_back(text);
        Ok(())
    }

    fn play_turn(&mut self, prompt: &str) -> Result<(), Exit> {
        if let Some(log) = &mut self.prompt_log {
            log.write(prompt).map_err(fail)?;
        }
        let has_server = self.protocol.mcp_server().is_some() || self.protocol.carries_calls();
        let calls_as_text = !has_server;
        let mut play = self.player.begin(Prompt {
            text: prompt.to_owned(),
            calls_as_text,
        });
        // Saved before the first step: a turn that kills the process counts as played.
        self.save_state()?;
        self.speak(|protocol, out| protocol.begin_turn(prompt, out))?;
        self.play_actions(&mut play)?;
        self.player.end(play);
        self.save_state()
    }

    fn save_state(&self) -> Result<(), Exit> {
        match &self.state_file {
            Some(file) => files::write_state(file, &self.player.progress()).map_err(fail),
            None => Ok(()),
        }
    }

    fn play_actions(&mut self, play: &mut Play) -> Result<(), Exit> {
        loop {
            // An interrupt counts before each action, also before those that never wait.
            if matches!(self.pause(play, Duration::ZERO)?, Flow::Interrupted) {
                return self.end_interrupted(play);
            }
            let action = play.next_action();
            match self.carry_out(play, action)? {
                Flow::GoOn => {}
                Flow::Ended => return Ok(()),
                Flow::Interrupted => return self.end_interrupted(play),
            }
        }
    }

    fn end_interrupted(&mut self, play: &mut Play) -> Result<(), Exit> {
        if let Some(show) = play.interrupt() {
            self.show(&show)?;
        }
        self.speak(|protocol, out| protocol.end_turn(&Ending::Interrupted, out))
    }

    fn carry_out(&mut self, play: &mut Play, action: Action) -> Result<Flow, Exit> {
        match action {
            Action::Show(show) => self.show(&show)?,
            Action::Ask { tool, reason } => {
                let asked = self.speak(|protocol, out| protocol.ask(&tool, &reason, out))?;
                return self.await_decision(play, asked);
            }
            Action::Perform(tool) => return self.perform(play, &tool),
            Action::ApplyPatch { text } => {
                tools::apply_patch(&self.resolve(""), &text).map_err(fail)?;
            }
            Action::Pause { ms } => return self.pause(play, Duration::from_millis(ms)),
            Action::WaitForFile { path } => return self.wait_for_file(play, &path),
            Action::Touch { path } => files::write_file(&self.resolve(&path), b"").map_err(fail)?,
            Action::SaveBytes { path, bytes } => {
                files::write_file(&self.resolve(&path), &bytes).map_err(fail)?;
            }
            Action::WriteError { text } => eprintln!("{text}"),
            Action::Garbage { bytes } => write_output(&bytes)?,
            Action::SpawnChild(child) => {
                let pid_file = self.resolve(&child.pid_file);
                let child = tools::spawn_sleeper(&pid_file, child.holds_output).map_err(fail)?;
                self.children.push(child);
            }
            Action::CloseOutput => self.close_output()?,
            Action::StaySilent => return self.stay_silent(play),
            Action::Crash { code, message } => {
                if !message.is_empty() {
                    eprintln!("{message}");
                }
                return Err(Exit { code });
            }
            Action::KillSelf => tools::kill_self(),
            Action::End(ending) => {
                self.speak(|protocol, out| protocol.end_turn(&ending, out))?;
                return Ok(Flow::Ended);
            }
        }
        Ok(Flow::GoOn)
    }

    fn show(&mut self, show: &Show) -> Result<(), Exit> {
        self.speak(|protocol, out| protocol.show(show, out))
    }

    fn await_decision(&mut self, play: &mut Play, asked: Asked) -> Result<Flow, Exit> {
        if let Asked::Decided(decision) = asked {
            play.decide(decision);
            return Ok(Flow::GoOn);
        }
        let waited = self.wait(play, None, |runner, signal| match signal {
            Some(Signal::Decision(decision)) => Some(decision),
            // No answer can come any more.
            _ if runner.input_ended => Some(Decision::Denied {
                message: "the other side left".to_owned(),
                stop: false,
            }),
            _ => None,
        })?;
        match waited {
            Wake::Found(decision) => {
                play.decide(decision);
                Ok(Flow::GoOn)
            }
            _ => Ok(Flow::Interrupted),
        }
    }

    fn pause(&mut self, play: &mut Play, length: Duration) -> Result<Flow, Exit> {
        let waited: Wake<()> = self.wait(play, Some(length), |_, _| None)?;
        match waited {
            Wake::Interrupted => Ok(Flow::Interrupted),
            Wake::Found(()) | Wake::TimedOut => Ok(Flow::GoOn),
        }
    }

    fn wait_for_file(&mut self, play: &mut Play, path: &str) -> Result<Flow, Exit> {
        let path = self.resolve(path);
        let waited = self.wait(play, Some(PATIENCE), |_, _| path.exists().then_some(()))?;
        match waited {
            Wake::Found(()) => Ok(Flow::GoOn),
            Wake::Interrupted => Ok(Flow::Interrupted),
            Wake::TimedOut => Err(fail(format!("{} never appeared", path.display()))),
        }
    }

    fn stay_silent(&mut self, play: &mut Play) -> Result<Flow, Exit> {
        // Where the whole input is the prompt, its end means nothing.
        let deaf = play.ignores_interrupt() || self.protocol.framing() == Framing::Whole;
        let waited = self.wait(play, Some(PATIENCE), |runner, _| {
            (runner.input_ended && !deaf).then_some(())
        })?;
        match waited {
            Wake::Interrupted => Ok(Flow::Interrupted),
            Wake::Found(()) | Wake::TimedOut => Err(Exit { code: 0 }),
        }
    }

    /// Waits until `check` finds something, the time is over, or an interrupt arrives. `check` sees
    /// each signal once, and is also asked without one, at least every [`POLL_INTERVAL`].
    fn wait<T>(
        &mut self,
        play: &mut Play,
        length: Option<Duration>,
        mut check: impl FnMut(&Runner, Option<Signal>) -> Option<T>,
    ) -> Result<Wake<T>, Exit> {
        let deadline = length.and_then(|length| Instant::now().checked_add(length));
        loop {
            // All that has arrived comes first, so that no wait begins before an earlier interrupt.
            while let Ok(event) = self.events.try_recv() {
                self.take_event(event)?;
            }
            while let Some(signal) = self.signals.pop_front() {
                match signal {
                    Signal::Interrupt if play.ignores_interrupt() => {}
                    Signal::Interrupt => return Ok(Wake::Interrupted),
                    Signal::Steer(text) => self.steer(play, text)?,
                    signal => {
                        if let Some(found) = check(self, Some(signal)) {
                            return Ok(Wake::Found(found));
                        }
                    }
                }
            }
            // What `check` waits for may not be an event at all, such as a file.
            if let Some(found) = check(self, None) {
                return Ok(Wake::Found(found));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Wake::TimedOut);
            }
            let nap = left.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL);
            match self.events.recv_timeout(nap) {
                Ok(event) => self.take_event(event)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn steer(&mut self, play: &mut Play, text: String) -> Result<(), Exit> {
        if let Some(log) = &mut self.prompt_log {
            log.write(&text).map_err(fail)?;
        }
        play.steer(text);
        Ok(())
    }

    /// Lets the protocol speak, and writes what it says.
    fn speak<T>(
        &mut self,
        say: impl FnOnce(&mut dyn Protocol, &mut Outbox) -> T,
    ) -> Result<T, Exit> {
        self.out.now_ms = now_ms();
        let said = say(self.protocol.as_mut(), &mut self.out);
        write_output(&self.out.take_bytes())?;
        Ok(said)
    }

    /// Stops in the middle of a line, for ever.
    fn close_output(&mut self) -> Result<(), Exit> {
        let show = Show::Text("this line never ends".to_owned());
        self.protocol.show(&show, &mut self.out);
        let mut bytes = self.out.take_bytes();
        // Where a text is not streamed, the protocol has said nothing yet.
        if bytes.is_empty() {
            bytes = br#"{"type":"assistant","#.to_vec();
        }
        let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
        write_output(half)?;
        tools::close_output().map_err(fail)
    }

    /// Paths of a script are relative to the directory that the other side named.
    fn resolve(&self, path: &str) -> PathBuf {
        match self.protocol.working_directory() {
            Some(directory) => directory.join(path),
            None => Path::new(path).to_owned(),
        }
    }
}

/// A closed standard output means that the other side left: the program ends quietly.
fn write_output(bytes: &[u8]) -> Result<(), Exit> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    written.map_err(|_| Exit { code: 1 })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "`map_err` passes the message on"
)]
fn fail(message: String) -> Exit {
    eprintln!("turnkeep-agent-script: {message}");
    Exit { code: 2 }
}

#[expect(
    clippy::disallowed_methods,
    reason = "messages carry the time; this is the edge"
)]
fn now_ms() -> u64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}
