//! Rules that the compiler cannot check, tested on the text of the sources.

use std::fs;
use std::path::{Path, PathBuf};

use crate::arrows::CORE;
use crate::metadata::root;

/// Names that the core crates must not use: they take time, randomness and configuration as values.
const NOT_IN_CORE: &[&str] = &[
    "SystemTime::now",
    "UNIX_EPOCH",
    "rand::",
    "getrandom",
    "thread_rng",
    "/dev/urandom",
    "std::env",
    "env::var",
    "std::net",
    "tokio::",
];

/// File names that do not describe their content.
const NAMELESS: &[&str] = &[
    "utils.rs",
    "util.rs",
    "common.rs",
    "helpers.rs",
    "manager.rs",
    "types.rs",
];

/// The crates that may use `unsafe`, in one file each: memory maps of the log, and the system calls
/// of a terminal.
const UNSAFE_HOMES: &[&str] = &["journal", "pty"];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources(name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    rust_files(&root().join("crates").join(name).join("src"), &mut found);
    found
}

fn crate_names() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The lines that end up in the program: no comments, nothing from the unit tests on.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let shipped = text
        .lines()
        .take_while(|line| line.trim() != "#[cfg(test)]");
    shipped
        .enumerate()
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

fn is_test_file(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

#[test]
fn core_reads_no_clock_random_number_environment_or_network() {
    let files: Vec<PathBuf> = CORE.iter().flat_map(|name| sources(name)).collect();
    assert!(files.len() > 10, "only {} files were found", files.len());
    for path in files.iter().filter(|path| !is_test_file(path)) {
        let text = fs::read_to_string(path).unwrap();
        for (number, line) in code(&text) {
            for word in NOT_IN_CORE {
                assert!(
                    !line.contains(word),
                    "{}:{number} uses {word}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn unsafe_has_one_home_in_each_of_two_crates() {
    let mut homes = Vec::new();
    for name in crate_names() {
        for path in sources(&name) {
            let text = fs::read_to_string(&path).unwrap();
            let says = |(_, line): (usize, &str)| {
                line.contains("unsafe {") || line.contains("unsafe_code")
            };
            if code(&text).any(says) {
                homes.push((name.clone(), path));
            }
        }
    }
    let names: Vec<&str> = homes.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        names.iter().all(|name| UNSAFE_HOMES.contains(name)),
        "{homes:?}"
    );
    assert!(
        names.is_sorted_by(|a, b| a < b),
        "more than one file of a crate says unsafe: {homes:?}"
    );
}

#[test]
fn every_file_has_a_name_that_says_its_idea() {
    for path in crate_names().iter().flat_map(|name| sources(name)) {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            !NAMELESS.contains(&name),
            "{}: name the idea",
            path.display()
        );
    }
}

#[test]
fn the_scan_skips_comments_and_unit_tests() {
    let text = "a // std::env\nb\n#[cfg(test)]\nstd::env\n";
    assert_eq!(code(text).collect::<Vec<_>>(), [(1, "a "), (2, "b")]);
}
