//! A path inside a tree: relative, with `/` between components, any bytes but NUL.
//!
//! The type is the one check between names from a tree and the file system. It has no `..`, no empty
//! component, and no component that a file system could read as `.git`.
//!
//! The text form is the path itself where that is unambiguous, and otherwise git's quoted form:
//!
//! | path | text |
//! |---|---|
//! | `src/a b.rs` | `src/a b.rs` |
//! | a newline between `a` and `b` | `"a\nb"` |
//! | the byte 0xff, which is not UTF-8 | `"\377"` |
//! | `"x"` | `"\"x\""` |

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

/// The longest path in bytes, as Linux limits it.
const PATH_BYTES_MAX: usize = 4096;

/// A path inside a tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Vec<u8>);

/// A path that must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path `{0}` is not allowed inside a workspace")]
pub struct PathError(pub String);

impl TreePath {
    /// Checks a path.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, PathError> {
        let bytes = bytes.into();
        let is_safe = bytes.len() <= PATH_BYTES_MAX
            && !bytes.contains(&0)
            && bytes.split(|byte| *byte == b'/').all(is_safe_component);
        if is_safe {
            Ok(Self(bytes))
        } else {
            Err(PathError(String::from_utf8_lossy(&bytes).into_owned()))
        }
    }

    /// The path as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path for use below a directory.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The names of the directories around the file, outermost first.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &[u8]> {
        let directories = self.0.len().saturating_sub(self.name().len() + 1);
        let directories = self.0.get(..directories).unwrap_or_default();
        directories
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
    }

    /// The file's own name.
    pub(crate) fn name(&self) -> &[u8] {
        self.0
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or(&self.0)
    }

    /// The paths of the directories around the file: `a/b/c` has `a/b` and `a`.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &[u8]> {
        let slashes = self.0.iter().enumerate().rev();
        slashes
            .filter(|(_, byte)| **byte == b'/')
            .filter_map(|(at, _)| self.0.get(..at))
    }
}

/// Whether a component is a plain name. File systems that ignore case, trailing dots or long names
/// read several spellings as `.git`; writing into that directory could make git run programs.
fn is_safe_component(component: &[u8]) -> bool {
    let lower = component.to_ascii_lowercase();
    let end = lower
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b' '))
        .map_or(0, |last| last + 1);
    let trimmed = lower.get(..end).unwrap_or_default();
    !trimmed.is_empty() && trimmed != b".git" && trimmed != b"git~1"
}

/// Quotes a path as git does, if it needs quotes in a patch.
pub(crate) fn quote_for_patch(path: &[u8]) -> Vec<u8> {
    let needs_quotes = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=31 | 127);
    if path.iter().any(needs_quotes) {
        quote(path)
    } else {
        path.to_vec()
    }
}

fn quote(path: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &byte in path {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            b' '..=b'~' => out.push(byte),
            _ => out.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    out.push(b'"');
    out
}

/// Reads git's quoted form; the quotes are already removed.
fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'\\', [b'n', behind @ ..]) => push(&mut out, b'\n', behind),
            (b'\\', [b't', behind @ ..]) => push(&mut out, b'\t', behind),
            (b'\\', [escaped @ (b'"' | b'\\'), behind @ ..]) => push(&mut out, *escaped, behind),
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    behind @ ..,
                ],
            ) => {
                let byte = (a - b'0') * 64 + (b - b'0') * 8 + (c - b'0');
                push(&mut out, byte, behind)
            }
            (b'\\' | b'"', _) => return None,
            (plain, behind) => push(&mut out, *plain, behind),
        };
    }
    Some(out)
}

fn push<'a>(out: &mut Vec<u8>, byte: u8, behind: &'a [u8]) -> &'a [u8] {
    out.push(byte);
    behind
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.starts_with('"') && !text.contains(char::is_control) => {
                f.write_str(text)
            }
            _ => f.write_str(&String::from_utf8_lossy(&quote(&self.0))),
        }
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for TreePath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let Some(quoted) = text.strip_prefix('"') else {
            return Self::new(text);
        };
        let bytes = quoted
            .strip_suffix('"')
            .and_then(|inner| unquote(inner.as_bytes()));
        Self::new(bytes.ok_or_else(|| PathError(text.to_owned()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside_the_workspace_are_accepted() {
        for (path, expect) in [
            ("a", true),
            ("a/b c/.gitignore", true),
            ("...a", true),
            (".gitmodules", true),
            ("", false),
            ("/a", false),
            ("a//b", false),
            ("a/", false),
            ("a/./b", false),
            ("../a", false),
            ("a/..", false),
            (".git/config", false),
            ("a/.GiT/hooks/x", false),
            (".git. /x", false),
            ("GIT~1/x", false),
            ("a\0b", false),
        ] {
            assert_eq!(TreePath::new(path).is_ok(), expect, "{path:?}");
        }
        assert!(TreePath::new("x".repeat(PATH_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn the_text_form_is_lossless() {
        for (path, text) in [
            (&b"src/a b.rs"[..], "src/a b.rs"),
            (b"a\nb\\", "\"a\\nb\\\\\""),
            (b"\xff", "\"\\377\""),
            (b"\"x\"", "\"\\\"x\\\"\""),
            ("ä".as_bytes(), "ä"),
        ] {
            let path = TreePath::new(path).unwrap();
            assert_eq!(path.to_string(), text);
            assert_eq!(text.parse::<TreePath>().unwrap(), path);
        }
        for bad in ["\"", "\"a", "\"a\"b\"", "\"\\9\"", "\"\\056\\056\""] {
            assert!(bad.parse::<TreePath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_names_its_directories() {
        let path = TreePath::new("a/b/c").unwrap();
        assert_eq!(path.directories().collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(path.ancestors().collect::<Vec<_>>(), [&b"a/b"[..], b"a"]);
        assert_eq!(path.name(), b"c");
        assert_eq!(TreePath::new("c").unwrap().directories().count(), 0);
    }
}
