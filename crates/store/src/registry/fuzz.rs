//! Arbitrary bytes as bundles. The fuzz target and a short test call it.

use super::{Checked, Registry};

/// Puts arbitrary bytes as a bundle twice, after a real one, and asserts what holds for every
/// input: the check is deterministic, an accepted bundle is identical to itself, and replay gives
/// it again.
pub fn check_any(bytes: &[u8]) {
    let known = crate::projection::fuzz::sample_registry();
    let id = find_bundle_id(bytes);
    let first = known.check(&id, bytes);
    let again = known.check(&id, bytes);
    match (first, again) {
        (Ok(Checked::New(next)), Ok(Checked::New(_))) => assert_accepted(&next, &id, bytes),
        (Ok(Checked::Identical), Ok(Checked::Identical)) => assert!(known.bundle(&id).is_some()),
        (Err(first), Err(again)) => assert_eq!(first, again),
        (first, again) => panic!("one input, two answers: {first:?} and {again:?}"),
    }
}

/// The id that the bytes contain, so that inputs get past the comparison with the address.
fn find_bundle_id(bytes: &[u8]) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    value
        .as_ref()
        .and_then(|value| value.get("bundle_id")?.as_str())
        .unwrap_or("fuzz")
        .to_owned()
}

fn assert_accepted(next: &Registry, id: &str, bytes: &[u8]) {
    assert!(matches!(next.check(id, bytes), Ok(Checked::Identical)));
    let mut replayed = Registry::default();
    for bundle in next.bundles() {
        assert!(
            matches!(replayed.put(&bundle.id, &bundle.bytes), Ok(true)),
            "replay refuses {}",
            bundle.id
        );
    }
    assert_eq!(replayed.types_json(), next.types_json());
}
