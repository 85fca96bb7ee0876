//! Checks that every link between documents leads to an existing file and heading.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !matches!(name, "target" | "node_modules" | ".git") {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of inline links: `[text](target)`. Code spans hold no links.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
        for part in plain.split("](").skip(1) {
            found.push(part.split(')').next().unwrap_or_default().to_owned());
        }
    }
    found
}

/// A heading's anchor as code forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>()
        .trim()
        .to_lowercase()
        .replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

fn check(document: &Path, link: &str) -> Result<(), String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        document.to_owned()
    } else {
        document.parent().unwrap().join(file)
    };
    if !target.exists() {
        return Err(format!("{}: {link}: no such file", document.display()));
    }
    if heading.is_empty() || anchors(&fs::read_to_string(&target).unwrap()).contains(heading) {
        return Ok(());
    }
    Err(format!("{}: {link}: no such heading", document.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut files = Vec::new();
    documents(&root(), &mut files);
    assert!(files.len() > 5, "only {} documents were found", files.len());
    let mut broken = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        broken.extend(
            links(&text)
                .iter()
                .filter_map(|link| check(&file, link).err()),
        );
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn links_are_found_where_they_are() {
    let text = "see [a](b.md#c) and `[x](y)`\n```\n[no](z)\n```\n[d](e)";
    assert_eq!(links(text), ["b.md#c", "e"]);
    assert_eq!(
        anchor(" One process, one directory"),
        "one-process-one-directory"
    );
    let here = root().join("README.md");
    assert!(check(&here, "no-such-file.md").is_err());
    assert!(check(&here, "README.md#no-such-heading").is_err());
}
