//! Role templates: the instructions for nodes of a role.
//!
//! A template is a Markdown file, and its name is the role. It is looked for in three places: the
//! workspace (`.turnkeep/roles/NAME.md`), the user's configuration directory, and the built-in ones.
//! It may begin with a front matter that sets capabilities of new nodes:
//!
//! ```text
//! ---
//! writeCode: false
//! runCommands: true
//! ---
//! You review. You do not change files.
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::json::NodeDefaults;
use super::named_files::{NamedFiles, read_text};

/// The directory of templates in a workspace.
const WORKSPACE_ROLES: &str = ".turnkeep/roles";
/// The longest name of a role.
const NAME_CHARACTERS_MAX: usize = 64;

/// The built-in templates.
const BUILT_IN: [(&str, &str); 6] = [
    ("orchestrator", include_str!("roles/orchestrator.md")),
    ("planner", include_str!("roles/planner.md")),
    ("implementer", include_str!("roles/implementer.md")),
    ("reviewer", include_str!("roles/reviewer.md")),
    ("tester", include_str!("roles/tester.md")),
    ("docs", include_str!("roles/docs.md")),
];

/// The names of capabilities that a front matter may set.
const CAPABILITIES: [&str; 5] = [
    "spawnNodes",
    "writeCode",
    "writeDocs",
    "runCommands",
    "delegateOnly",
];

/// A role template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RoleTemplate {
    /// The instructions, as the prompt has them.
    pub(crate) text: String,
    /// The capabilities that the front matter sets.
    pub(crate) capabilities: BTreeMap<String, bool>,
    /// Where it comes from; absent for a built-in one.
    pub(crate) file: Option<PathBuf>,
}

impl RoleTemplate {
    /// The defaults of a role with the capabilities that its template sets.
    pub(crate) fn adjust(&self, mut defaults: NodeDefaults) -> NodeDefaults {
        let set = |name: &str, right: &mut bool| {
            if let Some(value) = self.capabilities.get(name) {
                *right = *value;
            }
        };
        let rights = &mut defaults.capabilities;
        set("spawnNodes", &mut rights.spawn_nodes);
        set("writeCode", &mut rights.write_code);
        set("writeDocs", &mut rights.write_docs);
        set("runCommands", &mut rights.run_commands);
        set("delegateOnly", &mut rights.delegate_only);
        defaults
    }
}

/// Reads the template of a role. The error says where a template can be put.
pub(crate) fn read(
    name: &str,
    cwd: Option<&str>,
    user_dir: Option<&Path>,
) -> Result<RoleTemplate, String> {
    let name = check_name(name)?;
    let workspace_dir = cwd.map(|cwd| Path::new(cwd).join(WORKSPACE_ROLES));
    let dirs = workspace_dir
        .into_iter()
        .chain(user_dir.map(Path::to_path_buf));
    for dir in dirs {
        let file = dir.join(format!("{name}.md"));
        if let Some(text) = read_text(&file)? {
            let template = parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
            return Ok(RoleTemplate {
                file: Some(file),
                ..template
            });
        }
    }
    match built_in_text(&name) {
        Some(text) => parse(text),
        None => Err(unknown_role(&name)),
    }
}

/// The files with the templates of a person.
pub(super) fn user_files(dir: &Path) -> NamedFiles<'_> {
    NamedFiles {
        dir,
        extension: "md",
    }
}

/// The text of a built-in template.
pub(super) fn built_in_text(name: &str) -> Option<&'static str> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// The names of the built-in roles.
pub(crate) fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

fn unknown_role(name: &str) -> String {
    let known: Vec<&str> = built_in_names().collect();
    format!(
        "no role is called `{name}`: use one of {}, or write {WORKSPACE_ROLES}/{name}.md",
        known.join(", ")
    )
}

/// A name becomes part of a path, so it has letters, digits, `-` and `_` only.
pub(crate) fn check_name(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let fits = (1..=NAME_CHARACTERS_MAX).contains(&name.len());
    if fits && name.chars().all(is_plain) {
        Ok(name.to_ascii_lowercase())
    } else {
        let shown: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
        Err(format!(
            "`{shown}` cannot name a role: use letters, digits, `-` and `_`"
        ))
    }
}

/// Splits a template into its front matter and its text.
pub(super) fn parse(template: &str) -> Result<RoleTemplate, String> {
    // A first line `---` without a second one is a rule of Markdown and no front matter.
    let rest = template.strip_prefix("---\n");
    let Some((front, text)) = rest.and_then(|rest| rest.split_once("\n---\n")) else {
        return Ok(RoleTemplate {
            text: template.trim().to_owned(),
            ..RoleTemplate::default()
        });
    };
    let mut capabilities = BTreeMap::new();
    for line in front.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("`{line}` is not `name: true` or `name: false`"))?;
        let (name, value) = (name.trim(), value.trim());
        if !CAPABILITIES.contains(&name) {
            return Err(format!(
                "`{name}` is no capability: use one of {}",
                CAPABILITIES.join(", ")
            ));
        }
        let value = value
            .parse()
            .map_err(|_| format!("`{name}` is `{value}`, not true or false"))?;
        capabilities.insert(name.to_owned(), value);
    }
    Ok(RoleTemplate {
        text: text.trim().to_owned(),
        capabilities,
        file: None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_front_matter_sets_capabilities_and_the_rest_is_the_text() {
        let template = parse("---\nwriteCode: false\nrunCommands: true\n---\nDo it.\n").unwrap();
        assert_eq!(template.text, "Do it.");
        let set: Vec<(&str, bool)> = template
            .capabilities
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        assert_eq!(set, [("runCommands", true), ("writeCode", false)]);
        assert!(parse("---\nfly: true\n---\n").unwrap_err().contains("fly"));
        assert!(parse("---\nwriteCode: perhaps\n---\n").is_err());
        assert_eq!(parse("plain").unwrap().text, "plain");
    }

    #[test]
    fn the_workspace_comes_before_the_user_and_the_built_in_roles() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().to_str().unwrap();
        let user = dir.path().join("user");
        fs::create_dir(&user).unwrap();
        let built_in = read("Reviewer", Some(cwd), Some(&user)).unwrap();
        assert!(built_in.text.starts_with("You review."));
        fs::write(user.join("reviewer.md"), "mine").unwrap();
        assert_eq!(
            read("reviewer", Some(cwd), Some(&user)).unwrap().text,
            "mine"
        );
        let roles = dir.path().join(WORKSPACE_ROLES);
        fs::create_dir_all(&roles).unwrap();
        fs::write(roles.join("reviewer.md"), "ours").unwrap();
        assert_eq!(
            read("reviewer", Some(cwd), Some(&user)).unwrap().text,
            "ours"
        );
        for bad in ["", "../x", "a/b", "a b", "ü"] {
            assert!(read(bad, Some(cwd), None).is_err(), "{bad:?}");
        }
        assert!(
            read("pilot", Some(cwd), None)
                .unwrap_err()
                .contains("no role")
        );
    }
}
