//! Roles, teams and directories.

use std::fs;

use serde_json::{Value, json};

use super::start;
use crate::client::{Reply, Server};

impl Server {
    async fn put_text(&self, path: &str, text: &str) -> Reply {
        self.put(path).json(&json!({"text": text})).send().await
    }
}

fn names_of(list: &Value) -> Vec<(&str, &str)> {
    let items = list.as_array().unwrap().iter();
    items
        .map(|item| {
            (
                item["name"].as_str().unwrap(),
                item["source"].as_str().unwrap(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_role_is_replaced_used_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let roles = server.read("/api/roles").await;
    assert!(names_of(&roles["roles"]).contains(&("reviewer", "built-in")));
    let text = "---\nwriteCode: true\n---\nYou review and repair.";
    let put = server.put_text("/api/roles/reviewer", text).await;
    assert_eq!(put.status, 200, "{}", put.text());
    let shown = server.read("/api/roles/reviewer").await;
    assert_eq!(
        (&shown["source"], &shown["text"]),
        (&json!("user"), &json!(text))
    );
    assert_eq!(shown["capabilities"]["writeCode"], true);
    let run = server.paused_run().await;
    let node = server.add_node(&run, "r", "reviewer").await;
    let shown = server.read(&format!("/api/runs/{run}")).await;
    assert_eq!(
        shown["run"]["nodes"][&node]["capabilities"]["writeCode"],
        true
    );
    let deleted = server.delete("/api/roles/reviewer").await;
    assert_eq!(deleted.json(), json!({"name": "reviewer"}));
    let shown = server.read("/api/roles/reviewer").await;
    assert_eq!(shown["source"], "built-in");
    server
        .delete("/api/roles/reviewer")
        .await
        .error(409, "Conflict");
    server
        .delete("/api/roles/pilot")
        .await
        .error(404, "NotFound");
    let unknown = server.get("/api/roles/pilot").send().await;
    unknown.error(404, "NotFound");
    server.stop().await;
}

#[tokio::test]
async fn a_bad_role_or_team_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let check = async |path: &str, text: &str, status: u16, at: Option<&str>| {
        let reply = server.put_text(path, text).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        let details = &reply.json()["error"]["details"];
        assert_eq!(details["path"].as_str(), at, "{path}: {details}");
    };
    let team = "[[nodes]]\nrole = 'docs'\n";
    check("/api/roles/Pilot", "text", 400, Some("name")).await;
    check("/api/roles/..%2F..%2Fpilot", "text", 400, Some("name")).await;
    check("/api/roles/%2Fetc%2Fpasswd", "text", 400, Some("name")).await;
    check(
        "/api/roles/pilot",
        "---\nfly: true\n---\nx",
        400,
        Some("text"),
    )
    .await;
    check("/api/roles/pilot", &"x".repeat(70_000), 413, None).await;
    check("/api/teams/a.b", team, 400, Some("name")).await;
    check("/api/teams/mine", "nodes = 1", 400, Some("text")).await;
    check("/api/teams/mine", "", 400, Some("text")).await;
    let missing = server.put("/api/teams/mine").json(&json!({})).send().await;
    assert_eq!(missing.error(400, "BadRequest")["path"], "text");
    assert!(!dir.path().join("roles").exists() && !dir.path().join("teams").exists());
    server.stop().await;
}

#[tokio::test]
async fn a_run_begins_with_a_team_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let text = "goal = 'Write it'\nverify = ['make test']\ndocsNode = 'scribe'\n\
        [[nodes]]\nalias = 'scribe'\nrole = 'docs'\n\
        [[nodes]]\nalias = 'lead'\nrole = 'orchestrator'\nprovider = 'codex'\n\
        [[edges]]\nfrom = 'lead'\nto = 'scribe'\n";
    assert_eq!(
        server.put_text("/api/teams/writers", text).await.status,
        200
    );
    let teams = server.read("/api/teams").await;
    let expect = [
        ("solo", "built-in"),
        ("pair", "built-in"),
        ("team", "built-in"),
        ("writers", "user"),
    ];
    assert_eq!(names_of(&teams["teams"]), expect);
    let body = json!({"team": "writers", "verify": ["cargo test"]});
    let reply = server.post("/api/runs", &body).send().await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let run = &reply.json()["run"];
    assert_eq!(
        (&run["goal"], &run["title"]),
        (&json!("Write it"), &json!("Write it"))
    );
    assert_eq!(
        run["verify"],
        json!(["cargo test"]),
        "the request wins over the file"
    );
    let nodes = run["nodes"].as_object().unwrap();
    let find = |alias: &str| nodes.values().find(|node| node["alias"] == alias).unwrap();
    assert_eq!(find("lead")["provider"], "codex");
    assert_eq!(
        find("scribe")["provider"],
        "claude",
        "the first that is installed"
    );
    assert_eq!(run["docsNode"], find("scribe")["id"]);
    assert_eq!(run["edges"].as_object().unwrap().len(), 1);
    let unknown = server
        .post("/api/runs", &json!({"team": "nobody"}))
        .send()
        .await;
    assert_eq!(unknown.error(400, "BadRequest")["path"], "team");
    let text = "[[nodes]]\nalias = 'a'\nrole = 'nobody'\n";
    assert_eq!(server.put_text("/api/teams/broken", text).await.status, 200);
    for (body, path) in [
        (json!({"team": "broken"}), "roleTemplate"),
        (json!({"team": "writers", "docsNode": "nobody"}), "docsNode"),
        (json!({"docsNode": "nobody"}), "docsNode"),
    ] {
        let refused = server.post("/api/runs", &body).send().await;
        assert_eq!(refused.error(400, "BadRequest")["path"], path, "{body}");
    }
    let listed = server.read("/api/runs?summary=1").await;
    assert_eq!(
        listed["runs"].as_array().unwrap().len(),
        1,
        "a refused run is not there"
    );
    let traversal = server
        .post("/api/runs", &json!({"team": "../writers"}))
        .send()
        .await;
    assert_eq!(traversal.error(400, "BadRequest")["path"], "team");
    server.stop().await;
}

#[tokio::test]
async fn directories_are_listed_under_the_roots_only() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let home = dir.path().join("home");
    fs::create_dir_all(home.join("project/src")).unwrap();
    fs::write(home.join("notes.txt"), "").unwrap();
    std::os::unix::fs::symlink("/etc", home.join("etc")).unwrap();
    let listing = server.read("/api/fs").await;
    assert_eq!(
        listing["entries"],
        json!([
            {"name": "project", "kind": "directory"},
            {"name": "notes.txt", "kind": "file"},
        ])
    );
    let check = async |path: &str, status: u16| {
        let query = path.replace('/', "%2F");
        let reply = server.get(&format!("/api/fs?path={query}")).send().await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
    };
    let below = |tail: &str| format!("{}/{tail}", home.display());
    check(&below("project"), 200).await;
    check(&below("project/../project/src"), 200).await;
    check(&below("../data"), 403).await;
    check(&below("etc"), 403).await;
    check(&below("etc/ssl"), 403).await;
    check("/etc", 403).await;
    check("/no/such/place", 403).await;
    check(&below("gone"), 404).await;
    check(&below("notes.txt"), 400).await;
    check("project", 400).await;
    let unknown = server.get("/api/fs?dir=x").send().await;
    unknown.error(400, "BadRequest");
    server.stop().await;
}
