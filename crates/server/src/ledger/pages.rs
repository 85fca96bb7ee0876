//! Pages of streams that many subscribers ask for at the same time.
//!
//! After a commit every subscriber of a world asks for the page behind its cursor, and most cursors
//! are equal. The first subscriber makes the page; the others wait for it and get the same bytes. A
//! page is valid for one version of the world: every commit begins a new version and drops the
//! pages of the last one.
//!
//! Pages are kept by view, so a subscriber only ever gets a page of its own view. A page that could
//! not be made is not kept: the next subscriber tries again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::OnceCell;
use turnkeep_ledger::Viewer;

/// Pages that are kept. Subscribers who are far behind ask for different pages, which are large;
/// beyond this number these are made without being kept.
const PAGES_MAX: usize = 64;

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

type Cell = Arc<OnceCell<SharedPage>>;

/// The pages of one version of a world.
#[derive(Debug, Default)]
struct Kept {
    version: u64,
    pages: HashMap<PageKey, Cell>,
}

/// The pages of a world that are shared.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<Kept>);

impl Pages {
    /// The page of this version of the world; made by `make` unless somebody else makes it or did.
    pub(crate) async fn get<E, F>(
        &self,
        version: u64,
        key: PageKey,
        make: impl FnOnce() -> F,
    ) -> Result<SharedPage, E>
    where
        F: Future<Output = Result<SharedPage, E>>,
    {
        match self.cell(version, key) {
            Some(cell) => cell.get_or_try_init(make).await.cloned(),
            None => make().await,
        }
    }

    /// The place of a page; none where there are too many, or a newer version has begun.
    fn cell(&self, version: u64, key: PageKey) -> Option<Cell> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.version < version {
            kept.version = version;
            kept.pages.clear();
        }
        let is_current = kept.version == version;
        if !is_current || kept.pages.len() >= PAGES_MAX && !kept.pages.contains_key(&key) {
            return None;
        }
        Some(Arc::clone(kept.pages.entry(key).or_default()))
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

    /// Asks as so many subscribers at once and tells how many pages were made.
    async fn made(pages: &Arc<Pages>, version: u64, subscribers: usize, cursors: usize) -> usize {
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
                let Ok(page) = pages.get(version, key(subscriber % cursors), make).await;
                assert_eq!(page.event, format!("{version} {}", subscriber % cursors));
            })
        };
        let asked: Vec<_> = (0..subscribers).map(ask).collect();
        for task in asked {
            task.await.expect("a subscriber");
        }
        count.load(Ordering::Relaxed)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_subscribers_share_one_page_for_each_view_and_cursor() {
        let pages = Arc::new(Pages::default());
        assert_eq!(made(&pages, 1, 1000, 1).await, 1);
        assert_eq!(made(&pages, 1, 1000, 1).await, 0, "it is kept");
        assert_eq!(made(&pages, 2, 1000, 3).await, 3, "a commit makes new ones");
        assert_eq!(
            made(&pages, 1, 10, 1).await,
            10,
            "an older version is nobody else's"
        );
        assert_eq!(made(&pages, 3, 1000, 1000).await, 1000);
        assert_eq!(pages.0.lock().unwrap().pages.len(), PAGES_MAX);
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
        assert_eq!(failed, Err("no"));
        let own = pages
            .get(1, key(1), || async { Ok::<_, &str>(page("public")) })
            .await;
        assert_eq!(own, Ok(page("public")));
        let operator = PageKey {
            viewer: Viewer::operator(),
            ..key(1)
        };
        let other = pages
            .get(1, operator, || async { Ok::<_, &str>(page("operator")) })
            .await;
        assert_eq!(other, Ok(page("operator")));
        let audience = PageKey {
            audience: true,
            ..key(1)
        };
        let other = pages
            .get(1, audience, || async { Ok::<_, &str>(page("audience")) })
            .await;
        assert_eq!(other, Ok(page("audience")));
    }
}
