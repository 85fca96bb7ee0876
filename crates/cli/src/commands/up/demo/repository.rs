//! The demo's git repository: a small shop in POSIX shell, in which one check fails.
//!
//! It has one commit, made without the user's git configuration. The agents make the check pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::failure::Failure;

/// Every file of the first commit.
const FILES: [(&str, &str); 6] = [
    ("README.md", README),
    ("check.sh", CHECK),
    ("old-prices.txt", "apple 110\npear 140\nplum 80\n"),
    ("price.sh", PRICE),
    ("prices.txt", "apple 120\npear 150\nplum 85\n"),
    ("receipt.sh", RECEIPT),
];

const README: &str = "\
# The shop

`sh price.sh ITEM COUNT` prints a price in cents, and `sh receipt.sh` a receipt.
`sh check.sh` tests both.
";

const PRICE: &str = r#"#!/bin/sh
# Prints the price of COUNT pieces of ITEM in cents: sh price.sh ITEM COUNT
unit=$(sed -n "s/^$1 //p" prices.txt)
test -n "$unit" || { echo "unknown item: $1" >&2; exit 1; }
echo $((unit * $2))
"#;

const RECEIPT: &str = r#"#!/bin/sh
# Prints a receipt. Each line of the input is an item and a count.
total=0
while read -r item count; do
    price=$(sh price.sh "$item" "$count") || exit 1
    total=$((total + price))
    echo "$count x $item: $price"
done
echo "total: $total"
"#;

const CHECK: &str = r#"#!/bin/sh
# Tests the programs of the shop. Exits with 1 if one of the checks fails.
failed=0
check() { # WHAT EXPECTED FOUND
    if [ "$2" = "$3" ]; then
        echo "ok: $1"
    else
        echo "failed: $1: expected $2, found $3"
        failed=1
    fi
}
check "one apple" 120 "$(sh price.sh apple 1)"
check "nine apples, no discount" 1080 "$(sh price.sh apple 9)"
check "ten apples, with discount" 1080 "$(sh price.sh apple 10)"
check "twenty pears, with discount" 2700 "$(sh price.sh pear 20)"
check "the receipt names a discount" "10 x apple: 1080 (discount 120)" \
    "$(echo apple 10 | sh receipt.sh | head -n 1)"
exit $failed
"#;

/// The program that tests the shop.
pub(super) const VERIFY: &str = "sh check.sh";

/// Makes the repository in a new directory. git runs on a thread of its own, because the server
/// answers meanwhile.
pub(super) async fn make_repository(dir: PathBuf) -> Result<()> {
    tokio::task::spawn_blocking(move || write_repository(&dir)).await?
}

fn write_repository(dir: &Path) -> Result<()> {
    std::fs::create_dir(dir).context("cannot make the directory of the repository")?;
    for (name, content) in FILES {
        std::fs::write(dir.join(name), content).with_context(|| format!("cannot write {name}"))?;
    }
    run_git(
        dir,
        &["-c", "init.defaultBranch=main", "init", "--quiet", "."],
    )?;
    run_git(dir, &["add", "."])?;
    run_git(
        dir,
        &["commit", "--quiet", "-m", "The shop: prices and receipts"],
    )
}

/// Runs git without the user's configuration, which may ask for a signature or run hooks.
fn run_git(dir: &Path, args: &[&str]) -> Result<()> {
    let output = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([
            ("GIT_AUTHOR_NAME", "Turnkeep demo"),
            ("GIT_AUTHOR_EMAIL", "demo@example.org"),
            ("GIT_COMMITTER_NAME", "Turnkeep demo"),
            ("GIT_COMMITTER_EMAIL", "demo@example.org"),
        ])
        .output()
        .context("cannot run git")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Failure::new(format!("git {}: {}", args.join(" "), said.trim())).fail()
}
