//! Bytes that no honest writer sends.

use super::super::fuzz::project_any;
use super::super::payload_reader::NESTING_MAX;
use super::*;

#[track_caller]
fn refused(payload: &[u8]) -> DecodeFault {
    let error = show(&ProjectionOptions::default(), payload).unwrap_err();
    match error {
        ProjectionError::Decode(fault) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_payload_is_a_decode_error() {
    assert_eq!(refused(&[]), DecodeFault::Empty);
    assert_eq!(
        refused(&array(&[])),
        DecodeFault::NotAMap { found: "an array" }
    );
    assert_eq!(refused(&nil()), DecodeFault::NotAMap { found: "nil" });
    assert_eq!(
        refused(&[0x80, 0xc0]),
        DecodeFault::Trailing {
            offset: 1,
            bytes: 1
        }
    );
    assert_eq!(refused(&[0x81, 0x01]), DecodeFault::Truncated { offset: 2 });
    assert_eq!(
        refused(&[0x81, 0x0d, 0xa5, b'a']),
        DecodeFault::Truncated { offset: 2 }
    );
    assert_eq!(
        refused(&[0x81, 0x01, 0xc1]),
        DecodeFault::Reserved { offset: 2 }
    );
    assert_eq!(
        refused(&[0x81, 0x63, 0xc1]),
        DecodeFault::Reserved { offset: 2 }
    );
    let other = project(
        sample_registry(),
        &sample_type(),
        2,
        &[0x80],
        &ProjectionOptions::default(),
        write_message,
    );
    assert_eq!(other, Err(DecodeFault::Encoding(2).into()));
}

#[test]
fn declared_lengths_are_believed_only_as_far_as_the_bytes_reach() {
    for head in [
        &[0xdf, 0xff, 0xff, 0xff, 0xff][..],
        &[0x81, 0x14, 0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0x81, 0x0f, 0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0x81, 0x14, 0xc6, 0xff, 0xff, 0xff, 0xff],
        &[0x81, 0x0d, 0xdb, 0xff, 0xff, 0xff, 0xff],
        &[0x81, 0x14, 0xc9, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x81, 0x63, 0xdf, 0xff, 0xff, 0xff, 0xff],
    ] {
        assert!(
            matches!(refused(head), DecodeFault::Truncated { .. }),
            "{head:x?}"
        );
    }
}

/// A payload whose containers nest `depth` levels, itself included, under a tag.
fn nested(tag: u64, depth: usize) -> Vec<u8> {
    let mut value = nil();
    for _ in 1..depth {
        value = array(&[value]);
    }
    tagged(&[(tag, &value)])
}

#[test]
fn nesting_is_bounded_wherever_it_is() {
    for tag in [20, 99, 7] {
        assert!(show(&ProjectionOptions::default(), &nested(tag, 128)).is_ok());
        assert!(matches!(
            refused(&nested(tag, 129)),
            DecodeFault::TooDeep { .. }
        ));
    }
    let mut key = nil();
    for _ in 0..127 {
        key = map(&[(key, nil())]);
    }
    assert!(show(&ProjectionOptions::default(), &map(&[(key.clone(), nil())])).is_ok());
    let deeper = map(&[(map(&[(key, nil())]), nil())]);
    assert!(matches!(refused(&deeper), DecodeFault::TooDeep { .. }));
    let mut hostile = vec![0x81, 0x14];
    hostile.extend(std::iter::repeat_n(0x91, 1 << 20));
    assert!(matches!(refused(&hostile), DecodeFault::TooDeep { .. }));
}

#[test]
fn a_typed_blob_counts_towards_the_nesting_around_it() {
    let mut payload = tagged(&[(1, &boolean(true))]);
    for _ in 0..100 {
        let blob = tagged(&[
            (1, &text("test.Everything")),
            (2, &int(2)),
            (3, &bin(&payload)),
        ]);
        payload = tagged(&[(19, &blob)]);
    }
    let shown = show(&ProjectionOptions::default(), &payload).unwrap();
    assert!(
        shown.data.contains("nests deeper"),
        "the blob too deep is shown with its error"
    );
    assert_eq!(shown.data.matches("\"data\"").count(), 63);
}

#[test]
fn nested_keys_do_not_multiply() {
    let mut key = text("\"");
    for _ in 0..100 {
        key = map(&[(key, text("\""))]);
    }
    let payload = tagged(&[(20, &map(&[(key, nil())]))]);
    let shown = show(&ProjectionOptions::default(), &payload).unwrap();
    assert!(shown.data.len() < 2 * payload.len());
}

#[test]
fn warnings_are_bounded() {
    let strings = array(&vec![text("x"); 5000]);
    let shown = show(&ProjectionOptions::default(), &tagged(&[(15, &strings)])).unwrap();
    assert_eq!(shown.warnings.len(), 65);
    assert_eq!(
        shown.warnings[64].message,
        "4936 more warnings are left out"
    );
    let long = map(&[(text(&"k".repeat(100_000)), raw_str(&[0xff]))]);
    let shown = show(&ProjectionOptions::default(), &tagged(&[(20, &long)])).unwrap();
    assert!(shown.warnings[0].path.len() < 1100);
}

#[test]
fn long_names_cannot_make_endless_text_of_few_bytes() {
    let name = "n".repeat(512);
    let bundle = json!({ "registry_version": 1, "bundle_id": "b", "types": {
        "Leaf": { "versions": { "1": { "fields": { "1": { "name": name, "type": "u8" } } } } },
        "Root": { "versions": { "1": { "fields": { "1": { "name": "a", "type": "array", "items": "Leaf" } } } } },
    } });
    let mut registry = Registry::default();
    registry.put("b", bundle.to_string().as_bytes()).unwrap();
    let mut payload = vec![0x81, 0x01, 0xdd, 0x00, 0x04, 0x00, 0x00];
    payload.extend([0x81, 0x01, 0x01].repeat(0x4_0000));
    let shown = project(
        &registry,
        &TypeRef::new("Root", 1),
        1,
        &payload,
        &ProjectionOptions::default(),
        write_message,
    );
    let max = super::super::render::RENDER_BYTES_MAX;
    assert_eq!(shown, Err(ProjectionError::TooLarge { max }));
}

#[test]
fn what_is_held_beside_the_text_counts_as_memory() {
    let within = |payload: &[u8], memory_bytes_max| {
        let options = ProjectionOptions::default();
        let declared = sample_type();
        project_within(
            sample_registry(),
            &declared,
            1,
            payload,
            &options,
            write_message,
            memory_bytes_max,
        )
    };
    // Keys are indexed so that the last value of each wins.
    let keys: Vec<_> = (0..5000)
        .map(|n: i32| (text(&n.to_string()), int(0)))
        .collect();
    let keys = tagged(&[(99, &map(&keys)), (20, &map(&keys))]);
    // Unknown tags have no text at all, but are remembered to warn of those that come twice.
    let tags: Vec<_> = (1000..6000_u64).map(|tag| (tag, int(0))).collect();
    let tags: Vec<_> = tags.iter().map(|(tag, zero)| (*tag, &zero[..])).collect();
    for payload in [keys, tagged(&tags)] {
        let needed = 100_000;
        let refused = within(&payload, needed).unwrap_err();
        assert_eq!(refused, ProjectionError::TooLarge { max: needed });
        let shown = within(&payload, 10 * needed).unwrap();
        assert!(shown.data.len() < needed, "{}", shown.data.len());
    }
}

#[test]
fn arbitrary_bytes_are_json_or_refused() {
    let seeds = [
        map(&[]),
        nested(20, 20),
        tagged(&[(
            19,
            &tagged(&[
                (1, &text("test.Link")),
                (2, &int(1)),
                (3, &bin(&nested(3, 3))),
            ]),
        )]),
        tagged(&[
            (16, &array(&[tagged(&[(1, &text("é"))])])),
            (22, &int(3)),
            (24, &int(1)),
            (24, &int(2)),
        ]),
        tagged(&[
            (17, &map(&[(text("a"), nil())])),
            (18, &map(&[(int(1), array(&[bin(&[1])]))])),
        ]),
    ];
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 11).unwrap() % below
    };
    for round in 0..60_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = u8::try_from(next(256)).unwrap(),
                1 => bytes.insert(at, u8::try_from(next(256)).unwrap()),
                _ => bytes.truncate(at.max(1)),
            }
        }
        project_any(&bytes);
    }
}

#[test]
fn every_prefix_of_a_payload_is_refused() {
    let payload = tagged(&[
        (13, &text("text")),
        (16, &array(&[tagged(&[(1, &text("a"))])])),
        (99, &map(&[(text("k"), bin(&[1, 2, 3]))])),
    ]);
    for cut in 0..payload.len() {
        refused(&payload[..cut]);
    }
    show(&ProjectionOptions::default(), &payload).unwrap();
}

/// Runs with half of the stack that a thread has by default.
fn on_a_small_stack(check: impl FnOnce() + Send + 'static) {
    const STACK_BYTES: usize = 1 << 20;
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(check)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn the_deepest_payloads_fit_a_small_stack() {
    let wrapped = |mut value: Vec<u8>, times: usize, wrap: fn(Vec<u8>) -> Vec<u8>| {
        for _ in 0..times {
            value = wrap(value);
        }
        value
    };
    let link = |inner: Vec<u8>| tagged(&[(3, &inner)]);
    let blob = |payload: Vec<u8>| {
        let blob = tagged(&[
            (1, &text("test.Everything")),
            (2, &int(2)),
            (3, &bin(&payload)),
        ]);
        tagged(&[(19, &blob)])
    };
    let payloads = [
        tagged(&[(21, &wrapped(map(&[]), NESTING_MAX - 2, link))]),
        tagged(&[(
            20,
            &wrapped(map(&[]), NESTING_MAX - 2, |inner| {
                map(&[(text("k"), inner)])
            }),
        )]),
        tagged(&[(
            99,
            &wrapped(map(&[]), NESTING_MAX - 2, |inner| {
                map(&[(text("k"), inner)])
            }),
        )]),
        wrapped(map(&[]), NESTING_MAX / 2, blob),
    ];
    on_a_small_stack(move || {
        for payload in payloads {
            project_any(&payload);
            let shown = show(&ProjectionOptions::default(), &payload).unwrap();
            assert_eq!(shown.warnings, [], "{}", shown.data);
        }
    });
}

#[test]
fn unknown_entries_below_a_long_key_do_not_repeat_it() {
    let unknown: Vec<_> = (100..200).map(|tag| (int(tag), nil())).collect();
    let link = map(&unknown);
    let payload = tagged(&[(17, &map(&[(text(&"k".repeat(1 << 20)), link)]))]);
    let debug = ProjectionOptions {
        include_unknown: IncludeUnknown::Yes,
        ..ProjectionOptions::default()
    };
    let shown = show(&debug, &payload).unwrap().unknown.unwrap();
    assert!(shown.len() < 100 * 1100, "{}", shown.len());
    assert_eq!(value(&shown).as_object().unwrap().len(), 100);
}
