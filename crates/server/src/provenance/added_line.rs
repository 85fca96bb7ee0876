//! Finds a line that a patch added.
//!
//! Worked example, with line 2 of `b.txt`:
//!
//! ```text
//! --- a/b.txt
//! +++ b/b.txt         the file
//! @@ -1,2 +1,3 @@     the next line of the new file is line 1
//!  first              line 1, which was there before
//! +second             line 2: found
//!  third              line 3
//! ```
//!
//! The counts of a hunk say where it ends. That matters: a removed line `-- a/x` looks like the
//! header of a file.

/// What a patch says about a line of a new file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineFate<'a> {
    /// The patch added it.
    Added(&'a str),
    /// The patch shows it, but it was there before.
    Older,
    /// The patch does not show it.
    NotShown,
}

/// Looks a line up. The path is spelled as in the patch, which quotes unusual names.
pub(super) fn find_line<'a>(patch: &'a str, path: &str, line: u64) -> LineFate<'a> {
    let mut is_in_file = false;
    let mut hunk = Hunk::default();
    for text in patch.lines() {
        if hunk.is_over() {
            if let Some(name) = text.strip_prefix("+++ ") {
                is_in_file = is_name_of(name, path);
            } else if let Some(ranges) = text.strip_prefix("@@ ") {
                hunk = Hunk::parse(ranges).unwrap_or_default();
            }
            continue;
        }
        // Read before the hunk takes the line, which moves on to the next number.
        let number = hunk.new_line;
        let fate = match text.split_at_checked(1) {
            Some(("+", added)) => LineFate::Added(added),
            _ => LineFate::Older,
        };
        let is_in_new_file = hunk.take_line(text);
        if is_in_file && is_in_new_file && number == line {
            return fate;
        }
    }
    LineFate::NotShown
}

/// Whether the name behind `+++` is that of a path: `b/PATH`, perhaps quoted, perhaps with a tab.
fn is_name_of(name: &str, path: &str) -> bool {
    let name = name.trim_end_matches('\t');
    let name = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
        .unwrap_or(name);
    name.strip_prefix("b/") == Some(path)
}

/// A hunk while it is read.
#[derive(Debug, Default)]
struct Hunk {
    new_line: u64,
    old_left: u64,
    new_left: u64,
}

impl Hunk {
    /// Parses `-1,2 +1,3 @@`.
    fn parse(ranges: &str) -> Option<Self> {
        let mut parts = ranges.split(' ');
        let (_, old_left) = read_range(parts.next()?.strip_prefix('-')?)?;
        let (new_line, new_left) = read_range(parts.next()?.strip_prefix('+')?)?;
        Some(Self {
            new_line,
            old_left,
            new_left,
        })
    }

    fn is_over(&self) -> bool {
        self.old_left == 0 && self.new_left == 0
    }

    /// Counts a line. Returns whether the new file has it.
    fn take_line(&mut self, text: &str) -> bool {
        let (in_old, in_new) = match text.bytes().next() {
            Some(b'+') => (false, true),
            Some(b'-') => (true, false),
            // A note, such as that the file has no line break at its end.
            Some(b'\\') => (false, false),
            // Some tools write an empty line for an empty line of context.
            _ => (true, true),
        };
        self.old_left = self.old_left.saturating_sub(u64::from(in_old));
        self.new_left = self.new_left.saturating_sub(u64::from(in_new));
        self.new_line += u64::from(in_new);
        in_new
    }
}

/// Reads `BEGIN,COUNT` or `BEGIN`, whose count is 1.
fn read_range(text: &str) -> Option<(u64, u64)> {
    match text.split_once(',') {
        Some((begin, count)) => Some((begin.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/gone.sql b/gone.sql
--- a/gone.sql
+++ /dev/null
@@ -1,2 +0,0 @@
--- a/trap
-b
diff --git a/b.txt b/b.txt
--- a/b.txt
+++ b/b.txt
@@ -1,2 +1,3 @@ fn heading()
 first
+second
 third
@@ -10 +11,2 @@
-old
+new
+++ b/trap
\\ No newline at end of file
diff --git a/sp ace.txt b/sp ace.txt
--- /dev/null
+++ b/sp ace.txt\t
@@ -0,0 +1 @@
+only
";

    #[test]
    fn a_line_is_added_or_older_or_not_shown() {
        for (path, line, expect) in [
            ("b.txt", 1, LineFate::Older),
            ("b.txt", 2, LineFate::Added("second")),
            ("b.txt", 3, LineFate::Older),
            ("b.txt", 4, LineFate::NotShown),
            ("b.txt", 11, LineFate::Added("new")),
            ("b.txt", 12, LineFate::Added("++ b/trap")),
            ("b.txt", 13, LineFate::NotShown),
            ("sp ace.txt", 1, LineFate::Added("only")),
            ("gone.sql", 1, LineFate::NotShown),
            ("trap", 1, LineFate::NotShown),
        ] {
            assert_eq!(find_line(PATCH, path, line), expect, "{path}:{line}");
        }
    }

    #[test]
    fn a_broken_patch_shows_nothing() {
        for patch in ["", "@@ -1 +1", "+++ b/x\n@@ x\n+a", "+++ b/x\n@@ -1,9 +1,9"] {
            assert_eq!(find_line(patch, "x", 1), LineFate::NotShown, "{patch}");
        }
    }
}
