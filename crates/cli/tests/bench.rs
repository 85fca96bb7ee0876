//! The benchmark works: every measurement runs once, tiny. What it measures is not looked at.

use std::process::Command;

#[test]
fn a_quick_run_fills_the_whole_table_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args([
            "120",
            env!("CARGO_BIN_EXE_turnkeep"),
            "bench",
            "--quick",
            "--json",
            "--dir",
        ])
        .arg(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 22, "{table:#}");
    for row in rows {
        assert!(row["measured"].as_f64().unwrap() > 0.0, "{row}");
        assert!(
            row["goals"]
                .as_array()
                .unwrap()
                .iter()
                .all(|goal| goal["met"].is_null()),
            "{row}"
        );
    }
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        0,
        "files are left behind"
    );
}

#[test]
fn a_quick_run_over_a_ledger_fills_its_table_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args([
            "120",
            env!("CARGO_BIN_EXE_turnkeep"),
            "bench",
            "ledger",
            "--quick",
            "--json",
            "--dir",
        ])
        .arg(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 33, "{report:#}");
    for row in rows {
        assert!(row["measured"].as_f64().unwrap() > 0.0, "{row}");
        assert!(
            row["goals"]
                .as_array()
                .unwrap()
                .iter()
                .all(|goal| goal["met"].is_null()),
            "{row}"
        );
    }
    assert_eq!(report["leaks"], 0);
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        0,
        "files are left behind"
    );
}
