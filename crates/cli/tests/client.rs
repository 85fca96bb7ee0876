//! The Rust client against the real server: every verb, and a server that is killed under it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use bytes::Bytes;
use sandbox::{BUNDLE, Sandbox, ServerProcess};
use turnkeep_client::message::{
    AppendBatch, AppendTurn, CreateContext, GetBefore, GetLast, GetRange, ReadOptions, SentTurn,
    Subscribe,
};
use turnkeep_client::{Client, ErrorCode, Options, compose, verify};
use turnkeep_types::{BlobHash, Compression, ContextId, TypeRef};

fn turn(payload: &str, form: Compression) -> SentTurn {
    let payload = Bytes::copy_from_slice(payload.as_bytes());
    compose::turn(&TypeRef::new("com.example.Message", 1), payload, form).unwrap()
}

fn keyed(context: ContextId, payload: &str, key: &str) -> AppendTurn {
    let key = Bytes::copy_from_slice(key.as_bytes());
    AppendTurn {
        key,
        ..compose::append(context, turn(payload, Compression::None))
    }
}

async fn connect(sandbox: &Sandbox, server: &ServerProcess) -> Client {
    let token = std::fs::read_to_string(sandbox.data().join("token"))
        .unwrap()
        .trim()
        .to_owned();
    let options = Options {
        token: Some(token),
        verify_reads: true,
        ..Options::default()
    };
    Client::connect(server.tcp(), options).await.unwrap()
}

const EVERYTHING: ReadOptions = ReadOptions {
    include_payload: true,
    stored_form: true,
    extended: true,
};

#[tokio::test]
async fn every_verb_works() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    let client = connect(&sandbox, &server).await;
    assert!(
        client
            .put_bundle("example#1", Bytes::from_static(BUNDLE.as_bytes()))
            .await
            .unwrap()
    );
    assert!(
        !client
            .put_bundle("example#1", Bytes::from_static(BUNDLE.as_bytes()))
            .await
            .unwrap()
    );
    let context = client
        .create_context(CreateContext::default())
        .await
        .unwrap()
        .context;

    let long = "long ".repeat(10_000);
    let packed = turn(&long, Compression::Zstd);
    assert!(packed.payload.len() < long.len() / 10);
    let first = client
        .append(compose::append(context, packed))
        .await
        .unwrap();
    let turns = vec![turn("a", Compression::None), turn("b", Compression::None)];
    let expected_head = Some(Some(first.turn));
    let batch = AppendBatch {
        context,
        parent: None,
        turns,
        key: Bytes::new(),
        expected_head,
    };
    let acks = client.append_batch(batch.clone()).await.unwrap().turns;
    let conflict = client.append_batch(batch).await.unwrap_err();
    assert_eq!(conflict.code(), Some(ErrorCode::Conflict));
    assert_eq!(client.head(context).await.unwrap().head, Some(acks[1].turn));

    let last = client
        .last(GetLast {
            context,
            limit: 2,
            options: EVERYTHING,
        })
        .await
        .unwrap();
    assert_eq!(
        last.iter().map(|item| item.turn).collect::<Vec<_>>(),
        [acks[0].turn, acks[1].turn]
    );
    let before = GetBefore {
        context,
        before: Some(acks[0].turn),
        limit: 9,
        options: EVERYTHING,
    };
    let before = client.before(before).await.unwrap();
    assert_eq!(verify::payload(&before[0]).unwrap(), long.as_bytes());
    assert_eq!(before[0].compression, Compression::Zstd, "kept as sent");
    let range = GetRange {
        context,
        start_depth: 1,
        limit: 1,
        options: ReadOptions::default(),
    };
    assert_eq!(client.range(range).await.unwrap()[0].turn, acks[0].turn);
    let mut history = client.history(context, ReadOptions::default());
    let mut depths = Vec::new();
    while let Some(item) = history.next().await.unwrap() {
        depths.push(item.depth);
    }
    assert_eq!(depths, [2, 1, 0]);

    let tree = Bytes::from_static(&[0x90]);
    let (root, was_new) = client.put_blob(tree.clone()).await.unwrap();
    assert!(was_new);
    assert_eq!(
        client
            .has_blobs(vec![root, BlobHash::of(b"?")])
            .await
            .unwrap(),
        [true, false]
    );
    assert_eq!(client.blob(root).await.unwrap(), tree);
    assert_eq!(client.tree(root).await.unwrap(), []);
    let entry = [
        &[0x91, 0x82, 0xa1, b'1', 0xa1, b'f', 0xa1, b'5', 0xc4, 32],
        &root.0[..],
    ]
    .concat();
    let (digits, _) = client.put_blob(entry.into()).await.unwrap();
    let read = client.tree(digits).await.unwrap();
    assert_eq!(
        (read.len(), &read[0].name[..], read[0].hash),
        (1, &b"f"[..], root),
        "tags as digits"
    );
    client.attach_fs(first.turn, root).await.unwrap();
    let fork = CreateContext {
        base: Some(first.turn),
        key: Some(Bytes::from_static(b"k")),
    };
    let forked = client.fork_context(fork.clone()).await.unwrap();
    assert_eq!(client.fork_context(fork).await.unwrap(), forked);

    let mut events = client.subscribe(Subscribe {
        context: None,
        after: Some(0),
        options: EVERYTHING,
    });
    for expect in [first.turn, acks[0].turn, acks[1].turn] {
        assert_eq!(events.next().await.unwrap().item.turn, expect);
    }
    client.append(keyed(forked.context, "c", "")).await.unwrap();
    assert_eq!(events.next().await.unwrap().context, forked.context);
}

#[tokio::test]
async fn a_killed_server_loses_nothing_and_keyed_appends_go_on() {
    let sandbox = Sandbox::new();
    let mut server = sandbox.up(&[]);
    let client = connect(&sandbox, &server).await;
    let context = client
        .create_context(CreateContext::default())
        .await
        .unwrap()
        .context;
    let mut events = client.subscribe(Subscribe {
        context: Some(context),
        after: Some(0),
        options: EVERYTHING,
    });
    for step in 0..4 {
        for number in 0..5 {
            let name = format!("{step}-{number}");
            client.append(keyed(context, &name, &name)).await.unwrap();
        }
        let pending = client
            .submit_append(keyed(context, "in flight", "in flight"))
            .await
            .unwrap();
        let (tcp, http) = (server.said["tcp"].clone(), server.said["http"].clone());
        server.kill();
        drop(pending);
        server = sandbox.up_at(tcp.as_str().unwrap(), http.as_str().unwrap());
    }
    client
        .append(keyed(context, "in flight", "in flight"))
        .await
        .unwrap();
    // One turn per key, each delivered once.
    let mut seen = Vec::new();
    for _ in 0..21 {
        let item = events.next().await.unwrap().item;
        seen.push(String::from_utf8(verify::payload(&item).unwrap().to_vec()).unwrap());
    }
    assert_eq!(client.head(context).await.unwrap().depth, 20);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 21);
}

#[tokio::test]
async fn only_new_events_begin_where_the_feed_ended_when_it_was_followed() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    let client = connect(&sandbox, &server).await;
    let context = client
        .create_context(CreateContext::default())
        .await
        .unwrap()
        .context;
    client.append(keyed(context, "before", "")).await.unwrap();
    let mut events = client.subscribe(Subscribe {
        context: Some(context),
        after: None,
        options: EVERYTHING,
    });
    while events.position().is_none() {
        tokio::select! {
            biased;
            event = events.next() => panic!("nothing was appended: {event:?}"),
            head = client.head(context) => drop(head.unwrap()),
        }
    }
    assert_eq!(events.position(), Some(2));
    let (tcp, http) = (server.said["tcp"].clone(), server.said["http"].clone());
    server.kill();
    let server = sandbox.up_at(tcp.as_str().unwrap(), http.as_str().unwrap());
    let other = connect(&sandbox, &server).await;
    let appended = other.append(keyed(context, "meanwhile", "")).await.unwrap();
    assert_eq!(events.next().await.unwrap().item.turn, appended.turn);
}
