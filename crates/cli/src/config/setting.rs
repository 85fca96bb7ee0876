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
#[derive(Debug, Clone)]
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
        let found = flag_setting(name, flag)
            .or_else(|| self.variable(name))
            .or_else(|| self.file_setting(file));
        FoundSetting(found)
    }

    /// The value of the setting's environment variable.
    fn variable(self, name: &str) -> Option<Setting<String>> {
        let variable = variable_name(name);
        let value = (self.env)(&variable)?;
        Some(Setting::new(value, Source::Environment(variable)))
    }

    fn file_setting<T>(self, value: Option<T>) -> Option<Setting<T>> {
        value.map(|value| Setting::new(value, Source::File(self.file.to_owned())))
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
        if flag.is_some() {
            return Ok(FoundSetting(flag_setting(name, flag)));
        }
        let Some(Setting {
            value: text,
            source,
        }) = self.find_text(name, None, file).0
        else {
            return Ok(FoundSetting(None));
        };
        match parse(&text) {
            Ok(value) => Ok(FoundSetting(Some(Setting::new(value, source)))),
            Err(error) => {
                Failure::usage(format!("{source} sets {name} to `{text}`: {error}")).fail()
            }
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

    pub(super) fn find_optional_path(
        self,
        name: &str,
        flag: Option<&PathBuf>,
        file: Option<String>,
    ) -> Result<Setting<Option<PathBuf>>> {
        Ok(self.find_parsed(name, flag.cloned(), file)?.optional())
    }

    /// An address to listen on. By default only programs on this machine can reach it.
    pub(super) fn find_addr(
        self,
        name: &str,
        flag: Option<SocketAddr>,
        file: Option<String>,
        default_port: u16,
    ) -> Result<Setting<SocketAddr>> {
        let default = SocketAddr::from(([127, 0, 0, 1], default_port));
        Ok(self.find_with(name, flag, file, parse_addr)?.or(default))
    }

    /// A switch: the flag can only turn it on.
    pub(super) fn find_switch(
        self,
        name: &str,
        flag: bool,
        file: Option<bool>,
    ) -> Result<Setting<bool>> {
        let file = file.map(|on| on.to_string());
        let found = self.find_with(name, flag.then_some(true), file, parse_switch)?;
        Ok(found.or(false))
    }

    /// A list: flags are repeated, the environment separates by commas.
    pub(super) fn find_list(
        self,
        name: &str,
        flag: &[String],
        file: Option<Vec<String>>,
    ) -> Setting<Vec<String>> {
        // clap gives an empty list if the flag is absent.
        let flags = (!flag.is_empty()).then(|| flag.to_vec());
        let found = flag_setting(name, flags)
            .or_else(|| Some(self.variable(name)?.map(|text| split_list(&text))))
            .or_else(|| self.file_setting(file));
        FoundSetting(found).or(Vec::new())
    }
}

fn flag_setting<T>(name: &str, value: Option<T>) -> Option<Setting<T>> {
    value.map(|value| Setting::new(value, Source::Flag(name.to_owned())))
}

fn split_list(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim);
    // A comma at the end must not add an empty host name.
    let items = items.filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
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
