//! The notation of `testdata/payloads`: values in JSON that say exactly which msgpack they are.

use rmp::encode::buffer::ByteBuf;
use rmp::encode::{
    write_array_len, write_bin, write_bool, write_f32, write_f64, write_map_len, write_nil,
    write_sint, write_str, write_uint,
};
use serde_json::{Map, Value};

/// A map's key, in the order in which maps are written.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Bool(bool),
    Int(i128),
    Text(&'a str),
    Bytes(Vec<u8>),
}

/// The msgpack of a value.
pub(crate) fn encode(value: &Value) -> Vec<u8> {
    let mut out = ByteBuf::new();
    push(&mut out, value);
    out.into_vec()
}

fn push(out: &mut ByteBuf, value: &Value) {
    match value {
        Value::Null => write_nil(out).unwrap(),
        Value::Bool(flag) => write_bool(out, *flag).unwrap(),
        Value::Number(number) => push_int(out, number.as_i64().unwrap().into()),
        Value::String(text) => write_str(out, text).unwrap(),
        Value::Array(values) => {
            write_array_len(out, count(values.len())).unwrap();
            for value in values {
                push(out, value);
            }
        }
        Value::Object(members) if is_tagged(members) => push_tagged(out, members),
        Value::Object(members) => push_word(out, members),
    }
}

/// Whether an object stands for a map of tags.
pub(crate) fn is_tagged(members: &Map<String, Value>) -> bool {
    members
        .keys()
        .all(|key| key.bytes().all(|byte| byte.is_ascii_digit()))
}

fn push_tagged(out: &mut ByteBuf, members: &Map<String, Value>) {
    let mut tags: Vec<(u64, &Value)> = members
        .iter()
        .map(|(tag, value)| (tag.parse().unwrap(), value))
        .collect();
    tags.sort_by_key(|(tag, _)| *tag);
    write_map_len(out, count(tags.len())).unwrap();
    for (tag, value) in tags {
        write_uint(out, tag).unwrap();
        push(out, value);
    }
}

fn push_word(out: &mut ByteBuf, members: &Map<String, Value>) {
    let (word, value) = members.iter().next().unwrap();
    assert_eq!(members.len(), 1, "{members:?} has one word");
    match word.as_str() {
        "int" => push_int(out, value.as_str().unwrap().parse().unwrap()),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the vectors hold singles here"
        )]
        "f32" => write_f32(out, float(value) as f32).unwrap(),
        "f64" => write_f64(out, float(value)).unwrap(),
        "bytes" => write_bin(out, &bytes(value)).unwrap(),
        "raw" => bytes(value)
            .into_iter()
            .for_each(|byte| out.as_mut_vec().push(byte)),
        "map" => push_map(out, value.as_array().unwrap()),
        other => panic!("{other} is no word of the notation"),
    }
}

fn push_map(out: &mut ByteBuf, entries: &[Value]) {
    let mut entries: Vec<&Value> = entries.iter().collect();
    entries.sort_by_key(|entry| key(&entry[0]));
    write_map_len(out, count(entries.len())).unwrap();
    for entry in entries {
        push(out, &entry[0]);
        push(out, &entry[1]);
    }
}

fn key(value: &Value) -> Key<'_> {
    match value {
        Value::Bool(flag) => Key::Bool(*flag),
        Value::Number(number) => Key::Int(number.as_i64().unwrap().into()),
        Value::String(text) => Key::Text(text),
        value if value["int"].is_string() => {
            Key::Int(value["int"].as_str().unwrap().parse().unwrap())
        }
        value => Key::Bytes(bytes(&value["bytes"])),
    }
}

fn push_int(out: &mut ByteBuf, number: i128) {
    match u64::try_from(number) {
        Ok(number) => drop(write_uint(out, number).unwrap()),
        Err(_) => drop(write_sint(out, number.try_into().unwrap()).unwrap()),
    }
}

fn float(value: &Value) -> f64 {
    match value.as_str() {
        None => value.as_f64().unwrap(),
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some(other) => panic!("{other} is no float"),
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

fn count(count: usize) -> u32 {
    count.try_into().unwrap()
}
