use super::*;

struct Case {
    flags: ReachFlags,
    serve: ServeFlags,
    env: Vec<(&'static str, &'static str)>,
    file: &'static str,
}

impl Default for Case {
    fn default() -> Self {
        let env = vec![("HOME", "/home/someone")];
        Self {
            flags: ReachFlags::default(),
            serve: ServeFlags::default(),
            env,
            file: "",
        }
    }
}

fn resolve(mut case: Case) -> Result<Config> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, case.file).unwrap();
    case.flags.config = Some(path);
    let env = |name: &str| {
        case.env
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| (*v).to_owned())
    };
    Config::resolve(&case.flags, &case.serve, &env)
}

/// What a setting resolves to, as `name = value (kind of source)`.
fn check(case: Case, name: &str, expect: &str) {
    let config = resolve(case).unwrap();
    let row = config
        .rows()
        .into_iter()
        .find(|row| row.name == name)
        .unwrap();
    let kind = row.source.to_string();
    let value = &row.value;
    let value = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    assert_eq!(
        format!("{value} ({})", kind.split(' ').next().unwrap()),
        expect
    );
}

#[test]
fn flags_win_over_environment_over_file_over_default() {
    let file = "http = '127.0.0.1:3'";
    let env = vec![("HOME", "/h"), ("TURNKEEP_HTTP", "127.0.0.1:2")];
    let serve = ServeFlags {
        http: Some("127.0.0.1:1".parse().unwrap()),
        ..ServeFlags::default()
    };
    check(
        Case {
            serve,
            env: env.clone(),
            file,
            ..Case::default()
        },
        "http",
        "127.0.0.1:1 (flag)",
    );
    check(
        Case {
            env,
            file,
            ..Case::default()
        },
        "http",
        "127.0.0.1:2 (environment)",
    );
    check(
        Case {
            file,
            ..Case::default()
        },
        "http",
        "127.0.0.1:3 (file)",
    );
    check(Case::default(), "http", "127.0.0.1:9010 (default)");
}

#[test]
fn the_memory_budget_is_a_size_from_every_source() {
    let serve = ServeFlags {
        memory_budget: Some(64 << 20),
        ..ServeFlags::default()
    };
    let env = vec![("HOME", "/h"), ("TURNKEEP_MEMORY_BUDGET", "128MiB")];
    let file = "memory_budget = '1GiB'";
    check(
        Case {
            serve,
            env: env.clone(),
            file,
            ..Case::default()
        },
        "memory_budget",
        "67108864 (flag)",
    );
    check(
        Case {
            env,
            file,
            ..Case::default()
        },
        "memory_budget",
        "134217728 (environment)",
    );
    check(
        Case {
            file,
            ..Case::default()
        },
        "memory_budget",
        "1073741824 (file)",
    );
    check(
        Case {
            file: "memory_budget = 33554432",
            ..Case::default()
        },
        "memory_budget",
        "33554432 (file)",
    );
    let wrong = vec![("HOME", "/h"), ("TURNKEEP_MEMORY_BUDGET", "lots")];
    let error = resolve(Case {
        env: wrong,
        ..Case::default()
    })
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("TURNKEEP_MEMORY_BUDGET") && error.contains("512MiB"),
        "{error}"
    );
}

#[test]
fn the_data_directory_follows_xdg_and_then_home() {
    check(
        Case::default(),
        "data",
        "/home/someone/.local/share/turnkeep (default)",
    );
    let xdg = vec![("HOME", "/h"), ("XDG_DATA_HOME", "/x")];
    check(
        Case {
            env: xdg,
            ..Case::default()
        },
        "data",
        "/x/turnkeep (default)",
    );
    let relative = vec![("HOME", "/h"), ("XDG_DATA_HOME", "x")];
    check(
        Case {
            env: relative,
            ..Case::default()
        },
        "data",
        "/h/.local/share/turnkeep (default)",
    );
    assert!(
        resolve(Case {
            env: vec![],
            ..Case::default()
        })
        .is_err()
    );
}

#[test]
fn switches_and_lists_read_from_every_source() {
    check(
        Case {
            file: "strict_types = true",
            ..Case::default()
        },
        "strict_types",
        "true (file)",
    );
    let off = vec![("HOME", "/h"), ("TURNKEEP_STRICT_TYPES", "no")];
    check(
        Case {
            env: off,
            file: "strict_types = true",
            ..Case::default()
        },
        "strict_types",
        "false (environment)",
    );
    let hosts = vec![("HOME", "/h"), ("TURNKEEP_ALLOW_HOST", "a, b,")];
    check(
        Case {
            env: hosts,
            ..Case::default()
        },
        "allow_host",
        r#"["a","b"] (environment)"#,
    );
    check(
        Case {
            file: "allow_host = ['c']",
            ..Case::default()
        },
        "allow_host",
        r#"["c"] (file)"#,
    );
}

#[test]
fn the_token_is_never_shown() {
    let env = vec![("HOME", "/h"), ("TURNKEEP_TOKEN", "secret")];
    check(
        Case {
            env,
            ..Case::default()
        },
        "token",
        "(set) (environment)",
    );
}

#[test]
fn limits_of_the_file_replace_only_what_they_name() {
    let config = resolve(Case {
        file: "[limits]\nkey_bytes_max = 7",
        ..Case::default()
    })
    .unwrap();
    assert_eq!(
        config.limits,
        Limits {
            key_bytes_max: 7,
            ..Limits::default()
        }
    );
    check(
        Case {
            file: "[limits]\nkey_bytes_max = 7",
            ..Case::default()
        },
        "limits.key_bytes_max",
        "7 (file)",
    );
    check(Case::default(), "limits.key_bytes_max", "1024 (default)");
}

#[test]
fn what_does_not_parse_names_its_place() {
    let env = vec![("HOME", "/h"), ("TURNKEEP_LISTEN", "nowhere")];
    let error = resolve(Case {
        env,
        ..Case::default()
    })
    .unwrap_err()
    .to_string();
    assert!(
        error.starts_with("environment TURNKEEP_LISTEN sets listen to `nowhere`"),
        "{error}"
    );
    let error = resolve(Case {
        file: "durability = 'never'",
        ..Case::default()
    })
    .unwrap_err()
    .to_string();
    assert!(
        error.ends_with("sets durability to `never`: expected fsync or os"),
        "{error}"
    );
    let error = resolve(Case {
        file: "listne = 'x'",
        ..Case::default()
    })
    .unwrap_err()
    .to_string();
    assert!(error.contains("unknown field `listne`"), "{error}");
}

#[test]
fn a_limit_can_be_set_by_the_environment_and_is_never_0() {
    let env = |value| vec![("HOME", "/h"), ("TURNKEEP_LIMITS_KEY_BYTES_MAX", value)];
    let file = "[limits]\nkey_bytes_max = 7";
    check(
        Case {
            env: env("9"),
            file,
            ..Case::default()
        },
        "limits.key_bytes_max",
        "9 (environment)",
    );
    for case in [
        Case {
            env: env("0"),
            ..Case::default()
        },
        Case {
            env: env("many"),
            ..Case::default()
        },
        Case {
            file: "[limits]\nkey_bytes_max = 0",
            ..Case::default()
        },
    ] {
        let error = resolve(case).unwrap_err().to_string();
        assert!(error.ends_with(": expected a number above 0"), "{error}");
    }
}
