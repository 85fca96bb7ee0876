//! Bytes on their way to the child: keys in the order in which they came, and one paste beside
//! them.
//!
//! What others paste never fills the child's terminal: it goes in by pieces that leave room for
//! keys, so that the terminal takes an interrupt at once whether or not the child reads.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::io::Errno;

use super::inject::Content;
use super::typed::{PASTE_END, PASTE_START};

/// Input that waits for the child before no more is read from the user.
pub(super) const IN_BYTES_MAX: usize = 64 << 10;

/// Where input came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The user's terminal.
    Typed,
    /// A paste.
    Injected,
    /// The wrapper, in the terminal's place.
    Answer,
}

/// Bytes of a paste that the child's terminal may hold. It has room for 4096, and keys need some of
/// it.
const PASTE_HELD_MAX: usize = 3 << 10;
/// The kernel hands a piece on a moment after it was written: until then it is seen nowhere.
const PIECE_PAUSE: Duration = Duration::from_millis(1);
/// The pause between two looks at a child that does not read.
const PIECE_PAUSE_LAST: Duration = Duration::from_millis(20);
/// A paste of which nothing was taken for so long is stuck.
const STUCK_PAUSE: Duration = Duration::from_millis(250);

/// How long a child may take to read the end mark of a paste that was dropped before the key that
/// dropped it follows.
const MARK_PAUSE: Duration = Duration::from_millis(200);

/// What the child's terminal holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Bytes that the child has not read; of lines, where they are collected, only whole ones.
    pub(super) bytes: u64,
    /// Whether the terminal collects lines.
    pub(super) by_lines: bool,
}

/// Something to be written, and how much of it is.
#[derive(Debug)]
struct Chunk {
    source: Source,
    bytes: Bytes,
    sent: usize,
}

impl Chunk {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }
}

/// Bytes on their way to the child: keys, and one paste.
#[derive(Debug)]
pub(super) struct Inbox {
    keys: VecDeque<Chunk>,
    key_bytes: usize,
    /// Everything in it came before the keys.
    paste: Option<Chunk>,
    /// Whether the paste stands between marks.
    is_framed: bool,
    /// When the end mark of a dropped paste went out, until the child has read it: a key that sends
    /// a signal makes the terminal forget what is unread.
    marked_at: Option<Instant>,
    pasted_at: Instant,
    /// Pasted bytes that may not be seen in the child's terminal yet, and since when they are
    /// counted.
    unseen: usize,
    unseen_since: Instant,
}

impl Inbox {
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

    /// Whether the child must take some before more is read from the user.
    pub(super) fn is_full(&self) -> bool {
        self.key_bytes >= IN_BYTES_MAX
    }

    /// Whether keys wait.
    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Adds at the end.
    pub(super) fn push(&mut self, source: Source, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.key_bytes += bytes.len();
            self.keys.push_back(Chunk {
                source,
                bytes,
                sent: 0,
            });
        }
    }

    /// Begins a paste, when nothing else waits.
    pub(super) fn paste(&mut self, Content { bytes, is_framed }: Content) {
        self.is_framed = is_framed;
        self.paste = Some(Chunk {
            source: Source::Injected,
            bytes,
            sent: 0,
        })
        .filter(|it| !it.rest().is_empty());
    }

    /// Gives up what is left of a paste. Of one that stands between marks and was begun, what is
    /// left of the marks goes out in front of the keys: what follows is no part of it, for the
    /// child and for whoever looks.
    pub(super) fn drop_paste(&mut self) {
        let Some(Chunk { bytes, sent, .. }) = self.paste.take() else {
            return;
        };
        if !self.is_framed || sent == 0 {
            return;
        }
        let start = bytes.slice(sent.min(PASTE_START.len())..PASTE_START.len());
        let end = bytes.slice(sent.max(bytes.len() - PASTE_END.len())..);
        let bytes = Bytes::from([start, end].concat());
        self.key_bytes += bytes.len();
        // A key that is half out is not cut.
        let at = self.keys.iter().take_while(|key| key.sent > 0).count();
        self.keys.insert(
            at,
            Chunk {
                source: Source::Injected,
                bytes,
                sent: 0,
            },
        );
    }

    /// Whether the next to be written are keys. They wait for a paste, unless it is stuck where the
    /// user would see the keys at once: in a terminal that collects lines and echoes them by
    /// itself.
    pub(super) fn is_keys_turn(&self, now: Instant, is_canonical: bool) -> bool {
        let is_stuck = now.saturating_duration_since(self.pasted_at) >= STUCK_PAUSE;
        self.has_keys()
            && self.marked_at.is_none()
            && (self.paste.is_none() || (is_canonical && is_stuck))
    }

    /// Whether a paste is under way, or the end mark of a dropped one.
    pub(super) fn is_pasting(&self) -> bool {
        self.paste.is_some() || self.marked_at.is_some()
    }

    /// Whether the end mark of a dropped paste is out: a signal would make the terminal forget it.
    pub(super) fn has_mark(&self) -> bool {
        self.marked_at.is_some()
    }

    /// Lets the keys go on that wait for the child to read an end mark, when it has or takes too
    /// long.
    pub(super) fn look_for_mark(&mut self, now: Instant, held: impl FnOnce() -> Held) {
        let since = self.marked_at.map(|at| now.saturating_duration_since(at));
        if since
            .is_some_and(|since| since >= MARK_PAUSE || (since >= PIECE_PAUSE && held().bytes == 0))
        {
            self.marked_at = None;
        }
    }

    /// The pause before the paste that is under way goes on; longer for a child that does not read.
    pub(super) fn paste_pause(&self, now: Instant) -> Option<Duration> {
        if self.marked_at.is_some() {
            return Some(PIECE_PAUSE);
        }
        self.paste.as_ref()?;
        let since = now.saturating_duration_since(self.pasted_at);
        Some((since / 4).clamp(PIECE_PAUSE, PIECE_PAUSE_LAST))
    }

    /// Writes keys once, as much as the child's terminal takes now, and says what it took.
    pub(super) fn write_keys(
        &mut self,
        master: BorrowedFd<'_>,
        now: Instant,
    ) -> Option<(Source, Bytes)> {
        let chunk = self.keys.front_mut()?;
        let taken = write(master, chunk, usize::MAX)?;
        self.key_bytes -= taken.len();
        let source = chunk.source;
        if chunk.rest().is_empty() {
            self.keys.pop_front();
            self.marked_at = (source == Source::Injected).then_some(now);
        }
        Some((source, taken))
    }

    /// Writes a piece of the paste beside what the child's terminal holds, and says what it took. A
    /// piece ends with a line where it can. A part of a line is seen nowhere where lines are
    /// collected: there it goes in only when no line waits before it, because then the terminal is
    /// never full.
    pub(super) fn write_paste(
        &mut self,
        master: BorrowedFd<'_>,
        held: impl FnOnce() -> Held,
        now: Instant,
    ) -> Option<(Source, Bytes)> {
        let chunk = self.paste.as_mut()?;
        if now.saturating_duration_since(self.unseen_since) >= PIECE_PAUSE {
            (self.unseen, self.unseen_since) = (0, now);
        }
        if self.unseen >= PASTE_HELD_MAX {
            return None;
        }
        let Held { bytes, by_lines } = held();
        let held = usize::try_from(bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(self.unseen);
        let room = PASTE_HELD_MAX.saturating_sub(held);
        let rest = chunk.rest();
        let piece = rest.get(..room).unwrap_or(rest);
        let line_end = piece
            .iter()
            .rposition(|byte| matches!(byte, b'\r' | b'\n'))
            .map(|at| at + 1);
        let is_cut = piece.len() < rest.len();
        let piece_bytes = line_end.filter(|_| is_cut).unwrap_or(piece.len());
        let is_part = is_cut && line_end.is_none();
        if piece_bytes == 0 || (is_part && by_lines && held > 0) {
            return None;
        }
        let taken = write(master, chunk, piece_bytes)?;
        self.pasted_at = now;
        self.unseen += taken.len();
        if chunk.rest().is_empty() {
            self.paste = None;
        }
        Some((Source::Injected, taken))
    }
}

/// Writes once, no more than so many bytes.
fn write(master: BorrowedFd<'_>, chunk: &mut Chunk, bytes_max: usize) -> Option<Bytes> {
    let rest = chunk.bytes.slice(chunk.sent..);
    let piece = rest.slice(..rest.len().min(bytes_max));
    let written = match rustix::io::write(master, &piece) {
        Ok(written) => written,
        Err(Errno::AGAIN | Errno::INTR) => return None,
        // Nobody can read it any more.
        Err(_) => piece.len(),
    };
    chunk.sent += written;
    (written > 0).then(|| piece.slice(..written))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn plain(bytes: &'static [u8]) -> Content {
        Content {
            bytes: Bytes::from_static(bytes),
            is_framed: false,
        }
    }

    fn long_after() -> Instant {
        Instant::now() + Duration::from_secs(1)
    }

    fn held(bytes: u64) -> Held {
        Held {
            bytes,
            by_lines: false,
        }
    }

    /// What a paste becomes in pieces, when the terminal holds so many bytes each time.
    fn pieces(paste: &'static [u8], held: Held) -> Vec<usize> {
        let (_reader, writer) = std::io::pipe().unwrap();
        let mut inbox = Inbox::new();
        inbox.paste(plain(paste));
        let mut now = long_after();
        let mut lengths = Vec::new();
        while let Some((_, taken)) = inbox.write_paste(writer.as_fd(), || held, now) {
            now += PIECE_PAUSE;
            lengths.push(taken.len());
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
        let by_lines = |bytes| Held {
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
        let mut inbox = Inbox::new();
        let now = long_after();
        let mut paste = |now| {
            inbox.paste(plain(&[b'x'; 1000]));
            let taken = inbox.write_paste(writer.as_fd(), || held(0), now);
            taken.map_or(0, |(_, taken)| taken.len())
        };
        let lengths: Vec<usize> = (0..5).map(|_| paste(now)).collect();
        assert_eq!(lengths, [1000, 1000, 1000, 72, 0]);
        assert_eq!(paste(now + PIECE_PAUSE), 1000);
    }

    #[test]
    fn of_a_framed_paste_that_is_dropped_the_end_mark_goes_out_in_front_of_the_keys() {
        const PASTE: &[u8] = b"\x1b[200~text\x1b[201~";
        /// What the child gets when a paste is dropped after so many bytes.
        fn check(paste: &Content, sent: usize, expect: &[u8]) {
            let (mut reader, writer) = std::io::pipe().unwrap();
            let mut inbox = Inbox::new();
            inbox.paste(paste.clone());
            let taken =
                inbox.write_paste(writer.as_fd(), || held(3072 - sent as u64), long_after());
            assert_eq!(taken.map_or(0, |(_, taken)| taken.len()), sent);
            inbox.push(Source::Typed, b"before".to_vec());
            inbox.drop_paste();
            inbox.push(Source::Typed, b"^C".to_vec());
            let mut now = long_after();
            while inbox.is_pasting() || inbox.has_keys() {
                let is_mark = inbox.is_keys_turn(now, true)
                    && inbox.write_keys(writer.as_fd(), now).is_some();
                assert!(
                    is_mark || inbox.marked_at.is_some(),
                    "keys wait for the mark only"
                );
                inbox.look_for_mark(now, || held(6));
                assert!(
                    inbox
                        .marked_at
                        .is_none_or(|at| !inbox.is_keys_turn(at + PIECE_PAUSE, true))
                );
                now += PIECE_PAUSE;
                inbox.look_for_mark(now, || held(0));
            }
            assert_eq!((inbox.is_empty(), inbox.key_bytes), (true, 0));
            drop(writer);
            let mut came = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut came).unwrap();
            assert_eq!(
                came.escape_ascii().to_string(),
                expect.escape_ascii().to_string(),
                "after {sent}"
            );
        }
        let framed = Content {
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

    #[test]
    fn keys_wait_for_a_paste_unless_it_is_stuck_where_the_terminal_echoes() {
        let mut inbox = Inbox::new();
        assert!(!inbox.is_keys_turn(long_after(), true), "no keys");
        inbox.push(Source::Typed, b"a".to_vec());
        assert!(inbox.is_keys_turn(Instant::now(), false), "no paste");
        inbox.paste(plain(b"text"));
        inbox.pasted_at = Instant::now();
        assert!(
            !inbox.is_keys_turn(inbox.pasted_at, true),
            "the paste goes on"
        );
        assert!(
            !inbox.is_keys_turn(long_after(), false),
            "nothing would be seen of them"
        );
        assert!(inbox.is_keys_turn(long_after(), true));
        inbox.drop_paste();
        assert!(inbox.is_keys_turn(inbox.pasted_at, false));
    }
}
