//! What `cargo metadata` says about the workspace, for the platform that the tests run on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Which edges of the dependency graph to walk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edges {
    /// What ends up in the program.
    Normal,
    /// Build and development dependencies too.
    All,
}

/// One package of the graph.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    normal: Vec<String>,
    all: Vec<String>,
}

/// The resolved dependency graph.
pub(crate) struct Metadata {
    packages: BTreeMap<String, Package>,
    members: Vec<String>,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn output(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn host() -> String {
    let version = output(Command::new(option_env!("RUSTC").unwrap_or("rustc")).arg("-vV"));
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap()
        .to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn edges(node: &Value, edges: Edges) -> Vec<String> {
    let counts = |dep: &&Value| {
        edges == Edges::All
            || dep["dep_kinds"]
                .as_array()
                .unwrap()
                .iter()
                .any(|kind| kind["kind"].is_null())
    };
    node["deps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(counts)
        .map(|dep| text(&dep["pkg"]))
        .collect()
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load() -> Self {
        let json = output(Command::new(env!("CARGO")).args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            &host(),
        ]));
        let json: Value = serde_json::from_str(&json).unwrap();
        let mut nodes: BTreeMap<String, &Value> = BTreeMap::new();
        for node in json["resolve"]["nodes"].as_array().unwrap() {
            nodes.insert(text(&node["id"]), node);
        }
        let mut packages = BTreeMap::new();
        for package in json["packages"].as_array().unwrap() {
            let Some(node) = nodes.get(package["id"].as_str().unwrap()) else {
                continue;
            };
            packages.insert(
                text(&package["id"]),
                Package {
                    name: text(&package["name"]),
                    version: text(&package["version"]),
                    licence: package["license"].as_str().map(str::to_owned),
                    normal: edges(node, Edges::Normal),
                    all: edges(node, Edges::All),
                },
            );
        }
        let members = json["workspace_members"]
            .as_array()
            .unwrap()
            .iter()
            .map(text)
            .collect();
        Self { packages, members }
    }

    /// The workspace's own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Package)> {
        self.members
            .iter()
            .map(|id| (id.as_str(), &self.packages[id]))
    }

    /// The workspace's packages that a package uses directly.
    pub(crate) fn direct_members<'a>(
        &'a self,
        package: &'a Package,
    ) -> impl Iterator<Item = &'a str> {
        let used = package.normal.iter().filter(|id| self.members.contains(id));
        used.map(|id| self.packages[id].name.as_str())
    }

    /// Everything reachable from `start`, that one included.
    pub(crate) fn reachable(&self, start: &str, edges: Edges) -> Vec<&Package> {
        let mut seen = BTreeSet::from([start]);
        let mut stack = vec![start];
        while let Some(id) = stack.pop() {
            let package = &self.packages[id];
            let next = if edges == Edges::All {
                &package.all
            } else {
                &package.normal
            };
            stack.extend(next.iter().map(String::as_str).filter(|id| seen.insert(id)));
        }
        seen.into_iter().map(|id| &self.packages[id]).collect()
    }
}
