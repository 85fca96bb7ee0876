//! The status page at `/`: plain HTML that loads nothing else.
//!
//! All text of callers is escaped. The page's policy also forbids scripts and requests, so a mistake
//! in the escaping would have no effect. The link `/?token=…` sets the cookie.

use std::fmt::{self, Display, Write as _};
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, SET_COOKIE,
    WWW_AUTHENTICATE,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use turnkeep_wire::json;

use super::extract::Query;
use super::query::{ContextsQuery, StatusQuery};
use super::{contexts, stats};
use crate::shared::Shared;

/// Contexts that the page shows.
const LATEST_CONTEXTS: usize = 12;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

const STYLE: &str = include_str!("status_page.css");

/// The status page; with `token`, the link that opens it.
#[utoipa::path(get, path = "/", tag = "server",
    params(
        ("token" = Option<String>, Query, description = "The token; a right one sets the cookie"),
        ("all" = Option<bool>, Query, description = "`1` also lists and counts the contexts of worlds"),
    ),
    responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
        (status = 401, description = "Where to get the token", body = String, content_type = "text/html"),
        (status = 303, description = "The token was right: the cookie is set"),
    ))]
pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<StatusQuery>,
) -> Response {
    match query.token {
        None => html_response(StatusCode::OK, &status_html(&shared, query.all)),
        Some(_) if shared.gate.is_off() => redirect_home(None),
        Some(token) => match shared.gate.cookie_for(&token) {
            Some(cookie) => redirect_home(Some(cookie)),
            None => locked_page(),
        },
    }
}

/// The page for a browser without the token.
pub(crate) fn locked_page() -> Response {
    let body = "<main><h1>Turnkeep</h1><p class=lead>This page needs the token. Open the link that \
        <code>turnkeep up</code> printed when it started.</p></main>";
    (
        [(WWW_AUTHENTICATE, "Bearer")],
        html_response(StatusCode::UNAUTHORIZED, body),
    )
        .into_response()
}

fn redirect_home(cookie: Option<String>) -> Response {
    let fixed = [
        (LOCATION, "/"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    // The token must not stay in the address bar, so the browser is sent to `/` without it.
    let mut response = (StatusCode::SEE_OTHER, fixed).into_response();
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

fn html_response(status: StatusCode, body: &str) -> Response {
    let text = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Turnkeep</title>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\"><style>{STYLE}</style></head>\
         <body>{body}</body></html>"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, text).into_response()
}

fn status_html(shared: &Shared, all: bool) -> String {
    let stats = stats::read_stats(shared);
    let (word, class) = if stats.poisoned {
        ("read only", "bad")
    } else {
        ("serving", "good")
    };
    let header = format!(
        "<header><h1>Turnkeep</h1><span class=version>{}</span><span class=\"state {class}\">{word}</span></header>",
        Escaped(&stats.version)
    );
    let counted = Counted {
        contexts: counted_contexts(&stats, all),
        all,
    };
    let tiles = tiles_html(&stats, counted);
    let settings = settings_html(shared);
    let contexts = contexts_html(shared, counted);
    format!("<main>{header}{tiles}{settings}{contexts}{FOOTER}</main>")
}

const FOOTER: &str = "<footer><a href=\"/openapi.json\">OpenAPI</a><a href=\"/metrics\">Metrics</a>\
    <a href=\"/v1/stats\">Stats</a><a href=\"/v1/contexts\">Contexts</a>\
    <a href=\"/v1/registry/types\">Types</a></footer>";

/// Which contexts the page shows, and how many there are of them.
#[derive(Clone, Copy)]
struct Counted {
    contexts: u64,
    /// Whether those of worlds are among them.
    all: bool,
}

fn counted_contexts(stats: &json::Stats, all: bool) -> u64 {
    if all {
        stats.contexts
    } else {
        stats.contexts.saturating_sub(stats.world_contexts)
    }
}

fn tiles_html(stats: &json::Stats, counted: Counted) -> String {
    let tile =
        |name: &str, value: &dyn Display| format!("<div><dt>{name}</dt><dd>{value}</dd></div>");
    let rows = [
        tile("turns", &Grouped(stats.turns)),
        tile("contexts", &Grouped(counted.contexts)),
        tile("blobs", &Grouped(stats.blobs)),
        tile("types", &Grouped(stats.types)),
        tile("payloads", &Size(stats.blob_raw_bytes)),
        tile("kept as", &Size(stats.blob_stored_bytes)),
        tile("log", &Size(stats.log_bytes)),
        tile("connections", &Grouped(stats.connections)),
    ];
    format!("<dl class=tiles>{}</dl>", rows.concat())
}

fn settings_html(shared: &Shared) -> String {
    let config = &shared.config;
    let tls = if config.tls.is_some() { " · TLS" } else { "" };
    let auth = if shared.gate.is_off() {
        "nobody is asked for a token"
    } else {
        "token"
    };
    let strict = if config.strict_types {
        "only published types"
    } else {
        "any type"
    };
    let rows = [
        ("Data directory", absolute_path(&config.data_dir)),
        ("Binary protocol", format!("{}{tls}", shared.addrs.tcp)),
        ("HTTP", format!("{}{tls}", shared.addrs.http)),
        ("Access", auth.to_owned()),
        ("Appends", strict.to_owned()),
    ];
    let rows = rows.map(|(name, value)| {
        format!(
            "<tr><th>{name}</th><td><code>{}</code></td></tr>",
            Escaped(&value)
        )
    });
    format!("<table class=places>{}</table>", rows.concat())
}

fn absolute_path(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

fn contexts_html(shared: &Shared, counted: Counted) -> String {
    let query = ContextsQuery {
        limit: LATEST_CONTEXTS,
        before: None,
        labels: Vec::new(),
        worlds: counted.all,
    };
    let rows: Vec<_> = contexts::make_page(shared, &query)
        .contexts
        .iter()
        .map(context_row)
        .collect();
    if rows.is_empty() {
        return "<h2>Latest contexts</h2><p class=lead>None yet. <code>turnkeep ctx new</code> makes one.</p>".into();
    }
    let cut = if counted.contexts > rows.len() as u64 {
        let (shown, contexts) = (rows.len(), Grouped(counted.contexts));
        format!(
            "<p>The newest {shown} of {contexts} are shown. <code>turnkeep ctx list</code> lists more.</p>"
        )
    } else {
        String::new()
    };
    format!(
        "<h2>Latest contexts</h2><div class=scroll><table class=contexts><thead><tr><th>context</th><th>head</th><th>depth</th>\
         <th>created</th><th>labels</th></tr></thead><tbody>{}</tbody></table></div>{cut}",
        rows.concat()
    )
}

fn context_row(context: &json::Context) -> String {
    let labels = context.labels.iter().map(|(key, value)| {
        format!(
            "<span class=label>{}<b>{}</b></span>",
            Escaped(key),
            Escaped(value)
        )
    });
    let (id, head) = (context.context_id, context.head_turn_id);
    let head = match head.turn() {
        Some(turn) if context.head_lost => format!("turn:{turn} (lost)"),
        Some(turn) => format!("turn:{turn}"),
        None if context.creation_lost => "unknown: its creation was lost".to_owned(),
        None => "-".to_owned(),
    };
    format!(
        "<tr><td><a href=\"/v1/contexts/{id}/turns\">ctx:{id}</a></td><td>{head}</td><td>{}</td>\
         <td>{}</td><td>{}</td></tr>",
        context.head_depth,
        context.created_at,
        labels.collect::<String>()
    )
}

/// Text in which every character with a meaning in HTML is escaped.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// A number in groups of three digits.
struct Grouped(u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                // A narrow space at which no line breaks.
                f.write_char('\u{202f}')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// A number of bytes in the largest unit in which it is at least 1.
struct Size(u64);

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        // 1024 is 2 to the 10th, so each unit is ten binary places.
        let power = self.0.checked_ilog2().unwrap_or(0) / 10;
        let place = (power as usize).checked_sub(1);
        let Some(unit) = place.and_then(|place| units.get(place)) else {
            return write!(f, "{} B", self.0);
        };
        // In integers, because a double cannot hold all 64 bits. Cut, not rounded: 1023.99 KiB must
        // not become 1024.0 KiB.
        let tenths = (u128::from(self.0) * 10) >> (10 * power);
        write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_escaped() {
        let hostile = "<script>alert('x')</script>&\"";
        let expect = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;";
        assert_eq!(Escaped(hostile).to_string(), expect);
    }

    #[test]
    fn numbers_read_well() {
        fn check(number: u64, grouped: &str, size: &str) {
            assert_eq!(
                Grouped(number).to_string().replace('\u{202f}', " "),
                grouped
            );
            assert_eq!(Size(number).to_string(), size);
        }
        check(0, "0", "0 B");
        check(999, "999", "999 B");
        check(1024, "1 024", "1.0 KiB");
        check(1_234_567, "1 234 567", "1.1 MiB");
        check(u64::MAX, "18 446 744 073 709 551 615", "15.9 EiB");
    }
}
