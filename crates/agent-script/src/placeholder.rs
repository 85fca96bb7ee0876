//! Placeholders in a script's texts: `{{result.nodeId}}` stands for a value that a turn met.
//!
//! Example: with `result = {"nodeId": "n7"}`, the text `ask {{result.nodeId}}` becomes `ask n7`. A
//! text value is inserted as it is, any other value as JSON. Braces that hold anything else than a
//! dotted name stay as they are, so that most source code needs no escape.

use serde_json::Value;

/// Replaces each placeholder by what `look_up` returns for its dotted name.
pub(crate) fn fill_placeholders<E>(
    text: &str,
    mut look_up: impl FnMut(&str) -> Result<String, E>,
) -> Result<String, E> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        match after.split_once("}}") {
            Some((name, tail)) if is_dotted_name(name) => {
                filled.push_str(&look_up(name)?);
                rest = tail;
            }
            // Only the braces are passed over: `{{ {{prompt}}` has a placeholder behind them.
            _ => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The value at a path such as `items.0.id`.
pub(crate) fn find_value<'v>(mut value: &'v Value, path: &str) -> Option<&'v Value> {
    for part in path.split('.').filter(|part| !part.is_empty()) {
        value = match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            other => other.get(part)?,
        };
    }
    Some(value)
}

/// How a value appears in a text.
pub(crate) fn show_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_dotted_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expect: &str) {
        let value = json!({"id": "n7", "list": [1, {"x": true}]});
        let filled = fill_placeholders(text, |name| {
            let path = name.strip_prefix("result").ok_or(format!("? {name}"))?;
            find_value(&value, path)
                .map(show_value)
                .ok_or(format!("no {name}"))
        });
        assert_eq!(filled.unwrap_or_else(|error| error), expect, "{text}");
    }

    #[test]
    fn dotted_names_are_replaced_and_other_braces_stay() {
        check("plain", "plain");
        check("to {{result.id}}!", "to n7!");
        check("{{result.list.1.x}}{{result.list.0}}", "true1");
        check("{{result.list}}", r#"[1,{"x":true}]"#);
        check("{{ result.id }} {{}} {{", "{{ result.id }} {{}} {{");
        check("println!(\"{{}}\")", "println!(\"{{}}\")");
        check("{{result.nope}}", "no result.nope");
        check("{{other}}", "? other");
    }
}
