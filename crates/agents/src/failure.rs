//! Decides what an error of a provider means for a turn: give up, try again soon, or wait.
//!
//! Programs report errors in different shapes, and often only as a sentence. This module knows all of
//! them. It trusts an HTTP status most, then the program's own word for the error, then the
//! sentence.
//!
//! ```text
//! API Error: 529 {"type":"error","error":{"type":"overloaded_error"…  → Unavailable
//! Claude AI usage limit reached|1753088400                           → RateLimited until then
//! Your quota will reset after 13h44m29s.                             → RateLimited for so long
//! {"codexErrorInfo":"unauthorized"}                                  → Failed
//! ```

use std::time::Duration;

use turnkeep_types::Timestamp;

use crate::event::{LimitReset, TurnEnd};
use crate::field::shorten;
use crate::protocol::Exit;

const REASON_CHARACTERS_MAX: usize = 2000;

/// Words of programs for a limit that time lifts.
const RATE_LIMIT_CODES: &[&str] = &[
    "usageLimitExceeded",
    "rate_limit",
    "rate_limit_error",
    "rate_limited",
    "RESOURCE_EXHAUSTED",
];

/// Words of programs for a provider that is out of reach or overloaded.
const UNAVAILABLE_CODES: &[&str] = &[
    "serverOverloaded",
    "internalServerError",
    "httpConnectionFailed",
    "responseStreamConnectionFailed",
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
    "overloaded_error",
    "overloaded",
    "api_error",
    "server_error",
    "unavailable",
];

/// Words of programs for an error that a second try would only repeat.
const PERMANENT_CODES: &[&str] = &[
    "authentication_failed",
    "badRequest",
    "billing_error",
    "contextWindowExceeded",
    "cyberPolicy",
    "invalid_request",
    "sandboxError",
    "sessionBudgetExceeded",
    "unauthorized",
];

/// Parts of sentences about a limit, in lower case.
const RATE_LIMIT_PHRASES: &[&str] = &[
    "usage limit",
    "rate limit",
    "rate_limit",
    "rate-limit",
    "too many requests",
    "quota exceeded",
    "exceeded your current quota",
    "exhausted your capacity",
    "exhausted your daily quota",
    "resource_exhausted",
    "resource has been exhausted",
    "hit your limit",
    "hit your session limit",
    "hit your weekly limit",
    "5-hour limit reached",
];

/// Parts of sentences about a provider that is out of reach or overloaded, in lower case.
const UNAVAILABLE_PHRASES: &[&str] = &[
    "overloaded",
    "high demand",
    "at capacity",
    "service unavailable",
    "temporarily unavailable",
    "bad gateway",
    "gateway timeout",
    "internal server error",
    "connection error",
    "connection refused",
    "connection reset",
    "connection timed out",
    "connection closed",
    "request timed out",
    "network error",
    "network is unreachable",
    "fetch failed",
    "socket hang up",
    "error sending request",
    "stream disconnected",
    "dns error",
    "econnrefused",
    "econnreset",
    "etimedout",
    "enotfound",
    "eai_again",
];

/// Words before the time that a provider wants to be left alone, in lower case.
const WAIT_PHRASES: &[&str] = &[
    "reset after",
    "resets in",
    "retry in",
    "retry after",
    "retrydelay",
    "try again in",
];
/// A longer time is more likely a misread text than a limit.
const WAIT_MAX: Duration = Duration::from_hours(31 * 24);

/// An error as a program reports it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProviderError<'a> {
    /// The HTTP status of the provider's answer.
    pub status: Option<u64>,
    /// The program's own word for the error.
    pub code: &'a str,
    pub message: &'a str,
    /// When a limit ends, if the program said so anywhere.
    pub resets_at: Option<Timestamp>,
}

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Permanent,
    Unavailable,
    RateLimit,
}

/// The end of a turn that failed with this error.
pub fn classify(error: &ProviderError<'_>) -> TurnEnd {
    let reason = describe(error);
    match kind_of(error) {
        Kind::Permanent => TurnEnd::Failed(reason),
        Kind::Unavailable => TurnEnd::Unavailable(reason),
        Kind::RateLimit => TurnEnd::RateLimited {
            reset: match error.resets_at {
                Some(resets_at) => LimitReset::At(resets_at),
                None => find_reset(error.message),
            },
            reason,
        },
    }
}

/// The end of a turn whose program is gone. Only its error output says why.
pub fn classify_exit(exit: &Exit) -> TurnEnd {
    let reason = exit.describe();
    match kind_by_message(&exit.last_errors) {
        Some(Kind::Unavailable) => TurnEnd::Unavailable(reason),
        Some(Kind::RateLimit) => TurnEnd::RateLimited {
            reset: find_reset(&exit.last_errors),
            reason,
        },
        Some(Kind::Permanent) | None => TurnEnd::Failed(reason),
    }
}

fn describe(error: &ProviderError<'_>) -> String {
    let reason = match (error.message.trim(), error.code) {
        ("", "") => "the agent program reported an error without a message",
        ("", code) => code,
        (message, _) => message,
    };
    shorten(reason, REASON_CHARACTERS_MAX)
}

fn kind_of(error: &ProviderError<'_>) -> Kind {
    // The most reliable evidence first. An error without any counts as permanent: to repeat the turn
    // could use tokens for the same failure again and again.
    error
        .status
        .and_then(kind_by_status)
        .or_else(|| kind_by_code(error.code))
        .or_else(|| kind_by_message(error.message))
        .unwrap_or(Kind::Permanent)
}

fn kind_by_status(status: u64) -> Option<Kind> {
    match status {
        429 => Some(Kind::RateLimit),
        408 | 500..=599 => Some(Kind::Unavailable),
        400..=499 => Some(Kind::Permanent),
        _ => None,
    }
}

fn kind_by_code(code: &str) -> Option<Kind> {
    if RATE_LIMIT_CODES.contains(&code) {
        Some(Kind::RateLimit)
    } else if UNAVAILABLE_CODES.contains(&code) {
        Some(Kind::Unavailable)
    } else if PERMANENT_CODES.contains(&code) {
        Some(Kind::Permanent)
    } else {
        None
    }
}

fn kind_by_message(message: &str) -> Option<Kind> {
    if let Some(kind) = find_status(message).and_then(kind_by_status) {
        return Some(kind);
    }
    let message = message.to_lowercase();
    let mentions = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    // A limit first: providers call a limit that lasts for hours an overload, never the reverse.
    if mentions(RATE_LIMIT_PHRASES) {
        Some(Kind::RateLimit)
    } else if mentions(UNAVAILABLE_PHRASES) {
        Some(Kind::Unavailable)
    } else {
        None
    }
}

/// The HTTP status that a sentence mentions. A number counts only after a word that announces one:
/// `API Error: 529`, `status 503`, `HTTP 500`, not `line 404`.
fn find_status(message: &str) -> Option<u64> {
    let words = message.split(|c: char| !c.is_ascii_alphanumeric());
    let mut is_announced = false;
    for word in words.filter(|word| !word.is_empty()) {
        let status = word.parse().unwrap_or(0);
        if is_announced && (400..=599).contains(&status) {
            return Some(status);
        }
        let word = word.to_ascii_lowercase();
        let announces = matches!(word.as_str(), "error" | "status" | "http" | "code");
        // A single digit is part of a version, as in `HTTP/1.1 503`.
        let is_version = is_announced && word.len() == 1;
        is_announced = announces || is_version;
    }
    None
}

/// When a limit ends, as far as the sentence says it.
fn find_reset(message: &str) -> LimitReset {
    if let Some(resets_at) = find_reset_time(message) {
        LimitReset::At(resets_at)
    } else if let Some(wait) = find_wait(message) {
        LimitReset::After(wait)
    } else {
        LimitReset::Unknown
    }
}

/// The time after a bar, as in `usage limit reached|1753088400`, in Unix seconds.
fn find_reset_time(message: &str) -> Option<Timestamp> {
    let (_, after) = message.split_once("limit reached|")?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    reset_time_from_seconds(digits.parse().ok()?)
}

/// The duration after words that announce one, as in `reset after 13h44m29s` or `retry in 7.5s`.
fn find_wait(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    let waits = WAIT_PHRASES.iter().filter_map(|phrase| {
        let (_, after) = message.split_once(phrase)?;
        parse_duration(after.trim_start_matches([' ', '"', ':']))
    });
    // The longest one: a request after a shorter wait would hit the other limit.
    waits.max().filter(|wait| *wait <= WAIT_MAX)
}

/// The duration at the beginning of a text: numbers, each with its unit. A fraction counts as a
/// whole unit.
fn parse_duration(text: &str) -> Option<Duration> {
    // Each round takes one number with its unit: "13h44m29s", "44m29s", "29s".
    let mut seconds = 0_u64;
    let mut rest = text;
    loop {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split_while(after.trim_start(), |c| c.is_ascii_alphabetic());
        let Some(unit_seconds) = seconds_of_unit(unit).filter(|_| !number.is_empty()) else {
            break;
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: u64 = whole.parse().ok()?;
        let units = whole.checked_add(u64::from(!fraction.is_empty()))?;
        seconds = seconds.checked_add(units.checked_mul(unit_seconds)?)?;
        rest = after.trim_start();
    }
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn seconds_of_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 60 * 60,
        "d" | "day" | "days" => 24 * 60 * 60,
        _ => return None,
    })
}

/// A time in Unix seconds. Zero and times that no clock shows are absent.
pub(crate) fn reset_time_from_seconds(seconds: u64) -> Option<Timestamp> {
    const YEAR_9999_SECONDS: u64 = 253_402_300_799;
    let is_plausible = seconds > 0 && seconds <= YEAR_9999_SECONDS;
    is_plausible.then(|| Timestamp(seconds.saturating_mul(1000)))
}

#[cfg(test)]
mod tests;
