//! Which crate may use which, and what core may never reach, not even through others.

use std::collections::BTreeSet;

use crate::metadata::{Edges, Metadata};

/// Who uses whom. What is reachable by these arrows may also be used directly.
const ARROWS: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("journal", &["types"]),
    ("store", &["journal"]),
    ("ledger", &["store"]),
    ("session", &["types"]),
    ("runtime", &["types"]),
    ("agents", &["types"]),
    ("workspace", &["types"]),
    ("agent-script", &[]),
    ("wire", &["types"]),
    ("client", &["wire"]),
    (
        "server",
        &[
            "store",
            "ledger",
            "session",
            "runtime",
            "agents",
            "workspace",
            "wire",
        ],
    ),
    ("pty", &["session", "client"]),
    ("teamworld", &[]),
    ("bench", &["ledger", "client", "teamworld"]),
    ("cli", &["server", "pty", "bench", "agent-script"]),
    ("sim", &["cli"]),
];

/// The crates that take values and return values.
pub(crate) const CORE: &[&str] = &[
    "types", "journal", "store", "ledger", "session", "runtime", "agents", "wire",
];

/// Runtimes, network, command line, randomness and logging output: the edge's business.
const EDGE_ONLY: &[&str] = &[
    "async-std",
    "axum",
    "clap",
    "getrandom",
    "hyper",
    "indicatif",
    "mio",
    "rand",
    "rand_core",
    "reqwest",
    "rustls",
    "smol",
    "tokio",
    "tracing-subscriber",
];

/// A package's name in the drawing; the binary's package has the product's name.
pub(crate) fn crate_name(package: &str) -> &str {
    if package == "turnkeep" {
        "cli"
    } else {
        package.trim_start_matches("turnkeep-")
    }
}

fn uses(member: &str) -> &'static [&'static str] {
    let row = ARROWS.iter().find(|(name, _)| *name == member);
    row.unwrap_or_else(|| panic!("the crate `{member}` is not in the drawing: draw its arrows"))
        .1
}

fn allowed(user: &str) -> BTreeSet<&'static str> {
    let mut allowed = BTreeSet::new();
    let mut stack = uses(user).to_vec();
    while let Some(member) = stack.pop() {
        if allowed.insert(member) {
            stack.extend(uses(member));
        }
    }
    allowed
}

#[test]
fn no_crate_uses_another_against_the_arrows() {
    let metadata = Metadata::load();
    let mut seen = 0;
    for (_, package) in metadata.members() {
        let allowed = allowed(crate_name(&package.name));
        for used in metadata.direct_members(package) {
            assert!(
                allowed.contains(crate_name(used)),
                "forbidden arrow: {} uses {used}",
                package.name
            );
            seen += 1;
        }
    }
    assert!(
        seen >= 8,
        "only {seen} arrows were seen: the test looks at the wrong graph"
    );
}

#[test]
fn core_reaches_no_runtime_network_command_line_or_randomness() {
    let metadata = Metadata::load();
    for (id, package) in metadata
        .members()
        .filter(|(_, package)| CORE.contains(&crate_name(&package.name)))
    {
        for reached in metadata.reachable(id, Edges::Normal) {
            let name = reached.name.as_str();
            assert!(
                !EDGE_ONLY.contains(&name),
                "{} reaches {name}, which belongs to the edge",
                package.name
            );
        }
    }
}

#[test]
fn n32_acceptance_and_projection_reach_no_client_of_a_model() {
    let metadata = Metadata::load();
    let (id, _) = metadata
        .members()
        .find(|(_, package)| crate_name(&package.name) == "ledger")
        .unwrap();
    let reached: Vec<_> = metadata.reachable(id, Edges::Normal);
    assert!(reached.len() > 5, "the test looks at the wrong graph");
    // A crate that calls a model needs a network, a process or a runtime for it.
    let client = reached
        .iter()
        .find(|package| EDGE_ONLY.contains(&package.name.as_str()));
    assert!(
        client.is_none(),
        "the ledger reaches {}",
        client.map_or("", |package| &package.name)
    );
}

#[test]
fn the_drawing_forbids_what_it_should() {
    assert!(allowed("store").contains("types"));
    assert!(!allowed("store").contains("wire"));
    assert!(!allowed("runtime").contains("store"));
    assert!(!allowed("client").contains("store"));
    assert!(!allowed("wire").contains("journal"));
    assert!(allowed("cli").contains("client"));
    let users_of_bench = ARROWS.iter().filter(|(_, used)| used.contains(&"bench"));
    assert_eq!(
        users_of_bench.count(),
        1,
        "only the command line uses the benchmark"
    );
    assert!(!allowed("server").contains("teamworld"));
}
