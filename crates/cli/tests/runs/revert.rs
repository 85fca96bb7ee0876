//! `node revert`: what it says of files that another turn may have changed, and of those that are as
//! they were.

use serde_json::{Value, json};

use super::*;

/// A server whose node `impl` changed three files in its only turn.
fn server_with_diff(answer: &Value) -> StubServer {
    let path = format!("/api/runs/{RUN}");
    let diff = json!({
        "id": OLD_RUN, "runId": RUN, "nodeId": IMPL, "kind": "diff", "name": "diff.patch",
        "path": "/x", "createdAt": TIME, "contentHash": "0".repeat(64), "bytes": 0,
        "metadata": {
            "filesChanged": ["a", "b", "c"], "shared": ["c"], "summary": "", "added": 3,
            "removed": 0, "baseTree": "t0", "headTree": "t1", "turnId": LEAD,
        },
    });
    let artifacts = json!({ "artifacts": [diff] });
    StubServer::start(
        answers()
            .json(&format!("GET {path}/artifacts"), artifacts)
            .json(&format!("POST {path}/turns/{LEAD}/revert"), answer.clone()),
    )
}

#[test]
fn a_file_that_another_turn_may_have_changed_is_left_and_named() {
    let server = server_with_diff(&json!({ "paths": ["a"], "already": ["b"] }));
    check(
        &transcript(&server, &["node revert impl"]),
        "
        $ node revert impl
        restored a
        as before already: b
        left as it is: c; another turn may have changed it, and --path restores it",
    );
    let server = server_with_diff(&json!({ "paths": ["c"] }));
    check(
        &transcript(&server, &["node revert impl --path c"]),
        "
        $ node revert impl --path c
        restored c",
    );
}
