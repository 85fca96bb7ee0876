//! A progress bar on a terminal; nothing elsewhere.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that counts bytes. Without a total it shows only the count.
pub(crate) fn bytes_bar(what: &'static str, total: Option<u64>, quiet: bool) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        ),
        None => (ProgressBar::no_length(), "{msg} {bytes} {bytes_per_sec}"),
    };
    style_bar(bar, template, what, quiet)
}

/// A bar that counts steps, whose number becomes known on the way. Dropping it clears it, so it must
/// be gone before the command prints its result.
pub(crate) struct StepBar(ProgressBar);

impl StepBar {
    pub(crate) fn new(what: &'static str, quiet: bool) -> Self {
        let template = "{msg} {bar:30} {pos}/{len} {eta}";
        Self(style_bar(ProgressBar::no_length(), template, what, quiet))
    }

    pub(crate) fn show(&self, done: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(done);
    }
}

impl Drop for StepBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style_bar(bar: ProgressBar, template: &str, what: &'static str, quiet: bool) -> ProgressBar {
    if quiet || !stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(what)
}
