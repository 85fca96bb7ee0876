//! Every route that there is, taken from the document of routes, with every kind of token.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Kind, Team, beat, no_op, search};
use crate::client::Server;

/// A route that persons may use, and the answers: the owner's, a reader's and a writer's.
struct Open {
    method: &'static str,
    path: &'static str,
    owner: u16,
    reader: u16,
    writer: u16,
}

const fn open(
    method: &'static str,
    path: &'static str,
    owner: u16,
    reader: u16,
    writer: u16,
) -> Open {
    Open {
        method,
        path,
        owner,
        reader,
        writer,
    }
}

/// All other routes are the owner's.
const OPEN: &[Open] = &[
    open("get", "/v1/worlds/{world}/seat", 200, 200, 200),
    open("post", "/v1/worlds/{world}/invocations", 200, 200, 200),
    open("post", "/v1/worlds/{world}/beats", 200, 403, 200),
    open("post", "/v1/worlds/{world}/proposals/check", 200, 403, 200),
    open("get", "/v1/worlds/{world}/stream", 200, 200, 200),
    open("get", "/v1/worlds/{world}/subscribe", 200, 200, 200),
    open("post", "/v1/worlds/{world}/tools", 200, 200, 200),
    open(
        "get",
        "/v1/worlds/{world}/persons/{person}/capsule",
        200,
        200,
        200,
    ),
    open("get", "/v1/worlds/{world}/views/{person}", 200, 200, 200),
    open("get", "/v1/worlds/{world}/entries/{entry}", 200, 200, 200),
    open("get", "/v1/worlds/{world}/schemas/{name}", 200, 200, 200),
    open("post", "/mcp", 200, 200, 200),
];

fn body(kind: Kind, path: &str) -> Value {
    // A request id belongs to its caller.
    let request = format!("table-{kind:?}");
    match path.rsplit('/').next().unwrap_or_default() {
        "invocations" => no_op("table"),
        "beats" => beat(
            &request,
            if kind == Kind::Reader { "ANN" } else { "BOB" },
            "hello",
            None,
        ),
        "check" => beat(
            "table-dry",
            if kind == Kind::Reader { "ANN" } else { "BOB" },
            "hello",
            None,
        ),
        "tools" => search(kind.actor(), "PUBLIC", "hello"),
        "mcp" => json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        _ => json!({}),
    }
}

async fn status(team: &Team, kind: Kind, method: &str, path: &str, entry: &str) -> u16 {
    let person = if path.contains("/views/") {
        kind.actor()
    } else {
        "BOB"
    };
    let names = [
        ("{world}", "team"),
        ("{person}", person),
        ("{entry}", entry),
        ("{name}", "write_bundle"),
        ("{token}", "t_00000000000000000000000000"),
        ("{turn_id}", "99999"),
        ("{context_id}", "99999"),
        ("{path}", "x"),
        ("{bundle_id}", "b"),
        ("{type_id}", "t"),
        ("{type_version}", "1"),
    ];
    let hash = "0".repeat(64);
    let mut actual = path.replace("{hash}", &hash);
    for (name, value) in names {
        actual = actual.replace(name, value);
    }
    let call = team.call(kind, &method.to_uppercase(), &actual);
    let call = if method == "post" {
        call.json(&body(kind, path))
    } else {
        call
    };
    call.stream().await.response.status().as_u16()
}

#[tokio::test]
async fn every_route_with_every_kind_of_token() {
    let team = Team::start().await;
    let said = team.say("r-1", "hello").await;
    let entry = said["stream"]["entries"][0]["entry_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let document: Value = serde_json::from_str(turnkeep_server::openapi_json()).unwrap();
    let mut listed: BTreeSet<_> = OPEN.iter().map(|open| (open.method, open.path)).collect();
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let open = OPEN
                .iter()
                .find(|open| open.method == method && open.path == path);
            listed.remove(&(method.as_str(), path.as_str()));
            for kind in Kind::ALL {
                let actual = status(&team, kind, method, path, &entry).await;
                let fits = match kind {
                    _ if matches!(path.as_str(), "/healthz" | "/health") => actual == 200,
                    Kind::Nobody | Kind::Wrong | Kind::Expired | Kind::Revoked => actual == 401,
                    // This server shows no directory to anybody.
                    Kind::Owner if path == "/api/fs" => actual == 403,
                    // What the owner may do may still be wrong in itself.
                    Kind::Owner => {
                        open.map_or(!matches!(actual, 401 | 403), |open| actual == open.owner)
                    }
                    Kind::Foreign if path == "/mcp" => actual == 200,
                    Kind::Foreign if path.starts_with("/v1/worlds/{world}") => actual == 404,
                    Kind::Reader | Kind::Writer | Kind::Foreign if path == "/invocations" => {
                        actual == 404
                    }
                    Kind::Reader => actual == open.map_or(403, |open| open.reader),
                    Kind::Writer => actual == open.map_or(403, |open| open.writer),
                    Kind::Foreign => actual == 403,
                };
                assert!(fits, "{kind:?} {method} {path}: {actual}");
                tried += 1;
            }
        }
    }
    assert!(listed.is_empty(), "routes that there are not: {listed:?}");
    assert!(tried > 8 * 35, "{tried}");
    team.stop().await;
}

#[test]
fn n12_no_route_changes_or_deletes_an_entry() {
    let document: Value = serde_json::from_str(turnkeep_server::openapi_json()).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let changing: BTreeSet<_> = paths
        .filter(|(path, _)| path.starts_with("/v1/worlds"))
        .flat_map(|(path, item)| {
            item.as_object()
                .unwrap()
                .keys()
                .map(move |method| (method.as_str(), path.as_str()))
        })
        .filter(|(method, _)| matches!(*method, "put" | "patch" | "delete"))
        .collect();
    let known = [
        ("delete", "/v1/worlds/{world}/tokens/{token}"),
        ("patch", "/v1/worlds/{world}"),
    ];
    assert_eq!(changing, BTreeSet::from(known));
}

#[tokio::test]
async fn paths_and_methods_that_no_route_has_tell_a_person_nothing_and_nobody_less() {
    let team = Team::start().await;
    for (kind, expect) in [
        (Kind::Nobody, 401),
        (Kind::Wrong, 401),
        (Kind::Reader, 404),
        (Kind::Owner, 404),
    ] {
        for path in ["/nowhere", "/v1/worlds/team/nothing", "/v1/worlds//stream"] {
            assert_eq!(team.get(kind, path).await.status, expect, "{kind:?} {path}");
        }
    }
    // Another world gets the answer of a missing one.
    for tail in ["/stream", "/tokens", "/audit/lines", ""] {
        let exists = team
            .get(Kind::Reader, &format!("/v1/worlds/else{tail}"))
            .await;
        let none = team
            .get(Kind::Reader, &format!("/v1/worlds/none{tail}"))
            .await;
        assert_eq!((exists.status, none.status), (404, 404), "{tail}");
        assert_eq!(exists.text().replace("else", "none"), none.text(), "{tail}");
    }
    assert_eq!(
        team.call(Kind::Reader, "GET", "/mcp").send().await.status,
        405
    );
    assert_eq!(
        team.call(Kind::Reader, "GET", "/v1/worlds/t%65am/stream")
            .send()
            .await
            .status,
        200
    );
    team.stop().await;
}

#[tokio::test]
async fn without_auth_a_token_that_is_sent_still_counts() {
    let minted = json!({ "person_id": "ANN" });
    let open = Server::start().await;
    let world = json!({ "world_id": "team", "persons": [{ "person_id": "ANN" }] });
    assert_eq!(open.post("/v1/worlds", &world).send().await.status, 201);
    let token = open
        .post("/v1/worlds/team/tokens", &minted)
        .send()
        .await
        .json();
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    let with = |path: &str, bearer: &str| open.get(path).header("authorization", bearer);
    assert_eq!(
        open.get("/v1/worlds").send().await.status,
        200,
        "nobody is the owner here"
    );
    assert_eq!(
        with("/v1/worlds/team/stream", &bearer).send().await.status,
        200
    );
    assert_eq!(with("/v1/worlds", &bearer).send().await.status, 403);
    assert_eq!(
        with("/v1/worlds", "Bearer unknown").send().await.status,
        401
    );
    assert_eq!(
        with("/v1/worlds", "Basic b3duZXI6").send().await.status,
        401
    );
    open.stop().await;
}
