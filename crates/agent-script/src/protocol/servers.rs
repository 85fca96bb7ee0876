//! Where each protocol names the MCP server: in a file, in the configuration, in a request.
//!
//! The agent uses the first server that has an address. A token comes with it as a header, or by the
//! name of an environment variable; it never is an argument.

use std::path::Path;

use serde_json::{Value, json};

use super::text_of;
use crate::mcp::{Header, McpServer};

/// The first HTTP server of the `--mcp-config` arguments, each of which is a file or a JSON text.
pub(super) fn find_claude_server(configs: &[String]) -> Result<Option<McpServer>, String> {
    for config in configs {
        let text = if config.trim_start().starts_with('{') {
            config.clone()
        } else {
            let read = std::fs::read_to_string(Path::new(config));
            read.map_err(|error| format!("--mcp-config {config}: {error}"))?
        };
        let parsed: Result<Value, _> = serde_json::from_str(&text);
        let parsed = parsed.map_err(|error| format!("--mcp-config {config}: {error}"))?;
        if let Some(server) = read_claude_servers(&parsed) {
            return Ok(Some(server));
        }
    }
    Ok(None)
}

fn read_claude_servers(config: &Value) -> Option<McpServer> {
    let servers = config.get("mcpServers")?.as_object()?;
    servers.iter().find_map(|(name, server)| {
        let headers = server.get("headers").and_then(Value::as_object);
        let headers = headers.into_iter().flatten().filter_map(|(name, value)| {
            let value = expand_variables(value.as_str()?);
            Some(Header {
                name: name.clone(),
                value,
            })
        });
        Some(McpServer {
            name: name.clone(),
            url: expand_variables(text_of(server, "url")?),
            headers: headers.collect(),
        })
    })
}

/// Replaces `${NAME}` by the environment's value, as the real program does in this file.
fn expand_variables(text: &str) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, tail)) = after.split_once('}') else {
            break;
        };
        expanded.push_str(before);
        expanded.push_str(&std::env::var(name).unwrap_or_default());
        rest = tail;
    }
    expanded.push_str(rest);
    expanded
}

/// Reads `-c key=value` arguments into one tree. A value is TOML, or else a plain text.
pub(super) fn read_overrides(overrides: &[String]) -> Result<Value, String> {
    let mut flat = serde_json::Map::new();
    for text in overrides {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!("-c {text}: expected key=value"));
        };
        // Codex reads a value as TOML and falls back to plain text, so quotes may be missing.
        let parsed = format!("value = {value}").parse::<toml::Table>().ok();
        let parsed = parsed.and_then(|table| serde_json::to_value(table).ok());
        let parsed = parsed.and_then(|mut table| table.get_mut("value").map(Value::take));
        flat.insert(
            key.trim().to_owned(),
            parsed.unwrap_or_else(|| Value::from(value)),
        );
    }
    Ok(nest_keys(&Value::Object(flat)))
}

/// Turns `{"a.b": 1}` into `{"a": {"b": 1}}`: both forms name a setting.
pub(super) fn nest_keys(config: &Value) -> Value {
    let mut tree = serde_json::Map::new();
    for (key, value) in config.as_object().into_iter().flatten() {
        let mut place = &mut tree;
        let mut parts = key.split('.').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                place.insert(part.to_owned(), value.clone());
                break;
            }
            let entry = place.entry(part).or_insert_with(|| json!({}));
            // A later, more precise key replaces a plain value.
            if !entry.is_object() {
                *entry = json!({});
            }
            let Some(inner) = entry.as_object_mut() else {
                break;
            };
            place = inner;
        }
    }
    Value::Object(tree)
}

/// The first HTTP server of a configuration.
pub(super) fn find_codex_server(config: &Value) -> Option<McpServer> {
    let servers = config.get("mcp_servers")?.as_object()?;
    servers.iter().find_map(|(name, server)| {
        let given = server.get("http_headers").and_then(Value::as_object);
        let mut headers: Vec<Header> = given
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| {
                Some(Header {
                    name: name.clone(),
                    value: value.as_str()?.to_owned(),
                })
            })
            .collect();
        // The configuration names a variable, so that the token is not in the arguments.
        let variable = text_of(server, "bearer_token_env_var");
        if let Some(token) = variable.and_then(|variable| std::env::var(variable).ok()) {
            headers.push(Header {
                name: "Authorization".to_owned(),
                value: format!("Bearer {token}"),
            });
        }
        Some(McpServer {
            name: name.clone(),
            url: text_of(server, "url")?.to_owned(),
            headers,
        })
    })
}

/// A server of `session/new`. Only those with a `url` can be reached.
pub(super) fn read_acp_server(server: &Value) -> Option<McpServer> {
    let headers = server.get("headers").and_then(Value::as_array);
    let headers = headers.into_iter().flatten().filter_map(|header| {
        Some(Header {
            name: text_of(header, "name")?.to_owned(),
            value: text_of(header, "value")?.to_owned(),
        })
    });
    Some(McpServer {
        name: text_of(server, "name")?.to_owned(),
        url: text_of(server, "url")?.to_owned(),
        headers: headers.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_in_each_form_of_the_configuration() {
        let check = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
            let server = find_codex_server(&read_overrides(&overrides).unwrap()).unwrap();
            assert_eq!(
                (server.name.as_str(), server.url.as_str()),
                ("tk", "http://127.0.0.1:1/mcp")
            );
            server.headers.len()
        };
        assert_eq!(check(&["mcp_servers.tk.url=\"http://127.0.0.1:1/mcp\""]), 0);
        assert_eq!(
            check(&["mcp_servers.tk.url=http://127.0.0.1:1/mcp", "a=1"]),
            0
        );
        let table = "mcp_servers.tk={url=\"http://127.0.0.1:1/mcp\",http_headers={X=\"y\"}}";
        assert_eq!(check(&["model=\"m\"", table]), 1);
        assert!(read_overrides(&["nothing".to_owned()]).is_err());
        assert_eq!(
            find_codex_server(&json!({"mcp_servers": {"x": {"command": "y"}}})),
            None
        );
    }
}
