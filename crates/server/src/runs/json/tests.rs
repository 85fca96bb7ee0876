//! The JSON of runs: each event and view as exact JSON that fits its schema, patches that fold to
//! the snapshot, and requests with their errors.

mod events;
mod fold;
mod rejections;
mod requests;
mod views;

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use turnkeep_runtime::ids::{RunId, Uuid};
use turnkeep_runtime::node::NodeSettings;
use turnkeep_runtime::run::{Archive, RunLimits, RunSettings};
use turnkeep_runtime::usage::Budget;
use turnkeep_runtime::words::{CliPermissions, GlobalMode, Mode, Provider, WakeOn};
use turnkeep_types::Timestamp;

use super::{NodeDefaults, RunPlace};

/// 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp(1_767_225_600_000);
const NOW_TEXT: &str = "2026-01-01T00:00:00.000Z";
const ARTIFACTS_DIR: &str = "/data/runs/1/artifacts";

/// The id with this number.
fn id<T: Uuid>(number: u128) -> T {
    T::from_bits(number)
}

/// The text of the id with this number.
fn id_text(number: u128) -> String {
    id::<RunId>(number).to_string()
}

fn place(archive: &Archive) -> RunPlace<'_> {
    RunPlace {
        run: id(1),
        archive,
        artifacts_dir: Path::new(ARTIFACTS_DIR),
    }
}

fn run_settings() -> RunSettings {
    RunSettings {
        title: "Fix the refund".to_owned(),
        goal: Some("Fix the refund\nand test it".to_owned()),
        cwd: Some("/work".to_owned()),
        mode: Mode::Auto,
        global_mode: GlobalMode::Planning,
        world: None,
        verify: vec!["make test".to_owned()],
        setup: Vec::new(),
        docs_node: None,
        budget: Budget {
            tokens: Some(1000),
            cost_micro_usd: Some(2_500_000),
        },
        limits: RunLimits::default(),
    }
}

fn node_settings(alias: &str, role: &str) -> NodeSettings {
    let defaults = NodeDefaults::of_role(role, CliPermissions::Gated);
    NodeSettings {
        label: format!("The {alias}"),
        role: role.to_owned(),
        provider: Provider::Claude,
        provider_name: None,
        alias: Some(alias.to_owned()),
        person: None,
        capabilities: defaults.capabilities,
        permissions: defaults.permissions,
        custom_system_prompt: None,
        wake_on: WakeOn::Any,
        position: None,
        reset_commands: defaults.reset_commands,
        budget: None,
    }
}

/// The JSON of a shape, which must read back as the same shape and have no field twice.
fn json_of<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(shape: &T) -> Value {
    let value = serde_json::to_value(shape).unwrap();
    assert_eq!(serde_json::to_string(shape).unwrap(), value.to_string());
    assert_eq!(&serde_json::from_value::<T>(value.clone()).unwrap(), shape);
    value
}
