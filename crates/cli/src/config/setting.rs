//! One value with its source, and the order in which the sources are searched.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_store::Durability;

use super::Environment;
use crate::failure::Failure;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A command-line flag.
    Flag(String),
    /// An environment variable.
    Environment(String),
    /// The configuration file.
    File(PathBuf),
    /// No source has the setting.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag --{name}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

impl<T> Setting<T> {
    pub(crate) fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }

    /// The row of `config show`.
    pub(crate) fn to_row(&self, name: &'static str) -> SettingRow
    where
        T: serde::Serialize,
    {
        SettingRow {
            name,
            value: json!(self.value),
            source: self.source.clone(),
        }
    }

    pub(crate) fn as_ref(&self) -> Setting<&T> {
        Setting {
            value: &self.value,
            source: self.source.clone(),
        }
    }

    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Setting<U> {
        Setting {
            value: f(self.value),
            source: self.source,
        }
    }
}

/// One line of `config show`.
#[derive(Debug)]
pub(crate) struct SettingRow {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
    pub(crate) source: Source,
}

/// The value of the first source that has the setting, or none.
pub(super) struct FoundSetting<T>(Option<Setting<T>>);

impl<T> FoundSetting<T> {
    pub(super) fn or(self, default: T) -> Setting<T> {
        self.0
            .unwrap_or_else(|| Setting::new(default, Source::Default))
    }

    pub(super) fn or_else(self, default: impl FnOnce() -> Result<T>) -> Result<Setting<T>> {
        match self.0 {
            Some(said) => Ok(said),
            None => Ok(Setting::new(default()?, Source::Default)),
        }
    }

    pub(super) fn optional(self) -> Setting<Option<T>> {
        self.0
            .map_or(Setting::new(None, Source::Default), |said| said.map(Some))
    }
}

/// The places to search after the flags.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) env: Environment<'a>,
    pub(super) file: &'a Path,
}

impl Sources<'_> {
    /// A value that is any text.
    pub(super) fn find_text(
        self,
        name: &str,
        flag: Option<String>,
        file: Option<String>,
    ) -> FoundSetting<String> {
        let variable = variable_name(name);
        let flag = flag.map(|value| Setting::new(value, Source::Flag(name.to_owned())));
        let env = || {
            (self.env)(&variable)
                .map(|value| Setting::new(value, Source::Environment(variable.clone())))
        };
        let file = || file.map(|value| Setting::new(value, Source::File(self.file.to_owned())));
        FoundSetting(flag.or_else(env).or_else(file))
    }

    /// A value that `parse` reads from the environment and the file.
    pub(super) fn find_with<T, E: fmt::Display>(
        self,
        name: &str,
        flag: Option<T>,
        file: Option<String>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<FoundSetting<T>> {
        // clap has parsed the flag already, with the same function.
        if let Some(value) = flag {
            return Ok(FoundSetting(Some(Setting::new(
                value,
                Source::Flag(name.to_owned()),
            ))));
        }
        let Some(said) = self.find_text(name, None, file).0 else {
            return Ok(FoundSetting(None));
        };
        match parse(&said.value) {
            Ok(value) => Ok(FoundSetting(Some(Setting::new(value, said.source)))),
            Err(error) => Err(Failure::usage(format!(
                "{} sets {name} to `{}`: {error}",
                said.source, said.value
            ))
            .into()),
        }
    }

    pub(super) fn find_parsed<T>(
        self,
        name: &str,
        flag: Option<T>,
        file: Option<String>,
    ) -> Result<FoundSetting<T>>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        self.find_with(name, flag, file, str::parse)
    }

    pub(super) fn find_path(
        self,
        name: &str,
        flag: Option<PathBuf>,
        file: Option<String>,
    ) -> Result<FoundSetting<PathBuf>> {
        self.find_parsed(name, flag, file)
    }

    /// A switch: the flag can only turn it on.
    pub(super) fn find_switch(
        self,
        name: &str,
        flag: bool,
        file: Option<bool>,
    ) -> Result<Setting<bool>> {
        let file = file.map(|on| on.to_string());
        Ok(self
            .find_with(name, flag.then_some(true), file, parse_switch)?
            .or(false))
    }

    /// A list: flags are repeated, the environment separates by commas.
    pub(super) fn find_list(
        self,
        name: &str,
        flag: &[String],
        file: Option<Vec<String>>,
    ) -> Setting<Vec<String>> {
        if !flag.is_empty() {
            return Setting::new(flag.to_vec(), Source::Flag(name.to_owned()));
        }
        let variable = variable_name(name);
        if let Some(value) = (self.env)(&variable) {
            let items = value
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            return Setting::new(
                items.map(str::to_owned).collect(),
                Source::Environment(variable),
            );
        }
        match file {
            Some(items) => Setting::new(items, Source::File(self.file.to_owned())),
            None => Setting::new(Vec::new(), Source::Default),
        }
    }
}

fn variable_name(name: &str) -> String {
    format!(
        "TURNKEEP_{}",
        name.replace(['-', '.'], "_").to_ascii_uppercase()
    )
}

/// Reads an address to listen on.
pub(super) fn parse_addr(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:9010")
}

/// Reads a durability by its name.
pub(super) fn parse_durability(text: &str) -> Result<Durability, String> {
    match text {
        "fsync" => Ok(Durability::Fsync),
        "os" => Ok(Durability::Os),
        _ => Err("expected fsync or os".to_owned()),
    }
}

fn parse_switch(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("expected true or false"),
    }
}

/// A durability's name.
pub(crate) fn durability_text(durability: Durability) -> &'static str {
    match durability {
        Durability::Fsync => "fsync",
        Durability::Os => "os",
    }
}
