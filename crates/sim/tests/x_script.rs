//! `./x test` as a person runs it, with stubs instead of the programs that it calls.
//!
//! Each test copies the script into a directory of its own. Its `PATH` has the system's small tools
//! and the stubs, so nothing is installed and nothing is built.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the script may use of the system.
const SMALL_TOOLS: &[&str] = &[
    "awk", "bash", "cat", "dirname", "env", "find", "head", "mkdir", "sed", "sort", "tee", "touch",
];
/// The programs that tests run beside the product.
const TEST_PROGRAMS: &[&str] = &[
    "tmux", "Xvfb", "xclip", "xdotool", "xterm", "sway", "wl-copy", "chromium",
];

/// A machine on which the script runs.
struct Machine {
    dir: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

/// Held by the one test that runs. A child of another test could hold a stub open that is being
/// written, and the system does not execute such a file.
static ALONE: Mutex<()> = Mutex::new(());

/// How a run of the script ended.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Machine {
    /// A machine with a compiler and cargo, on which nothing is missing and the user is not root.
    fn new(test: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("x-script-{test}"));
        // A run before this one may have left it.
        drop(fs::remove_dir_all(&dir));
        for folder in [
            "bin",
            "target/tools/go/bin",
            "target/release",
            "clients/go",
            "clients/ts/src",
            "ui/src",
        ] {
            fs::create_dir_all(dir.join(folder)).unwrap();
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../x");
        fs::copy(script, dir.join("x")).unwrap();
        let machine = Self { dir, _alone: alone };
        for tool in SMALL_TOOLS {
            symlink(system_path(tool), machine.dir.join("bin").join(tool)).unwrap();
        }
        for program in ["cc", "cargo", "gofmt"].iter().chain(TEST_PROGRAMS) {
            machine.stub(program, "");
        }
        machine.stub("id", "echo 1000");
        machine.stub("python3", "");
        // It says how long it would let the program run.
        machine.stub("timeout", "echo \"limit $2\" >&2; shift 2; exec \"$@\"");
        machine.go("echo go1.24.0");
        machine
    }

    fn stub(&self, program: &str, script: &str) {
        self.write(&format!("bin/{program}"), script);
    }

    /// The machine's Go, with the output of `go version`.
    fn go(&self, version: &str) {
        let script = format!(
            "case $1 in env) {version} ;; test) echo '--- PASS: A'; echo '--- PASS: B' ;; esac"
        );
        self.write("target/tools/go/bin/go", &script);
    }

    fn write(&self, path: &str, script: &str) {
        let path = self.dir.join(path);
        fs::write(&path, format!("#!/usr/bin/env bash\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn without(self, programs: &[&str]) -> Self {
        for program in programs {
            fs::remove_file(self.dir.join("bin").join(program)).unwrap();
        }
        self
    }

    /// Makes the user root. The package manager prints its arguments and exits with this code.
    fn with_root(self, apt_get_code: u8) -> Self {
        self.stub("id", "echo 0");
        self.stub(
            "apt-get",
            &format!("echo \"apt-get $*\" >&2; exit {apt_get_code}"),
        );
        self
    }

    fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, &[])
    }

    fn run_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Run {
        let output = Command::new(self.dir.join("x"))
            .args(args)
            .env_clear()
            .env("PATH", self.dir.join("bin"))
            .env("HOME", &self.dir)
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn system_path(tool: &str) -> PathBuf {
    ["/usr/bin", "/bin"]
        .iter()
        .map(|dir| Path::new(dir).join(tool))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("{tool} is missing"))
}

impl Run {
    /// What the script says that it installs, which must come before it does anything.
    #[track_caller]
    fn announced(&self) -> &str {
        let first = self.stderr.lines().next().unwrap_or_default();
        first
            .strip_prefix("== this run installs: ")
            .unwrap_or_else(|| panic!("not announced first: {}", self.stderr))
    }

    #[track_caller]
    fn ends_with(&self, totals: &str, code: i32) {
        assert_eq!(
            (self.stdout.lines().last(), self.code),
            (Some(totals), Some(code)),
            "{}{}",
            self.stdout,
            self.stderr
        );
    }
}

#[test]
fn the_totals_of_the_tests_are_the_last_line() {
    let machine = Machine::new("totals");
    let run = machine.run(&["test", "go"]);
    assert_eq!(run.announced(), "nothing");
    run.ends_with("2 passed, 0 failed", 0);
    machine.stub(
        "cargo",
        "[ $1 != test ] || { echo 'test result: FAILED. 7 passed; 2 failed; 0 ignored'; exit 101; }",
    );
    machine
        .run(&["test", "rust"])
        .ends_with("7 passed, 2 failed", 1);
    machine.stub("cargo", "[ $1 != test ] || exit 101");
    let run = machine.run(&["test", "rust"]);
    run.ends_with("0 passed, 1 failed", 1);
}

#[test]
fn what_a_part_installs_is_said_first_and_other_parts_needs_are_not() {
    let machine = Machine::new("announces").with_root(0);
    let machine = machine.without(&["cc", "tmux", "sway", "chromium"]);
    machine.go("echo go1.20");
    machine.stub("python3", "exit 1");
    let announced = |part: &str| machine.run(&["test", part]).announced().to_owned();
    assert_eq!(
        announced("rust"),
        "Debian packages, system-wide: gcc libc6-dev tmux sway"
    );
    assert_eq!(
        announced("go"),
        "Debian packages, system-wide: gcc libc6-dev python3-venv; \
         Go, from the Python package index, into target/tools/go"
    );
    assert_eq!(
        announced("ts"),
        "Debian packages, system-wide: gcc libc6-dev; \
         npm packages of the TypeScript client, into clients/ts/node_modules"
    );
    assert_eq!(
        announced("ui"),
        "Debian packages, system-wide: gcc libc6-dev chromium; \
         npm packages of the TypeScript client, into clients/ts/node_modules; \
         npm packages of the web UI, into ui/node_modules"
    );
    assert_eq!(
        announced("mcp"),
        "Debian packages, system-wide: gcc libc6-dev python3-venv; \
         the Python SDKs of MCP, from the Python package index, into target/tools"
    );
    let run = machine.run(&["test", "rust"]);
    let asked: Vec<&str> = run
        .stderr
        .lines()
        .filter(|line| line.starts_with("apt-get install"))
        .map(|line| line.rsplit("recommends ").next().unwrap())
        .collect();
    assert_eq!(asked, ["gcc libc6-dev", "tmux sway"], "{}", run.stderr);
}

#[test]
fn a_run_that_cannot_install_what_it_needs_has_its_totals_too() {
    let check = |machine: &Machine, part: &str, expect: &str| {
        let run = machine.run(&["test", part]);
        assert!(run.stderr.contains(expect), "{}", run.stderr);
        run.ends_with("0 passed, 1 failed", 1);
    };
    let machine = Machine::new("no-installs").without(&["tmux"]);
    check(&machine, "rust", "run: sudo apt-get install tmux");
    check(&machine, "ts", "npm is missing");
    check(&machine, "ui", "npm is missing");
    let machine = machine.with_root(100);
    check(&machine, "rust", "failed with exit code 100");
    let machine = machine.without(&["cc"]);
    check(&machine, "go", "failed with exit code 100");
    drop(machine);
    let machine = Machine::new("no-cargo").without(&["cargo"]);
    check(&machine, "rust", "cargo is missing");
}

/// An npm that installs and builds at once, and tests with 3 passes.
const NPM: &str = r#"case $1 in
    ci) mkdir -p "$3/node_modules"; touch "$3/node_modules/.package-lock.json" ;;
    run) case $4 in build) mkdir -p ui/dist; touch ui/dist/index.html ;; *) echo ' Tests  3 passed' ;; esac ;;
esac"#;

/// What npm was called with.
fn npm_calls(run: &Run) -> Vec<&str> {
    let calls = run.stderr.lines();
    calls
        .filter_map(|line| line.strip_prefix("== npm "))
        .collect()
}

#[test]
fn up_builds_the_ui_when_its_sources_changed_and_goes_on_without_npm() {
    let machine = Machine::new("up");
    machine.write("target/release/turnkeep", "echo \"$@\"");
    let up = || {
        let run = machine.run(&["up", "--http", "x"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "up --http x\n"));
        run
    };
    let without_npm = up();
    assert!(without_npm.stderr.contains("the web UI is left out"));
    machine.stub("npm", NPM);
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let age = |path: &str| {
        let file = fs::File::create(machine.dir.join(path)).unwrap();
        file.set_modified(long_ago).unwrap();
    };
    for path in [
        "ui/package-lock.json",
        "ui/src/main.tsx",
        "clients/ts/src/http.ts",
    ] {
        age(path);
    }
    let install_and_build = ["ci --prefix ui", "run --prefix ui build"];
    assert_eq!(npm_calls(&up()), install_and_build);
    assert_eq!(npm_calls(&up()), [""; 0], "nothing changed");
    for path in ["ui/src/main.tsx", "clients/ts/src/http.ts"] {
        age("ui/dist/index.html");
        fs::write(machine.dir.join(path), "changed").unwrap();
        assert_eq!(npm_calls(&up()), install_and_build[1..], "{path}");
        age(path);
    }
    age("ui/dist/index.html");
    for path in ["ui/test/a.ts", "ui/node_modules/b.js"] {
        fs::create_dir_all(machine.dir.join(path).parent().unwrap()).unwrap();
        fs::write(machine.dir.join(path), "no source").unwrap();
    }
    assert_eq!(npm_calls(&up()), [""; 0], "no source changed");
}

#[test]
fn the_part_of_the_ui_builds_it_and_counts_both_kinds_of_tests() {
    let machine = Machine::new("ui");
    machine.stub("npm", NPM);
    let run = machine.run(&["test", "ui"]);
    let installs = ["ci --prefix clients/ts", "ci --prefix ui"];
    let build = ["run --prefix ui build"];
    let tests = ["run --prefix ui check", "run --prefix ui e2e"];
    assert_eq!(npm_calls(&run), [&installs[..], &build, &tests].concat());
    run.ends_with("6 passed, 0 failed", 0);
}

#[test]
fn only_ci_limits_the_time_of_a_step() {
    let machine = Machine::new("limits");
    let limits = |environment: &[(&str, &str)]| -> Vec<u64> {
        let run = machine.run_with(&["test", "go"], environment);
        let limits = run
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("limit "));
        limits.map(|limit| limit.parse().unwrap()).collect()
    };
    assert_eq!(limits(&[]), [0, 0, 0]);
    let in_ci = limits(&[("X_TIME_LIMITS", "1")]);
    assert!(in_ci.iter().all(|limit| *limit > 0), "{in_ci:?}");
}
