use super::*;

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const HOST: &str = "127.0.0.1:9010";
const OURS: &str = "http://127.0.0.1:9010";

fn gate(auth: Auth) -> Gate {
    let config = ServerConfig {
        auth,
        allow_hosts: vec!["keep.example".into(), "exact.example:8443".into()],
        allow_origins: vec!["https://app.example".into()],
        ..ServerConfig::default()
    };
    Gate::new(&config, 9010)
}

fn with_token() -> Gate {
    gate(Auth::Token(Token::new("secret")))
}

fn get<'a>() -> RequestHead<'a> {
    RequestHead {
        host: Some(HOST),
        ..RequestHead::default()
    }
}

fn post<'a>() -> RequestHead<'a> {
    RequestHead {
        kind: RequestKind::Change,
        ..get()
    }
}

#[test]
fn host_must_be_a_name_of_ours() {
    fn check(host: Option<&str>, expect: bool) {
        let head = RequestHead {
            host,
            open: true,
            ..RequestHead::default()
        };
        assert_eq!(
            with_token().decide(&head, LOCAL).is_ok(),
            expect,
            "{host:?}"
        );
    }
    for good in [
        "127.0.0.1",
        "127.0.0.1:9010",
        "localhost",
        "LOCALHOST:1",
        "keep.example",
        "Keep.Example:80",
    ] {
        check(Some(good), true);
    }
    check(Some("exact.example:8443"), true);
    check(Some("exact.example"), false);
    check(None, false);
    for bad in [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.2",
        "[::1]",
        "localhost:x",
        ":9010",
        "[::1",
    ] {
        check(Some(bad), false);
    }
}

#[test]
fn the_address_that_a_connection_arrived_at_is_a_name_of_ours() {
    let head = RequestHead {
        host: Some("[2001:db8::7]:9010"),
        open: true,
        ..RequestHead::default()
    };
    assert!(
        with_token()
            .decide(&head, "2001:db8::7".parse().unwrap())
            .is_ok()
    );
    assert!(with_token().decide(&head, LOCAL).is_err());
}

#[test]
fn an_origin_must_be_ours_or_listed_whatever_the_credentials() {
    fn check(origin: &str, expect: bool) {
        for head in [
            get(),
            post(),
            RequestHead {
                open: true,
                ..get()
            },
            RequestHead {
                kind: RequestKind::Preflight,
                ..get()
            },
        ] {
            let head = RequestHead {
                origin: Some(origin),
                bearer: Some("secret"),
                ..head
            };
            assert_eq!(
                with_token().decide(&head, LOCAL).is_ok(),
                expect,
                "{head:?}"
            );
            assert_eq!(
                gate(Auth::Off(Some(Token::new("secret"))))
                    .decide(&head, LOCAL)
                    .is_ok(),
                expect,
                "{head:?}"
            );
        }
    }
    check(OURS, true);
    check("https://app.example", true);
    for bad in [
        "null",
        "",
        "http://app.example",
        "https://app.example:444",
        "https://127.0.0.1:9010",
    ] {
        check(bad, false);
    }
    // Another server on this machine is another origin.
    check("http://127.0.0.1:3000", false);
    check("http://localhost:9010", false);
}

#[test]
fn credentials_decide_when_a_token_is_set() {
    let cookie = Token::new("secret").cookie;
    let cookie = cookie.as_str();
    let check = |head: RequestHead<'_>, expect: Result<Admission, Denied>| {
        assert_eq!(with_token().decide(&head, LOCAL), expect, "{head:?}");
    };
    check(
        RequestHead {
            open: true,
            ..get()
        },
        Ok(Admission::Serve(CallerKind::Anonymous)),
    );
    check(get(), Err(Denied::NoCredentials));
    check(post(), Err(Denied::NoCredentials));
    check(
        RequestHead {
            origin: Some(OURS),
            ..get()
        },
        Err(Denied::NoCredentials),
    );
    check(
        RequestHead {
            kind: RequestKind::Preflight,
            origin: Some(OURS),
            ..get()
        },
        Ok(Admission::Preflight),
    );
    for head in [
        get(),
        post(),
        RequestHead {
            kind: RequestKind::Upgrade,
            ..get()
        },
    ] {
        check(
            RequestHead {
                bearer: Some("secret"),
                ..head
            },
            Ok(Admission::Serve(CallerKind::Owner)),
        );
        check(
            RequestHead {
                bearer: Some("secreT"),
                ..head
            },
            Err(Denied::WrongCredentials),
        );
        check(
            RequestHead {
                bearer: Some("wrong"),
                cookie: Some(cookie),
                ..head
            },
            Err(Denied::WrongCredentials),
        );
        check(
            RequestHead {
                cookie: Some(cookie),
                origin: Some(OURS),
                ..head
            },
            Ok(Admission::Serve(CallerKind::Owner)),
        );
        check(
            RequestHead {
                cookie: Some("secret"),
                ..head
            },
            Err(Denied::WrongCredentials),
        );
    }
    check(
        RequestHead {
            cookie: Some(cookie),
            ..get()
        },
        Ok(Admission::Serve(CallerKind::Owner)),
    );
    check(
        RequestHead {
            cookie: Some(cookie),
            ..post()
        },
        Err(Denied::CookieAlone),
    );
    check(
        RequestHead {
            cookie: Some(cookie),
            kind: RequestKind::Upgrade,
            ..get()
        },
        Err(Denied::CookieAlone),
    );
}

#[test]
fn without_a_token_only_other_sites_are_refused() {
    let check = |head: RequestHead<'_>, expect: bool| {
        assert_eq!(
            gate(Auth::Off(Some(Token::new("secret"))))
                .decide(&head, LOCAL)
                .is_ok(),
            expect,
            "{head:?}"
        );
    };
    for head in [get(), post()] {
        check(head, true);
        check(
            RequestHead {
                fetch_site: Some("same-origin"),
                ..head
            },
            true,
        );
        check(
            RequestHead {
                fetch_site: Some("none"),
                ..head
            },
            true,
        );
        check(
            RequestHead {
                fetch_site: Some("cross-site"),
                ..head
            },
            false,
        );
        check(
            RequestHead {
                fetch_site: Some("same-site"),
                ..head
            },
            false,
        );
        check(
            RequestHead {
                fetch_site: Some("cross-site"),
                origin: Some("https://app.example"),
                ..head
            },
            true,
        );
    }
}

#[test]
fn a_token_that_is_sent_counts_also_where_none_is_needed() {
    for gate in [
        with_token(),
        gate(Auth::Off(Some(Token::new("secret")))),
        gate(Auth::Off(None)),
    ] {
        let check = |head: RequestHead<'_>, expect: Result<Admission, Denied>| {
            assert_eq!(gate.decide(&head, LOCAL), expect, "{head:?}");
        };
        for head in [get(), post()] {
            let sent = RequestHead {
                bearer: Some("a person's"),
                ..head
            };
            check(sent, Err(Denied::WrongCredentials));
            check(
                RequestHead {
                    person: true,
                    ..sent
                },
                Ok(Admission::Serve(CallerKind::Person)),
            );
            check(
                RequestHead {
                    person: true,
                    open: true,
                    ..sent
                },
                Ok(Admission::Serve(CallerKind::Anonymous)),
            );
            check(
                RequestHead {
                    bearer: Some(""),
                    ..head
                },
                Err(Denied::WrongCredentials),
            );
        }
    }
}

#[test]
fn the_link_buys_a_cookie_that_does_not_show_the_token() {
    let cookie = with_token().cookie_for("secret").unwrap();
    assert!(
        cookie.starts_with("turnkeep-9010=")
            && cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict")
    );
    assert!(!cookie.contains("secret"));
    assert_eq!(with_token().cookie_for("wrong"), None);
    assert_eq!(
        gate(Auth::Off(Some(Token::new("secret")))).cookie_for("secret"),
        None
    );
}

#[test]
fn a_token_is_never_printed() {
    assert_eq!(format!("{:?}", Token::new("secret")), "Token(..)");
}
