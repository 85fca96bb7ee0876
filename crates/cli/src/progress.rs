//! A progress bar on a terminal; nothing elsewhere.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that counts bytes. Without a total it shows only the count.
pub(crate) fn bytes_bar(what: &'static str, total: Option<u64>, quiet: bool) -> ProgressBar {
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::no_length(),
    };
    if quiet || !stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let template = if total.is_some() {
        "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}"
    } else {
        "{msg} {bytes} {bytes_per_sec}"
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(what)
}

/// A bar that counts steps, whose number becomes known on the way.
pub(crate) fn count_bar(what: &'static str, quiet: bool) -> ProgressBar {
    let bar = ProgressBar::no_length();
    if quiet || !stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(what)
}
