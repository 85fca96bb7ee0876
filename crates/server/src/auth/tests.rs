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

fn get<'a>() -> Facts<'a> {
    Facts {
        host: Some(HOST),
        ..Facts::default()
    }
}

fn post<'a>() -> Facts<'a> {
    Facts {
        ask: Ask::Change,
        ..get()
    }
}

#[test]
fn host_must_be_a_name_of_ours() {
    fn check(host: Option<&str>, expect: bool) {
        let facts = Facts {
            host,
            open: true,
            ..Facts::default()
        };
        assert_eq!(
            with_token().decide(&facts, LOCAL).is_ok(),
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
    let facts = Facts {
        host: Some("[2001:db8::7]:9010"),
        open: true,
        ..Facts::default()
    };
    assert!(
        with_token()
            .decide(&facts, "2001:db8::7".parse().unwrap())
            .is_ok()
    );
    assert!(with_token().decide(&facts, LOCAL).is_err());
}

#[test]
fn an_origin_must_be_ours_or_listed_whatever_the_credentials() {
    fn check(origin: &str, expect: bool) {
        for facts in [
            get(),
            post(),
            Facts {
                open: true,
                ..get()
            },
            Facts {
                ask: Ask::Preflight,
                ..get()
            },
        ] {
            let facts = Facts {
                origin: Some(origin),
                bearer: Some("secret"),
                ..facts
            };
            assert_eq!(
                with_token().decide(&facts, LOCAL).is_ok(),
                expect,
                "{facts:?}"
            );
            assert_eq!(
                gate(Auth::Off(Some(Token::new("secret"))))
                    .decide(&facts, LOCAL)
                    .is_ok(),
                expect,
                "{facts:?}"
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
    let check = |facts: Facts<'_>, expect: Result<Pass, Denied>| {
        assert_eq!(with_token().decide(&facts, LOCAL), expect, "{facts:?}");
    };
    check(
        Facts {
            open: true,
            ..get()
        },
        Ok(Pass::Serve(Badge::Nobody)),
    );
    check(get(), Err(Denied::NoCredentials));
    check(post(), Err(Denied::NoCredentials));
    check(
        Facts {
            origin: Some(OURS),
            ..get()
        },
        Err(Denied::NoCredentials),
    );
    check(
        Facts {
            ask: Ask::Preflight,
            origin: Some(OURS),
            ..get()
        },
        Ok(Pass::Preflight),
    );
    for facts in [
        get(),
        post(),
        Facts {
            ask: Ask::Upgrade,
            ..get()
        },
    ] {
        check(
            Facts {
                bearer: Some("secret"),
                ..facts
            },
            Ok(Pass::Serve(Badge::Owner)),
        );
        check(
            Facts {
                bearer: Some("secreT"),
                ..facts
            },
            Err(Denied::WrongCredentials),
        );
        check(
            Facts {
                bearer: Some("wrong"),
                cookie: Some(cookie),
                ..facts
            },
            Err(Denied::WrongCredentials),
        );
        check(
            Facts {
                cookie: Some(cookie),
                origin: Some(OURS),
                ..facts
            },
            Ok(Pass::Serve(Badge::Owner)),
        );
        check(
            Facts {
                cookie: Some("secret"),
                ..facts
            },
            Err(Denied::WrongCredentials),
        );
    }
    check(
        Facts {
            cookie: Some(cookie),
            ..get()
        },
        Ok(Pass::Serve(Badge::Owner)),
    );
    check(
        Facts {
            cookie: Some(cookie),
            ..post()
        },
        Err(Denied::CookieAlone),
    );
    check(
        Facts {
            cookie: Some(cookie),
            ask: Ask::Upgrade,
            ..get()
        },
        Err(Denied::CookieAlone),
    );
}

#[test]
fn without_a_token_only_other_sites_are_refused() {
    let check = |facts: Facts<'_>, expect: bool| {
        assert_eq!(
            gate(Auth::Off(Some(Token::new("secret"))))
                .decide(&facts, LOCAL)
                .is_ok(),
            expect,
            "{facts:?}"
        );
    };
    for facts in [get(), post()] {
        check(facts, true);
        check(
            Facts {
                fetch_site: Some("same-origin"),
                ..facts
            },
            true,
        );
        check(
            Facts {
                fetch_site: Some("none"),
                ..facts
            },
            true,
        );
        check(
            Facts {
                fetch_site: Some("cross-site"),
                ..facts
            },
            false,
        );
        check(
            Facts {
                fetch_site: Some("same-site"),
                ..facts
            },
            false,
        );
        check(
            Facts {
                fetch_site: Some("cross-site"),
                origin: Some("https://app.example"),
                ..facts
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
        let check = |facts: Facts<'_>, expect: Result<Pass, Denied>| {
            assert_eq!(gate.decide(&facts, LOCAL), expect, "{facts:?}");
        };
        for facts in [get(), post()] {
            let sent = Facts {
                bearer: Some("a person's"),
                ..facts
            };
            check(sent, Err(Denied::WrongCredentials));
            check(
                Facts {
                    person: true,
                    ..sent
                },
                Ok(Pass::Serve(Badge::Person)),
            );
            check(
                Facts {
                    person: true,
                    open: true,
                    ..sent
                },
                Ok(Pass::Serve(Badge::Nobody)),
            );
            check(
                Facts {
                    bearer: Some(""),
                    ..facts
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
