//! Export, import, verify and repair on real directories.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use sandbox::{Sandbox, check};

#[test]
fn an_export_imports_as_the_same_store() {
    let sandbox = Sandbox::new().with_turns();
    let export = sandbox.json(&["export", "all.turnkeep", "--json"], "");
    let bytes = std::fs::metadata(sandbox.path("all.turnkeep"))
        .unwrap()
        .len();
    assert_eq!(export["bytes"], bytes);
    assert!(!sandbox.path("all.turnkeep.part").exists());
    assert_eq!(
        sandbox.output(&["export", "-"], b"").stdout.len() as u64,
        bytes
    );
    let again = sandbox.output(&["export", "all.turnkeep"], b"");
    assert!(String::from_utf8(again.stderr).unwrap().contains("--force"));

    assert!(
        sandbox
            .output(&["import", "all.turnkeep", "--data", "copy"], b"")
            .status
            .success()
    );
    for args in [
        &["log", "1", "--json"][..],
        &["ctx", "list", "--json"],
        &["registry", "get", "example#1"],
    ] {
        let copy = [args, &["--data", "copy"]].concat();
        assert_eq!(
            sandbox.output(args, b"").stdout,
            sandbox.output(&copy, b"").stdout,
            "{args:?}"
        );
    }
    assert_eq!(
        sandbox.json(&["verify", "--data", "copy", "--json"], "")["turns"],
        2
    );
    let twice = sandbox.output(&["import", "all.turnkeep", "--data", "copy"], b"");
    let said = String::from_utf8(twice.stderr).unwrap();
    assert!(
        said.starts_with("error: copy holds a store already\nhint: "),
        "{said}"
    );
}

/// Runs a command under a umask.
fn output_under_umask(sandbox: &Sandbox, umask: &str, args: &[&str]) -> std::process::Output {
    let binary = sandbox.command(args);
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(format!("umask {umask}; exec \"$0\" \"$@\""));
    shell
        .arg(binary.get_program())
        .args(args)
        .current_dir(sandbox.path("."));
    shell.env_clear().envs(
        binary
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell.output().unwrap()
}

#[test]
fn an_export_is_its_owners_alone_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new().with_turns();
    for umask in ["000", "022", "200"] {
        let name = format!("{umask}.turnkeep");
        let done = output_under_umask(&sandbox, umask, &["export", &name]);
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let mode = std::fs::metadata(sandbox.path(&name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o600, "umask {umask}");
    }
}

#[test]
fn an_export_touches_nothing_that_it_did_not_make() {
    let sandbox = Sandbox::new().with_turns();
    let link =
        |target: &str, name: &str| std::os::unix::fs::symlink(target, sandbox.path(name)).unwrap();
    std::fs::write(sandbox.path("diary"), "mine").unwrap();
    // What an unfinished export used to be called: a file of somebody's, and a link to one.
    std::fs::write(sandbox.path("a.part"), "mine too").unwrap();
    link("diary", "b.part");
    for name in ["a", "b"] {
        assert!(sandbox.output(&["export", name], b"").status.success());
    }
    assert_eq!(std::fs::read(sandbox.path("a.part")).unwrap(), b"mine too");
    // The name itself is a link, to a file or to nowhere.
    link("diary", "to-diary");
    link("nowhere", "dangling");
    for name in ["to-diary", "dangling"] {
        let refused = sandbox.output(&["export", name], b"");
        assert_eq!(refused.status.code(), Some(1), "{name}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            said.contains("is there already") && said.contains("--force"),
            "{said}"
        );
        assert!(
            sandbox
                .output(&["export", name, "--force"], b"")
                .status
                .success()
        );
        assert!(
            sandbox.path(name).symlink_metadata().unwrap().is_file(),
            "{name}: the link is replaced"
        );
    }
    assert_eq!(std::fs::read(sandbox.path("diary")).unwrap(), b"mine");
    assert!(!sandbox.path("nowhere").exists());
    let names = std::fs::read_dir(sandbox.path(".")).unwrap();
    let parts = names.filter(|name| {
        name.as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|end| end == "part")
    });
    assert_eq!(parts.count(), 2, "no unfinished file stays behind");
}

#[test]
fn an_export_works_while_the_server_runs() {
    let sandbox = Sandbox::new();
    let _server = sandbox.up(&[]);
    let sandbox = sandbox.with_turns();
    assert!(
        sandbox
            .output(&["export", "hot.turnkeep"], b"")
            .status
            .success()
    );
    assert!(
        sandbox
            .output(&["import", "hot.turnkeep", "--data", "copy"], b"")
            .status
            .success()
    );
    assert_eq!(
        sandbox.json(&["stats", "--data", "copy", "--json"], "")["turns"],
        2
    );
}

#[test]
fn a_store_is_verified_beside_its_server() {
    let sandbox = Sandbox::new();
    let _server = sandbox.up(&[]);
    let sandbox = sandbox.with_turns();
    let verified = sandbox.output(&["verify", "--json"], b"");
    let said = String::from_utf8(verified.stderr).unwrap();
    assert!(verified.status.success(), "{said}");
    assert!(
        said.contains("is in use: this checks what was durable when it began"),
        "{said}"
    );
    let report: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(
        (&report["sound"], &report["turns"]),
        (&true.into(), &2.into())
    );
    // The server goes on, and damage is found beside it, too.
    assert!(
        sandbox
            .output(&["append", "1", "--msgpack", "-"], b"3")
            .status
            .success()
    );
    flip_byte(&sandbox, b"Why is t");
    let damaged = sandbox.output(&["verify", "--json"], b"");
    assert_eq!(damaged.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&damaged.stdout).unwrap();
    assert_eq!(
        (&report["turns"], &report["bad_blobs"][0]["turns"][0]),
        (&3.into(), &"1".into())
    );
}

/// Changes a byte of the log where a text begins, in place.
fn flip_byte(sandbox: &Sandbox, text: &[u8]) {
    use std::os::unix::fs::FileExt;
    let segment = sandbox.data().join("log/0000000001.seg");
    let bytes = std::fs::read(&segment).unwrap();
    let at = bytes
        .windows(text.len())
        .position(|window| window == text)
        .unwrap();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&segment)
        .unwrap();
    file.write_all_at(&[bytes[at] ^ 1], at as u64).unwrap();
}

/// A command in the sandbox that may not write to its data directory: file permissions do not bind
/// root, so root's commands run as another user.
fn output_as_reader(sandbox: &Sandbox, args: &[&str]) -> std::process::Output {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let mut command = sandbox.command(args);
    if rustix::process::geteuid().is_root() {
        let binary = sandbox.path("turnkeep");
        if !binary.exists() {
            std::fs::copy(command.get_program(), &binary).unwrap();
        }
        let mut as_nobody = std::process::Command::new(binary);
        as_nobody
            .args(args)
            .current_dir(sandbox.path("."))
            .env_clear();
        as_nobody.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command = as_nobody;
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().unwrap()
}

/// Sets the modes of a directory and all that is in it.
fn set_modes(path: &std::path::Path, directories: u32, files: u32) {
    use std::os::unix::fs::PermissionsExt;
    let mode = if path.is_dir() { directories } else { files };
    if path.is_dir() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
        for entry in std::fs::read_dir(path).unwrap() {
            set_modes(&entry.unwrap().path(), directories, files);
        }
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_read_only_store_is_verified_copied_and_read() {
    let sandbox = Sandbox::new().with_turns();
    // As a kill leaves it: a start would write the last frame again.
    std::fs::remove_dir_all(sandbox.data().join("index")).unwrap();
    let bytes_before = files_of(&sandbox.data());
    std::fs::create_dir(sandbox.path("open")).unwrap();
    set_modes(&sandbox.path("."), 0o777, 0o666);
    set_modes(&sandbox.data(), 0o555, 0o444);
    let read = |args: &[&str]| {
        let output = output_as_reader(&sandbox, args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        assert!(said.contains("is read-only"), "{args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(read(&["verify"]).starts_with("sound: 2 turns"));
    assert!(read(&["log", "1", "--oneline"]).contains("Rayleigh"));
    assert!(read(&["stats"]).contains("Turns"));
    read(&["export", "open/all.turnkeep"]);
    assert!(read(&["repair", "open/repaired"]).starts_with("sound: 2 turns"));
    for args in [
        &["append", "1", "--msgpack", "-"][..],
        &["ctx", "fork", "turn:1"],
    ] {
        let write = output_as_reader(&sandbox, args);
        let said = String::from_utf8(write.stderr).unwrap();
        assert_eq!(write.status.code(), Some(1), "{args:?}");
        assert!(said.contains("cannot be written"), "{args:?}: {said}");
    }
    set_modes(&sandbox.data(), 0o700, 0o600);
    assert_eq!(
        files_of(&sandbox.data()),
        bytes_before,
        "nothing in it was changed"
    );
    let imported = sandbox.output(&["import", "open/all.turnkeep", "--data", "open/copy"], b"");
    assert!(imported.status.success());
}

#[test]
fn a_fork_needs_a_store_that_is_there() {
    let sandbox = Sandbox::new();
    let refused = sandbox.output(&["ctx", "fork", "turn:1"], b"");
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("there is no store"), "{said}");
    assert!(!sandbox.data().exists());
}

/// Reading a world's records leaves a line in its audit, which read-only media cannot take.
#[test]
fn a_world_on_read_only_media_is_read() {
    let sandbox = Sandbox::new();
    let made = sandbox.output(&["world", "new", "payments", "--person", "CODER"], b"");
    assert!(made.status.success());
    set_modes(&sandbox.path("."), 0o777, 0o666);
    set_modes(&sandbox.data(), 0o555, 0o444);
    for args in [&["export", "-"][..], &["world", "show", "payments"]] {
        let output = output_as_reader(&sandbox, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
    }
    set_modes(&sandbox.data(), 0o700, 0o600);
}

/// Every file of a directory, with its bytes.
fn files_of(path: &std::path::Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut files = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_of(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            files.insert(path, bytes);
        }
    }
    files
}

#[test]
fn a_log_that_went_back_is_reported_at_the_start() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    let sandbox = sandbox.with_turns();
    server.kill();
    std::fs::remove_file(sandbox.data().join("log/0000000001.seg")).unwrap();
    for args in [&["stats"][..], &["append", "1", "--msgpack", "-"]] {
        let refused = sandbox.output(args, b"3");
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            said.contains("the log went back: it ends at frame 0"),
            "{said}"
        );
    }
}

#[test]
fn a_cut_export_is_refused_and_leaves_nothing() {
    let sandbox = Sandbox::new().with_turns();
    let whole = sandbox.output(&["export", "-"], b"").stdout;
    for cut in [0, 7, 40, whole.len() / 2, whole.len() - 1] {
        std::fs::write(sandbox.path("cut"), &whole[..cut]).unwrap();
        let refused = sandbox.output(&["import", "cut", "--data", "copy"], b"");
        assert_eq!(refused.status.code(), Some(1), "cut at {cut}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            said.starts_with("error: cannot import cut: this is not a whole export"),
            "{said}"
        );
    }
    std::fs::write(sandbox.path("cut"), &whole).unwrap();
    assert!(
        sandbox
            .output(&["import", "cut", "--data", "copy"], b"")
            .status
            .success()
    );
}

#[test]
fn damage_is_named_and_repaired_around() {
    let sandbox = Sandbox::new().with_turns();
    check(
        &sandbox
            .transcript("verify")
            .replace(|c: char| c.is_ascii_digit(), "N"),
        "
        $ verify
        sound: N turns, N contexts, N blobs in N frames, N.N KiB
        ",
    );
    let segment = sandbox.data().join("log/0000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes
        .windows(8)
        .position(|text| text == b"Why is t")
        .unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let found = sandbox.output(&["verify", "--json"], b"");
    assert_eq!(found.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(report["sound"], false);
    assert_eq!(report["bad_blobs"][0]["turns"], serde_json::json!(["1"]));
    let said = String::from_utf8(found.stderr).unwrap();
    assert!(
        said.contains("\"hint\":\"`turnkeep repair NEW_DIR`"),
        "{said}"
    );

    assert!(
        sandbox
            .output(&["repair", "repaired"], b"")
            .status
            .success()
    );
    // The copy is intact, but a payload is gone, and that is said.
    let copy = sandbox.output(&["verify", "--data", "repaired", "--json"], b"");
    assert_eq!(copy.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&copy.stdout).unwrap();
    assert_eq!(
        (&report["sound"], &report["intact"]),
        (&false.into(), &true.into())
    );
    assert_eq!(
        report["missing"]["payloads"][0]["turns"],
        serde_json::json!(["1"])
    );
    let log = sandbox.output(
        &["log", "1", "--oneline", "-n", "1", "--data", "repaired"],
        b"",
    );
    let log = String::from_utf8(log.stdout).unwrap();
    assert_eq!(
        log,
        "2 (ctx:1) com.example.Message@1 role=assistant text=Rayleigh scattering.\n"
    );
    let again = sandbox.output(&["repair", "repaired"], b"");
    assert_eq!(again.status.code(), Some(1));
}

#[test]
fn a_torn_tail_is_reported_when_it_is_cut() {
    let sandbox = Sandbox::new().with_turns();
    let segment = sandbox.data().join("log/0000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 16;
    bytes[end..end + 100].fill(0xee);
    std::fs::write(&segment, bytes).unwrap();
    let opened = sandbox.output(&["ctx", "list"], b"");
    let said = String::from_utf8(opened.stderr).unwrap();
    assert!(opened.status.success(), "{said}");
    assert!(said.starts_with("note: a torn tail of "), "{said}");
    assert!(said.contains(" bytes at log/0000000001.seg:"), "{said}");
    let copy = said.trim().split(' ').next_back().unwrap();
    assert!(
        copy.starts_with("log/torn/") && sandbox.data().join(copy).exists(),
        "{said}"
    );
    assert_eq!(
        String::from_utf8(sandbox.output(&["ctx", "list"], b"").stderr).unwrap(),
        ""
    );
}

#[test]
fn a_directory_that_holds_anything_is_not_filled() {
    let sandbox = Sandbox::new().with_turns();
    assert!(
        sandbox
            .output(&["export", "all.turnkeep"], b"")
            .status
            .success()
    );
    std::fs::create_dir(sandbox.path("used")).unwrap();
    std::fs::write(sandbox.path("used/diary"), "mine").unwrap();
    std::fs::write(sandbox.path("bad"), "no export").unwrap();
    check(
        &sandbox.transcript(
            "import all.turnkeep --data used
             repair used
             import bad --data a/b
             repair data/inside
             --server 127.0.0.1:1 verify",
        ),
        "
        $ import all.turnkeep --data used
        error: used is not empty: it holds diary
        hint: name a directory that is empty or not there yet
        [exit status: 1]
        $ repair used
        error: used is not empty: it holds diary
        hint: name a directory that is empty or not there yet
        [exit status: 1]
        $ import bad --data a/b
        error: cannot import bad: this is not a whole export: it is cut off
        hint: the file must be one that `turnkeep export` wrote, complete and unchanged
        [exit status: 1]
        $ repair data/inside
        error: HOME/data/inside is inside the directory to repair
        hint: name a new directory beside it
        [exit status: 1]
        $ --server 127.0.0.1:1 verify
        error: this command works on the data directory itself, not on a server
        hint: leave --server out and name the directory with --data DIR
        [exit status: 2]
        ",
    );
    assert_eq!(std::fs::read_dir(sandbox.path("used")).unwrap().count(), 1);
    assert!(!sandbox.path("a").exists() && !sandbox.data().join("inside").exists());
}

#[test]
fn a_directory_that_was_not_filled_to_the_end_is_no_store() {
    let sandbox = Sandbox::new().with_turns();
    std::fs::write(sandbox.data().join("log/UNFINISHED"), "").unwrap();
    for args in [
        &["verify"][..],
        &["repair", "new"],
        &["stats"],
        &["import", "bundle.json"],
    ] {
        let refused = sandbox.output(args, b"");
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            said.contains("an import or repair into this directory did not end"),
            "{args:?}: {said}"
        );
    }
    assert!(!sandbox.path("new").exists());
}

#[test]
fn where_history_breaks_off_is_said() {
    let sandbox = Sandbox::new().with_turns();
    sandbox.transcript("append 1 --msgpack - < 3\nappend 1 --msgpack - < 4\nctx fork turn:3");
    let segment = sandbox.data().join("log/0000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes
        .windows(8)
        .position(|text| text == b"Rayleigh")
        .unwrap();
    bytes[at - 60..at + 4].fill(0xee);
    std::fs::write(&segment, bytes).unwrap();
    assert!(
        sandbox
            .output(&["repair", "repaired"], b"")
            .status
            .success()
    );
    check(
        &sandbox.transcript(
            "log 1 --oneline --data repaired
             log 1 --oneline --graph --data repaired
             log 1 --oneline -n 2 --data repaired",
        ),
        "
        $ log 1 --oneline --data repaired
        4 (ctx:1) (no type) 52
        3 (no type) 51
        (turn:2 was lost to damage)
        1 com.example.Message@1 role=user text=Why is the sky blue?
        [exit status: 1]
        $ log 1 --oneline --graph --data repaired
        * 4 (ctx:1) (no type) 52
        * 3 (no type) 51
        * (turn:2 was lost to damage)
        * 1 com.example.Message@1 role=user text=Why is the sky blue?
        [exit status: 1]
        $ log 1 --oneline -n 2 --data repaired
        4 (ctx:1) (no type) 52
        3 (no type) 51
        ",
    );
    check(
        &sandbox
            .transcript("verify --data repaired")
            .replace(|c: char| c.is_ascii_digit(), "N"),
        "
        $ verify --data repaired
        missing turn:N
        missing perhaps labels, filesystem roots, types or blobs that were in frames which an earlier repair or start found lost
        incomplete: N turns, N contexts, N blobs in N frames, N.N KiB
        error: the log in repaired is intact, but not everything is in it
        hint: it was lost before: a backup may still have it
        [exit status: N]
        ",
    );
}

#[test]
fn a_damaged_payload_is_told_from_an_empty_one() {
    let sandbox = Sandbox::new().with_turns();
    let segment = sandbox.data().join("log/0000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes
        .windows(8)
        .position(|text| text == b"Why is t")
        .unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let log = sandbox.output(&["log", "1", "--oneline"], b"");
    let log = String::from_utf8(log.stdout).unwrap();
    assert!(
        log.ends_with("\n1 com.example.Message@1 (payload damaged)\n"),
        "{log}"
    );
}

/// Damages the frame in which a text is.
fn damage_frame_of(sandbox: &Sandbox, text: &[u8]) {
    let segment = sandbox.data().join("log/0000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes
        .windows(text.len())
        .position(|window| window == text)
        .unwrap();
    let frame = bytes[..at]
        .windows(4)
        .rposition(|magic| magic == b"TKF1")
        .unwrap();
    bytes[frame + 60] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
}

#[test]
fn a_context_whose_creation_was_lost_says_so() {
    let sandbox = Sandbox::new().with_turns();
    sandbox.transcript("ctx new --label agent=gone\nctx new");
    damage_frame_of(&sandbox, b"gone");
    assert!(
        sandbox
            .output(&["repair", "repaired"], b"")
            .status
            .success()
    );
    for (args, expect) in [
        (
            &["ctx", "show", "2"][..],
            "unknown: its creation was lost to damage",
        ),
        (&["ctx", "list"], "(creation lost)"),
    ] {
        let output = sandbox.output(&[args, &["--data", "repaired"]].concat(), b"");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(expect), "{args:?}: {said}");
        assert!(!said.contains("is empty"), "{args:?}: {said}");
    }
}

#[test]
fn what_leaves_no_trace_is_named_as_perhaps_missing() {
    let sandbox = Sandbox::new().with_turns();
    // The frame that published the types holds no turn and no context.
    damage_frame_of(&sandbox, b"registry_version");
    let perhaps = serde_json::json!(["labels", "filesystem roots", "types", "blobs"]);
    let report = |args: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&sandbox.output(args, b"").stdout).unwrap()
    };
    assert_eq!(report(&["verify", "--json"])["perhaps_missing"], perhaps);
    assert_eq!(
        report(&["repair", "repaired", "--json"])["perhaps_missing"],
        perhaps
    );
    // The copy is intact, and still says that something was lost.
    let copy = report(&["verify", "--data", "repaired", "--json"]);
    assert_eq!(
        (&copy["sound"], &copy["intact"], &copy["perhaps_missing"]),
        (&false.into(), &true.into(), &perhaps)
    );
    let said = sandbox
        .output(&["verify", "--data", "repaired"], b"")
        .stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.starts_with("missing perhaps labels, filesystem roots, types or blobs"),
        "{said}"
    );
    // A sound store misses nothing.
    let sound = Sandbox::new().with_turns();
    let output = sound.output(&["verify", "--json"], b"").stdout;
    let sound: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(sound["perhaps_missing"], serde_json::json!([]));
}

/// Runs a command where the data directory is mounted read-only; none where that is not permitted.
fn output_on_read_only_mount(sandbox: &Sandbox, args: &[&str]) -> Option<std::process::Output> {
    let command = sandbox.command(args);
    let mount = "mount --bind data data && mount -o remount,bind,ro data";
    let inside = |script: String, args: &[&str]| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["-rm", "sh", "-c", &script]);
        unshare.arg(command.get_program()).args(args);
        unshare.current_dir(sandbox.path(".")).env_clear();
        unshare.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        unshare.output().ok()
    };
    let is_permitted = inside(mount.to_owned(), &[])?.status.success();
    is_permitted.then(|| inside(format!("{mount} && exec \"$0\" \"$@\""), args).unwrap())
}

#[test]
fn a_store_on_a_read_only_mount_is_verified_copied_and_read() {
    let sandbox = Sandbox::new().with_turns();
    std::fs::remove_dir_all(sandbox.data().join("index")).unwrap();
    for (args, expect) in [
        (&["verify"][..], "sound: 2 turns"),
        (
            &["log", "1", "--oneline"],
            "2 (ctx:1) com.example.Message@1",
        ),
        (&["stats"], "Turns"),
        (&["export", "all.turnkeep"], "exported"),
        (&["repair", "repaired"], "sound: 2 turns"),
        (&["append", "1", "--msgpack", "-"], "cannot be written"),
        (&["ctx", "fork", "turn:1"], "cannot be written"),
    ] {
        let Some(output) = output_on_read_only_mount(&sandbox, args) else {
            eprintln!("skipped: this user may not mount");
            return;
        };
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(expect), "{args:?}: {said}");
    }
}
