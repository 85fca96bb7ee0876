//! Random decisions in a row.

use super::*;

/// Ends the verification of the run, or a check at a gate, whichever is under way.
fn end_any_verification(scenario: &mut Scenario, which: u8) {
    let live = &scenario.run.live;
    let of_run = live
        .verification
        .map(|known| VerificationTarget::Run(known.id));
    let at_gates = live.gates.keys().copied().map(VerificationTarget::Gate);
    let Some(target) = of_run.into_iter().chain(at_gates).next() else {
        return;
    };
    let end = VerificationEnd {
        target,
        ok: which > 127,
        report: Bytes::from_static(b"{}"),
        tail: "1 test failed".to_owned(),
        signature: "make test: 2".to_owned(),
        changes: None,
    };
    scenario
        .take(|run, around| end_verification(run, around, &end))
        .unwrap();
}

/// Sends the prompt of an open turn, or ends a turn that was stopped before.
fn prepare_any(scenario: &mut Scenario, node: NodeId) -> Result<(), Rejection> {
    let turn = scenario.turn(node).unwrap();
    let sources = PromptSources::default();
    scenario.take(|run, around| send_prompt(run, around, node, turn, &sources))
}

/// Does one random thing. Refusals are fine; what holds after every decision is checked by
/// [`Scenario::take`].
fn do_anything(scenario: &mut Scenario, what: u8, which: u8) {
    let nodes: Vec<NodeId> = scenario.run.live.nodes().map(|node| node.id).collect();
    let Some(&node) = nodes.get(usize::from(which) % nodes.len().max(1)) else {
        scenario.add("first", "orchestrator");
        return;
    };
    let name = node.to_string();
    let turn = scenario.turn(node);
    match what % 24 {
        0 if nodes.len() < 6 => {
            let role = if which.is_multiple_of(3) {
                "orchestrator"
            } else {
                "implementer"
            };
            scenario.add(&format!("n{}", scenario.log.len()), role);
        }
        1 => {
            let message = Chat {
                content: "Go",
                node: Some(&name),
                interrupt: which > 127,
            };
            drop(scenario.take(|run, around| chat(run, around, message)));
        }
        2 | 3 => {
            let other = nodes[(usize::from(which) + 1) % nodes.len()].to_string();
            if other != name {
                scenario.connect(&name, &other);
            }
            drop(scenario.send(node, &other, "Look at this"));
        }
        4 if turn.is_some() => drop(ask(scenario, node, "make")),
        5 => {
            if let Some(approval) = scenario.run.live.approvals.keys().next().copied() {
                let verdict = Verdict::ALL[usize::from(which) % 2];
                answer(scenario, approval, verdict, Scope::Once).unwrap();
            }
        }
        6 | 7 if turn.is_some() => scenario.complete(node, &format!("Done {which}")),
        8 if turn.is_some() => {
            let (reason, requeue) = ("stopped".to_owned(), which > 127);
            scenario.end(node, TurnEnd::Interrupted { reason, requeue });
        }
        9 if turn.is_some() => {
            scenario.end(
                node,
                TurnEnd::Unavailable {
                    reason: "overloaded".to_owned(),
                },
            );
        }
        10 => scenario.pass(u64::from(which) * 100),
        11 => {
            let status = Some(RunStatus::ALL[usize::from(which) % RunStatus::ALL.len()]);
            let change = RunChange {
                status,
                interrupt: which > 127,
                ..RunChange::default()
            };
            drop(scenario.take(|run, around| change_run(run, around, change)));
        }
        12 if nodes.len() > 2 => {
            scenario
                .take(|run, around| delete_node(run, around, node))
                .unwrap();
        }
        14 if turn.is_some() => {
            scenario.end(
                node,
                TurnEnd::Failed {
                    reason: "exit status 1".to_owned(),
                },
            );
            // Another input may have started the next turn already.
            drop(scenario.take(|run, around| retry_node(run, around, node)));
        }
        15 => {
            let inbox = if which > 200 {
                ResetInbox::Clear
            } else {
                ResetInbox::Keep
            };
            scenario
                .take(|run, around| reset_node(run, around, node, inbox))
                .unwrap();
        }
        16 if turn.is_some() => {
            let summary = "All done".to_owned();
            drop(call(
                scenario,
                node,
                OrchestrationCall::CompleteRun { summary },
            ));
        }
        17 => drop(scenario.take(verify)),
        18 | 19 => end_any_verification(scenario, which),
        20 => {
            let other = nodes[(usize::from(which) + 1) % nodes.len()].to_string();
            let gated = EdgeRequest {
                from: &name,
                to: &other,
                kind: None,
                label: None,
                bidirectional: None,
                gate: true,
            };
            drop(scenario.take(|run, around| connect(run, around, gated)));
        }
        21 => drop(scenario.take(|run, around| interrupt_node(run, around, node))),
        22 if turn.is_some() => drop(prepare_any(scenario, node)),
        23 => {
            let used = Output::Usage(Usage {
                prompt_tokens: u64::from(which),
                ..Usage::default()
            });
            drop(scenario.take(|run, around| add_idle_output(run, around, node, used)));
        }
        13 => {
            let found = Restart {
                resume: which > 127,
                resumable_programs: &[],
                changes: &[],
            };
            scenario
                .take(|run, around| Ok(restart(run, around, found)))
                .unwrap();
        }
        _ => {}
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_happens_no_input_is_lost_and_a_replay_gives_the_same_run(
        mode in 0..2usize,
        things in proptest::collection::vec(proptest::prelude::any::<(u8, u8)>(), 1..80),
    ) {
        let verify = vec!["make test".to_owned()];
        let mode = Mode::ALL[mode];
        let mut scenario = Scenario::begin(RunSettings { mode, verify, ..settings() });
        for (what, which) in things {
            do_anything(&mut scenario, what, which);
        }
    }
}
