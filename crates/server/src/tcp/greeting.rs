//! HELLO: checks the token and agrees on the protocol version.
//!
//! A token that is sent is always checked, so a client with a wrong one never works by accident.

use serde_json::{Map, Value};
use turnkeep_wire::ErrorCode;
use turnkeep_wire::message::{Hello, Welcome};

use crate::auth::Auth;
use crate::error::ApiError;

/// The version that this server speaks.
const VERSION: u16 = 1;
/// The longest first frame where a token is needed: its sender is not authenticated yet.
pub(super) const GREETING_BYTES_MAX: usize = 64 << 10;

/// The refusal of a token that is sent and wrong, also where none is needed.
const NOT_THE_OWNERS: &str =
    "the token is not the owner's: persons reach their world over HTTP and /mcp";

/// Answers a HELLO, or refuses its token.
pub(super) fn check_hello(
    auth: &Auth,
    session_id: u64,
    hello: Option<&Hello>,
) -> Result<Welcome, ApiError> {
    match hello.and_then(sent_token) {
        Some(sent) if auth.is_owner(sent.as_bytes()) => {}
        Some(_) => return Err(ApiError::new(ErrorCode::Unauthorized, NOT_THE_OWNERS)),
        None if auth.is_off() => {}
        None => return Err(missing_token_error()),
    }
    if hello.is_some_and(|hello| !hello.meta.is_empty() && parse_meta(hello).is_none()) {
        return Err(ApiError::bad_request("meta_json is not a JSON object"));
    }
    Ok(Welcome {
        session_id,
        version: hello.map_or(VERSION, |hello| hello.version.min(VERSION)),
    })
}

/// The refusal of a first frame without a token where one is needed.
pub(super) fn missing_token_error() -> ApiError {
    let message =
        "a token is needed: the first frame must be HELLO with {\"token\":\"…\"} in its meta_json";
    ApiError::new(ErrorCode::Unauthorized, message)
}

fn sent_token(hello: &Hello) -> Option<String> {
    match parse_meta(hello)?.get_mut("token")?.take() {
        Value::String(token) => Some(token),
        _ => None,
    }
}

fn parse_meta(hello: &Hello) -> Option<Map<String, Value>> {
    serde_json::from_slice(&hello.meta).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Token;
    use turnkeep_wire::Text;

    fn hello(version: u16, meta: &'static str) -> Hello {
        Hello {
            version,
            tag: Text::default(),
            meta: meta.into(),
        }
    }

    #[test]
    fn only_the_right_token_is_welcome() {
        let auth = Auth::Token(Token::new("secret"));
        let check = |meta, expect: bool| {
            assert_eq!(
                check_hello(&auth, 1, Some(&hello(1, meta))).is_ok(),
                expect,
                "{meta}"
            );
        };
        check(r#"{"token":"secret"}"#, true);
        check(r#"{"token":"secret","other":[1]}"#, true);
        for bad in [
            "",
            "{}",
            "[]",
            "null",
            r#""secret""#,
            r#"{"token":"Secret"}"#,
            r#"{"token":1}"#,
            "{",
        ] {
            check(bad, false);
        }
        assert!(check_hello(&auth, 1, None).is_err());
    }

    #[test]
    fn a_token_that_is_sent_counts_also_where_none_is_needed() {
        let check = |auth: Auth, meta, expect| {
            assert_eq!(
                check_hello(&auth, 1, Some(&hello(1, meta))).is_ok(),
                expect,
                "{meta}"
            );
        };
        check(Auth::Off(None), r#"{"token":"x"}"#, false);
        check(
            Auth::Off(Some(Token::new("secret"))),
            r#"{"token":"x"}"#,
            false,
        );
        check(
            Auth::Off(Some(Token::new("secret"))),
            r#"{"token":"secret"}"#,
            true,
        );
    }

    #[test]
    fn meta_is_an_object_or_nothing_also_where_no_token_is_needed() {
        let check = |meta, expect: bool| {
            let welcome = check_hello(&Auth::Off(None), 1, Some(&hello(1, meta))).map(drop);
            assert_eq!(
                welcome.map_err(|error| error.code),
                if expect {
                    Ok(())
                } else {
                    Err(ErrorCode::BadRequest)
                }
            );
        };
        for good in ["", "{}", r#"{"other":"x"}"#, r#"{"token":1}"#] {
            check(good, true);
        }
        for bad in ["{", "[]", "null", "1", "{}{}", "\0"] {
            check(bad, false);
        }
    }

    #[test]
    fn the_lower_version_is_spoken() {
        let check = |hello: Option<Hello>, expect| {
            assert_eq!(
                check_hello(&Auth::Off(None), 7, hello.as_ref())
                    .unwrap()
                    .version,
                expect
            );
        };
        check(None, 1);
        check(Some(hello(1, "")), 1);
        check(Some(hello(9, "")), 1);
    }
}
