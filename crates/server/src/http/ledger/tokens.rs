//! Mints, lists and revokes persons' tokens; for the owner only.
//!
//! A secret has 256 random bits. The server shows it once, in the answer to the request that mints
//! it. The server records only the BLAKE3 hash of the secret and never logs the secret.

use axum::Json;
use axum::http::StatusCode;
use turnkeep_ledger::fact::{Fact, Token};
use turnkeep_ledger::ids::TokenId;
use turnkeep_ledger::json::Node;
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{Code, Fault};
use turnkeep_types::Timestamp;
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::acting_caller::{ActingCaller, Named, person_named};
use super::body;
use super::shapes::{minted_token_shape, token_shape};
use crate::error::ApiError;
use crate::ledger::token_text;

/// Lists the tokens that count, without their secrets.
#[utoipa::path(get, path = "/v1/worlds/{world}/tokens", tag = "tokens", params(("world" = String, Path)),
    responses((status = 200, description = "Oldest first", body = wire::ledger::TokenList)))]
pub(crate) async fn list(
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
) -> Json<wire::ledger::TokenList> {
    let mut tokens: Vec<Token> = acting
        .handle
        .read(|world| world.tokens().cloned().collect());
    // A map of tokens has no order, and two may have been minted in one millisecond.
    tokens.sort_by_key(|token| (token.created_at, token.id));
    Json(wire::ledger::TokenList {
        tokens: tokens.iter().map(token_shape).collect(),
    })
}

/// Mints a token for a person. Its secret is in this answer and nowhere else.
#[utoipa::path(post, path = "/v1/worlds/{world}/tokens", tag = "tokens", params(("world" = String, Path)),
    request_body = wire::ledger::MintToken,
    responses((status = 201, description = "The token with its secret", body = wire::ledger::MintedToken)))]
pub(crate) async fn mint(
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
    body: body::Json,
) -> Result<(StatusCode, Json<wire::ledger::MintedToken>), ApiError> {
    let now = acting.handle.now();
    let request = read_token_request(&body.root(Code::ConfigInvalid), now)?;
    let mut ids = acting.handle.ids();
    let secret = token_text(acting.handle.name(), &mut ids);
    let token = Token {
        id: TokenId(ids.draw()),
        person: person_named(&acting.handle, request.person)?,
        write: request.write,
        created_at: now,
        expires_at: request.expires_at,
        secret: *blake3::hash(secret.as_bytes()).as_bytes(),
    };
    let minted = minted_token_shape(&token, secret);
    acting.handle.record(vec![Fact::Token(token)]).await?;
    Ok((StatusCode::CREATED, Json(minted)))
}

/// A request for a token.
struct TokenRequest<'a> {
    person: &'a str,
    write: bool,
    expires_at: Option<Timestamp>,
}

fn read_token_request<'a>(root: &Node<'a>, now: Timestamp) -> Result<TokenRequest<'a>, Fault> {
    root.reject_unknown_fields(&["person_id", "write", "expires_at"])?;
    let person = root.field("person_id")?.text()?;
    let write = root.read_optional("write", |node| node.boolean())?;
    Ok(TokenRequest {
        person,
        write: write.unwrap_or(false),
        expires_at: root.read_optional("expires_at", |node| read_later_time(&node, now))?,
    })
}

/// Reads a time in the future.
fn read_later_time(node: &Node<'_>, now: Timestamp) -> Result<Timestamp, Fault> {
    let Some(time) = WorldTime::parse(node.text()?) else {
        let message = "must be a time such as 2026-11-15T09:00:00Z";
        return Err(Fault::new(Code::TimeFormat, node.path.clone(), message));
    };
    // A time before 1970 is negative, and as much over as any other past time.
    match u64::try_from(time.unix_ms()) {
        Ok(stamp) if Timestamp(stamp) > now => Ok(Timestamp(stamp)),
        _ => Err(node.fault("is over already")),
    }
}

/// Revokes a token: from now on it opens nothing.
#[utoipa::path(delete, path = "/v1/worlds/{world}/tokens/{token}", tag = "tokens",
    params(("world" = String, Path), ("token" = String, Path)),
    responses((status = 204, description = "It counts no more")))]
pub(crate) async fn revoke(
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
    named: Named,
) -> Result<StatusCode, ApiError> {
    let text = named.segment("token");
    let id = text
        .parse::<TokenId>()
        .ok()
        .filter(|id| acting.handle.read(|world| world.token(*id).is_some()));
    let id = id.ok_or_else(|| {
        let message = format!("there is no token `{text}` in {}", acting.handle.name());
        Fault::new(Code::NotFound, "", message)
    })?;
    acting.handle.record(vec![Fact::Revoked(id)]).await?;
    Ok(StatusCode::NO_CONTENT)
}
