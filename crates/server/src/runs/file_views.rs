//! The files of a run, for people and for tools: `events.jsonl` and the artifacts.
//!
//! They are views. The log is the truth: the task reads the log's events in order and appends their
//! lines, so a file is never ahead of the log. When the server starts, it compares each file with
//! the log, cuts a torn line, writes what is missing, and writes a file that differs anew.
//!
//! A file that cannot be written is reported once and tried again later. It stops neither the other
//! files nor the run. When the run is deleted, this task removes its files: no other task writes
//! them, so none comes back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::{Event, Fact};
use turnkeep_store::Store;

use super::json::{RunPlace, event_view};
use super::run_handle::RunHandle;

/// How many events are read from the log at once.
const PAGE_EVENTS: usize = 256;
/// The pause before files are tried again that could not be written.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How many artifacts are tried again. What is more waits for the next start.
const MISSING_MAX: usize = 1_000;
const EVENTS_FILE: &str = "events.jsonl";

/// Keeps the files of a run complete for as long as the run lives.
///
/// The task itself notices that the server stops, between two pages. If it were cancelled instead,
/// a run that was deleted just before the stop would keep its files.
pub(super) async fn write_files(handle: Arc<RunHandle>) {
    let services = &handle.services;
    let Some(dir) = services.run_dir(handle.id()) else {
        return;
    };
    let mut last_seq = handle.subscribe_seq();
    let mut files = RunFiles::new(&dir, services.artifacts_dir(handle.id()));
    loop {
        // The number is read before the state: an event that comes in between changes the number again
        // and wakes this task.
        let end = *last_seq.borrow_and_update();
        if handle.read_live(|run| run.is_deleted) {
            return services.remove_files(handle.id()).await;
        }
        if services.stopping.is_cancelled() {
            return;
        }
        files = match write_up_to(&handle, files, end).await {
            Some(files) => files,
            None => return,
        };
        let retries = files.is_failing;
        tokio::select! {
            changed = last_seq.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(RETRY_PAUSE), if retries => {}
            () = services.stopping.cancelled() => {}
        }
    }
}

/// Writes the events up to a number, and the artifacts that they name. It stops early when the
/// server does. Returns `None` when no thread could be had.
async fn write_up_to(handle: &Arc<RunHandle>, mut files: RunFiles, end: u64) -> Option<RunFiles> {
    let mut problem = None;
    loop {
        let first = files.events.written + 1;
        let is_complete = first > end;
        let mut events = Vec::new();
        if !is_complete {
            match handle.read_events(first, PAGE_EVENTS).await {
                Ok(read) => events = read,
                Err(error) => problem = Some(error.to_string()),
            }
        }
        let is_last = events.is_empty();
        let written = write_page(handle, files, events, is_complete).await?;
        files = written.files;
        problem = problem.or(written.problem);
        // Without progress the rest waits for the next try.
        let is_stopping = handle.services.stopping.is_cancelled();
        if is_last || is_stopping || files.events.written < first {
            files.report(handle, problem);
            return Some(files);
        }
    }
}

/// What became of a page.
struct WrittenPage {
    files: RunFiles,
    problem: Option<String>,
}

/// Writes a page of events on a thread that may block.
async fn write_page(
    handle: &Arc<RunHandle>,
    mut files: RunFiles,
    events: Vec<Event>,
    is_complete: bool,
) -> Option<WrittenPage> {
    let writer = Arc::clone(handle);
    let work = move || {
        let store = writer.services.store.store();
        let lines = render(&writer, &events);
        let written = files.write(store, &events, &lines, is_complete);
        let problem = written.err().map(|error| error.to_string());
        WrittenPage { files, problem }
    };
    handle.services.run_blocking(work).await.ok()
}

/// The lines of events, without line breaks.
fn render(handle: &RunHandle, events: &[Event]) -> Vec<String> {
    let artifacts_dir = handle.services.artifacts_dir(handle.id());
    handle.read(|run| {
        let place = RunPlace {
            run: handle.id(),
            archive: &run.archive,
            artifacts_dir: &artifacts_dir,
        };
        let line = |event| serde_json::to_string(&event_view(place, event)).unwrap_or_default();
        events.iter().map(line).collect()
    })
}

/// The files of a run.
struct RunFiles {
    events: EventFile,
    artifacts_dir: PathBuf,
    /// Artifacts that could not be written.
    missing: Vec<Artifact>,
    is_failing: bool,
}

impl RunFiles {
    fn new(dir: &Path, artifacts_dir: PathBuf) -> Self {
        Self {
            events: EventFile::new(dir),
            artifacts_dir,
            missing: Vec::new(),
            is_failing: false,
        }
    }

    /// Writes what can be written. Returns the first error.
    fn write(
        &mut self,
        store: &Store,
        events: &[Event],
        lines: &[String],
        is_complete: bool,
    ) -> io::Result<()> {
        // Artifacts first: a program that follows the events finds the file of each line it reads.
        let artifacts = self.write_artifacts(store, events);
        let added = self.events.add(lines);
        let rest = if is_complete && added.is_ok() {
            // Every event of the log was compared, so what is left does not belong there.
            self.events.cut_rest()
        } else {
            Ok(())
        };
        artifacts.and(added).and(rest)
    }

    /// Writes the artifacts that events created, and those that are still missing.
    fn write_artifacts(&mut self, store: &Store, events: &[Event]) -> io::Result<()> {
        let created = events.iter().filter_map(|event| match &event.fact {
            Fact::ArtifactCreated(artifact) => Some((**artifact).clone()),
            _ => None,
        });
        let earlier = std::mem::take(&mut self.missing);
        let mut result = Ok(());
        for artifact in earlier.into_iter().chain(created) {
            let written = write_artifact(store, &self.artifacts_dir, &artifact);
            if written.is_err() && self.missing.len() < MISSING_MAX {
                self.missing.push(artifact);
            }
            result = result.and(written);
        }
        result
    }

    /// Reports the begin and the end of a problem, not every try.
    fn report(&mut self, handle: &RunHandle, problem: Option<String>) {
        let run = handle.id();
        match problem {
            Some(problem) if !self.is_failing => {
                tracing::warn!(%run, %problem, "files of the run are missing; tried again");
                self.is_failing = true;
            }
            None if self.is_failing => {
                tracing::info!(%run, "the files of the run are complete again");
                self.is_failing = false;
            }
            Some(_) | None => {}
        }
    }
}

/// The file of a run's events.
struct EventFile {
    path: PathBuf,
    /// Absent before the first use and after an error.
    file: Option<File>,
    /// How many events it has.
    written: u64,
    /// The length of their lines.
    bytes: u64,
    /// Whether an earlier server's lines are still being compared.
    is_comparing: bool,
}

impl EventFile {
    fn new(dir: &Path) -> Self {
        Self {
            path: dir.join(EVENTS_FILE),
            file: None,
            written: 0,
            bytes: 0,
            is_comparing: true,
        }
    }

    /// Adds lines: those that are there already are left as they are. After an error the file is
    /// opened anew.
    fn add(&mut self, lines: &[String]) -> io::Result<()> {
        let added = self.try_add(lines);
        if added.is_err() {
            self.file = None;
        }
        added
    }

    fn try_add(&mut self, lines: &[String]) -> io::Result<()> {
        let written_before = self.written;
        let mut file = self.take_open()?;
        if self.written < written_before {
            // The file was cut meanwhile, and the lines before these are missing too.
            self.file = Some(file);
            return Ok(());
        }
        for line in lines {
            let line = format!("{line}\n");
            if !(self.is_comparing && has_line(&mut file, self.bytes, line.as_bytes())?) {
                self.cut_behind(&mut file)?;
                file.write_all(line.as_bytes())?;
            }
            self.written += 1;
            self.bytes += line.len() as u64;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Cuts the file behind the last correct line. The rest is a torn write or a foreign change.
    fn cut_rest(&mut self) -> io::Result<()> {
        let mut file = self.take_open()?;
        self.cut_behind(&mut file)?;
        self.file = Some(file);
        Ok(())
    }

    fn cut_behind(&mut self, file: &mut File) -> io::Result<()> {
        if self.is_comparing {
            file.set_len(self.bytes)?;
            file.seek(SeekFrom::Start(self.bytes))?;
            self.is_comparing = false;
        }
        Ok(())
    }

    /// The open file. One that is opened again after an error goes on behind the last whole line.
    fn take_open(&mut self) -> io::Result<File> {
        if let Some(file) = self.file.take() {
            return Ok(file);
        }
        if let Some(dir) = self.path.parent() {
            fs::create_dir_all(dir)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&self.path)?;
        // A shorter file has lost lines, so it is compared from its beginning.
        if file.metadata()?.len() < self.bytes {
            (self.written, self.bytes, self.is_comparing) = (0, 0, true);
        } else if !self.is_comparing {
            file.set_len(self.bytes)?;
            file.seek(SeekFrom::Start(self.bytes))?;
        }
        Ok(file)
    }
}

/// Whether the file has this line at this place.
fn has_line(file: &mut File, place: u64, line: &[u8]) -> io::Result<bool> {
    let mut found = vec![0; line.len()];
    file.seek(SeekFrom::Start(place))?;
    match file.read_exact(&mut found) {
        Ok(()) => Ok(found == line),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes an artifact whose file is missing or has another length.
fn write_artifact(store: &Store, dir: &Path, artifact: &Artifact) -> io::Result<()> {
    let path = dir.join(format!("{}-{}", artifact.id, artifact.name));
    if fs::metadata(&path).is_ok_and(|file| file.len() == artifact.bytes) {
        return Ok(());
    }
    let blob = store.blob(artifact.content).map_err(io::Error::other)?;
    let content = blob.into_raw_bytes().map_err(io::Error::other)?;
    fs::create_dir_all(dir)?;
    // A reader never sees half a file.
    let unfinished = dir.join(format!("{}.part", artifact.id));
    fs::write(&unfinished, &content)?;
    fs::rename(&unfinished, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "{\"seq\":1}\n{\"seq\":2}\n{\"seq\":3}\n";

    fn lines() -> Vec<String> {
        WHOLE.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_file_that_is_missing_cut_or_garbled_becomes_the_log_again() {
        let check = |before: Option<&[u8]>| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(EVENTS_FILE);
            if let Some(before) = before {
                fs::write(&path, before).unwrap();
            }
            let mut file = EventFile::new(dir.path());
            file.add(&lines()).unwrap();
            file.cut_rest().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), WHOLE);
            file.add(&["{\"seq\":4}".to_owned()]).unwrap();
            let after = fs::read_to_string(&path).unwrap();
            assert_eq!(after, format!("{WHOLE}{{\"seq\":4}}\n"));
        };
        check(None);
        for end in 0..=WHOLE.len() {
            check(Some(&WHOLE.as_bytes()[..end]));
        }
        check(Some(b"garbage without a line break"));
        check(Some(WHOLE.replace('2', "7").as_bytes()));
        check(Some(format!("{WHOLE}more\n").as_bytes()));
    }

    #[test]
    fn a_file_that_could_not_be_written_goes_on_where_it_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(EVENTS_FILE);
        let mut file = EventFile::new(dir.path());
        file.add(&lines()[..2]).unwrap();
        file.cut_rest().unwrap();
        // As after an error in the middle of a line.
        file.file = None;
        fs::write(&path, format!("{}half a l", &WHOLE[..20])).unwrap();
        file.add(&lines()[2..]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), WHOLE);
        // A file that somebody cut is written from the start.
        file.file = None;
        fs::write(&path, "").unwrap();
        file.add(&["{\"seq\":4}".to_owned()]).unwrap();
        assert_eq!(file.written, 0, "the earlier lines come first");
        file.add(&lines()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), WHOLE);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error_until_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let blocked = dir.path().join("run");
        fs::write(&blocked, "a file where the directory should be").unwrap();
        let mut file = EventFile::new(&blocked);
        file.add(&lines()).unwrap_err();
        assert_eq!(file.written, 0);
        fs::remove_file(&blocked).unwrap();
        file.add(&lines()).unwrap();
        let text = fs::read_to_string(blocked.join(EVENTS_FILE)).unwrap();
        assert_eq!(text, WHOLE);
    }
}
