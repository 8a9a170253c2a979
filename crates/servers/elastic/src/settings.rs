//! Settings of an index, as clients write them.

use super::error::ElasticError;
use super::mapping::check_path;
use serde_json::{Map, Value as Json, json};
use std::time::Duration;

/// The most shards of one index: each has threads of its own.
pub(crate) const MAX_SHARDS: u64 = 64;
/// The setting of the largest sum of from and size of a search.
const WINDOW: &str = "max_result_window";
/// Its default, and its largest value: each search holds as many hits of each shard in memory.
pub(crate) const USUAL_WINDOW: usize = 10_000;
const MAX_WINDOW: u64 = 100_000;
/// Beginnings of settings that are kept and shown, and change nothing here.
const ACCEPTED: [&str; 16] = [
    "number_of_replicas",
    "codec",
    "auto_expand_replicas",
    "translog.",
    "merge.",
    "requests.",
    "search.",
    "store.",
    "queries.",
    "mapping.",
    "routing.",
    "priority",
    "unassigned.",
    "indexing.",
    "gc_deletes",
    "highlight.",
];

/// The most settings of one request.
const MAX_SETTINGS: usize = 1000;

/// The settings of an index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) shards: usize,
    pub(crate) replicas: u64,
    /// Nothing when only requests refresh.
    pub(crate) refresh: Option<Duration>,
    /// Without a configured interval: the index is refreshed only after a search.
    pub(crate) refreshes_when_looked_at: bool,
    /// Largest sum of from and size of a search.
    pub(crate) window: usize,
    /// As they are shown, without the prefix `index.`, flat.
    pub(crate) shown: Map<String, Json>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            shards: 1,
            replicas: 1,
            refresh: Some(Duration::from_secs(1)),
            refreshes_when_looked_at: true,
            window: USUAL_WINDOW,
            shown: Map::new(),
        }
    }
}

impl Settings {
    /// Reads settings, nested or with dots, with or without `index`.
    ///
    /// # Errors
    /// When one is not known, or its value is not one.
    pub(crate) fn read(json: &Json) -> Result<Self, ElasticError> {
        let mut flat = Map::new();
        flatten("", json, &mut flat)?;
        let mut settings = Self::default();
        for (name, value) in flat {
            if value.is_null() {
                continue;
            }
            let name = name.strip_prefix("index.").unwrap_or(&name).to_owned();
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            match name.as_str() {
                "number_of_shards" => {
                    settings.shards = number(&name, &text, 1, MAX_SHARDS)? as usize;
                }
                "refresh_interval" => {
                    settings.refresh = interval(&text)?;
                    settings.refreshes_when_looked_at = false;
                }
                WINDOW => settings.window = number(&name, &text, 1, MAX_WINDOW)? as usize,
                _ if ACCEPTED.iter().any(|known| name.starts_with(known)) => {
                    if name == "number_of_replicas" {
                        settings.replicas = number(&name, &text, 0, 1024)?;
                    }
                }
                _ if name.starts_with("analysis.") || name.starts_with("sort.") => {
                    return Err(ElasticError::unsupported(&format!("the setting [index.{name}]")));
                }
                _ => {
                    let message = format!(
                        "unknown setting [index.{name}] please check that any required plugins \
                         are installed, or check the breaking changes documentation for removed \
                         settings"
                    );
                    return Err(ElasticError::argument(message));
                }
            }
            settings.shown.insert(name, text.into());
        }
        Ok(settings)
    }

    /// Reads settings that were kept. Earlier versions accepted any window and used the default: one that is not valid is left out.
    ///
    /// # Errors
    /// As [`Settings::read`].
    pub(crate) fn restore(kept: &Json) -> Result<Self, ElasticError> {
        let mut kept = kept.clone();
        if let Json::Object(flat) = &mut kept {
            let is_valid = |name: &str, value: &Json| Self::read(&json!({ (name): value })).is_ok();
            flat.retain(|name, value| !name.starts_with(WINDOW) || is_valid(name, value));
        }
        Self::read(&kept)
    }
}

impl Settings {
    /// Changes what can be changed while the index is there.
    ///
    /// # Errors
    /// When a setting is not known, or is fixed.
    pub(crate) fn change(&mut self, json: &Json) -> Result<(), ElasticError> {
        let changed = Self::read(json)?;
        let mut flat = Map::new();
        flatten("", json, &mut flat)?;
        let unset = flat.into_iter().filter(|(_, value)| value.is_null());
        unset.for_each(|(name, _)| self.unset(name.strip_prefix("index.").unwrap_or(&name)));
        if changed.shown.contains_key("number_of_shards") {
            let reason = "Can't update non dynamic settings [[index.number_of_shards]] for open \
                          indices";
            return Err(ElasticError::argument(reason));
        }
        if changed.shown.contains_key("refresh_interval") {
            self.refresh = changed.refresh;
            self.refreshes_when_looked_at = false;
        }
        if changed.shown.contains_key("number_of_replicas") {
            self.replicas = changed.replicas;
        }
        if changed.shown.contains_key(WINDOW) {
            self.window = changed.window;
        }
        self.shown.extend(changed.shown);
        Ok(())
    }

    /// Brings the default of a setting back, as null does.
    fn unset(&mut self, name: &str) {
        let usual = Self::default();
        match name {
            "refresh_interval" => {
                self.refresh = usual.refresh;
                self.refreshes_when_looked_at = usual.refreshes_when_looked_at;
            }
            "number_of_replicas" => self.replicas = usual.replicas,
            WINDOW => self.window = usual.window,
            // It is fixed.
            "number_of_shards" => return,
            _ => {}
        }
        self.shown.remove(name);
    }
}

fn flatten(prefix: &str, json: &Json, flat: &mut Map<String, Json>) -> Result<(), ElasticError> {
    check_path(prefix)?;
    match json {
        Json::Object(object) => {
            for (key, value) in object {
                let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&name, value, flat)?;
            }
        }
        value => {
            if flat.len() >= MAX_SETTINGS {
                let reason = format!("more than [{MAX_SETTINGS}] settings");
                return Err(ElasticError::argument(reason));
            }
            flat.insert(prefix.to_owned(), value.clone());
        }
    }
    Ok(())
}

fn number(name: &str, text: &str, lowest: u64, highest: u64) -> Result<u64, ElasticError> {
    let failed = |what: String| {
        ElasticError::argument(format!(
            "Failed to parse value [{text}] for setting [index.{name}] {what}"
        ))
    };
    let number: u64 = text.parse().map_err(|_| failed(format!("must be >= {lowest}")))?;
    if number < lowest {
        return Err(failed(format!("must be >= {lowest}")));
    }
    if number > highest {
        return Err(failed(format!("must be <= {highest}")));
    }
    Ok(number)
}

fn interval(text: &str) -> Result<Option<Duration>, ElasticError> {
    if text == "-1" {
        return Ok(None);
    }
    let read = duration(text).filter(|interval| *interval >= Duration::from_millis(1));
    read.map(Some).ok_or_else(|| {
        let message = format!(
            "failed to parse setting [index.refresh_interval] with value [{text}] as a time value: \
             unit is missing or unrecognized"
        );
        ElasticError::argument(message)
    })
}

/// Reads a time such as `500ms`, `1s` or `2m`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let ns = match unit {
        "nanos" => 1,
        "micros" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    number.checked_mul(ns).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_repeat_that_of_their_object_are_bounded() {
        let inner: Map<String, Json> = (0..1000).map(|n| (n.to_string(), 1.into())).collect();
        let long = json!({ "x".repeat(100_000): inner.clone() });
        let error = Settings::read(&long).unwrap_err();
        assert!(error.reason.contains("longer than the limit of [8192]"), "{}", error.reason);
        let many = json!({ "a": inner, "b": 1 });
        assert_eq!(Settings::read(&many).unwrap_err().reason, "more than [1000] settings");
    }

    #[test]
    fn null_brings_a_default_back() {
        let set = json!({"number_of_shards": 3, "refresh_interval": "-1", "codec": "x"});
        let mut settings = Settings::read(&set).unwrap();
        let unset = json!({"index": {"refresh_interval": null, "number_of_shards": null}});
        settings.change(&unset).unwrap();
        let usual = Settings::default();
        assert_eq!(settings.refresh, usual.refresh);
        assert!(settings.refreshes_when_looked_at);
        assert_eq!(settings.shards, 3, "it is fixed");
        let shown = |name: &str| settings.shown.contains_key(name);
        assert!(shown("codec") && shown("number_of_shards") && !shown("refresh_interval"));
    }

    #[test]
    fn a_kept_window_that_is_not_valid_does_not_end_the_start() {
        for (kept, window) in [("50", 50), ("1000000", USUAL_WINDOW), ("x", USUAL_WINDOW)] {
            let kept = json!({"max_result_window": kept, "codec": "x"});
            let settings = Settings::restore(&kept).unwrap();
            assert_eq!(settings.window, window, "{kept}");
            assert_eq!(settings.shown.contains_key(WINDOW), window != USUAL_WINDOW, "{kept}");
            assert!(settings.shown.contains_key("codec"));
        }
        assert!(Settings::restore(&json!({"nonsense": 1})).is_err());
    }

    #[test]
    fn settings_are_read_in_all_forms() {
        let forms = [
            json!({"number_of_shards": 3, "refresh_interval": "-1"}),
            json!({"index": {"number_of_shards": "3", "refresh_interval": "-1"}}),
            json!({"index.number_of_shards": 3, "index.refresh_interval": -1}),
        ];
        for form in forms {
            let settings = Settings::read(&form).unwrap();
            assert_eq!((settings.shards, settings.refresh), (3, None), "{form}");
        }
        for bad in [
            json!({"number_of_shards": 0}),
            json!({"nonsense": 1}),
            json!({"refresh_interval": "x"}),
        ] {
            assert!(Settings::read(&bad).is_err(), "{bad}");
        }
    }
}
