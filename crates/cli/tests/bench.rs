//! The benchmark works: every measurement runs once, tiny. The tests ignore the figures.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use serde_json::Value;

/// Runs a quick benchmark and checks its table: every row has a figure, and no goal is judged.
fn check_quick_run(command: &[&str], rows_expected: usize) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args(["120", env!("CARGO_BIN_EXE_turnkeep")])
        .args(command)
        .args(["--quick", "--json", "--dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let table: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), rows_expected, "{table:#}");
    for row in rows {
        assert!(row["measured"].as_f64().unwrap() > 0.0, "{row}");
        let goals = row["goals"].as_array().unwrap();
        assert!(goals.iter().all(|goal| goal["met"].is_null()), "{row}");
    }
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        0,
        "files are left behind"
    );
    table
}

#[test]
fn a_quick_run_fills_the_whole_table_and_leaves_nothing_behind() {
    check_quick_run(&["bench"], 23);
}

#[test]
fn a_quick_run_over_a_ledger_fills_its_table_and_leaves_nothing_behind() {
    let report = check_quick_run(&["bench", "ledger"], 33);
    assert_eq!(report["leaks"], 0);
}

#[test]
fn a_quick_run_over_runs_fills_its_table_and_leaves_nothing_behind() {
    check_quick_run(&["bench", "runs"], 8);
}
