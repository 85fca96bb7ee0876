//! Reads a context's whole history, newest first, one page at a time.

use std::vec;

use turnkeep_types::{ContextId, TurnId};
use turnkeep_wire::message::{GetBefore, Item, ReadOptions};

use crate::client::Client;
use crate::error::Error;

/// How many turns one request fetches. A page over the server's byte limit has fewer.
const PAGE_TURNS: u32 = 256;

/// The turns from the head back to the root. The first page fixes the path; later appends do not
/// change it.
pub struct History {
    client: Client,
    context: ContextId,
    options: ReadOptions,
    page: vec::IntoIter<Item>,
    next: NextPage,
}

/// Where the next page starts.
#[derive(Debug, Clone, Copy)]
enum NextPage {
    Head,
    Before(TurnId),
    Done,
}

impl History {
    pub(crate) fn new(client: Client, context: ContextId, options: ReadOptions) -> Self {
        Self {
            client,
            context,
            options,
            page: Vec::new().into_iter(),
            next: NextPage::Head,
        }
    }

    /// Returns the next older turn; `None` after the root.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        if let Some(item) = self.page.next_back() {
            return Ok(Some(item));
        }
        let before = match self.next {
            NextPage::Done => return Ok(None),
            NextPage::Head => None,
            NextPage::Before(turn) => Some(turn),
        };
        let get = GetBefore {
            context: self.context,
            before,
            limit: PAGE_TURNS,
            options: self.options,
        };
        let items = self.client.before(get).await?;
        // A page ascends: its first turn is the oldest, and the turns are returned from its end.
        self.next = match items.first() {
            Some(oldest) => find_next_page(before, oldest)?,
            None => NextPage::Done,
        };
        self.page = items.into_iter();
        Ok(self.page.next_back())
    }
}

/// Finds the start of the page before the one that begins with `oldest`. Ids ascend from parent to
/// child; a server that breaks this would make the caller loop for ever.
fn find_next_page(before: Option<TurnId>, oldest: &Item) -> Result<NextPage, Error> {
    if let Some(before) = before.filter(|before| oldest.turn >= *before) {
        return Err(Error::OutOfOrder {
            what: "older turn",
            number: oldest.turn.get(),
            after: before.get(),
        });
    }
    Ok(if oldest.parent.is_some() {
        NextPage::Before(oldest.turn)
    } else {
        NextPage::Done
    })
}
