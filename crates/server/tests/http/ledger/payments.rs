//! One beat as data: the world "payments", from the operator's words to what each of its people is
//! shown.

use serde_json::{Value, json};
use turnkeep_types::Timestamp;

use super::{Kind, Team, envelope, refused, search};
use crate::client::{Call, Reply};

/// 2025-12-20T09:00:00.000Z.
const NINE: Timestamp = Timestamp(1_766_221_200_000);
const PLAN: &str = "CODER takes the rounding test; REVIEWER checks by 15:00.";
const ASIDE: &str = "Look twice at the ledger migration.";

/// The world, with a token of each of its people.
struct Payments {
    team: Team,
    tokens: Vec<(&'static str, String)>,
}

impl Payments {
    async fn start() -> Self {
        let team = Team::start().await;
        let people = ["PLANNER", "CODER", "REVIEWER"];
        let persons = people.map(|id| json!({ "person_id": id }));
        let body = json!({ "world_id": "payments", "profile": "WORKSPACE", "persons": persons });
        let made = team.post(Kind::Owner, "/v1/worlds", &body).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let mut tokens = Vec::new();
        for id in people {
            let body = json!({ "person_id": id, "write": true });
            let minted = team
                .post(Kind::Owner, "/v1/worlds/payments/tokens", &body)
                .await
                .json();
            tokens.push((id, minted["token"].as_str().unwrap().to_owned()));
        }
        team.server.clock.set(NINE);
        Self { team, tokens }
    }

    fn call(&self, who: &str, method: &str, path: &str) -> Call {
        let call = self
            .team
            .server
            .call(method, &format!("/v1/worlds/payments{path}"));
        let token = self
            .tokens
            .iter()
            .find(|(id, _)| *id == who)
            .map_or(super::OWNER, |(_, token)| token);
        call.header("authorization", &format!("Bearer {token}"))
    }

    async fn post(&self, who: &str, path: &str, body: &Value) -> Reply {
        self.call(who, "POST", path).json(body).send().await
    }

    async fn stream(&self, who: &str, cursor: Option<&str>) -> Value {
        let path = cursor.map_or("/stream".to_owned(), |cursor| {
            format!("/stream?cursor={cursor}")
        });
        let page = self.call(who, "GET", &path).send().await;
        assert_eq!(page.status, 200, "{}", page.text());
        page.json()
    }

    /// An earlier private entry: REVIEWER named the obstacle to PLANNER only.
    async fn before(&self) {
        let warning = [line(
            "r-16",
            "REVIEWER",
            Some("PLANNER"),
            "The refund blocker is how cents are cut.",
        )];
        let told = self
            .post("REVIEWER", "/beats", &beat("r-16", "REVIEWER", &warning))
            .await;
        assert_eq!(told.status, 200, "{}", told.text());
    }
}

fn line(id: &str, author: &str, to: Option<&str>, text: &str) -> Value {
    let scope = if to.is_some() { "PRIVATE" } else { "PUBLIC" };
    json!({
        "request_id": id, "author": { "author_id": author, "author_class": "PERSON" },
        "visibility": { "scope": scope, "visible_to": to.into_iter().collect::<Vec<_>>() },
        "channel": "PEOPLE", "text": text,
    })
}

fn beat(id: &str, who: &str, entries: &[Value]) -> Value {
    json!({
        "envelope": envelope(id, ""),
        "bundle": {
            "bundle_id": null, "request_id": id, "proposed_by": { "engine": "planner", "actor": who },
            "wrote": true, "entries": entries, "rejection": { "rejected": false, "reason": null },
        },
    })
}

/// PLANNER's beat, with or without its aside to REVIEWER.
fn r18(aside: bool) -> Value {
    let mut entries = vec![line("r-18", "PLANNER", None, PLAN)];
    if aside {
        entries.push(line("r-18", "PLANNER", Some("REVIEWER"), ASIDE));
    }
    let mut body = beat("r-18", "PLANNER", &entries);
    let start = PLAN.find("REVIEWER checks").unwrap();
    body["bundle"]["pocket_items"] = json!([{
        "kind": "CALENDAR", "entry_index": 0, "title": [start, start + "REVIEWER checks".len()],
        "time": "2025-12-20T15:00:00Z",
    }]);
    body
}

fn texts(page: &Value) -> Vec<&str> {
    let entries = page["stream"]["entries"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| entry["text"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn l16_the_beat_of_the_payments_world_goes_as_it_is_written() {
    let world = Payments::start().await;
    world.before().await;
    let planner_before = world.stream("PLANNER", None).await["stream"]["cursor_after"].clone();
    let reviewer_before = world.stream("REVIEWER", None).await["stream"]["cursor_after"].clone();

    let words = "Ship the refund fix today.";
    let said = world
        .post("GEORGE", "/invocations", &envelope("r-17", words))
        .await;
    assert_eq!(said.status, 200, "{}", said.text());
    let shown = said.json();
    let entries = shown["stream"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "one entry: {shown}");
    assert_eq!(entries[0]["created_at_world"], "2025-12-20T09:00:00.000Z");
    assert_eq!(
        (&entries[0]["channel"], &entries[0]["author_label"]),
        (&json!("USER"), &Value::Null)
    );
    assert_eq!(entries[0]["text"], words);

    let question = search("PLANNER", "PLANNER", "refund fix blocker");
    let found = world.post("PLANNER", "/tools", &question).await.json();
    let mut excerpts: Vec<_> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| &hit["verbatim_excerpt"])
        .collect();
    excerpts.sort_by_key(ToString::to_string);
    assert_eq!(
        excerpts,
        [
            "Ship the refund fix today.",
            "The refund blocker is how cents are cut."
        ]
    );
    let question = search("CODER", "CODER", "refund fix blocker");
    let found = world.post("CODER", "/tools", &question).await.json();
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");

    let done = world.post("PLANNER", "/beats", &r18(true)).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(done.header("idempotency-replayed"), None);
    let answer = done.json();
    let bundle = &answer["bundle"];
    assert_eq!(
        (
            &bundle["wrote"],
            bundle["entries"].as_array().unwrap().len()
        ),
        (&json!(true), 2)
    );
    assert_eq!(bundle["pocket_items"].as_array().unwrap().len(), 1);
    let ids = bundle["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["bundle_id"]);
    assert!(
        ids.clone().all(|id| *id == bundle["bundle_id"]) && bundle["bundle_id"].is_string(),
        "{bundle}"
    );

    let item = |page: &Value| page["pocket"]["calendar"]["items"].clone();
    for (who, cursor, wanted) in [
        ("GEORGE", None, vec![words, PLAN]),
        ("CODER", None, vec![words, PLAN]),
        ("PLANNER", planner_before.as_str(), vec![words, PLAN, ASIDE]),
        (
            "REVIEWER",
            reviewer_before.as_str(),
            vec![words, PLAN, ASIDE],
        ),
    ] {
        let page = world.stream(who, cursor).await;
        assert_eq!(texts(&page), wanted, "{who}");
        let item = item(&page);
        assert_eq!(item.as_array().unwrap().len(), 1, "{who}: {item}");
        assert_eq!(
            (&item[0]["title"], &item[0]["time"]),
            (&json!("REVIEWER checks"), &json!("2025-12-20T15:00:00Z"))
        );
    }

    let again = world.post("PLANNER", "/beats", &r18(true)).await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed")),
        (200, Some("true"))
    );
    assert_eq!(again.body, done.body, "the same bytes");
    let foreign = world.post("CODER", "/beats", &r18(true)).await;
    refused(&foreign, 403, "REQUEST_ID_FOREIGN", "r-18 by CODER");
    let other = world
        .post(
            "GEORGE",
            "/invocations",
            &envelope("r-17", "Ship it tomorrow."),
        )
        .await;
    refused(&other, 409, "REQUEST_ID_REUSED", "r-17 with other words");

    let verified = world.call("GEORGE", "GET", "/verify").send().await.json();
    assert_eq!(
        (&verified["sound"], &verified["entries"]),
        (&json!(true), &json!(4)),
        "{verified}"
    );
    world.team.stop().await;
}

#[tokio::test]
async fn l16_coder_is_told_what_a_world_without_the_aside_tells() {
    let mut told = Vec::new();
    for aside in [true, false] {
        let world = Payments::start().await;
        if aside {
            world.before().await;
        }
        world
            .post(
                "GEORGE",
                "/invocations",
                &envelope("r-17", "Ship the refund fix today."),
            )
            .await;
        let done = world.post("PLANNER", "/beats", &r18(aside)).await;
        assert_eq!(done.status, 200, "{}", done.text());
        let mut pages = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let path = cursor.as_ref().map_or("/stream?limit=1".to_owned(), |c| {
                format!("/stream?limit=1&cursor={c}")
            });
            let mut page = world.call("CODER", "GET", &path).send().await.json();
            cursor = page["stream"]["cursor_after"].as_str().map(str::to_owned);
            let entries = page["stream"]["entries"].as_array_mut().unwrap();
            let last = entries.is_empty();
            // Ids are random; everything else is compared.
            for entry in &mut *entries {
                entry["entry_id"] = Value::Null;
            }
            for item in page["pocket"]["calendar"]["items"].as_array_mut().unwrap() {
                (item["item_id"], item["entry_id"]) = (Value::Null, Value::Null);
            }
            pages.push(page);
            if last {
                break;
            }
        }
        assert_eq!(pages.len(), 3, "{pages:?}");
        told.push(pages);
        world.team.stop().await;
    }
    assert_eq!(told[0], told[1]);
}
