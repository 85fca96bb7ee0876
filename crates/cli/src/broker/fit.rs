//! Hints about a profile that does not fit its program.

use turnkeep_session::detector::GENERIC;
use turnkeep_types::broker::SessionInfo;

/// How often Enter must be pressed without a turn before a hint appears: the first answer may still
/// be on its way.
const UNANSWERED_MIN: u32 = 2;

/// How to write a profile.
const HOW: &str = "record a session with `turnkeep wrap --record my.jsonl -- PROGRAM`, then write a profile \
                   (docs/turn-detection.md, \"Add an agent\")";

/// The line that `sessions` prints below its table about a session, if there is a reason.
pub(crate) fn session_hint(session: &SessionInfo, called: &str) -> Option<String> {
    // A session with a turn has a profile that fits, and an ended one cannot be helped.
    if session.has_turn || !session.connected {
        return None;
    }
    let preset = session.preset.as_deref().unwrap_or_default();
    let why = match (preset, session.unanswered, session.state) {
        (GENERIC, count, _) if count >= UNANSWERED_MIN => no_turn(count, &missing_profile()),
        // No state means that no prompt was seen. A profile of its own may still be waiting for a
        // slow program to show one; the generic one fits or does not.
        (GENERIC, _, None) => format!("no prompt was seen; {}", missing_profile()),
        (preset, count, _) if count >= UNANSWERED_MIN => no_turn(count, &unfit_profile(preset)),
        _ => return None,
    };
    Some(format!("{called}: {why}: {HOW}"))
}

/// The line that `wrap` prints when the program has ended, if there is a reason.
pub(crate) fn wrap_hint(preset: &str, turns: u32, unanswered: u32) -> Option<String> {
    if turns > 0 || unanswered < UNANSWERED_MIN {
        return None;
    }
    let profile = if preset == GENERIC {
        missing_profile()
    } else {
        unfit_profile(preset)
    };
    Some(format!("{}: {HOW}", no_turn(unanswered, &profile)))
}

fn no_turn(count: u32, profile: &str) -> String {
    format!("no turn was found although Enter was pressed {count} times; {profile}")
}

fn missing_profile() -> String {
    "the program has no profile of its own (`generic` is used)".to_owned()
}

fn unfit_profile(preset: &str) -> String {
    format!("the profile `{preset}` may not fit this version of the program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_turns_says_why_and_what_to_do() {
        let session = |preset: &str, unanswered| SessionInfo {
            connected: true,
            preset: Some(preset.to_owned()),
            unanswered,
            ..SessionInfo::default()
        };
        let hint = |session: &SessionInfo| session_hint(session, "mine").unwrap_or_default();
        assert!(
            hint(&session("generic", 0))
                .starts_with("mine: no prompt was seen; the program has no profile")
        );
        assert!(hint(&session("generic", 3)).contains("Enter was pressed 3 times"));
        assert!(hint(&session("claude", 3)).contains("`claude` may not fit"));
        assert!(hint(&session("claude", 3)).contains("--record"));
        assert_eq!(session_hint(&session("claude", 1), "mine"), None);
        assert_eq!(
            session_hint(
                &SessionInfo {
                    has_turn: true,
                    ..session("generic", 9)
                },
                "mine"
            ),
            None
        );
    }

    #[test]
    fn a_program_that_was_asked_and_gave_no_turn_is_named_at_its_end() {
        assert!(wrap_hint("generic", 0, 2).is_some_and(|hint| hint.contains("pressed 2 times")));
        assert_eq!(wrap_hint("generic", 1, 5), None);
        assert_eq!(wrap_hint("generic", 0, 1), None);
    }
}
