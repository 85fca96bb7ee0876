//! A small team finishes a feature, killed at every event and resumed: the outcome is the same.
//!
//! The programs, the person and the verification are played by [`Story::step`]. It looks at the log
//! and does the one thing that is due, as an agent does that reads its transcript after a restart. So
//! it can go on from any point, and whatever the core loses or repeats shows in the outcome.

use super::*;

/// The run of the story.
struct Story {
    scenario: Scenario,
}

/// What must be the same however often the server was killed.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: RunStatus,
    phase: Phase,
    /// Sender, receiver and text of every envelope.
    envelopes: BTreeMap<(String, String, String), usize>,
    /// The inputs that wait, by node.
    waiting: Vec<(String, usize)>,
    /// The tools that ran to their end, by node.
    tools: BTreeMap<(String, String), usize>,
    unanswered: usize,
}

fn begin() -> Story {
    let team = RunSettings {
        verify: vec!["make test".to_owned()],
        ..settings()
    };
    let mut scenario = Scenario::begin(team);
    scenario.add("lead", "orchestrator");
    for (alias, role) in [
        ("plan", "planner"),
        ("a", "implementer"),
        ("b", "implementer"),
        ("review", "reviewer"),
    ] {
        scenario.add(alias, role);
        scenario.connect("lead", alias);
    }
    scenario.chat("lead", "Build the feature");
    Story { scenario }
}

/// A run as it is found after a crash behind the last of these events.
pub(super) fn find_after(log: &[Event], seed: u8) -> Scenario {
    let mut scenario = Scenario::begin(settings());
    scenario.run = Run::new(scenario.run.live.id);
    scenario.log = log.to_vec();
    scenario.stored = log.iter().map(read_back).collect();
    for event in &scenario.stored {
        scenario.run.apply(event);
    }
    scenario.ids = IdSource::from_seed(&[seed; 32]);
    scenario.now = log.last().unwrap().at;
    scenario.checks_each_decision = false;
    scenario
}

impl Story {
    fn id(&self, alias: &str) -> NodeId {
        find_node(&self.scenario.run.live, alias).unwrap().id
    }

    fn name(&self, id: NodeId) -> String {
        let node = self.scenario.run.live.node(id).unwrap();
        node.name().to_owned()
    }

    fn envelopes(&self) -> Vec<&crate::input::Envelope> {
        let facts = self.scenario.log.iter().map(|event| &event.fact);
        facts
            .filter_map(|fact| match fact {
                Fact::EnvelopeSent(envelope) => Some(&**envelope),
                _ => None,
            })
            .collect()
    }

    fn has_sent(&self, from: &str, to: &str) -> bool {
        let (from, to) = (self.id(from), self.id(to));
        let mut sent = self.envelopes().into_iter();
        sent.any(|envelope| envelope.from == from && envelope.to == to)
    }

    /// Does the next thing. Returns whether there was one.
    fn step(&mut self) -> bool {
        if let Some(approval) = self.scenario.run.live.approvals.keys().next().copied() {
            answer(&mut self.scenario, approval, Verdict::Approved, Scope::Once).unwrap();
            return true;
        }
        if let Some(verification) = self.scenario.run.live.verification {
            self.end_verification(VerificationTarget::Run(verification.id));
            return true;
        }
        let working = self
            .scenario
            .run
            .live
            .nodes()
            .find(|node| node.turn.is_some());
        if let Some(node) = working.map(|node| node.id) {
            self.work(node);
            return true;
        }
        let live = &self.scenario.run.live;
        let heard = &self.scenario.heard;
        let deadline = next_deadline(live, self.scenario.now, Capacity::UNLIMITED, heard);
        let Some(deadline) = deadline else {
            return false;
        };
        self.scenario.pass(deadline.0 - self.scenario.now.0);
        true
    }

    /// The commands fail once, so that the claim is made twice.
    fn end_verification(&mut self, target: VerificationTarget) {
        let end = VerificationEnd {
            target,
            ok: self.has_sent("lead", "lead"),
            report: Bytes::from_static(b"{}"),
            tail: "1 test failed".to_owned(),
            signature: "`make test`: exit status 2".to_owned(),
            changes: None,
        };
        self.scenario
            .take(|run, around| end_verification(run, around, &end))
            .unwrap();
    }

    fn work(&mut self, node: NodeId) {
        let turn = self.scenario.run.live.node(node).unwrap().turn.as_ref();
        if turn.unwrap().stage == crate::turn::TurnStage::Preparing {
            prepare(&mut self.scenario, node, "Your role.");
            return;
        }
        let name = self.name(node);
        if self
            .scenario
            .run
            .live
            .node(node)
            .unwrap()
            .session
            .id
            .is_none()
        {
            let named = Output::Session(format!("session-{name}"));
            return self.report(node, named);
        }
        match name.as_str() {
            "lead" => self.lead(node),
            "a" if !self.has_run(node) => self.run_tool(node),
            "b" if !self.has_sent("b", "lead") => {
                self.scenario.send(node, "lead", "B is built").unwrap();
            }
            _ => self.scenario.complete(node, &format!("{name} is done.")),
        }
    }

    fn report(&mut self, node: NodeId, output: Output) {
        let turn = self.scenario.turn(node).unwrap();
        self.scenario
            .take(|run, around| add_output(run, around, node, turn, output))
            .unwrap();
    }

    fn has_run(&self, node: NodeId) -> bool {
        let is_done = |event: &Event| {
            event.node == Some(node)
                && matches!(&event.fact, Fact::ToolCompleted { outcome, .. } if outcome.ok)
        };
        self.scenario.log.iter().any(is_done)
    }

    /// Asks for permission, then reports the result.
    fn run_tool(&mut self, node: NodeId) {
        let turn = self.scenario.run.live.node(node).unwrap().turn.as_ref();
        if turn.unwrap().open_tools.is_empty() {
            let permission = Permission {
                node,
                turn: self.scenario.turn(node).unwrap(),
                tool_name: "command".to_owned(),
                args: json!({"cmd": "make"}),
                provider_id: Some("call-1".to_owned()),
                context: "runs make".to_owned(),
                can_allow_always: false,
            };
            self.scenario
                .take(|run, around| ask_permission(run, around, permission))
                .unwrap();
            return;
        }
        let done = Output::ToolCompleted {
            provider_id: "call-1".to_owned(),
            ok: true,
            output: Some("made".to_owned()),
            error: None,
        };
        self.report(node, done);
    }

    /// Hands out the next piece of work whose time has come, or claims completion.
    fn lead(&mut self, node: NodeId) {
        let has_mail = !self.scenario.run.live.node(node).unwrap().inbox.is_empty();
        let due: &[&str] = if !self.has_sent("lead", "plan") {
            &["plan"]
        } else if !self.has_sent("plan", "lead") {
            &[]
        } else if !self.has_sent("lead", "a") || !self.has_sent("lead", "b") {
            &["a", "b"]
        } else if !self.has_sent("a", "lead") || !self.has_sent("b", "lead") {
            &[]
        } else if !self.has_sent("lead", "review") {
            &["review"]
        } else if !self.has_sent("review", "lead") {
            &[]
        } else if self.scenario.run.live.status == RunStatus::Running && !has_mail {
            let summary = "All done".to_owned();
            let claim = OrchestrationCall::CompleteRun { summary };
            call(&mut self.scenario, node, claim).unwrap();
            return;
        } else {
            &[]
        };
        let missing = due.iter().find(|alias| !self.has_sent("lead", alias));
        match missing {
            Some(alias) => {
                let task = format!("Please do your part, {alias}");
                self.scenario.send(node, alias, &task).unwrap();
            }
            None => self.scenario.complete(node, "I wait."),
        }
    }

    fn play_to_the_end(&mut self) {
        const STEPS_MAX: usize = 500;
        for _ in 0..STEPS_MAX {
            if !self.step() {
                return self.scenario.check();
            }
        }
        panic!("the story does not end");
    }

    fn outcome(&self) -> Outcome {
        let live = &self.scenario.run.live;
        let mut envelopes = BTreeMap::new();
        for sent in self.envelopes() {
            let key = (
                self.name(sent.from),
                self.name(sent.to),
                sent.message.clone(),
            );
            *envelopes.entry(key).or_default() += 1;
        }
        let mut tools = BTreeMap::new();
        for event in &self.scenario.log {
            if let (Some(node), Fact::ToolCompleted { outcome, .. }) = (event.node, &event.fact)
                && outcome.ok
            {
                let output = outcome.output.clone().unwrap_or_default();
                *tools.entry((self.name(node), output)).or_default() += 1;
            }
        }
        // The calls that claim completion differ: a lost verification is claimed again.
        tools.retain(|(_, output), _| output == "made");
        Outcome {
            status: live.status,
            phase: live.phase,
            envelopes,
            waiting: live
                .nodes()
                .map(|node| (node.name().to_owned(), node.inbox.len()))
                .collect(),
            tools,
            unanswered: live.nodes().map(|node| node.unanswered.len()).sum(),
        }
    }

    /// What the server does at its next start, and the person who lets the run go on.
    fn restart(&mut self, kind: RestartKind) {
        let programs: &[String] = match kind {
            RestartKind::NewSessions | RestartKind::GoesOnByItself => &[],
            RestartKind::ResumedSessions => &["claude".to_owned()],
        };
        let found = Restart {
            resume: kind == RestartKind::GoesOnByItself,
            resumable_programs: programs,
            changes: &[],
        };
        self.scenario
            .take(|run, around| Ok(restart(run, around, found)))
            .unwrap();
        let live = &self.scenario.run.live;
        assert!(live.verification.is_none());
        assert!(live.approvals.is_empty(), "their programs are gone");
        if kind != RestartKind::GoesOnByItself {
            assert!(live.nodes().all(|node| node.turn.is_none()));
        }
        if live.status == RunStatus::Paused {
            let resume = RunChange {
                status: Some(RunStatus::Running),
                ..RunChange::default()
            };
            self.scenario
                .take(|run, around| change_run(run, around, resume))
                .unwrap();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestartKind {
    NewSessions,
    ResumedSessions,
    GoesOnByItself,
}

#[test]
fn a_team_finishes_however_often_the_server_is_killed() {
    let mut told = begin();
    let begun = told.scenario.log.len();
    told.play_to_the_end();
    let expect = told.outcome();
    assert_eq!(expect.status, RunStatus::Completed);
    assert_eq!(expect.unanswered, 0);
    assert!(expect.waiting.iter().all(|(_, count)| *count == 0));
    let log = &told.scenario.log;
    let is_completed = |event: &Event| {
        matches!(
            event.fact,
            Fact::RunStatusChanged {
                status: RunStatus::Completed,
                ..
            }
        )
    };
    let completed = log.iter().position(is_completed).unwrap();
    for killed_after in begun..=log.len() {
        for kind in [
            RestartKind::NewSessions,
            RestartKind::ResumedSessions,
            RestartKind::GoesOnByItself,
        ] {
            let scenario = find_after(&log[..killed_after], 7);
            let mut story = Story { scenario };
            story.restart(kind);
            story.play_to_the_end();
            let mut outcome = story.outcome();
            if killed_after > completed {
                // The last turn of a completed run is not repeated: its inputs wait for the next one.
                outcome.waiting.clone_from(&expect.waiting);
            }
            assert_eq!(
                outcome, expect,
                "killed after event {killed_after}, {kind:?}"
            );
        }
    }
}
