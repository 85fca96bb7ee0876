//! The terminal while the live view is shown: raw mode, the alternate screen, and cells that are
//! written only where they changed.
//!
//! Dropping it restores the terminal, also when an error ends the view. It asks the terminal nothing:
//! an answer would arrive among the keys, which another part of the view reads.

use std::io::{self, Stdout};

use anyhow::{Context, Result};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// The terminal, and what it shows.
pub(super) struct Screen {
    backend: CrosstermBackend<Stdout>,
    /// The cells that were painted last.
    shown: Buffer,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> Result<Self> {
        let mut screen = Self {
            backend: CrosstermBackend::new(io::stdout()),
            shown: Buffer::empty(Rect::ZERO),
        };
        screen.resume()?;
        Ok(screen)
    }

    /// Takes the terminal again, after another program had it.
    pub(super) fn resume(&mut self) -> Result<()> {
        enable_raw_mode().context("cannot take the keyboard")?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
            .context("cannot use the terminal")?;
        // The other program has overwritten the screen, so the next painting must write every cell.
        self.shown = Buffer::empty(Rect::ZERO);
        Ok(())
    }

    /// Gives the terminal back.
    pub(super) fn suspend(&mut self) -> Result<()> {
        let shown = self.backend.show_cursor();
        let left = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen);
        // Each step is tried: a terminal in raw mode would be the worst to leave behind.
        disable_raw_mode()
            .and(left)
            .and(shown)
            .context("cannot restore the terminal")
    }

    /// Paints what `draw` puts into the cells. It returns where the cursor stands, if it is shown.
    pub(super) fn paint(
        &mut self,
        draw: impl FnOnce(Rect, &mut Buffer) -> Option<Position>,
    ) -> Result<()> {
        self.write_cells(draw).context("cannot paint the screen")
    }

    fn write_cells(
        &mut self,
        draw: impl FnOnce(Rect, &mut Buffer) -> Option<Position>,
    ) -> io::Result<()> {
        let area = Rect::from((Position::ORIGIN, self.backend.size()?));
        if area != self.shown.area {
            self.backend.clear()?;
            self.shown = Buffer::empty(area);
        }
        let mut next = Buffer::empty(area);
        let cursor = draw(area, &mut next);
        // Hidden while cells are written, or it would jump over the screen.
        self.backend.hide_cursor()?;
        self.backend.draw(self.shown.diff(&next).into_iter())?;
        if let Some(position) = cursor {
            self.backend.set_cursor_position(position)?;
            self.backend.show_cursor()?;
        }
        self.shown = next;
        Backend::flush(&mut self.backend)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Fails only if the terminal is gone, and then there is nothing to restore.
        self.suspend().ok();
    }
}
