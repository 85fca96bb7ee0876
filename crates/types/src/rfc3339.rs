//! Milliseconds since the Unix epoch as RFC 3339 text, and back.
//!
//! The calendar is that of RFC 3339: the proleptic Gregorian years 0000 to 9999, in UTC. Times
//! outside it have no text. Text that is not a valid time is `None`.

use std::fmt;

/// 0000-01-01T00:00:00.000Z.
const FIRST_MS: i64 = -62_167_219_200_000;
/// 9999-12-31T23:59:59.999Z.
pub const LAST_MS: i64 = 253_402_300_799_999;
const DAY_MS: i64 = 86_400_000;

/// The RFC 3339 text with milliseconds; `None` outside the calendar.
pub fn format_rfc3339(unix_ms: i128) -> Option<String> {
    let unix_ms = i64::try_from(unix_ms)
        .ok()
        .filter(|ms| (FIRST_MS..=LAST_MS).contains(ms))?;
    let mut text = String::with_capacity("0000-00-00T00:00:00.000Z".len());
    write_rfc3339(&mut text, unix_ms).ok()?;
    Some(text)
}

/// Writes a time as RFC 3339 with milliseconds. Times outside the calendar are written as its first
/// or its last millisecond.
pub fn write_rfc3339(out: &mut impl fmt::Write, unix_ms: i64) -> fmt::Result {
    let ms = unix_ms.clamp(FIRST_MS, LAST_MS);
    // Euclidean division: a time before 1970 must count up from its own midnight too.
    let CivilDate { year, month, day } = CivilDate::from_days(ms.div_euclid(DAY_MS));
    let of_day = ms.rem_euclid(DAY_MS);
    let hour = of_day / 3_600_000;
    let minute = of_day / 60_000 % 60;
    let second = of_day / 1000 % 60;
    let milli = of_day % 1000;
    write!(
        out,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
    )
}

/// Parses RFC 3339 text. A time between two milliseconds is rejected, not rounded: a caller would
/// read back another time than it wrote.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let days = parse_date(text.get(..10)?)?;
    let clock = text.get(10..)?.strip_prefix(['T', 't'])?;
    let seconds = parse_clock(clock.get(..8)?)?;
    let (milli, zone) = split_fraction(clock.get(8..)?)?;
    // A local time is ahead of UTC by its offset.
    Some(days * DAY_MS + seconds * 1000 + milli - parse_offset_minutes(zone)? * 60_000)
}

/// Parses `YYYY-MM-DD` into days since the epoch.
fn parse_date(date: &str) -> Option<i64> {
    let year = parse_digits(date, 0..4)?;
    let month = parse_digits(date, 5..7)?;
    let day = parse_digits(date, 8..10)?;
    let exists = date.get(4..5)? == "-"
        && date.get(7..8)? == "-"
        && (1..=days_in_month(year, month)?).contains(&day);
    exists.then(|| days_since_epoch(year, month, day))
}

/// Parses `HH:MM:SS` into seconds since midnight. A leap second is rejected: Unix time has no number
/// for it.
fn parse_clock(clock: &str) -> Option<i64> {
    let hour = parse_digits(clock, 0..2)?;
    let minute = parse_digits(clock, 3..5)?;
    let second = parse_digits(clock, 6..8)?;
    let exists = clock.get(2..3)? == ":"
        && clock.get(5..6)? == ":"
        && hour <= 23
        && minute <= 59
        && second <= 59;
    exists.then_some((hour * 60 + minute) * 60 + second)
}

/// Parses digits only. `str::parse` alone would also accept a sign.
fn parse_digits(text: &str, range: std::ops::Range<usize>) -> Option<i64> {
    let digits = text.get(range)?;
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}

/// Splits off an optional fraction: its milliseconds and the rest of the text.
fn split_fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, zone) = rest.split_at_checked(count)?;
    let whole = digits.trim_end_matches('0');
    if digits.is_empty() || whole.len() > 3 {
        return None;
    }
    // Missing digits are zeros at the end: `.5` is 500 milliseconds.
    let places = whole.bytes().map(|digit| i64::from(digit - b'0'));
    let milli = places.chain(std::iter::repeat(0)).take(3);
    Some((milli.fold(0, |number, digit| 10 * number + digit), zone))
}

fn parse_offset_minutes(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hour, minute) = (parse_digits(zone, 1..3)?, parse_digits(zone, 4..6)?);
    let legal = zone.len() == 6 && zone.get(3..4)? == ":" && hour <= 23 && minute <= 59;
    legal.then_some(sign * (hour * 60 + minute))
}

fn days_in_month(year: i64, month: i64) -> Option<i64> {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) {
            29
        } else {
            28
        }),
        _ => None,
    }
}

/// The days from 1970-01-01 to a date. Years are counted from March, so that the leap day is the
/// last day of a year.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    // March is month 0 here. The months from March on have 31, 30, 31, 30, 31 days, twice, which is
    // 153 days for five months: the division gives 0, 31, 61, 92, 122, 153 …
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A date of the Gregorian calendar.
#[derive(Debug, PartialEq, Eq)]
struct CivilDate {
    year: i64,
    month: i64,
    day: i64,
}

impl CivilDate {
    /// The date this many days after 1970-01-01: the inverse of [`days_since_epoch`].
    fn from_days(days: i64) -> Self {
        // 719 468 days lie between 0000-03-01 and the epoch, 146 097 days in 400 years.
        let days = days + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let of_year = day_of_era - (365 * of_era + of_era / 4 - of_era / 100);
        // Five months from March on have 153 days: 31, 30, 31, 30, 31.
        let march_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        let year = era * 400 + of_era + i64::from(month <= 2);
        Self { year, month, day }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_and_read_back() {
        let check = |ms: i64, text: &str| {
            assert_eq!(format_rfc3339(ms.into()).as_deref(), Some(text));
            assert_eq!(parse_rfc3339(text), Some(ms), "{text}");
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(-1, "1969-12-31T23:59:59.999Z");
        check(1_766_174_400_123, "2025-12-19T20:00:00.123Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(FIRST_MS, "0000-01-01T00:00:00.000Z");
        check(LAST_MS, "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_the_calendar_agrees_with_the_month_lengths() {
        let (mut year, mut month, mut day) = (0, 1, 1);
        for number in FIRST_MS / DAY_MS..=LAST_MS / DAY_MS {
            assert_eq!(CivilDate::from_days(number), CivilDate { year, month, day });
            assert_eq!(days_since_epoch(year, month, day), number);
            day += 1;
            if day > days_in_month(year, month).unwrap() {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }

    #[test]
    fn outside_the_calendar_there_is_no_text() {
        for ms in [
            i128::from(FIRST_MS) - 1,
            i128::from(LAST_MS) + 1,
            u64::MAX.into(),
            i64::MIN.into(),
        ] {
            assert_eq!(format_rfc3339(ms), None);
        }
    }

    #[test]
    fn other_rfc_3339_forms_parse_too() {
        for text in [
            "1970-01-01T01:00:00+01:00",
            "1969-12-31t23:30:00.0-00:30",
            "1970-01-01T00:00:00.0000000z",
        ] {
            assert_eq!(parse_rfc3339(text), Some(0), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "1970-01-01",
            "1970-13-01T00:00:00Z",
            "1970-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "1970-01-00T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "1970-01-01T00:00:60Z",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.0001Z",
            "1970-01-01T00:00:00+1:00",
            "1970-01-01T00:00:00+01:00x",
            "1970-01-01 00:00:00Z",
            "197é-01-01T00:00:00Z",
            "+970-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
