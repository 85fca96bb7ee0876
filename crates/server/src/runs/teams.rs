//! Teams: the nodes and edges that a new run can begin with, as graph files.
//!
//! A team of the user (`teams/NAME.toml` in the configuration directory) comes before a built-in one
//! of the same name. A file that cannot be read is an error and never replaced silently.

use std::path::Path;

use turnkeep_wire::runs::GraphFile;

use super::named_files::NamedFiles;

/// The built-in teams, from the smallest on.
const BUILT_IN: [(&str, &str); 3] = [
    ("solo", include_str!("teams/solo.toml")),
    ("pair", include_str!("teams/pair.toml")),
    ("team", include_str!("teams/team.toml")),
];

/// The files with the teams of a person.
pub(super) fn user_files(dir: &Path) -> NamedFiles<'_> {
    NamedFiles {
        dir,
        extension: "toml",
    }
}

/// The text of a built-in team.
pub(super) fn built_in_text(name: &str) -> Option<&'static str> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// The names of the built-in teams.
pub(super) fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// Reads a graph file. The error says what is wrong and what to do.
pub(super) fn parse(text: &str) -> Result<GraphFile, String> {
    let graph: GraphFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let checked = graph.check();
    checked.map_err(|mistake| format!("{mistake}: {}", mistake.advice()))?;
    Ok(graph)
}

/// The team of this name, if there is one.
pub(super) fn find(name: &str, user_dir: Option<&Path>) -> Result<Option<GraphFile>, String> {
    let of_user = match user_dir {
        Some(dir) => user_files(dir).read(name)?,
        None => None,
    };
    let text = of_user.as_deref().or_else(|| built_in_text(name));
    let parsed = text.map(parse).transpose();
    parsed.map_err(|error| format!("the team `{name}` cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_team_can_be_used() {
        for name in built_in_names() {
            let graph = find(name, None).unwrap().unwrap();
            assert!(
                graph.nodes.iter().all(|node| node.alias.is_some()),
                "{name}"
            );
        }
        assert_eq!(find("nobody", None).unwrap(), None);
    }

    #[test]
    fn a_team_of_the_user_comes_first_and_a_broken_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let files = user_files(dir.path());
        files.write("solo", "[[nodes]]\nrole = 'tester'\n").unwrap();
        let mine = find("solo", Some(dir.path())).unwrap().unwrap();
        assert_eq!(mine.nodes[0].role_template, "tester");
        files.write("solo", "[[nodes]]\nrule = 'tester'\n").unwrap();
        let error = find("solo", Some(dir.path())).unwrap_err();
        assert!(
            error.contains("`solo`") && error.contains("rule"),
            "{error}"
        );
    }
}
