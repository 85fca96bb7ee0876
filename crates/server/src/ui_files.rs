//! The files of the web UI, as its build writes them to `ui/dist`.
//!
//! A path names a file only if each part of it is a plain name, and if the file lies inside the
//! directory after all links are followed. Paths are compared as they are sent, without decoding:
//! the build gives its files names that need none.

use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Where the files of the web UI are.
#[derive(Debug, Clone)]
pub enum UiFiles {
    /// In the program: the path of each file and its content. A list without files means that no UI
    /// was built.
    Embedded(&'static [(&'static str, &'static [u8])]),
    /// In this directory. Each request reads its file.
    Directory(PathBuf),
}

impl UiFiles {
    /// The files that belong to this build of the server.
    pub fn built_in() -> Self {
        include!(concat!(env!("OUT_DIR"), "/ui_files.rs"))
    }

    /// The content of a file; none if there is no such file.
    pub(crate) async fn read(&self, path: &str) -> Option<Bytes> {
        if !path.split('/').all(is_plain_name) {
            return None;
        }
        match self {
            Self::Embedded(files) => {
                let (_, content) = files.iter().find(|(name, _)| *name == path)?;
                Some(Bytes::from_static(content))
            }
            Self::Directory(root) => read_inside(root, path).await,
        }
    }
}

/// Whether a part of a path is a name: not empty, not hidden, not a step upwards, and one part only
/// on every system.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['\\', ':', '\0'])
}

async fn read_inside(root: &Path, path: &str) -> Option<Bytes> {
    let root = tokio::fs::canonicalize(root).await.ok()?;
    let file = tokio::fs::canonicalize(root.join(path)).await.ok()?;
    // A link inside the directory may lead out of it.
    if !file.starts_with(&root) {
        return None;
    }
    tokio::fs::read(file).await.ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What hostile paths are made of.
    const PARTS: [&str; 12] = [
        "",
        ".",
        "..",
        "assets",
        "app.js",
        "index.html",
        "secret",
        "out",
        "%2e%2e",
        "..\\secret",
        ".hidden",
        "a:b",
    ];

    /// Calls `check` with all paths of up to four parts.
    async fn for_each_path(mut check: impl AsyncFnMut(String)) {
        let mut paths = vec![String::new()];
        for depth in 0..4 {
            let longer = paths.iter().flat_map(|path| {
                let slash = if depth == 0 { "" } else { "/" };
                PARTS.map(|part| format!("{path}{slash}{part}"))
            });
            paths = longer.collect();
            for path in &paths {
                check(path.clone()).await;
            }
        }
    }

    #[tokio::test]
    async fn no_path_leads_out_of_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let dist = home.path().join("dist");
        std::fs::create_dir_all(dist.join("assets")).unwrap();
        std::fs::write(home.path().join("secret"), "secret").unwrap();
        std::fs::write(dist.join(".hidden"), "secret").unwrap();
        std::fs::write(dist.join("index.html"), "page").unwrap();
        std::fs::write(dist.join("assets/app.js"), "script").unwrap();
        std::os::unix::fs::symlink("..", dist.join("out")).unwrap();
        let in_directory = UiFiles::Directory(dist);
        let embedded = UiFiles::Embedded(&[("index.html", b"page"), ("assets/app.js", b"script")]);
        let mut found = Vec::new();
        for_each_path(async |path| {
            let expect = embedded.read(&path).await;
            assert_eq!(in_directory.read(&path).await, expect, "{path:?}");
            if expect.is_some() {
                found.push(path);
            }
        })
        .await;
        assert_eq!(found, ["index.html", "assets/app.js"]);
        let absolute = home.path().join("secret");
        assert_eq!(in_directory.read(absolute.to_str().unwrap()).await, None);
    }

    #[tokio::test]
    async fn a_directory_that_is_missing_has_no_files() {
        let missing = UiFiles::Directory("/no/such/directory".into());
        assert_eq!(missing.read("index.html").await, None);
        assert_eq!(UiFiles::Embedded(&[]).read("index.html").await, None);
    }
}
