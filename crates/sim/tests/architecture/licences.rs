//! Every dependency, also of tests and build scripts, must be usable under a permissive licence.

use crate::metadata::{Edges, Metadata};

const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an SPDX expression can be met by permissive licences alone. `/` is the old spelling of
/// OR.
fn is_permissive(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any(&mut rest) && rest.is_empty()
}

fn any(rest: &mut &[&str]) -> bool {
    let mut met = all(rest);
    while let ["OR", tail @ ..] = rest {
        *rest = tail;
        met |= all(rest);
    }
    met
}

fn all(rest: &mut &[&str]) -> bool {
    let mut met = one(rest);
    while let ["AND", tail @ ..] = rest {
        *rest = tail;
        met &= one(rest);
    }
    met
}

fn one(rest: &mut &[&str]) -> bool {
    match rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let met = any(rest);
            let closed = rest.first() == Some(&")");
            *rest = rest.get(1..).unwrap_or_default();
            met && closed
        }
        // An exception only widens what the licence grants.
        [licence, "WITH", _, tail @ ..] | [licence, tail @ ..] => {
            let met = PERMISSIVE.contains(licence);
            *rest = tail;
            met
        }
        [] => false,
    }
}

#[test]
fn every_dependency_is_permissively_licensed() {
    let metadata = Metadata::load();
    let mut seen = 0;
    for (id, _) in metadata.members() {
        for package in metadata.reachable(id, Edges::All) {
            let licence = package.licence.as_deref().unwrap_or("(none)");
            assert!(
                is_permissive(licence),
                "{} {}: {licence}",
                package.name,
                package.version
            );
            seen += 1;
        }
    }
    assert!(
        seen > 100,
        "only {seen} packages were seen: the test looks at the wrong graph"
    );
}

#[test]
fn expressions_are_judged_as_spdx_means_them() {
    let check = |expression, expect| assert_eq!(is_permissive(expression), expect, "{expression}");
    check("MIT", true);
    check("MIT/Apache-2.0", true);
    check("GPL-3.0-only OR MIT", true);
    check("GPL-3.0-only AND MIT", false);
    check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
    check("(MIT OR Apache-2.0) AND MPL-2.0", false);
    check("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", true);
    check("AGPL-3.0-only", false);
    check("(MIT", false);
    check("MIT)", false);
    check("", false);
}
