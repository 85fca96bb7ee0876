//! Names the files of the web UI for `src/ui_files.rs`.
//!
//! A release build embeds the files that `ui/dist` has at that time. A debug build only names the
//! directory and reads it at run time, so a new build of the UI needs no new build of the server.
//! If there is no `ui/dist`, a release build embeds nothing, and cargo runs this script again the
//! next time.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let dist = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../../ui/dist");
    let files = if variable("PROFILE")? == "release" {
        // File names change with their content, so cargo must watch the whole directory.
        println!("cargo:rerun-if-changed={}", dist.display());
        embed_files(&dist)?
    } else {
        format!("UiFiles::Directory({}.into())\n", literal(&dist)?)
    };
    fs::write(
        PathBuf::from(variable("OUT_DIR")?).join("ui_files.rs"),
        files,
    )
}

fn variable(name: &str) -> io::Result<OsString> {
    env::var_os(name).ok_or_else(|| io::Error::other(format!("cargo sets no {name}")))
}

/// An expression of Rust that holds the content of all files.
fn embed_files(dist: &Path) -> io::Result<String> {
    let mut paths = Vec::new();
    if dist.is_dir() {
        list_files(dist, &mut paths)?;
    }
    paths.sort();
    let mut text = String::from("{ const FILES: &[(&str, &[u8])] = &[\n");
    for path in paths {
        let name = path.strip_prefix(dist).map_err(io::Error::other)?;
        let (name, path) = (literal(name)?, literal(&path)?);
        writeln!(text, "({name}, include_bytes!({path})),").map_err(io::Error::other)?;
    }
    text.push_str("]; UiFiles::Embedded(FILES) }\n");
    Ok(text)
}

/// A path as a literal of Rust.
fn literal(path: &Path) -> io::Result<String> {
    let text = path.to_str();
    let text = text.ok_or_else(|| io::Error::other(format!("not UTF-8: {}", path.display())))?;
    Ok(format!("{text:?}"))
}

fn list_files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list_files(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}
