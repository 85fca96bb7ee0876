//! The clock of a world. It moves by declaration, by the wall clock, or by steps, and never because
//! of a text.
//!
//! Time never goes back: a declared time before the world's own is rejected. Private entries never
//! move the clock, because other readers would notice.

use turnkeep_types::Timestamp;

use crate::config::ClockMode;
use crate::fact::ClockState;
use crate::fault::{Code, Fault};
use crate::time::{WorldTime, Zone};

/// What the operator declared about time in a beat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// The time from now on.
    pub time: Option<WorldTime>,
    /// The zone from now on.
    pub timezone: Option<Zone>,
    /// Whether the clock is paused after this beat.
    pub pause: Option<bool>,
}

impl Declared {
    /// Whether anything was declared.
    pub fn is_some(&self) -> bool {
        self.time.is_some() || self.timezone.is_some() || self.pause.is_some()
    }
}

/// How far one beat moves the clock in step mode.
const STEP_SECONDS: i64 = 1;

/// The time of a commit: the declared time, or else the clock's. A paused clock does not move.
pub fn commit_time(
    clock: &ClockState,
    mode: ClockMode,
    now: Timestamp,
    declared: &Declared,
) -> Result<WorldTime, Fault> {
    match &declared.time {
        Some(time) if *time < clock.time => {
            let message = format!(
                "is before the world's time, {}: time never goes back",
                clock.time.as_str()
            );
            Err(Fault::new(
                Code::TimeRegression,
                "declared_overrides.time.declared_world_time",
                message,
            ))
        }
        Some(time) => Ok(time.clone()),
        None if clock.paused => Ok(clock.time.clone()),
        None => Ok(match mode {
            // The wall clock may be behind the world's time, which never goes back.
            ClockMode::Wall => WorldTime::from_timestamp(now).max(clock.time.clone()),
            ClockMode::Step => clock.time.plus_seconds(STEP_SECONDS),
        }),
    }
}

/// The clock after a commit. It shows the time of the commit, or of the last public entry if that
/// is later.
pub fn clock_after(
    clock: &ClockState,
    declared: &Declared,
    commit: &WorldTime,
    last_public: Option<&WorldTime>,
) -> ClockState {
    let time = last_public
        .filter(|&public| public > commit)
        .unwrap_or(commit);
    ClockState {
        time: time.clone(),
        timezone: declared
            .timezone
            .clone()
            .unwrap_or_else(|| clock.timezone.clone()),
        paused: declared.pause.unwrap_or(clock.paused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(paused: bool) -> ClockState {
        let time = WorldTime::parse("2026-01-01T00:00:10Z").unwrap();
        ClockState {
            time,
            timezone: Zone::utc(),
            paused,
        }
    }

    fn declared(time: Option<&str>) -> Declared {
        Declared {
            time: time.and_then(WorldTime::parse),
            ..Declared::default()
        }
    }

    #[test]
    fn time_moves_by_declaration_wall_or_step_and_stands_while_paused() {
        let wall = Timestamp(1_767_225_660_000);
        for (paused, mode, given, wanted) in [
            (false, ClockMode::Step, None, "2026-01-01T00:00:11.000Z"),
            (false, ClockMode::Wall, None, "2026-01-01T00:01:00.000Z"),
            (true, ClockMode::Step, None, "2026-01-01T00:00:10Z"),
            (true, ClockMode::Wall, None, "2026-01-01T00:00:10Z"),
            (
                true,
                ClockMode::Step,
                Some("2026-01-01T05:00:00+02:00"),
                "2026-01-01T05:00:00+02:00",
            ),
            (
                false,
                ClockMode::Wall,
                Some("2026-01-01T00:00:10Z"),
                "2026-01-01T00:00:10Z",
            ),
        ] {
            let time = commit_time(&clock(paused), mode, wall, &declared(given)).unwrap();
            assert_eq!(time.as_str(), wanted, "{paused} {mode:?} {given:?}");
        }
        let early = commit_time(
            &clock(false),
            ClockMode::Wall,
            Timestamp(5),
            &declared(None),
        )
        .unwrap();
        assert_eq!(
            early,
            clock(false).time,
            "a wall clock that is behind does not turn the world back"
        );
    }

    #[test]
    fn n14_a_declared_time_in_the_past_is_refused() {
        let fault = commit_time(
            &clock(true),
            ClockMode::Step,
            Timestamp(0),
            &declared(Some("2026-01-01T00:00:09Z")),
        );
        assert_eq!(fault.unwrap_err().code, Code::TimeRegression);
    }

    #[test]
    fn a_public_entry_may_lead_the_clock_and_declarations_last() {
        let later = WorldTime::parse("2026-01-01T00:01:00Z").unwrap();
        let pause = Declared {
            pause: Some(true),
            timezone: Zone::named("Europe/Berlin"),
            time: None,
        };
        let next = clock_after(&clock(false), &pause, &clock(false).time, Some(&later));
        assert_eq!(
            (next.time.as_str(), next.timezone.as_str(), next.paused),
            ("2026-01-01T00:01:00Z", "Europe/Berlin", true)
        );
        let next = clock_after(
            &next,
            &Declared::default(),
            &later,
            Some(&clock(false).time),
        );
        assert_eq!(
            (next.time.as_str(), next.paused),
            ("2026-01-01T00:01:00Z", true)
        );
    }
}
