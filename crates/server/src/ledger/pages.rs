//! Pages of streams that many subscribers ask for at the same time.
//!
//! After a commit every subscriber of a world asks for the page behind its cursor, and most cursors
//! are equal. The first subscriber makes the page; the others wait for it and get the same bytes. A
//! page belongs to one version of the world: a commit begins a new version, with pages of its own.
//!
//! Pages are found by view, so a subscriber only ever gets a page of its own view. A page that could
//! not be made is not kept: the next subscriber tries again. A page lives as long as a subscriber
//! holds it, so pages never take more memory than the subscribers that are connected.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::OnceCell;
use turnkeep_ledger::Viewer;

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    /// Whose eyes it is for.
    pub(crate) viewer: Viewer,
    /// Behind which cursor it begins.
    pub(crate) cursor: Option<String>,
    /// Whether its entries say who may see them.
    pub(crate) audience: bool,
}

/// A page as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedPage {
    /// The event, ready to be sent.
    pub(crate) event: Bytes,
    /// Where the next page begins.
    pub(crate) cursor_after: Option<String>,
}

type PageCell = OnceCell<SharedPage>;

/// A page, and the hold on it that keeps it for others.
#[derive(Debug)]
pub(crate) struct HeldPage {
    pub(crate) page: SharedPage,
    _hold: Arc<PageCell>,
}

/// The pages of the newest version of a world that a subscriber asked for.
#[derive(Debug, Default)]
struct VersionPages {
    version: u64,
    cells: HashMap<PageKey, Weak<PageCell>>,
}

/// The pages of a world that are shared.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<VersionPages>);

impl Pages {
    /// The page of this version of the world; made by `make` unless another subscriber makes it or
    /// holds it.
    pub(crate) async fn get<E, F>(
        &self,
        version: u64,
        key: PageKey,
        make: impl FnOnce() -> F,
    ) -> Result<HeldPage, E>
    where
        F: Future<Output = Result<SharedPage, E>>,
    {
        let cell = self.cell(version, key);
        let page = cell.get_or_try_init(make).await?.clone();
        Ok(HeldPage { page, _hold: cell })
    }

    fn cell(&self, version: u64, key: PageKey) -> Arc<PageCell> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.version < version {
            kept.version = version;
            kept.cells.clear();
        }
        if kept.version > version {
            // A commit came between: this page is shared with no one.
            return Arc::default();
        }
        if let Some(cell) = kept.cells.get(&key).and_then(Weak::upgrade) {
            return cell;
        }
        if kept.cells.len() == kept.cells.capacity() {
            // Before the table grows, so that dead entries cost nothing on average.
            kept.cells.retain(|_, cell| cell.strong_count() > 0);
        }
        let cell = Arc::default();
        kept.cells.insert(key, Arc::downgrade(&cell));
        cell
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn key(cursor: usize) -> PageKey {
        PageKey {
            viewer: Viewer::Public,
            cursor: Some(cursor.to_string()),
            audience: false,
        }
    }

    /// Asks as so many subscribers at once; returns how many pages were made, and what they hold.
    async fn made(
        pages: &Arc<Pages>,
        version: u64,
        subscribers: usize,
        cursors: usize,
    ) -> (usize, Vec<HeldPage>) {
        let count = Arc::new(AtomicUsize::new(0));
        let ask = |subscriber: usize| {
            let (pages, count) = (Arc::clone(pages), Arc::clone(&count));
            tokio::spawn(async move {
                let make = || async {
                    count.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    let event = Bytes::from(format!("{version} {}", subscriber % cursors));
                    Ok::<_, Infallible>(SharedPage {
                        event,
                        cursor_after: None,
                    })
                };
                let Ok(held) = pages.get(version, key(subscriber % cursors), make).await;
                let expected = format!("{version} {}", subscriber % cursors);
                assert_eq!(held.page.event, expected);
                held
            })
        };
        let asked: Vec<_> = (0..subscribers).map(ask).collect();
        let mut held = Vec::new();
        for task in asked {
            held.push(task.await.expect("a subscriber"));
        }
        (count.load(Ordering::Relaxed), held)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_subscribers_share_one_page_for_each_view_and_cursor() {
        let pages = Arc::new(Pages::default());
        let (count, held) = made(&pages, 1, 1000, 1).await;
        assert_eq!(count, 1);
        assert_eq!(made(&pages, 1, 1000, 1).await.0, 0, "it is held");
        drop(held);
        assert_eq!(made(&pages, 1, 1, 1).await.0, 1, "it was given up");
        let (count, newer) = made(&pages, 2, 1000, 3).await;
        assert_eq!(count, 3, "a commit makes new ones");
        assert_eq!(
            made(&pages, 1, 10, 1).await.0,
            10,
            "an old one is not shared"
        );
        assert_eq!(made(&pages, 2, 10, 3).await.0, 0);
        drop(newer);
    }

    #[tokio::test]
    async fn subscribers_that_left_leave_nothing_behind() {
        let pages = Arc::new(Pages::default());
        for cursor in 0..10_000 {
            let make = || async {
                Ok::<_, Infallible>(SharedPage {
                    event: Bytes::from_static(b"page"),
                    cursor_after: None,
                })
            };
            let Ok(held) = pages.get(1, key(cursor), make).await;
            drop(held);
        }
        let kept = pages.0.lock().unwrap();
        assert!(kept.cells.capacity() < 100, "{}", kept.cells.capacity());
    }

    #[tokio::test]
    async fn a_page_is_made_for_its_view_alone_and_a_failure_is_not_kept() {
        let pages = Pages::default();
        let page = |text: &'static str| SharedPage {
            event: Bytes::from(text),
            cursor_after: None,
        };
        let failed = pages
            .get(1, key(1), || async { Err::<SharedPage, _>("no") })
            .await;
        assert_eq!(failed.map(|held| held.page), Err("no"));
        let own = pages
            .get(1, key(1), || async { Ok::<_, &str>(page("public")) })
            .await;
        assert_eq!(own.map(|held| held.page), Ok(page("public")));
        let operator = PageKey {
            viewer: Viewer::operator(),
            ..key(1)
        };
        let other = pages
            .get(1, operator, || async { Ok::<_, &str>(page("operator")) })
            .await;
        assert_eq!(other.map(|held| held.page), Ok(page("operator")));
        let audience = PageKey {
            audience: true,
            ..key(1)
        };
        let other = pages
            .get(1, audience, || async { Ok::<_, &str>(page("audience")) })
            .await;
        assert_eq!(other.map(|held| held.page), Ok(page("audience")));
    }
}
