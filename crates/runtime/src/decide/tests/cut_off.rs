//! The inputs of a turn that was cut off reach a prompt again, unless the log shows that its session
//! has read them.

use super::*;
use crate::input::CONTINUE_NOTE;
use crate::turn::TurnStage;

const PROGRAM: &str = "claude";

/// Stops and starts the server, which can resume sessions of the program.
fn restart_server(scenario: &mut Scenario, resume: bool) {
    let programs = [PROGRAM.to_owned()];
    let found = Restart {
        resume,
        resumable_programs: &programs,
        changes: &[],
    };
    scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
}

fn report(scenario: &mut Scenario, node: NodeId, output: Output) {
    let turn = scenario.turn(node).unwrap();
    scenario
        .take(|run, around| add_output(run, around, node, turn, output))
        .unwrap();
}

fn name_session(scenario: &mut Scenario, node: NodeId, name: &str) {
    report(scenario, node, Output::Session(name.to_owned()));
}

fn set_status(scenario: &mut Scenario, status: RunStatus, interrupt: bool) {
    let change = RunChange {
        status: Some(status),
        interrupt,
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
}

/// What the inbox of a node says, in its order.
fn inbox(scenario: &Scenario, node: NodeId) -> Vec<String> {
    let node = scenario.run.live.node(node).unwrap();
    node.inbox.inputs().iter().map(text_of).collect()
}

fn text_of(input: &Input) -> String {
    match input {
        Input::Message(message) => message.content.clone(),
        Input::Envelope(envelope) => envelope.message.clone(),
    }
}

/// A node in its second turn, with a session that has read the first prompt.
fn begin_second_turn() -> (Scenario, NodeId) {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "First");
    prepare(&mut scenario, node, "role");
    name_session(&mut scenario, node, "s-1");
    scenario.complete(node, "Done.");
    scenario.chat("a", "Second");
    (scenario, node)
}

#[test]
fn a_prompt_that_nothing_shows_to_have_arrived_is_sent_again() {
    // The program was killed before it was started, or after it told its session's name and use.
    let before_any_word = [None, Some(Output::Session("s-2".to_owned()))];
    for said in before_any_word {
        let (mut scenario, node) = begin_second_turn();
        prepare(&mut scenario, node, "role");
        if let Some(output) = said {
            report(&mut scenario, node, output);
            report(&mut scenario, node, Output::Usage(Usage::default()));
        }
        restart_server(&mut scenario, false);
        assert_eq!(inbox(&scenario, node), ["Second"]);
        set_status(&mut scenario, RunStatus::Running, false);
        assert!(prepare(&mut scenario, node, "role").contains("Second"));
    }
}

#[test]
fn a_turn_in_which_the_program_said_something_is_continued() {
    let call = Output::ToolProposed {
        provider_id: "call-1".to_owned(),
        name: "Read".to_owned(),
        args: json!({}),
    };
    let words = [
        Output::Answer("I".to_owned()),
        Output::Thinking("Hm".to_owned()),
        Output::ThinkingFinal("Hm".to_owned()),
        call,
    ];
    for said in words {
        let (mut scenario, node) = begin_second_turn();
        prepare(&mut scenario, node, "role");
        report(&mut scenario, node, said);
        restart_server(&mut scenario, false);
        assert_eq!(inbox(&scenario, node), [CONTINUE_NOTE]);
    }
}

#[test]
fn a_prompt_that_perhaps_never_arrived_leaves_the_session_as_it_was() {
    let (mut scenario, node) = begin_second_turn();
    // The role has changed, so the prompt is a full one. It is lost, and so is the role in it.
    assert!(prepare(&mut scenario, node, "another role").contains("another role"));
    restart_server(&mut scenario, true);
    assert!(prepare(&mut scenario, node, "another role").contains("another role"));
    report(&mut scenario, node, Output::Answer("I".to_owned()));
    restart_server(&mut scenario, true);
    assert!(!prepare(&mut scenario, node, "another role").contains("another role"));
}

#[test]
fn a_recap_that_perhaps_never_arrived_is_given_again() {
    let (mut scenario, node) = begin_second_turn();
    prepare(&mut scenario, node, "role");
    report(&mut scenario, node, Output::SessionLost);
    let reason = "no such session".to_owned();
    scenario.end(node, TurnEnd::Unavailable { reason });
    let was_lost = |scenario: &Scenario| scenario.run.live.node(node).unwrap().session.was_lost;
    assert!(was_lost(&scenario));
    scenario.pass(10_000);
    prepare(&mut scenario, node, "role");
    assert!(!was_lost(&scenario));
    restart_server(&mut scenario, true);
    assert!(was_lost(&scenario), "the recap is due again");
}

/// A turn that was cut off in the middle, and continues in the next one.
fn begin_continuing(cut_off: impl Fn(&mut Scenario, NodeId)) -> (Scenario, NodeId) {
    let (mut scenario, node) = begin_second_turn();
    prepare(&mut scenario, node, "role");
    report(&mut scenario, node, Output::Thinking("Hm".to_owned()));
    cut_off(&mut scenario, node);
    assert!(!prepare(&mut scenario, node, "role").contains("Second"));
    (scenario, node)
}

fn kill_server(scenario: &mut Scenario, _: NodeId) {
    restart_server(scenario, true);
}

fn pause_and_resume(scenario: &mut Scenario, node: NodeId) {
    set_status(scenario, RunStatus::Paused, true);
    let reason = "interrupted".to_owned();
    let requeue = false;
    scenario.end(node, TurnEnd::Interrupted { reason, requeue });
    set_status(scenario, RunStatus::Running, false);
}

/// The session cannot be resumed, which the program says when it is started for the prompt.
fn lose_session(scenario: &mut Scenario, node: NodeId) {
    report(scenario, node, Output::SessionLost);
    let reason = "no such session".to_owned();
    scenario.end(node, TurnEnd::Unavailable { reason });
    // Some programs open a new session before they read anything.
    let named = Output::Session("s-2".to_owned());
    scenario
        .take(|run, around| add_idle_output(run, around, node, named))
        .unwrap();
    scenario.pass(10_000);
}

#[test]
fn a_session_that_is_lost_when_it_should_continue_reads_the_inputs_again() {
    for cut_off in [kill_server, pause_and_resume] {
        let (mut scenario, node) = begin_continuing(cut_off);
        lose_session(&mut scenario, node);
        let prompt = prepare(&mut scenario, node, "role");
        assert!(
            prompt.contains("Second") && prompt.contains(CONTINUE_NOTE),
            "{prompt}"
        );
        assert!(
            !prompt.contains("First"),
            "that turn was completed: {prompt}"
        );
        // What a turn reads again it consumes like everything else.
        scenario.complete(node, "Done.");
        scenario.chat("a", "Third");
        assert!(!prepare(&mut scenario, node, "role").contains("Second"));
    }
}

#[test]
fn inputs_that_are_read_again_are_put_back_when_the_turn_is() {
    let (mut scenario, node) = begin_continuing(kill_server);
    lose_session(&mut scenario, node);
    prepare(&mut scenario, node, "role");
    // The server is killed before the program was started.
    restart_server(&mut scenario, false);
    assert_eq!(inbox(&scenario, node), ["Second", CONTINUE_NOTE]);
    set_status(&mut scenario, RunStatus::Running, false);
    let prompt = prepare(&mut scenario, node, "role");
    assert_eq!(prompt.matches("Second").count(), 1, "{prompt}");
    report(&mut scenario, node, Output::Thinking("Hm".to_owned()));
    restart_server(&mut scenario, true);
    assert!(!prepare(&mut scenario, node, "role").contains("Second"));
    lose_session(&mut scenario, node);
    assert!(prepare(&mut scenario, node, "role").contains("Second"));
}

#[test]
fn a_turn_that_was_cut_off_twice_is_read_again_as_a_whole() {
    let (mut scenario, node) = begin_continuing(kill_server);
    scenario.chat("a", "Third");
    report(&mut scenario, node, Output::Thinking("Hm".to_owned()));
    restart_server(&mut scenario, true);
    prepare(&mut scenario, node, "role");
    report(&mut scenario, node, Output::Thinking("Hm".to_owned()));
    restart_server(&mut scenario, true);
    prepare(&mut scenario, node, "role");
    lose_session(&mut scenario, node);
    let prompt = prepare(&mut scenario, node, "role");
    assert!(
        prompt.contains("Second") && prompt.contains("Third"),
        "{prompt}"
    );
}

#[test]
fn what_a_person_stopped_or_dropped_is_not_read_again() {
    let (mut scenario, node) = begin_continuing(kill_server);
    report(&mut scenario, node, Output::Thinking("Hm".to_owned()));
    scenario
        .take(|run, around| interrupt_node(run, around, node))
        .unwrap();
    let reason = "interrupted".to_owned();
    let requeue = false;
    scenario.end(node, TurnEnd::Interrupted { reason, requeue });
    scenario.chat("a", "Third");
    prepare(&mut scenario, node, "role");
    lose_session(&mut scenario, node);
    assert!(!prepare(&mut scenario, node, "role").contains("Second"));

    let (mut scenario, node) = begin_second_turn();
    prepare(&mut scenario, node, "role");
    report(&mut scenario, node, Output::Thinking("Hm".to_owned()));
    restart_server(&mut scenario, false);
    scenario
        .take(|run, around| reset_node(run, around, node, ResetInbox::Clear))
        .unwrap();
    assert_eq!(scenario.run.live.node(node).unwrap().unfinished, []);
}

#[test]
fn a_question_that_is_read_again_is_answered_once() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("a", "implementer");
    scenario.connect("lead", "a");
    scenario.chat("lead", "Go");
    scenario.send(lead, "a", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    scenario.pass(300);
    prepare(&mut scenario, worker, "role");
    name_session(&mut scenario, worker, "s-1");
    report(&mut scenario, worker, Output::Thinking("Hm".to_owned()));
    restart_server(&mut scenario, true);
    prepare(&mut scenario, worker, "role");
    lose_session(&mut scenario, worker);
    assert!(prepare(&mut scenario, worker, "role").contains("Please build it"));
    scenario.complete(worker, "Built.");
    let replies = scenario
        .log
        .iter()
        .filter(|event| matches!(&event.fact, Fact::EnvelopeSent(sent) if sent.reply_to.is_some()));
    assert_eq!(replies.count(), 1);
    assert!(scenario.run.live.node(lead).unwrap().unanswered.is_empty());
}

/// What the log cannot see: a program with its session.
#[derive(Debug, Default)]
struct RealProgram {
    /// The inputs that its session has read.
    session: BTreeSet<InputId>,
    /// Whether it was started to go on with an earlier session.
    resumes: bool,
    /// Whether it has the prompt of the open turn.
    has_prompt: bool,
    /// The inputs of turns that it has completed.
    done: BTreeSet<InputId>,
}

/// A node, its program and a server that is killed at any time.
struct KilledServer {
    scenario: Scenario,
    node: NodeId,
    program: RealProgram,
}

impl KilledServer {
    fn begin() -> Self {
        let mut scenario = Scenario::begin(settings());
        let node = scenario.add("a", "implementer");
        let program = RealProgram::default();
        Self {
            scenario,
            node,
            program,
        }
    }

    fn known(&self) -> &crate::node::Node {
        self.scenario.run.live.node(self.node).unwrap()
    }

    /// The inputs of the open turn.
    fn open_inputs(&self) -> BTreeSet<InputId> {
        let read = self.known().turn.iter().flat_map(|turn| &turn.consumed);
        read.map(Input::id).collect()
    }

    fn step(&mut self, what: u8) {
        let node = self.node;
        let open = self.known().turn.as_ref();
        let was_sent = open.is_some_and(|turn| turn.prompt.is_some());
        let is_preparing = open.is_some_and(|turn| turn.stage == TurnStage::Preparing);
        let works = was_sent && self.program.has_prompt;
        match what % 8 {
            0 => self.scenario.chat("a", "Go"),
            1 if is_preparing => self.send_prompt(),
            2 if was_sent && !works => {
                self.program.has_prompt = true;
                let read = self.open_inputs();
                self.program.session.extend(read);
            }
            // The name of the session and the prompt may come in either order.
            3 if was_sent => name_session(&mut self.scenario, node, "s"),
            4 if works => {
                let said = Output::Answer("I".to_owned());
                report(&mut self.scenario, node, said);
            }
            5 if works => self.complete(),
            6 if was_sent && !works && self.program.resumes => {
                lose_session_at_start(&mut self.scenario, node);
                self.program.session.clear();
            }
            7 => self.restart(),
            _ => self.scenario.pass(60_000),
        }
    }

    fn send_prompt(&mut self) {
        prepare(&mut self.scenario, self.node, "role");
        let [Effect::SendPrompt { session, .. }] = &self.scenario.effects[..] else {
            panic!("one prompt: {:?}", self.scenario.effects);
        };
        self.program.resumes = session.is_some();
        self.program.has_prompt = false;
        if session.is_none() {
            self.program.session.clear();
        }
    }

    fn complete(&mut self) {
        for input in &self.known().unfinished {
            let id = input.id();
            assert!(self.program.session.contains(&id), "it never read {id}");
        }
        let read = self.program.session.clone();
        self.program.done.extend(read);
        self.program.has_prompt = false;
        self.scenario.complete(self.node, "Done.");
    }

    fn restart(&mut self) {
        let read = self.open_inputs();
        let open = self.known().turn.as_ref();
        let has_spoken = open.is_some_and(|turn| turn.has_output);
        let resumes = has_spoken && self.known().session.id.is_some();
        self.program.has_prompt = false;
        restart_server(&mut self.scenario, false);
        let waiting = self.known().inbox.ids();
        if resumes {
            assert!(!waiting.iter().any(|id| read.contains(id)), "read twice");
        }
        set_status(&mut self.scenario, RunStatus::Running, false);
    }

    /// Every message waits, is in the open turn, was read by the living session or is done.
    fn check(&self) {
        let node = self.known();
        let open = self.open_inputs();
        let unfinished: Vec<InputId> = node.unfinished.iter().map(Input::id).collect();
        for event in &self.scenario.log {
            let Fact::MessageSent(message) = &event.fact else {
                continue;
            };
            let id = InputId::Message(message.id);
            let is_safe = node.inbox.ids().contains(&id)
                || open.contains(&id)
                || unfinished.contains(&id)
                || self.program.session.contains(&id)
                || self.program.done.contains(&id);
            assert!(is_safe || message.asks_to_continue(), "lost: {id}");
        }
        // What is not finished comes back with the note to continue.
        let open = node.turn.iter().flat_map(|turn| &turn.consumed);
        let mut noted = node.inbox.inputs().iter().chain(open);
        assert!(unfinished.is_empty() || noted.any(Input::asks_to_continue));
    }
}

fn lose_session_at_start(scenario: &mut Scenario, node: NodeId) {
    report(scenario, node, Output::SessionLost);
    let reason = "no such session".to_owned();
    scenario.end(node, TurnEnd::Unavailable { reason });
    scenario.pass(60_000);
}

fn play(steps: &[u8]) {
    let mut server = KilledServer::begin();
    for what in steps {
        server.step(*what);
        server.check();
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn no_kill_and_no_lost_session_loses_an_input(
        steps in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..60),
    ) {
        play(&steps);
    }
}

/// Preparing a turn may take longer than a program may be silent.
#[test]
fn a_turn_that_is_prepared_for_a_long_time_is_not_ended_as_silent() {
    const CHAT: u8 = 0;
    const SEND_PROMPT: u8 = 1;
    const A_MINUTE: u8 = 2;
    let mut steps = vec![CHAT];
    steps.extend([A_MINUTE; 15]);
    steps.push(SEND_PROMPT);
    play(&steps);
}
