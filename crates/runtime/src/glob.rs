//! Path patterns: which files a node may write, and which files a rule is about.
//!
//! `*` stands for any characters of one path segment, `**` for any number of whole segments, `?` for
//! one character. A pattern without a slash is compared with the last segment, so that `*.md` means
//! Markdown files anywhere. Worked example: `docs/**` matches `docs/a.md` and `docs/a/b.md`, but
//! neither `docs` nor `src/docs/a.md`.

/// Whether a path matches a pattern. Both are relative, with `/` between segments.
pub fn matches(pattern: &str, path: &str) -> bool {
    if !pattern.contains('/') {
        let name = path.rsplit('/').next().unwrap_or(path);
        return segment_matches(pattern.as_bytes(), name.as_bytes());
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    segments_match(&pattern, &path)
}

fn segments_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        // At the end `**` stands for what is inside a directory, not for the directory itself.
        (["**"], path) => !path.is_empty(),
        (["**", rest @ ..], path) => {
            (0..=path.len()).any(|skip| segments_match(rest, path.get(skip..).unwrap_or_default()))
        }
        ([first, rest @ ..], [segment, behind @ ..]) => {
            segment_matches(first.as_bytes(), segment.as_bytes()) && segments_match(rest, behind)
        }
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

/// Matches one segment. On a mismatch it returns to the last star and lets it take one byte more,
/// so the work is bounded by the product of both lengths.
fn segment_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut last_star: Option<Backtrack> = None;
    while in_text < text.len() {
        match (pattern.get(at), text.get(in_text)) {
            (Some(b'*'), _) => {
                last_star = Some(Backtrack {
                    behind_star: at + 1,
                    text: in_text,
                });
                at += 1;
            }
            (Some(b'?'), Some(_)) => (at, in_text) = (at + 1, in_text + 1),
            (Some(want), Some(have)) if want == have => (at, in_text) = (at + 1, in_text + 1),
            _ => {
                let Some(star) = &mut last_star else {
                    return false;
                };
                star.text += 1;
                (at, in_text) = (star.behind_star, star.text);
            }
        }
    }
    pattern
        .get(at..)
        .unwrap_or_default()
        .iter()
        .all(|byte| *byte == b'*')
}

/// Where matching goes on when what follows a star does not fit.
struct Backtrack {
    behind_star: usize,
    text: usize,
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_their_header_says() {
        for (pattern, path, expect) in [
            ("docs/**", "docs/a.md", true),
            ("docs/**", "docs/a/b.md", true),
            ("docs/**", "docs", false),
            ("docs/**", "src/docs/a.md", false),
            ("*.md", "README.md", true),
            ("*.md", "a/b/c.md", true),
            ("*.md", "a.mdx", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("**/test/*", "a/b/test/c", true),
            ("**/test/*", "test/c", true),
            ("a?c", "abc", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("src/x", "src/x", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, path), expect, "{pattern} {path}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "*a".repeat(40);
        assert!(!matches(&pattern, &"a".repeat(39)));
        assert!(matches(&pattern, &"a".repeat(400)));
    }
}
