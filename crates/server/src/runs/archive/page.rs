//! The page of an archive: the run for people, without a server and without a network.
//!
//! Everything that an agent said is data in the page. It stands as JSON in elements that browsers do
//! not run, with every `<` written as an escape, so that no text can end its element. The script
//! shows it as text and never as markup. The page's content security policy allows this one script
//! and style, by a random nonce, and no network request.

use std::io::{self, Write};

use serde_json::json;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// How many bytes of events and patches the page has. Browsers open that in a moment; the files
/// beside the page have the rest.
const DATA_BYTES_MAX: usize = 24 << 20;
/// How much of one patch the page shows, in characters.
const PATCH_CHARACTERS_MAX: usize = 128 << 10;

/// A patch to show.
pub(super) struct EmbeddedPatch<'a> {
    pub(super) artifact: String,
    pub(super) text: &'a str,
}

/// A page in the making. The caller passes the same output to each call.
pub(super) struct PageWriter {
    nonce: String,
    bytes: usize,
    /// Whether something was left out.
    is_cut: bool,
}

impl PageWriter {
    /// Writes the head of the page.
    pub(super) fn begin(out: &mut impl Write, title: &str, nonce: &str) -> io::Result<Self> {
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; \
             base-uri 'none'; form-action 'none'"
        );
        let title = escape_html(title);
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style nonce=\"{nonce}\">\n{STYLE}</style>\n</head>\n<body>\n\
             <noscript><p class=\"notice\">This page shows the run with a script. Allow it, or read \
             <a href=\"events.jsonl\">events.jsonl</a>.</p></noscript>\n<div id=\"page\"></div>\n"
        )?;
        Ok(Self {
            nonce: nonce.to_owned(),
            bytes: 0,
            is_cut: false,
        })
    }

    /// Writes the state of the run.
    pub(super) fn add_run(&mut self, out: &mut impl Write, json: &str) -> io::Result<()> {
        out.write_all(b"<script type=\"application/json\" id=\"run\">")?;
        self.put_data(out, json)?;
        out.write_all(b"</script>\n")
    }

    pub(super) fn begin_events(out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"<script type=\"application/x-ndjson\" id=\"events\">")
    }

    /// Writes the JSON of an event, which has no line breaks.
    pub(super) fn add_event(&mut self, out: &mut impl Write, json: &str) -> io::Result<()> {
        self.put_data(out, json)
    }

    pub(super) fn begin_patches(out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"</script>\n<script type=\"application/x-ndjson\" id=\"patches\">")
    }

    pub(super) fn add_patch(
        &mut self,
        out: &mut impl Write,
        patch: &EmbeddedPatch<'_>,
    ) -> io::Result<()> {
        let shown: String = patch.text.chars().take(PATCH_CHARACTERS_MAX).collect();
        let is_cut = shown.len() < patch.text.len();
        let line = json!({"id": patch.artifact, "text": shown, "cut": is_cut});
        self.put_data(out, &line.to_string())
    }

    /// Writes the script and the end of the page.
    pub(super) fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let Self { nonce, is_cut, .. } = self;
        write!(
            out,
            "</script>\n<script type=\"application/json\" id=\"cut\">{is_cut}</script>\n\
             <script nonce=\"{nonce}\">\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }

    /// Writes JSON as the content of an element, one line. Too much of it is left out.
    fn put_data(&mut self, out: &mut impl Write, json: &str) -> io::Result<()> {
        self.bytes += json.len();
        if self.bytes > DATA_BYTES_MAX {
            self.is_cut = true;
            return Ok(());
        }
        // In JSON a `<` can only be in a text, where the escape means the same.
        out.write_all(json.replace('<', "\\u003c").as_bytes())?;
        out.write_all(b"\n")
    }
}

fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(title: &str, event: &str, patch: &str) -> String {
        let mut out = Vec::new();
        let mut page = PageWriter::begin(&mut out, title, "n-1").unwrap();
        page.add_run(&mut out, "{}").unwrap();
        PageWriter::begin_events(&mut out).unwrap();
        page.add_event(&mut out, event).unwrap();
        PageWriter::begin_patches(&mut out).unwrap();
        let patch = EmbeddedPatch {
            artifact: "a".to_owned(),
            text: patch,
        };
        page.add_patch(&mut out, &patch).unwrap();
        page.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_text_of_an_agent_can_end_its_element() {
        let evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>";
        let event = json!({ "content": evil }).to_string();
        let plain = make("", "{}", "");
        let page = make(evil, &event, evil);
        // The same elements as without it, and none that begins with the agent's text.
        for tag in ["<script", "</script", "<img", "<!--", "<style"] {
            assert_eq!(
                page.matches(tag).count(),
                plain.matches(tag).count(),
                "{tag}"
            );
        }
        let (_, rest) = page.split_once("id=\"events\">").unwrap();
        let (line, _) = rest.split_once('\n').unwrap();
        let read: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(read["content"], evil);
    }

    #[test]
    fn a_long_run_is_cut_and_the_page_says_so() {
        let long = json!({ "content": "x".repeat(DATA_BYTES_MAX) }).to_string();
        let page = make("long", &long, "");
        assert!(page.len() < DATA_BYTES_MAX);
        assert!(page.contains("id=\"cut\">true<"));
        assert!(make("short", "{}", "").contains("id=\"cut\">false<"));
    }
}
