//! Output: tokens tell the kind of program, and frames tell what it does.

use super::super::sequence::Token;
use super::super::signals::{Light, Status, read_status};
use super::area::InputArea;
use super::motion::{Moment, Motion};
use super::{
    FullScreen, GLANCE, PENDING_BYTES_MAX, Phase, REPAINTS_MIN, Report, STICKY_MAX, Verdict,
    is_echo, masked,
};
use crate::screen::Row;
use std::collections::HashSet;

impl FullScreen {
    pub(super) fn output(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.output_at = self.now;
        if let (Phase::Open(_), Some(raw)) = (&self.phase, &mut self.raw) {
            raw.push(bytes);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = self.tokens.step(rest);
            let (used, after) = rest.split_at(step.used.clamp(1, rest.len()));
            // The bytes first: what a token decides must not depend on bytes behind it.
            self.push(used);
            self.token(step.token);
            rest = after;
        }
        self.look_by(self.now + GLANCE);
    }

    /// Takes bytes for the screen. A program that has not touched its tty is no full-screen program
    /// yet: its bytes wait unpainted, and only the last ones, so that a stream costs nothing.
    fn push(&mut self, bytes: &[u8]) {
        if self.verdict == Verdict::Undecided && self.is_canonical() {
            self.pending.extend_from_slice(bytes);
            // Twice as many are kept, so that few of the small writes of a stream move them.
            if self.pending.len() >= 2 * PENDING_BYTES_MAX {
                self.drop_excess();
            }
            return;
        }
        self.drop_excess();
        let mut rest = bytes;
        while self.pending.len() + rest.len() >= PENDING_BYTES_MAX {
            let room = PENDING_BYTES_MAX.saturating_sub(self.pending.len());
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.pending.extend_from_slice(now);
            self.paint();
            rest = later;
        }
        self.pending.extend_from_slice(rest);
    }

    fn drop_excess(&mut self) {
        let excess = self.pending.len().saturating_sub(PENDING_BYTES_MAX);
        self.pending.drain(..excess);
    }

    fn is_canonical(&self) -> bool {
        self.tty.is_some_and(|mode| mode.canonical)
    }

    fn token(&mut self, token: Token) {
        match token {
            Token::Csi => self.control(),
            Token::Osc => self.command(),
            _ => {}
        }
    }

    fn control(&mut self) {
        let csi = self.tokens.csi();
        let repaints = match csi.modes() {
            Some((modes, true)) => modes.contains(&2026),
            Some(_) => false,
            None => csi.private == 0 && matches!(csi.last, b'A' | b'F' | b'H' | b'f'),
        };
        let alternate = csi
            .modes()
            .is_some_and(|(modes, on)| on && modes.iter().any(|mode| is_alternate(*mode)));
        self.repaints = self.repaints.saturating_add(u32::from(repaints));
        if alternate && self.verdict == Verdict::Undecided {
            self.verdict = Verdict::FullScreen;
        }
    }

    fn command(&mut self) {
        let command = self.tokens.osc();
        if let Some(fields) = command.strip_prefix(b"7501;") {
            if let Some(status) = read_status(&String::from_utf8_lossy(fields)) {
                self.reported(status);
            }
        } else if (command.starts_with(b"0;") || command.starts_with(b"2;"))
            && self.title != command
        {
            self.title = command.to_vec();
            self.motion.title_changed(self.now);
        }
    }

    fn reported(&mut self, Status { light, is_idle }: Status) {
        if self.report.light != light {
            self.report = Report {
                light,
                stopped: is_idle,
                at: self.now,
            };
        }
        if let Phase::Open(open) = &mut self.phase {
            match light {
                Some(Light::Working) => open.reported = true,
                // An error, say: the program may report nothing more, so the screen counts again.
                None => open.reported = false,
                Some(Light::Blocked | Light::Ready) => {}
            }
        }
    }

    /// Paints what waits, and looks at what it shows.
    pub(super) fn paint(&mut self) {
        if self.pending.is_empty() || (self.verdict == Verdict::Undecided && self.is_canonical()) {
            return;
        }
        self.drop_excess();
        let pending = std::mem::take(&mut self.pending);
        let typed = self.expected_draft();
        let (area, sticky, motion) = (&self.area, &self.sticky, &self.motion);
        let gatherer = &mut self.gatherer;
        self.screen.feed(&pending, |screen| {
            let Some((gatherer, area)) = gatherer.as_mut().zip(area.as_ref()) else {
                return;
            };
            let rows = screen.rows();
            if let Some(spot) = area.find(screen, &rows, &typed) {
                gatherer.set_end(Some(transcript_end(&rows, spot.top, sticky, motion)));
                gatherer.frame(screen);
            }
        });
        self.observe();
    }

    fn observe(&mut self) {
        if self.screen.sync_open() {
            return;
        }
        let rows = self.screen.rows();
        self.judge(&rows);
        self.learn_from_draft(&rows);
        let typed = self.expected_draft();
        let had_spot = self.spot.is_some();
        self.spot = self
            .area
            .as_ref()
            .and_then(|area| area.find(&self.screen, &rows, &typed));
        if had_spot && self.spot.is_none() {
            self.spot_lost_at = self.now;
        }
        self.see_draft();
        self.sort_rows(&rows);
        let asked = matches!(self.phase, Phase::Open(_));
        let input = self.place();
        self.motion.observe(
            Moment {
                now: self.now,
                asked,
                input,
            },
            &rows,
        );
    }

    /// Decides what kind of program it is, where the alternate screen does not tell.
    fn judge(&mut self, rows: &[Row]) {
        let may_be = self.verdict == Verdict::Undecided && !self.is_canonical();
        if may_be && self.repaints >= REPAINTS_MIN && InputArea::is_framed(&self.screen, rows) {
            self.verdict = Verdict::FullScreen;
        }
    }

    /// Learns the area from a draft that the cursor did not show.
    fn learn_from_draft(&mut self, rows: &[Row]) {
        let may_be =
            !self.draft.echoed && !matches!(self.phase, Phase::Open(_)) && !self.is_canonical();
        let Some(typed) = self.draft.typed.plain().filter(|_| may_be) else {
            return;
        };
        let typed = String::from_utf8_lossy(typed).into_owned();
        let shown = typed.lines().next().unwrap_or_default().trim();
        let spot = self
            .area
            .as_ref()
            .and_then(|area| area.find(&self.screen, rows, &typed));
        let is_known = spot.is_some_and(|spot| !spot.draft.is_empty());
        if let Some(area) = InputArea::learn_from_draft(rows, shown).filter(|_| !is_known) {
            self.area = Some(area);
            if self.verdict == Verdict::Undecided && self.repaints >= REPAINTS_MIN {
                self.verdict = Verdict::FullScreen;
            }
        }
    }

    /// What may stand in the input area: the draft, or the prompt that was just submitted.
    fn expected_draft(&self) -> String {
        let submitted = match &self.phase {
            Phase::Open(open) if !open.taken => open.asked.clone(),
            Phase::Open(_) | Phase::Starting | Phase::Idle => None,
        };
        let typed = || {
            self.draft
                .typed
                .plain()
                .map(|typed| String::from_utf8_lossy(typed).into_owned())
        };
        submitted.or_else(typed).unwrap_or_default()
    }

    /// Takes note of typed text in the input area, and of its leaving it.
    fn see_draft(&mut self) {
        let Some(spot) = &self.spot else { return };
        let typed = &self.draft.typed;
        if typed.has_text() && is_echo(typed.plain(), &spot.draft) {
            self.draft.echoed = true;
        }
        if let Phase::Open(open) = &mut self.phase {
            open.taken |= spot.draft.is_empty();
            let asked = open.asked.as_deref().map(str::as_bytes);
            open.echoed |= !open.taken && is_echo(asked, &spot.draft);
        }
    }

    /// Tells the rows that stay above the input area (a path, a hint) from the transcript: they
    /// stood there before the prompt, and stand below it now.
    fn sort_rows(&mut self, rows: &[Row]) {
        let (Phase::Open(open), Some(spot)) = (&mut self.phase, &self.spot) else {
            return;
        };
        let Some(head) = open.asked.as_deref().and_then(|asked| asked.lines().next()) else {
            return;
        };
        let head: String = head.trim().chars().take(24).collect();
        let shown = rows.get(..spot.top).unwrap_or_default();
        if open.sorted || head.is_empty() || self.sticky.len() >= STICKY_MAX {
            return;
        }
        let Some(prompt) = shown
            .iter()
            .rposition(|row| row.text.contains(head.trim_end()))
        else {
            return;
        };
        open.sorted = true;
        let below = shown.iter().skip(prompt + 1).filter(|row| !row.is_blank());
        self.sticky.extend(
            below
                .map(|row| masked(&row.text))
                .filter(|row| open.above.contains(row)),
        );
    }
}

fn is_alternate(mode: u16) -> bool {
    matches!(mode, 47 | 1047 | 1049)
}

/// Where the transcript ends above the input area: spinners and rows that stay there do not belong
/// to it.
pub(super) fn transcript_end(
    rows: &[Row],
    top: usize,
    sticky: &HashSet<String>,
    motion: &Motion,
) -> usize {
    let is_apart = |row: &Row| {
        row.is_blank() || sticky.contains(&masked(&row.text)) || motion.is_spinner_row(&row.text)
    };
    let above = rows.get(..top).unwrap_or_default();
    above
        .iter()
        .rposition(|row| !is_apart(row))
        .map_or(0, |last| last + 1)
}
