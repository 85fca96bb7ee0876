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
    if let Some(path) = root.unknown_field(&["person_id", "write", "expires_at"])? {
        return Err(Fault::new(
            Code::UnknownField,
            path,
            "is not one of person_id, write, expires_at",
        ));
    }
    let person = root.field("person_id")?.text()?;
    let write = root
        .optional("write")?
        .map(|node| node.boolean())
        .transpose()?
        .unwrap_or(false);
    let expires_at = root
        .optional("expires_at")?
        .map(|node| read_later_time(&node, now))
        .transpose()?;
    Ok(TokenRequest {
        person,
        write,
        expires_at,
    })
}

/// Reads a time in the future.
fn read_later_time(node: &Node<'_>, now: Timestamp) -> Result<Timestamp, Fault> {
    let format = || {
        Fault::new(
            Code::TimeFormat,
            node.path.clone(),
            "must be a time such as 2026-11-15T09:00:00Z",
        )
    };
    let time = WorldTime::parse(node.text()?).ok_or_else(format)?;
    let stamp = u64::try_from(time.unix_ms())
        .map(Timestamp)
        .ok()
        .filter(|stamp| *stamp > now);
    stamp.ok_or_else(|| node.fault("is over already"))
}

/// Revokes a token: from now on it opens nothing.
#[utoipa::path(delete, path = "/v1/worlds/{world}/tokens/{token}", tag = "tokens",
    params(("world" = String, Path), ("token" = String, Path)),
    responses((status = 204, description = "It counts no more")))]
pub(crate) async fn revoke(
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
    Named(named): Named,
) -> Result<StatusCode, ApiError> {
    let text = named.get("token").map(String::as_str).unwrap_or_default();
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
