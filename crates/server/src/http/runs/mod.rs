//! The routes of runs: `/api`. This file is their table; the handlers have a file per resource.
//!
//! All of them are the owner's. A request is read into a command of the runtime, and the answer is
//! made from the run's state after the decision. A repeated request with the same idempotency key
//! changes nothing and gets the answer that the state gives now.

mod approvals;
mod archive;
mod artifacts;
mod changes;
mod config_files;
mod directories;
mod edges;
mod events;
mod nodes;
mod parts;
mod providers;
mod run_list;
mod schemas;
mod verification;
mod views;
pub(crate) mod ws;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::shared::Shared;

/// Every route of runs.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(run_list::list, run_list::create))
        .routes(routes!(run_list::show, run_list::change, run_list::delete))
        .routes(routes!(run_list::dismiss))
        .routes(routes!(archive::fork))
        .routes(routes!(archive::export))
        .routes(routes!(archive::import))
        .routes(routes!(archive::record))
        .routes(routes!(events::page))
        .routes(routes!(nodes::create))
        .routes(routes!(nodes::change, nodes::delete))
        .routes(routes!(nodes::act))
        .routes(routes!(edges::create))
        .routes(routes!(edges::delete))
        .routes(routes!(nodes::chat))
        .routes(routes!(nodes::hand_off))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::resolve))
        .routes(routes!(approvals::list_rules))
        .routes(routes!(approvals::delete_rule))
        .routes(routes!(views::attention))
        .routes(routes!(views::why))
        .routes(routes!(artifacts::list))
        .routes(routes!(artifacts::show))
        .routes(routes!(changes::apply))
        .routes(routes!(verification::verify))
        .routes(routes!(changes::act_on_turn))
        .routes(routes!(providers::list))
        .routes(routes!(config_files::list_roles))
        .routes(routes!(
            config_files::show_role,
            config_files::put_role,
            config_files::delete_role
        ))
        .routes(routes!(config_files::list_teams))
        .routes(routes!(
            config_files::show_team,
            config_files::put_team,
            config_files::delete_team
        ))
        .routes(routes!(directories::list_directory))
        .routes(routes!(schemas::list))
        .routes(routes!(schemas::show))
}
