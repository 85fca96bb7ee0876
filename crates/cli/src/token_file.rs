//! The file with the owner's token, which opens everything that the store holds.
//!
//! The file is refused if another user may have put it there, may read it, or may guess its token:
//! a symbolic link, another mode than 0600, and a token of fewer than [`TOKEN_BITS_MIN`] bits. The
//! error says how to repair it. All checks use the handle that is read, so the file cannot be
//! exchanged between check and read.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::failure::Failure;

/// A token with fewer bits could be guessed.
const TOKEN_BITS_MIN: f64 = 128.0;
/// A longer file holds no token.
const TOKEN_BYTES_MAX: u64 = 4 << 10;
/// The only mode that the file may have.
const TOKEN_MODE: u32 = 0o600;

/// The token in the file, if the file is there and has one.
pub(crate) fn read_token(path: &Path) -> Result<Option<String>> {
    let Some(file) = open_token_file(path)? else {
        return Ok(None);
    };
    check_file(path, &file)?;
    let mut text = String::new();
    let read = file.take(TOKEN_BYTES_MAX).read_to_string(&mut text);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let token = text.trim();
    if token.is_empty() {
        return Ok(None);
    }
    check_strength(path, token)?;
    Ok(Some(token.to_owned()))
}

/// Opens the file itself. The flags refuse a link, and do not wait for the other end of a pipe.
fn open_token_file(path: &Path) -> Result<Option<File>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let error = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => return Ok(Some(file)),
        Err(error) => error,
    };
    if error.kind() == ErrorKind::NotFound {
        return Ok(None);
    }
    if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        return Err(token_file_error(
            path,
            "is a symbolic link",
            "put the file itself there, with mode 0600",
        ));
    }
    Err(error).with_context(|| format!("cannot read {}", path.display()))
}

fn check_file(path: &Path, file: &File) -> Result<()> {
    let found = file
        .metadata()
        .with_context(|| format!("cannot look at {}", path.display()))?;
    if !found.is_file() {
        return Err(token_file_error(
            path,
            "is not a file",
            "delete it: the next `turnkeep up` makes a new one",
        ));
    }
    let mode = found.mode() & 0o7777;
    if mode != TOKEN_MODE {
        let what = format!("has mode {mode:04o}, so others may have read or changed it");
        let hint = format!(
            "delete it and start `turnkeep up` again for a new token, or `chmod 600 {}` if nobody else has seen it",
            path.display()
        );
        return Err(token_file_error(path, &what, &hint));
    }
    Ok(())
}

fn check_strength(path: &Path, token: &str) -> Result<()> {
    let bits = bits_of(token);
    if bits >= TOKEN_BITS_MIN {
        return Ok(());
    }
    let what = format!("holds a token of at most {bits:.0} bits, which can be guessed");
    let hint = "delete it: the next `turnkeep up` makes one of 256 bits; or write 16 random bytes or more, as \
                `openssl rand -hex 16` prints them";
    Err(token_file_error(path, &what, hint))
}

/// The most bits that a text of this length and these kinds of characters can hold. It is an upper
/// bound: the text may still be a word.
fn bits_of(token: &str) -> f64 {
    let all = |is: fn(&u8) -> bool| token.as_bytes().iter().all(is);
    // The alphabet is guessed from the characters, from the smallest one that has them all.
    let letters = if all(u8::is_ascii_digit) {
        10.0
    } else if all(u8::is_ascii_hexdigit) {
        16.0
    } else if all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        36.0
    } else {
        64.0
    };
    // A length of 2^32 and more is beyond what is read.
    f64::from(u32::try_from(token.chars().count()).unwrap_or(u32::MAX)) * f64::log2(letters)
}

fn token_file_error(path: &Path, what: &str, hint: &str) -> anyhow::Error {
    Failure::new(format!("the token file {} {what}", path.display()))
        .hint(hint)
        .into()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const GOOD: &str = "00112233445566778899aabbccddeeff";

    fn in_file(text: &str, mode: u32) -> Result<Option<String>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        read_token(&path)
    }

    #[test]
    fn only_a_private_file_is_believed() {
        assert_eq!(
            in_file(&format!("{GOOD}\n"), 0o600).unwrap().as_deref(),
            Some(GOOD)
        );
        assert_eq!(in_file("\n", 0o600).unwrap(), None);
        for mode in [0o644, 0o640, 0o660, 0o604, 0o400, 0o700, 0o601] {
            let error = in_file(GOOD, mode).unwrap_err().to_string();
            assert!(error.contains(&format!("has mode {mode:04o}")), "{error}");
        }
    }

    #[test]
    fn a_link_and_what_is_no_file_are_refused_and_nothing_is_no_token() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("token"));
        fs::write(&real, GOOD).unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_token(&link).unwrap(), None);
        symlink(&real, &link).unwrap();
        assert!(
            read_token(&link)
                .unwrap_err()
                .to_string()
                .contains("symbolic link")
        );
        fs::remove_file(&link).unwrap();
        fs::create_dir(&link).unwrap();
        assert!(
            read_token(&link)
                .unwrap_err()
                .to_string()
                .contains("is not a file")
        );
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        for (token, good) in [
            (GOOD, true),
            (&GOOD[1..], false),
            ("secret", false),
            ("AAECAwQFBgcICQoLDA0ODw", true),
            ("AAECAwQFBgcICQoLDA0OD", false),
            ("00000000000000000000000000000000000000", false),
            ("000000000000000000000000000000000000000", true),
        ] {
            let read = in_file(token, 0o600);
            assert_eq!(read.is_ok(), good, "{token}: {read:?}");
            assert!(
                good || read.unwrap_err().to_string().contains("can be guessed"),
                "{token}"
            );
        }
    }
}
