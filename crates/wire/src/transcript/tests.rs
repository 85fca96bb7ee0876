//! Every type of entry survives the store, damaged bytes are rejected, and the published bundle says
//! what the tables say.

use proptest::prelude::*;
use turnkeep_store::Registry;
use turnkeep_store::projection::{ENCODING_MSGPACK, IncludeUnknown, ProjectionOptions, project};
use turnkeep_types::record::describe::BundleText;
use turnkeep_types::record::sample::{Choices, Sample};

use super::*;

/// One way to make an entry for each type.
const MAKERS: [fn(&mut Choices) -> TranscriptItem; 7] = [
    |from| TranscriptItem::UserMessage(Sample::sample(from)),
    |from| TranscriptItem::AssistantMessage(Sample::sample(from)),
    |from| TranscriptItem::Thinking(Sample::sample(from)),
    |from| TranscriptItem::ToolCall(Sample::sample(from)),
    |from| TranscriptItem::ToolResult(Sample::sample(from)),
    |from| TranscriptItem::Handoff(Sample::sample(from)),
    |from| TranscriptItem::Usage(Sample::sample(from)),
];

fn read_back(item: &TranscriptItem) -> Result<TranscriptItem, TranscriptError> {
    let encoded = encode_item(item);
    decode_item(&encoded.declared, &encoded.payload)
}

proptest! {
    #[test]
    fn any_entry_reads_back_as_it_was_written(
        numbers in prop::collection::vec(any::<u64>(), 0..100),
    ) {
        for make in MAKERS {
            let item = make(&mut Choices::new(numbers.clone()));
            prop_assert_eq!(read_back(&item), Ok(item.clone()));
            prop_assert_eq!(encode_item(&item.clone()), encode_item(&item));
        }
    }

    #[test]
    fn any_bytes_are_an_entry_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        for make in MAKERS {
            let declared = encode_item(&make(&mut Choices::new(Vec::new()))).declared;
            if let Ok(item) = decode_item(&declared, &bytes) {
                prop_assert_eq!(read_back(&item), Ok(item.clone()));
            }
        }
    }
}

#[test]
fn an_entry_cut_or_changed_anywhere_never_panics() {
    for make in MAKERS {
        for seed in 0..20 {
            let item = make(&mut Choices::from_seed(seed));
            let EncodedItem { declared, payload } = encode_item(&item);
            for place in 0..payload.len() {
                let cut = decode_item(&declared, &payload[..place]);
                assert!(cut.is_err(), "{declared} cut at {place}");
                for bit in 0..8 {
                    let mut changed = payload.to_vec();
                    changed[place] ^= 1 << bit;
                    let read = decode_item(&declared, &changed);
                    assert_ne!(read, Ok(item.clone()), "{declared} changed at {place}");
                }
            }
        }
    }
}

#[test]
fn a_foreign_type_is_rejected_and_a_later_version_is_read() {
    let item = TranscriptItem::Thinking(Thinking::default());
    let EncodedItem { declared, payload } = encode_item(&item);
    for foreign in [
        "com.example.X",
        "turnkeep.agent.Dream",
        "turnkeep.agentThinking",
    ] {
        let foreign = TypeRef::new(foreign, 1);
        let expect = Err(TranscriptError::UnknownType(foreign.clone()));
        assert_eq!(decode_item(&foreign, &payload), expect);
    }
    let later = TypeRef::new(declared.id, 2);
    assert_eq!(decode_item(&later, &payload), Ok(item));
}

#[test]
fn old_bytes_keep_their_meaning() {
    fn check(item: TranscriptItem, expect_type: &str, expect: &[u8]) {
        let EncodedItem { declared, payload } = encode_item(&item);
        assert_eq!(declared.to_string(), expect_type);
        assert_eq!(
            payload.escape_ascii().to_string(),
            expect.escape_ascii().to_string()
        );
        assert_eq!(decode_item(&declared, expect), Ok(item));
    }
    let origin = Origin {
        at: Some(Timestamp(1)),
        id: Some("i".to_owned()),
        parent_id: Some("p".to_owned()),
        session: Some("s".to_owned()),
        program: Some("codex".to_owned()),
        run: Some("r".to_owned()),
        node: Some("n".to_owned()),
        turn: Some("t".to_owned()),
        raw: Some(Bytes::from_static(b"\xff")),
    };
    let some = |text: &str| Some(text.to_owned());
    check(
        TranscriptItem::UserMessage(UserMessage {
            origin,
            text: "Hi".to_owned(),
            role: "user".to_owned(),
        }),
        "turnkeep.agent.UserMessage@1",
        b"\x8b\x01\x01\x02\xa1i\x03\xa1p\x04\xa1s\x05\xa5codex\x06\xa1r\x07\xa1n\x08\xa1t\
          \x09\xc4\x01\xff\x10\xa2Hi\x11\xa4user",
    );
    check(
        TranscriptItem::AssistantMessage(AssistantMessage {
            text: "Ho".to_owned(),
            model: some("m"),
            interrupted: true,
            stop_reason: some("end"),
            ..AssistantMessage::default()
        }),
        "turnkeep.agent.AssistantMessage@1",
        b"\x84\x10\xa2Ho\x11\xa1m\x12\xc3\x13\xa3end",
    );
    check(
        TranscriptItem::Thinking(Thinking {
            text: "Hm".to_owned(),
            model: some("m"),
            ..Thinking::default()
        }),
        "turnkeep.agent.Thinking@1",
        b"\x82\x10\xa2Hm\x11\xa1m",
    );
    check(
        TranscriptItem::ToolCall(ToolCall {
            tool_id: "1".to_owned(),
            name: "Read".to_owned(),
            args: "{}".to_owned(),
            provider_tool_id: some("c"),
            ..ToolCall::default()
        }),
        "turnkeep.agent.ToolCall@1",
        b"\x84\x10\xa11\x11\xa4Read\x12\xa2{}\x13\xa1c",
    );
    check(
        TranscriptItem::ToolResult(ToolResult {
            tool_id: "1".to_owned(),
            name: some("Read"),
            ok: true,
            output: some("out"),
            truncated: true,
            artifact: some("a"),
            error: some("e"),
            duration_ms: Some(300),
            ..ToolResult::default()
        }),
        "turnkeep.agent.ToolResult@1",
        b"\x88\x10\xa11\x11\xa4Read\x12\xc3\x13\xa3out\x14\xc3\x15\xa1a\x16\xa1e\x17\xcd\x01\x2c",
    );
    check(
        TranscriptItem::Handoff(Handoff {
            envelope: "v".to_owned(),
            from: "f".to_owned(),
            to: "t".to_owned(),
            message: "m".to_owned(),
            structured: some("[]"),
            artifacts: vec!["a".to_owned()],
            ok: Some(false),
            reason: some("r"),
            expectation: some("x"),
            reply_to: some("y"),
            synthesized: true,
            ..Handoff::default()
        }),
        "turnkeep.agent.Handoff@1",
        b"\x8b\x10\xa1v\x11\xa1f\x12\xa1t\x13\xa1m\x14\xa2[]\x15\x91\xa1a\x16\xc2\x17\xa1r\
          \x18\xa1x\x19\xa1y\x1a\xc3",
    );
    check(
        TranscriptItem::Usage(Usage {
            prompt_tokens: 1,
            completion_tokens: 2,
            cached_tokens: Some(3),
            cache_written_tokens: Some(4),
            reasoning_tokens: Some(5),
            cost_micro_usd: Some(6),
            model: some("m"),
            cause: some("c"),
            ..Usage::default()
        }),
        "turnkeep.agent.Usage@1",
        b"\x88\x10\x01\x11\x02\x12\x03\x13\x04\x14\x05\x15\x06\x16\xa1m\x17\xa1c",
    );
}

#[test]
fn the_published_bundle_says_what_the_tables_say() {
    let mut bundle = BundleText::new("turnkeep.agent");
    bundle.add::<UserMessage>();
    bundle.add::<AssistantMessage>();
    bundle.add::<Thinking>();
    bundle.add::<ToolCall>();
    bundle.add::<ToolResult>();
    bundle.add::<Handoff>();
    bundle.add::<Usage>();
    let expect = bundle.to_json(1);
    if std::env::var_os("UPDATE").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/transcript.json");
        std::fs::write(file, expect).unwrap();
    } else {
        assert!(BUNDLES[0].json == expect, "see the diff after UPDATE=1");
    }
}

#[test]
fn the_store_publishes_the_bundle_and_shows_every_entry_by_it() {
    let mut registry = Registry::default();
    for bundle in BUNDLES {
        registry.put(bundle.id, bundle.json.as_bytes()).unwrap();
    }
    let options = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    for make in MAKERS {
        for seed in 0..20 {
            let EncodedItem { declared, payload } =
                encode_item(&make(&mut Choices::from_seed(seed)));
            let shown = project(
                &registry,
                &declared,
                ENCODING_MSGPACK,
                &payload,
                &options,
                |_, _| {},
            );
            let shown = shown.unwrap();
            assert_eq!(shown.warnings, [], "{declared} from seed {seed}");
            assert_eq!(shown.unknown.as_deref(), Some("{}"), "{declared}");
        }
    }
}
