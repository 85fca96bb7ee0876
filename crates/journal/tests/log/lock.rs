//! One process per data directory.

use turnkeep_journal::{DataDirLock, LockError};

#[test]
fn a_second_owner_is_told_who_the_first_is() {
    let dir = tempfile::tempdir().unwrap();
    let held = DataDirLock::acquire(dir.path()).unwrap();
    match DataDirLock::acquire(dir.path()) {
        Err(LockError::Held { dir: named, pid }) => {
            assert_eq!(named, dir.path());
            assert_eq!(pid, std::process::id().to_string());
        }
        other => panic!("{other:?}"),
    }
    drop(held);
    DataDirLock::acquire(dir.path()).unwrap();
}

#[test]
fn whatever_the_lock_file_holds_it_can_be_taken() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("LOCK"), [0xff; 100]).unwrap();
    let held = DataDirLock::acquire(dir.path()).unwrap();
    assert_eq!(
        std::fs::read_to_string(dir.path().join("LOCK")).unwrap(),
        format!("{}\n", std::process::id())
    );
    std::fs::write(dir.path().join("LOCK"), [0xff; 100]).unwrap();
    assert!(matches!(
        DataDirLock::acquire(dir.path()),
        Err(LockError::Held { .. })
    ));
    drop(held);
}

#[test]
fn a_directory_that_is_not_there_is_an_error_with_its_name() {
    let error = DataDirLock::acquire(std::path::Path::new("/no/such/directory")).unwrap_err();
    assert!(error.to_string().contains("/no/such/directory"));
}
