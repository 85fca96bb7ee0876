//! The input on its way to the child: keys in the order in which they came, and one paste beside
//! them.
//!
//! A paste never fills the child's terminal: it is written in pieces that leave room for keys, so
//! that the terminal accepts an interrupt at once whether or not the child reads. Worked example, a
//! paste of 7000 bytes into a terminal that buffers 4096: pieces of 3072, 3072 and 856 bytes, each
//! after the child has read the one before.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::io::Errno;

use super::inject::PasteContent;
use super::key_boundary::{PASTE_END, PASTE_START};

/// How many key bytes may wait for the child before the user is no longer read.
pub(super) const IN_BYTES_MAX: usize = 64 << 10;

/// Where input came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputSource {
    /// The user's terminal.
    Typed,
    /// A paste.
    Injected,
    /// The wrapper, answering in the terminal's place.
    Answer,
}

/// How many pasted bytes the child's terminal may hold. It has room for 4096, and keys need some of
/// it.
const PASTE_HELD_MAX: usize = 3 << 10;
/// The kernel hands a piece on a moment after it was written; until then no count shows it.
const PIECE_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between two checks of a child that does not read.
const PIECE_PAUSE_LAST: Duration = Duration::from_millis(20);
/// A paste is stuck when the child has read nothing of it for this long.
const STUCK_PAUSE: Duration = Duration::from_millis(250);

/// How long a child may take to read the end mark of a dropped paste before the key that dropped it
/// follows.
const MARK_PAUSE: Duration = Duration::from_millis(200);

/// What the child's terminal holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldInput {
    /// How many bytes the child has not read; where lines are collected, only complete ones count.
    pub(super) bytes: u64,
    /// Whether the terminal collects lines.
    pub(super) by_lines: bool,
}

/// Input that the child's terminal accepted.
#[derive(Debug)]
pub(super) struct WrittenInput {
    pub(super) source: InputSource,
    pub(super) bytes: Bytes,
}

/// Bytes to write, and how many of them are written.
#[derive(Debug)]
struct Chunk {
    source: InputSource,
    bytes: Bytes,
    sent: usize,
}

impl Chunk {
    fn new(source: InputSource, bytes: Bytes) -> Self {
        Self {
            source,
            bytes,
            sent: 0,
        }
    }

    fn unsent(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }
}

/// The input on its way to the child.
#[derive(Debug)]
pub(super) struct ChildInput {
    keys: VecDeque<Chunk>,
    key_bytes: usize,
    /// The paste; all of it comes before the keys.
    paste: Option<Chunk>,
    /// Whether the paste is between paste marks.
    is_framed: bool,
    /// When the end mark of a dropped paste was written, until the child has read it: a key that
    /// sends a signal makes the terminal discard unread input.
    marked_at: Option<Instant>,
    pasted_at: Instant,
    /// Pasted bytes that the terminal may not count yet, and since when.
    unseen: usize,
    unseen_since: Instant,
}

impl ChildInput {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            keys: VecDeque::new(),
            key_bytes: 0,
            paste: None,
            is_framed: false,
            marked_at: None,
            pasted_at: now,
            unseen: 0,
            unseen_since: now,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.paste.is_none()
    }

    /// Whether the child must read some input before the user is read again.
    pub(super) fn is_full(&self) -> bool {
        self.key_bytes >= IN_BYTES_MAX
    }

    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Adds input at the end.
    pub(super) fn push(&mut self, source: InputSource, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.key_bytes += bytes.len();
            self.keys.push_back(Chunk::new(source, bytes));
        }
    }

    /// Begins a paste; call it only when no other input waits.
    pub(super) fn begin_paste(&mut self, PasteContent { bytes, is_framed }: PasteContent) {
        self.is_framed = is_framed;
        self.paste = (!bytes.is_empty()).then(|| Chunk::new(InputSource::Injected, bytes));
    }

    /// Drops the rest of a paste. If a framed one was begun, the rest of its marks goes out in
    /// front of the keys, so that the child does not take them for pasted text.
    pub(super) fn drop_paste(&mut self) {
        let Some(Chunk { bytes, sent, .. }) = self.paste.take() else {
            return;
        };
        // The child has seen no start mark, so it needs no end mark.
        if !self.is_framed || sent == 0 {
            return;
        }
        let start = bytes.slice(sent.min(PASTE_START.len())..PASTE_START.len());
        let end = bytes.slice(sent.max(bytes.len() - PASTE_END.len())..);
        let marks = Bytes::from([start, end].concat());
        // A half-written key must not be cut.
        let at = self.keys.iter().take_while(|key| key.sent > 0).count();
        self.insert_marks(at, marks);
    }

    /// Puts paste marks among the keys, in front of the chunk at this index.
    fn insert_marks(&mut self, at: usize, marks: Bytes) {
        self.key_bytes += marks.len();
        self.keys
            .insert(at, Chunk::new(InputSource::Injected, marks));
    }

    /// Whether keys are written next. They wait for a paste, unless it is stuck where the user
    /// would see the keys at once: in a terminal that collects lines and echoes them itself.
    pub(super) fn may_write_keys(&self, now: Instant, is_canonical: bool) -> bool {
        let is_stuck = now.saturating_duration_since(self.pasted_at) >= STUCK_PAUSE;
        self.has_keys()
            && self.marked_at.is_none()
            && (self.paste.is_none() || (is_canonical && is_stuck))
    }

    /// Whether a paste is under way, or the end mark of a dropped one.
    pub(super) fn is_pasting(&self) -> bool {
        self.paste.is_some() || self.marked_at.is_some()
    }

    /// Whether the end mark of a dropped paste is still unread.
    pub(super) fn awaits_end_mark(&self) -> bool {
        self.marked_at.is_some()
    }

    /// Releases the keys that wait for the child to read an end mark, when it has or takes too
    /// long. If it takes too long, a key that sends a signal makes the terminal discard the mark, so
    /// the mark follows once more behind such a key. `find_signal_key` returns the index of the
    /// first byte for which the child's terminal sends a signal.
    pub(super) fn check_end_mark(
        &mut self,
        now: Instant,
        held: impl FnOnce() -> HeldInput,
        find_signal_key: impl Fn(&[u8]) -> Option<usize>,
    ) {
        let Some(marked_at) = self.marked_at else {
            return;
        };
        let since = now.saturating_duration_since(marked_at);
        if since < PIECE_PAUSE {
            return;
        }
        if held().bytes == 0 {
            self.marked_at = None;
        } else if since >= MARK_PAUSE {
            self.marked_at = None;
            self.repeat_end_mark(find_signal_key);
        }
    }

    /// Puts another end mark directly behind the first key that sends a signal. Behind the keys
    /// that follow it would be too late: the child would take them for pasted text. One mark is
    /// enough at a time, because the keys behind it wait for it as for the first one.
    fn repeat_end_mark(&mut self, find_signal_key: impl Fn(&[u8]) -> Option<usize>) {
        let Some((index, at)) = self.keys.iter().enumerate().find_map(|(index, key)| {
            let at = find_signal_key(key.unsent())?;
            Some((index, key.sent + at))
        }) else {
            return;
        };
        let Some(chunk) = self.keys.get_mut(index) else {
            return;
        };
        let later = Chunk::new(chunk.source, chunk.bytes.split_off(at + 1));
        if !later.bytes.is_empty() {
            self.keys.insert(index + 1, later);
        }
        self.insert_marks(index + 1, Bytes::from_static(PASTE_END));
    }

    /// The pause before the paste goes on; longer for a child that does not read.
    pub(super) fn paste_pause(&self, now: Instant) -> Option<Duration> {
        if self.marked_at.is_some() {
            return Some(PIECE_PAUSE);
        }
        self.paste.as_ref()?;
        let since = now.saturating_duration_since(self.pasted_at);
        Some((since / 4).clamp(PIECE_PAUSE, PIECE_PAUSE_LAST))
    }

    /// Writes keys once, and returns what the child's terminal accepted.
    pub(super) fn write_keys(
        &mut self,
        master: BorrowedFd<'_>,
        now: Instant,
    ) -> Option<WrittenInput> {
        let chunk = self.keys.front_mut()?;
        let taken = write_chunk(master, chunk, usize::MAX)?;
        self.key_bytes -= taken.len();
        let source = chunk.source;
        if chunk.unsent().is_empty() {
            self.keys.pop_front();
            // Only the rest of a dropped paste is injected among the keys: its end mark must be
            // read first.
            self.marked_at = (source == InputSource::Injected).then_some(now);
        }
        Some(WrittenInput {
            source,
            bytes: taken,
        })
    }

    /// Writes a piece of the paste, and returns what the child's terminal accepted. A piece ends
    /// with a line where it can.
    pub(super) fn write_paste(
        &mut self,
        master: BorrowedFd<'_>,
        held: impl FnOnce() -> HeldInput,
        now: Instant,
    ) -> Option<WrittenInput> {
        let chunk = self.paste.as_mut()?;
        // By now the terminal counts everything that was written before.
        if now.saturating_duration_since(self.unseen_since) >= PIECE_PAUSE {
            (self.unseen, self.unseen_since) = (0, now);
        }
        if self.unseen >= PASTE_HELD_MAX {
            return None;
        }
        let HeldInput { bytes, by_lines } = held();
        let held = usize::try_from(bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(self.unseen);
        let piece = choose_piece(chunk.unsent(), PASTE_HELD_MAX.saturating_sub(held));
        // Where lines are collected, a part of a line is not counted as held. It is written only
        // when no line waits before it, because then the terminal cannot be full.
        if piece.bytes == 0 || (piece.is_part_of_line && by_lines && held > 0) {
            return None;
        }
        let taken = write_chunk(master, chunk, piece.bytes)?;
        self.pasted_at = now;
        self.unseen += taken.len();
        if chunk.unsent().is_empty() {
            self.paste = None;
        }
        Some(WrittenInput {
            source: InputSource::Injected,
            bytes: taken,
        })
    }
}

/// The next piece of a paste.
struct PastePiece {
    bytes: usize,
    /// Whether the piece ends in the middle of a line.
    is_part_of_line: bool,
}

/// Chooses the next piece: all of the rest if it fits, else up to the last line end that fits.
fn choose_piece(rest: &[u8], free: usize) -> PastePiece {
    let Some(piece) = rest.get(..free).filter(|piece| piece.len() < rest.len()) else {
        return PastePiece {
            bytes: rest.len(),
            is_part_of_line: false,
        };
    };
    let line_end = piece
        .iter()
        .rposition(|byte| matches!(byte, b'\r' | b'\n'))
        .map(|at| at + 1);
    PastePiece {
        bytes: line_end.unwrap_or(piece.len()),
        is_part_of_line: line_end.is_none(),
    }
}

/// Writes once, at most `bytes_max` bytes.
fn write_chunk(master: BorrowedFd<'_>, chunk: &mut Chunk, bytes_max: usize) -> Option<Bytes> {
    let rest = chunk.bytes.slice(chunk.sent..);
    let piece = rest.slice(..rest.len().min(bytes_max));
    let written = match rustix::io::write(master, &piece) {
        Ok(written) => written,
        Err(Errno::AGAIN | Errno::INTR) => return None,
        // The terminal is gone, so the bytes count as written.
        Err(_) => piece.len(),
    };
    chunk.sent += written;
    (written > 0).then(|| piece.slice(..written))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn plain(bytes: &'static [u8]) -> PasteContent {
        PasteContent {
            bytes: Bytes::from_static(bytes),
            is_framed: false,
        }
    }

    fn long_after() -> Instant {
        Instant::now() + Duration::from_secs(1)
    }

    fn held(bytes: u64) -> HeldInput {
        HeldInput {
            bytes,
            by_lines: false,
        }
    }

    /// Finds Ctrl-C, as a terminal with the usual settings does.
    fn find_interrupt(keys: &[u8]) -> Option<usize> {
        keys.iter().position(|byte| *byte == 3)
    }

    /// The lengths of the pieces of a paste, when the terminal always holds this much.
    fn pieces(paste: &'static [u8], held: HeldInput) -> Vec<usize> {
        let (_reader, writer) = std::io::pipe().unwrap();
        let mut input = ChildInput::new();
        input.begin_paste(plain(paste));
        let mut now = long_after();
        let mut lengths = Vec::new();
        while let Some(written) = input.write_paste(writer.as_fd(), || held, now) {
            now += PIECE_PAUSE;
            lengths.push(written.bytes.len());
        }
        lengths
    }

    #[test]
    fn a_paste_goes_in_by_pieces_that_leave_room_and_end_with_lines() {
        const PLAIN: [u8; 7000] = [b'x'; 7000];
        const LINES: &[u8] = b"one\ntwo\rthree\nfour";
        assert_eq!(pieces(&PLAIN, held(0)), [3072, 3072, 856]);
        assert_eq!(pieces(&PLAIN, held(4096)), [0; 0], "no room");
        assert_eq!(pieces(LINES, held(0)), [LINES.len()]);
        assert_eq!(pieces(LINES, held(3072 - 9)), [8, 6, 4]);
        let by_lines = |bytes| HeldInput {
            bytes,
            by_lines: true,
        };
        assert_eq!(pieces(&PLAIN, by_lines(0)), [3072, 3072, 856]);
        assert_eq!(
            pieces(&PLAIN, by_lines(2800)),
            [0; 0],
            "a part of a line would not be counted"
        );
        assert_eq!(pieces(LINES, by_lines(3072 - 9)), [8, 6, 4]);
    }

    #[test]
    fn pastes_of_one_moment_leave_room_together() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let mut input = ChildInput::new();
        let now = long_after();
        let mut paste = |now| {
            input.begin_paste(plain(&[b'x'; 1000]));
            let taken = input.write_paste(writer.as_fd(), || held(0), now);
            taken.map_or(0, |written| written.bytes.len())
        };
        let lengths: Vec<usize> = (0..5).map(|_| paste(now)).collect();
        assert_eq!(lengths, [1000, 1000, 1000, 72, 0]);
        assert_eq!(paste(now + PIECE_PAUSE), 1000);
    }

    #[test]
    fn of_a_framed_paste_that_is_dropped_the_end_mark_goes_out_in_front_of_the_keys() {
        const PASTE: &[u8] = b"\x1b[200~text\x1b[201~";
        /// Checks the child's input when a paste is dropped after `sent` bytes.
        fn check(paste: &PasteContent, sent: usize, expect: &[u8]) {
            let (mut reader, writer) = std::io::pipe().unwrap();
            let mut input = ChildInput::new();
            input.begin_paste(paste.clone());
            let taken =
                input.write_paste(writer.as_fd(), || held(3072 - sent as u64), long_after());
            assert_eq!(taken.map_or(0, |written| written.bytes.len()), sent);
            input.push(InputSource::Typed, b"before".to_vec());
            input.drop_paste();
            input.push(InputSource::Typed, b"^C".to_vec());
            let mut now = long_after();
            while input.is_pasting() || input.has_keys() {
                let is_mark = input.may_write_keys(now, true)
                    && input.write_keys(writer.as_fd(), now).is_some();
                assert!(
                    is_mark || input.marked_at.is_some(),
                    "keys wait for the mark only"
                );
                input.check_end_mark(now, || held(6), find_interrupt);
                assert!(
                    input
                        .marked_at
                        .is_none_or(|at| !input.may_write_keys(at + PIECE_PAUSE, true))
                );
                now += PIECE_PAUSE;
                input.check_end_mark(now, || held(0), find_interrupt);
            }
            assert_eq!((input.is_empty(), input.key_bytes), (true, 0));
            drop(writer);
            let mut came = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut came).unwrap();
            assert_eq!(
                came.escape_ascii().to_string(),
                expect.escape_ascii().to_string(),
                "after {sent}"
            );
        }
        let framed = PasteContent {
            is_framed: true,
            ..plain(PASTE)
        };
        check(&framed, 0, b"before^C");
        check(&framed, 3, b"\x1b[200~\x1b[201~before^C");
        check(&framed, 6, b"\x1b[200~\x1b[201~before^C");
        check(&framed, 8, b"\x1b[200~te\x1b[201~before^C");
        check(&framed, PASTE.len() - 2, b"\x1b[200~text\x1b[201~before^C");
        check(&plain(PASTE), 8, b"\x1b[200~tebefore^C");
    }

    /// Checks the child's input when `keys` wait behind an end mark that the child does not read in
    /// time. It reads every later mark at once.
    fn check_keys_behind_unread_mark(keys: &[&[u8]], expect: &[u8]) {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut input = ChildInput::new();
        input.push(InputSource::Injected, PASTE_END);
        let mut now = long_after();
        input.write_keys(writer.as_fd(), now).unwrap();
        for key in keys {
            input.push(InputSource::Typed, key.to_vec());
        }
        now += MARK_PAUSE;
        input.check_end_mark(now, || held(6), find_interrupt);
        while input.has_keys() {
            assert!(input.may_write_keys(now, true));
            input.write_keys(writer.as_fd(), now).unwrap();
            now += PIECE_PAUSE;
            input.check_end_mark(now, || held(0), find_interrupt);
        }
        assert_eq!(input.key_bytes, 0);
        drop(writer);
        let mut came = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut came).unwrap();
        assert_eq!(
            came.escape_ascii().to_string(),
            expect.escape_ascii().to_string()
        );
    }

    #[test]
    fn an_unread_end_mark_follows_once_more_directly_behind_the_interrupt() {
        let check = check_keys_behind_unread_mark;
        check(&[b"\x03"], b"\x1b[201~\x03\x1b[201~");
        check(&[b"text\r"], b"\x1b[201~text\r");
        check(&[b"\x1b[A"], b"\x1b[201~\x1b[A");
        // Keys behind the interrupt are typed text, so the mark must be in front of them.
        check(&[b"\x03", b"typed"], b"\x1b[201~\x03\x1b[201~typed");
        check(&[b"a\x03b", b"typed"], b"\x1b[201~a\x03\x1b[201~btyped");
    }

    #[test]
    fn keys_wait_for_a_paste_unless_it_is_stuck_where_the_terminal_echoes() {
        let mut input = ChildInput::new();
        assert!(!input.may_write_keys(long_after(), true), "no keys");
        input.push(InputSource::Typed, b"a".to_vec());
        assert!(input.may_write_keys(Instant::now(), false), "no paste");
        input.begin_paste(plain(b"text"));
        input.pasted_at = Instant::now();
        assert!(
            !input.may_write_keys(input.pasted_at, true),
            "the paste goes on"
        );
        assert!(
            !input.may_write_keys(long_after(), false),
            "nothing would be seen of them"
        );
        assert!(input.may_write_keys(long_after(), true));
        input.drop_paste();
        assert!(input.may_write_keys(input.pasted_at, false));
    }
}
