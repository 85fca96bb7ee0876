//! What a killed server leaves behind, and what the next one makes of it.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::processes::{group_members, is_alive, read_pid, recorded, start_time, wait_until};
use crate::team::{Team, make_repository, skip};

const WITH_CHILD: &str = r#"
[[turn]]
repeat = true
steps = [
    { spawn_child = "SANDBOX/child.pid" },
    { say = "I wait." },
    { wait_for_file = "SANDBOX/go" },
]
"#;

#[test]
fn a_server_that_is_killed_in_a_turn_leaves_no_process() {
    let mut team = Team::start(WITH_CHILD);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("w"));
    team.chat(&run, &node, "Wait");
    let child = read_pid(&team.sandbox.path("child.pid"));
    let programs = recorded(&team);
    assert_eq!(programs.len(), 1);
    team.kill();
    team.restart();
    wait_until("the child outlives the server", || !is_alive(child));
    wait_until("the program outlives the server", || !is_alive(programs[0]));
    assert!(recorded(&team).is_empty());
}

/// A program that does not notice that its server is gone.
const DEAF: &str = "echo $$ > SANDBOX/deaf.pid; sleep 600 & wait";

#[test]
fn the_next_server_kills_what_no_guard_has_killed() {
    let mut team = Team::start_with(WITH_CHILD, |sandbox| {
        let line = DEAF.replace("SANDBOX", sandbox.path("").to_str().unwrap());
        let args = json!(["-c", line]);
        format!("[providers.deaf]\ncommand = \"sh\"\nprotocol = \"raw\"\nargs = {args}\n")
    });
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "deaf", skip("w"));
    team.chat(&run, &node, "Do you hear me?");
    let leader = read_pid(&team.sandbox.path("deaf.pid"));
    wait_until("it is not recorded", || recorded(&team) == [leader]);
    // The guard is the shell beside the program. Without it the program outlives the server. The
    // program's child is a shell too until it has become `sleep`, and must not be killed for a guard.
    let is_sleep = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == "sleep"
    };
    wait_until("the program has no child", || {
        group_members(leader).iter().any(is_sleep)
    });
    let is_guard = |pid: &i32| *pid != leader && !is_sleep(pid);
    for guard in group_members(leader).into_iter().filter(is_guard) {
        kill_process(Pid::from_raw(guard).unwrap(), Signal::KILL).unwrap();
        wait_until("the guard goes on", || !is_alive(guard));
    }
    team.kill();
    assert!(is_alive(leader), "nobody has killed it yet");
    team.restart();
    wait_until("it still runs", || group_members(leader).is_empty());
    assert!(recorded(&team).is_empty());
    let shown = team.show(&run);
    assert_eq!(shown["pausedReason"], "daemon-restart");
}

/// A process of somebody else. It ends with the test.
struct Bystander(Child);

impl Bystander {
    fn start() -> Self {
        Self(Command::new("cat").stdin(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_process_that_only_has_the_id_of_a_recorded_one_is_left_alone() {
    let mut team = Team::start(WITH_CHILD);
    team.kill();
    let bystander = Bystander::start();
    let pid = bystander.pid();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let run_dir = team.sandbox.data().join("run");
    fs::create_dir_all(&run_dir).unwrap();
    for (name, started, boot) in [
        (pid, start_time(pid) + 1, boot.trim()),
        (pid + 1, start_time(pid), "another boot"),
    ] {
        let record = json!({"pid": pid, "startTime": started, "boot": boot});
        let file = run_dir.join(format!("process-{name}"));
        fs::write(file, record.to_string()).unwrap();
    }
    team.restart();
    assert!(recorded(&team).is_empty(), "the records are of no use");
    assert!(is_alive(pid));
}

#[test]
fn the_private_files_of_programs_are_gone_after_a_kill() {
    let mut team = Team::start(WITH_CHILD);
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("w"));
    team.chat(&run, &node, "Wait");
    read_pid(&team.sandbox.path("child.pid"));
    let run_dir = team.sandbox.data().join("run");
    let private_dirs = || {
        let names = fs::read_dir(&run_dir).unwrap().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("node-")).count()
    };
    assert_eq!(private_dirs(), 1, "the program has its token from there");
    team.kill();
    assert_eq!(private_dirs(), 1);
    team.restart();
    assert_eq!(private_dirs(), 0);
}

#[test]
fn an_apply_that_a_kill_interrupted_is_undone_at_the_next_start() {
    let mut team = Team::start(WITH_CHILD);
    let run = team.new_run(json!({}));
    team.kill();
    // As an apply leaves it that had written the new file, and not yet forgotten the old one.
    let staging = team.work().join(".turnkeep-landing-1");
    fs::create_dir(&staging).unwrap();
    fs::write(staging.join("0.old"), "old").unwrap();
    team.restart();
    assert_eq!(team.show(&run)["id"], run.as_str());
    assert!(!staging.exists(), "it is recovered before the first turn");
}
