//! The parameters of a request's address.

use super::error::ElasticError;
use plimsoll_serving::parameters::Parameters;

/// All that some endpoint knows; others are refused, so that a mistyped one is seen.
const KNOWN: [&str; 71] = [
    "allow_no_indices",
    "allow_partial_search_results",
    "analyze_wildcard",
    "analyzer",
    "batched_reduce_size",
    "bytes",
    "ccs_minimize_roundtrips",
    "completion_fields",
    "default_operator",
    "df",
    "error_trace",
    "expand_wildcards",
    "explain",
    "fielddata_fields",
    "fields",
    "filter_path",
    "flat_settings",
    "flush",
    "force",
    "format",
    "from",
    "groups",
    "h",
    "health",
    "help",
    "human",
    "if_primary_term",
    "if_seq_no",
    "ignore_throttled",
    "ignore_unavailable",
    "include_defaults",
    "include_type_name",
    "include_unloaded_segments",
    "lenient",
    "level",
    "local",
    "master_timeout",
    "cluster_manager_timeout",
    "max_concurrent_searches",
    "max_concurrent_shard_requests",
    "max_num_segments",
    "op_type",
    "only_expunge_deletes",
    "pre_filter_shard_size",
    "preference",
    "pretty",
    "pri",
    "q",
    "realtime",
    "refresh",
    "request_cache",
    "require_alias",
    "rest_total_hits_as_int",
    "retry_on_conflict",
    "routing",
    "s",
    "scroll",
    "search_type",
    "seq_no_primary_term",
    "size",
    "sort",
    "stored_fields",
    "time",
    "timeout",
    "track_scores",
    "track_total_hits",
    "typed_keys",
    "v",
    "version",
    "version_type",
    "wait_for_active_shards",
];
const MORE: [&str; 12] = [
    "_source",
    "_source_includes",
    "_source_excludes",
    "_source_include",
    "_source_exclude",
    "wait_for_status",
    "wait_for_no_relocating_shards",
    "wait_for_no_initializing_shards",
    "wait_for_nodes",
    "wait_for_events",
    "wait_if_ongoing",
    "ts",
];

/// Names and values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    all: Parameters,
    names: Vec<String>,
}

impl Params {
    /// Reads `a=1&b=2`.
    ///
    /// # Errors
    /// When it is not percent-encoded text.
    pub(crate) fn read(query: &str) -> Result<Self, ElasticError> {
        let all = Parameters::from_query(query).map_err(|error| ElasticError::argument(error.0))?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let names = pairs.map(|pair| pair.split('=').next().unwrap_or(pair).to_owned()).collect();
        Ok(Self { all, names })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all.get(name)
    }

    /// A switch: there, and not `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "false")
    }

    /// Rejects an unknown parameter.
    ///
    /// # Errors
    /// With its name.
    pub(crate) fn check(&self, path: &str) -> Result<(), ElasticError> {
        let known = |name: &&String| {
            let name = name.as_str();
            !KNOWN.contains(&name) && !MORE.contains(&name)
        };
        match self.names.iter().find(known) {
            None => self.check_values(),
            Some(name) => {
                let reason = format!("request [{path}] contains unrecognized parameter: [{name}]");
                Err(ElasticError::argument(reason))
            }
        }
    }

    /// Rejects values of known parameters that would change a reply here if they had an effect.
    fn check_values(&self) -> Result<(), ElasticError> {
        let unlike =
            [("allow_no_indices", "false"), ("require_alias", "true"), ("realtime", "false")];
        let unlike = unlike.into_iter().find(|(name, value)| self.get(name) == Some(*value));
        let is_usual = |value: &&str| value.split(',').any(|one| matches!(one, "open" | "all"));
        let wildcards = self.get("expand_wildcards").filter(|value| !is_usual(value));
        match unlike.or(wildcards.map(|value| ("expand_wildcards", value))) {
            Some((name, value)) => Err(ElasticError::unsupported(&format!("[{name}={value}]"))),
            None => Ok(()),
        }
    }

    /// A number, where it is given.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, ElasticError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let reason = format!("Failed to parse long parameter [{name}] with value [{text}]");
            ElasticError::argument(reason)
        })
    }
}
