//! World time: instants that keep the text they were given with, and time zones by name.
//!
//! The server writes times as RFC 3339 in UTC with milliseconds. A time that a caller gives with an
//! offset keeps its text and is compared as an instant. A local time is resolved in a zone. A local
//! time that the zone skips or has twice is rejected, never guessed.

use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use turnkeep_types::Timestamp;
use turnkeep_types::rfc3339::parse_rfc3339;

use crate::fault::{Code, Fault};

/// The first instant that RFC 3339 can write in UTC: the beginning of the year 0.
const EARLIEST: jiff::Timestamp = jiff::Timestamp::constant(-62_167_219_200, 0);

/// An instant with its text. Two times are compared by the instant alone.
#[derive(Debug, Clone)]
pub struct WorldTime {
    instant: jiff::Timestamp,
    text: TimeText,
}

/// The form in which the server writes times; `0` stands for any digit.
const USUAL_FORM: &str = "0000-00-00T00:00:00.000Z";

/// The text of a time. Nearly all texts have the usual length, and a world has one per entry, so
/// these are stored inline.
#[derive(Debug, Clone)]
enum TimeText {
    /// ASCII of the usual length.
    Usual([u8; USUAL_FORM.len()]),
    /// Any other text.
    Given(Arc<str>),
}

impl TimeText {
    fn new(text: &str) -> Self {
        match text.as_bytes().try_into() {
            Ok(usual) if text.is_ascii() => Self::Usual(usual),
            _ => Self::Given(text.into()),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Usual(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
            Self::Given(text) => text,
        }
    }
}

impl WorldTime {
    /// The time in the server's form.
    pub fn from_timestamp(stamp: Timestamp) -> Self {
        let ms = i64::try_from(stamp.0).unwrap_or(i64::MAX);
        Self::from_instant(jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX))
    }

    /// Takes the instant from the text, so that it is the same when it is read back.
    fn from_instant(instant: jiff::Timestamp) -> Self {
        let text = format!("{instant:.3}");
        Self {
            // The text has milliseconds only.
            instant: text.parse().unwrap_or(instant),
            text: TimeText::new(&text),
        }
    }

    /// Whether a text is a time, with an offset or local, even if its zone does not have it.
    pub fn is_time(text: &str) -> bool {
        ParsedTime::parse(text).is_some()
    }

    /// Parses an RFC 3339 time with an offset and keeps its text.
    pub fn parse(text: &str) -> Option<Self> {
        match ParsedTime::parse(text)? {
            ParsedTime::Instant(instant) => Some(Self {
                instant,
                text: TimeText::new(text),
            }),
            ParsedTime::Local(_) => None,
        }
    }

    /// Parses an RFC 3339 time with an offset, or a local time in a zone.
    pub fn parse_in(text: &str, zone: &Zone, path: &str) -> Result<Self, Fault> {
        let local = match ParsedTime::parse(text).ok_or_else(|| not_a_time(path))? {
            ParsedTime::Instant(instant) => {
                return Ok(Self {
                    instant,
                    text: TimeText::new(text),
                });
            }
            ParsedTime::Local(local) => local,
        };
        let ambiguous = |_| {
            let message =
                format!("{text} does not exist or exists twice in {zone}: give an offset");
            Fault::new(Code::TimeAmbiguous, path, message)
        };
        let instant = zone
            .rules
            .to_ambiguous_timestamp(local)
            .unambiguous()
            .map_err(ambiguous)?;
        if instant < EARLIEST {
            Err(not_a_time(path))
        } else {
            Ok(Self::from_instant(instant))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// Milliseconds since 1970.
    pub fn unix_ms(&self) -> i64 {
        self.instant.as_millisecond()
    }

    /// The time some seconds later, in the server's form.
    #[must_use]
    pub fn plus_seconds(&self, seconds: i64) -> Self {
        let end = if seconds < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        };
        Self::from_instant(
            self.instant
                .checked_add(jiff::SignedDuration::from_secs(seconds))
                .unwrap_or(end),
        )
    }

    /// The date in a zone.
    pub fn date(&self, zone: &Zone) -> jiff::civil::Date {
        self.instant.to_zoned(zone.rules.clone()).date()
    }
}

/// The fault for a text that is not a time.
pub(crate) fn not_a_time(path: impl Into<String>) -> Fault {
    let message = "must be a time such as 2026-11-15T09:00:00Z or, local, 2026-11-15T09:00:00, before 9999-12-30T22:00:00Z";
    Fault::new(Code::TimeFormat, path, message)
}

/// A parsed time before its zone is considered.
enum ParsedTime {
    Instant(jiff::Timestamp),
    Local(DateTime),
}

impl ParsedTime {
    fn parse(text: &str) -> Option<Self> {
        // Nearly all times are in the server's own form.
        if let Some(instant) = usual_instant(text) {
            return Some(Self::Instant(instant));
        }
        match TextForm::detect(text)? {
            TextForm::Instant => text
                .parse()
                .ok()
                .filter(|instant| *instant >= EARLIEST)
                .map(Self::Instant),
            TextForm::Local => text.parse().ok().map(Self::Local),
        }
    }
}

/// Parses a text in the server's form without the general parser, because a start reads one per
/// entry. Returns `None` for any other text, which may still be a time: callers may give local times
/// and nanoseconds, which `rfc3339` rejects.
fn usual_instant(text: &str) -> Option<jiff::Timestamp> {
    if !strip_form(text, USUAL_FORM)?.is_empty() {
        return None;
    }
    // `from_millisecond` rejects the last two days of the year 9999, as the general parser does.
    jiff::Timestamp::from_millisecond(parse_rfc3339(text)?).ok()
}

/// The form of a text. The general parser accepts more than RFC 3339, such as `20261115T090000Z`.
/// Texts that are kept and shown must be strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextForm {
    /// A date and a time with an offset.
    Instant,
    /// A date and a time without an offset. A bare date is rejected: a time that lost its hours
    /// would move a clock.
    Local,
}

impl TextForm {
    fn detect(text: &str) -> Option<Self> {
        let rest = strip_form(text, "0000-00-00")?.strip_prefix(['T', 't'])?;
        let rest = strip_form(rest, "00:00")?;
        // A leap second is not an instant here: a reader would make the next second of it, or
        // reject it.
        if rest.starts_with(":6") {
            return None;
        }
        let Some(rest) = strip_form(rest, ":00") else {
            return rest.is_empty().then_some(Self::Local);
        };
        match strip_fraction(rest)? {
            "" => Some(Self::Local),
            "Z" | "z" => Some(Self::Instant),
            rest => {
                let offset = rest.strip_prefix(['+', '-'])?;
                is_offset(offset).then_some(Self::Instant)
            }
        }
    }
}

/// The text behind a fraction of a second, if there is one. A point needs at least one digit.
fn strip_fraction(text: &str) -> Option<&str> {
    let Some(digits) = text.strip_prefix('.') else {
        return Some(text);
    };
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < digits.len()).then_some(rest)
}

/// Whether a text is an offset from UTC without its sign, from `00:00` to `23:59`.
fn is_offset(text: &str) -> bool {
    // The digits are checked first, so that comparing the texts compares the numbers.
    strip_form(text, "00:00").is_some_and(str::is_empty)
        && text.get(..2).is_some_and(|hours| hours < "24")
        && text.get(3..).is_some_and(|minutes| minutes < "60")
}

/// The text behind a beginning of this form; `0` stands for any digit.
fn strip_form<'a>(text: &'a str, form: &str) -> Option<&'a str> {
    let fits = |(byte, form): (u8, u8)| {
        if form == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == form
        }
    };
    let (start, rest) = text.split_at_checked(form.len())?;
    start.bytes().zip(form.bytes()).all(fits).then_some(rest)
}

impl PartialEq for WorldTime {
    fn eq(&self, other: &Self) -> bool {
        self.instant == other.instant
    }
}

impl Eq for WorldTime {}

impl PartialOrd for WorldTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WorldTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.instant.cmp(&other.instant)
    }
}

/// A time zone by its IANA name, from the table inside the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    rules: TimeZone,
    /// A recorded name that the table no longer has; its times are shown in UTC.
    lost: Option<std::sync::Arc<str>>,
}

impl Zone {
    /// UTC.
    pub fn utc() -> Self {
        Self {
            rules: TimeZone::UTC,
            lost: None,
        }
    }

    /// The zone of a name that was legal when it was recorded.
    pub fn recorded(name: &str) -> Self {
        Self::named(name).unwrap_or_else(|| Self {
            lost: Some(name.into()),
            ..Self::utc()
        })
    }

    /// The zone of this name.
    pub fn named(name: &str) -> Option<Self> {
        let zone = jiff::tz::TimeZoneDatabase::bundled().get(name).ok()?;
        // A zone without an IANA name, such as `Etc/Unknown`, does not count.
        zone.iana_name()?;
        Some(Self {
            rules: zone,
            lost: None,
        })
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        self.lost
            .as_deref()
            .or(self.rules.iana_name())
            .unwrap_or("UTC")
    }
}

impl std::fmt::Display for Zone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_writes_utc_with_milliseconds() {
        assert_eq!(
            WorldTime::from_timestamp(Timestamp(1_763_197_200_000)).as_str(),
            "2025-11-15T09:00:00.000Z"
        );
        let later = WorldTime::parse("2026-01-01T00:00:00+02:00")
            .unwrap()
            .plus_seconds(1);
        assert_eq!(later.as_str(), "2025-12-31T22:00:01.000Z");
    }

    #[test]
    fn every_time_that_can_be_made_reads_back_the_same() {
        let zones = ["Asia/Tokyo", "Europe/Berlin", "America/Los_Angeles", "UTC"]
            .map(|name| Zone::named(name).unwrap());
        let texts = [
            "0000-01-01T00:00:00",
            "0000-01-01T00:00:00Z",
            "0000-01-01T00:00:00+23:59",
            "0001-01-01T00:00:00.9999999",
            "2026-11-15T09:00:05.1239",
            "9999-12-31T23:59:59.999999999",
            "9999-12-31T23:59:59Z",
            "9999-12-30T00:00:00-23:59",
        ];
        for (zone, text) in zones.iter().flat_map(|zone| texts.map(|text| (zone, text))) {
            let Ok(time) = WorldTime::parse_in(text, zone, "t") else {
                continue;
            };
            for made in [
                time.clone(),
                time.plus_seconds(1),
                time.plus_seconds(i64::MAX),
            ] {
                assert_eq!(
                    WorldTime::parse(made.as_str()),
                    Some(made.clone()),
                    "{text} in {zone}: {made:?}"
                );
            }
        }
        assert!(WorldTime::parse_in("0000-01-01T00:00:00", &zones[0], "t").is_err());
        assert!(WorldTime::parse_in("0000-01-01T00:00:00", &zones[2], "t").is_ok());
        assert!(Zone::named("Etc/Unknown").is_none());
    }

    #[test]
    fn the_usual_form_is_read_as_the_parser_reads_it() {
        for text in [
            "0000-01-01T00:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "2024-02-29T12:34:56.789Z",
            "2026-11-15T09:00:00.001Z",
            "9999-12-30T21:59:59.999Z",
        ] {
            assert_eq!(usual_instant(text), text.parse().ok(), "{text}");
            assert_eq!(WorldTime::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "2023-02-29T12:34:56.789Z",
            "2026-13-01T00:00:00.000Z",
            "2026-11-15T24:00:00.000Z",
            "2026-11-15T09:00:60.000Z",
            "9999-12-31T23:59:59.999Z",
        ] {
            assert_eq!(
                (usual_instant(text), WorldTime::parse(text)),
                (None, None),
                "{text}"
            );
        }
        assert_eq!(usual_instant("2026-11-15T09:00:00.0000Z"), None);
        assert_eq!(
            WorldTime::parse("2026-11-15T09:00+01:00é"),
            None,
            "24 bytes, but not ASCII"
        );
    }

    #[test]
    fn a_given_offset_is_kept_and_compared_as_an_instant() {
        let given = WorldTime::parse("2026-01-01T02:00:00+02:00").unwrap();
        assert_eq!(given.as_str(), "2026-01-01T02:00:00+02:00");
        assert_eq!(given, WorldTime::parse("2026-01-01T00:00:00Z").unwrap());
    }

    #[test]
    fn what_is_kept_as_it_was_given_is_rfc_3339_to_the_letter() {
        for text in [
            "2026-11-15T09:00:00Z",
            "2026-11-15t09:00:00z",
            "2026-11-15T09:00:00.5Z",
            "2026-11-15T09:00:00.123456789-00:30",
        ] {
            assert_eq!(
                WorldTime::parse(text)
                    .map(|time| time.as_str().to_owned())
                    .as_deref(),
                Some(text)
            );
        }
        let berlin = Zone::named("Europe/Berlin").unwrap();
        for text in [
            "20261115T090000Z",
            "2026-11-15 09:00:00Z",
            "2026-11-15T09:00Z",
            "2026-11-15T09Z",
            "2026-11-15T09:00:00+01",
            "2026-11-15T09:00:00+0100",
            "2026-11-15T09:00:00+01:00:30",
            "+002026-11-15T09:00:00Z",
            "2026-11-15T09:00:00,5Z",
            "2026-11-15T09:00:00.Z",
            "2026-11-15T24:00:00Z",
            "2026-13-15T09:00:00Z",
            "2026-11-15T09:00:00Z ",
            "2026-11-1５T09:00:00Z",
            "2026-W46-7",
            "2026-11-15",
        ] {
            assert_eq!(WorldTime::parse(text), None, "{text}");
            assert_eq!(
                WorldTime::parse_in(text, &berlin, "t").unwrap_err().code,
                Code::TimeFormat,
                "{text}"
            );
        }
        for text in [
            "2026-11-15T00:00",
            "2026-11-15T00:00:00",
            "2026-11-15T00:00:00.000",
        ] {
            let time = WorldTime::parse_in(text, &berlin, "t").unwrap();
            assert_eq!(time.as_str(), "2026-11-14T23:00:00.000Z", "{text}");
        }
    }

    #[test]
    fn a_local_time_needs_to_be_one_instant_of_its_zone() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let parse = |text| WorldTime::parse_in(text, &berlin, "t");
        assert_eq!(
            parse("2026-07-01T09:00:00").unwrap().as_str(),
            "2026-07-01T07:00:00.000Z"
        );
        for (text, code) in [
            ("2026-03-29T02:30:00", Code::TimeAmbiguous),
            ("2026-10-25T02:30:00", Code::TimeAmbiguous),
            ("tomorrow", Code::TimeFormat),
            ("2026-07-01T09:00:00+24:00", Code::TimeFormat),
            ("2026-07-01T09:00:00-25:00", Code::TimeFormat),
            ("2026-07-01T09:00:00+01:60", Code::TimeFormat),
            ("2026-07-01T09:00:60Z", Code::TimeFormat),
            ("2026-07-01T09:00:00Z[UTC]", Code::TimeFormat),
            ("2026-07-01T09:00:00+02:00[Europe/Berlin]", Code::TimeFormat),
            ("", Code::TimeFormat),
        ] {
            assert_eq!(parse(text).unwrap_err().code, code, "{text}");
        }
        for none in ["Mars/Olympus", "Etc/Unknown", ""] {
            assert!(Zone::named(none).is_none(), "{none}");
        }
    }

    #[test]
    fn the_date_is_that_of_the_zone() {
        let time = WorldTime::parse("2026-11-15T23:30:00Z").unwrap();
        assert_eq!(time.date(&Zone::utc()).to_string(), "2026-11-15");
        assert_eq!(
            time.date(&Zone::named("Europe/Berlin").unwrap())
                .to_string(),
            "2026-11-16"
        );
    }
}
