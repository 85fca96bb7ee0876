//! `docs/performance.md`: the table with its method, its caveats and the machine that it was
//! measured on.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::Effort;
use super::scratch::ScratchDir;
use super::table::Table;

/// What follows this line in the document stays as it is: other commands write there.
const END: &str = "<!-- end of what turnkeep bench writes -->\n";

const METHOD: &str = "\
## Method

- Client and server are two processes on one machine and share its cores. The client is one thread that sends requests assembled beforehand and measures answers by their header.
- *Bare* is a server in the same harness that only parses frames, checks BLAKE3 and group-commits (one write and one `fdatasync` per group into a preallocated file): it has no store. For the engine it is a preallocated file that is only written and synced: store and file take turns at sixteen groups of 256, just made, into space that was filled with zeros before; the sustained row lets the store find its space as it goes. Its `GET_LAST` is one page from memory.
- Every append is acknowledged after `fdatasync`. Payloads are all different, so that none is dropped as a duplicate; each connection appends to a context of its own.
- Bare and store alternate, round by round, after a warm-up of both; figures are medians over the rounds, the ratio is the median of each round's ratio.
- Memory is `RssAnon` of the server right after the appends. Disk is the log up to its last frame plus the index. A start counts from creating the process to its first answer to a read.
- The wrapper's output is a file that `cat` prints in a terminal of its own; *bare* is the same through `script -qc`. A key goes to a program that sends it back; *bare* is the same program without a wrapper.

## Caveats

- Absolute figures vary with the machine, its disk and its neighbours; read the ratios. A virtual disk may acknowledge a sync earlier than a real one.
- With one connection the time is the sync's; with many, the client takes a good part of the machine.
- Pages are read warm: they lie in the page cache.
";

/// Writes the report.
pub(super) fn write_report(
    path: &Path,
    table: &Table,
    effort: &Effort,
    scratch: &ScratchDir,
) -> Result<()> {
    let shortfalls = table.shortfalls().replace(">=", "≥").replace("<=", "≤");
    let verdict = if shortfalls.is_empty() {
        "Every goal is reached.\n".to_owned()
    } else {
        format!("Not reached:\n\n{shortfalls}")
    };
    // A reader must not take such figures for a disk's.
    let disk = if scratch.is_in_memory() {
        " Files were in memory: syncs cost nothing."
    } else {
        ""
    };
    let text = format!(
        "# Performance\n\nMeasured and written by `turnkeep bench --write`, unless a section says otherwise.\n\n{}\n{verdict}\n{METHOD}\n## Machine\n\n{}, payloads of {} bytes, {} rounds of {} ms.{disk}\n\n{END}{}",
        table.to_markdown(),
        describe_machine(),
        effort.payload,
        effort.rounds,
        effort.millis,
        text_after_table(path),
    );
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Puts a text between two lines of a document that mark its place.
pub(super) fn write_section(path: &Path, marks: [&str; 2], section: &str) -> Result<()> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let [begin, end] = marks;
    // A document without the marks is not overwritten: it is not the one that was meant.
    let (before, rest) = text
        .split_once(begin)
        .with_context(|| format!("no {begin}in {name}"))?;
    let (_, after) = rest
        .split_once(end)
        .with_context(|| format!("no {end}in {name}"))?;
    let text = format!("{before}{begin}\n{section}\n{end}{after}");
    fs::write(path, text).with_context(|| format!("cannot write {name}"))
}

/// What others wrote into the document.
fn text_after_table(path: &Path) -> String {
    let before = fs::read_to_string(path).unwrap_or_default();
    before
        .split_once(END)
        .map_or_else(String::new, |(_, rest)| rest.to_owned())
}

/// Cores, processor and kernel, as the system tells them.
pub(super) fn describe_machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or(": unknown processor");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{cores} cores of {}, Linux {}",
        model.trim_start_matches(['\t', ' ', ':']),
        kernel.trim()
    )
}
