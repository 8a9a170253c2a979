//! Mappings as clients write them.

use super::date::{self, Formats};
use super::{
    Child, Dynamic, Field, Kind, MAX_DEPTH, MAX_FIELDS, Mapping, Missing, Object, check_path,
};
use crate::error::ElasticError;
use serde_json::{Map, Value as Json};

/// Parameters that are kept and shown, and change nothing here.
const ACCEPTED: [&str; 21] = [
    "index",
    "store",
    "doc_values",
    "norms",
    "analyzer",
    "search_analyzer",
    "boost",
    "ignore_above",
    "coerce",
    "format",
    "fielddata",
    "similarity",
    "index_options",
    "eager_global_ordinals",
    "position_increment_gap",
    "term_vector",
    "meta",
    "split_queries_on_whitespace",
    "search_quote_analyzer",
    "locale",
    "ignore_malformed",
];
/// Parameters of Elasticsearch that would change results.
const UNSUPPORTED: [&str; 5] = ["copy_to", "null_value", "normalizer", "index_prefixes", "script"];
/// Parameters that do not change once a field exists, and their defaults.
const FIXED: [(&str, &str); 3] =
    [("index", "true"), ("doc_values", "true"), ("format", date::DEFAULT)];
/// Types of Elasticsearch that are not here.
const UNSUPPORTED_KINDS: [&str; 22] = [
    "nested",
    "geo_point",
    "geo_shape",
    "ip",
    "completion",
    "join",
    "binary",
    "date_nanos",
    "scaled_float",
    "integer_range",
    "float_range",
    "long_range",
    "double_range",
    "date_range",
    "ip_range",
    "flattened",
    "dense_vector",
    "rank_feature",
    "rank_features",
    "search_as_you_type",
    "token_count",
    "alias",
];

type Outcome<T = ()> = Result<T, ElasticError>;

/// Adds what a mapping has.
pub(super) fn merge(mapping: &mut Mapping, json: &Json) -> Outcome {
    let Json::Object(json) = json else {
        return Err(ElasticError::mapper("the mapping must be an object"));
    };
    let mut root = std::mem::take(&mut mapping.root);
    for (key, value) in json {
        match key.as_str() {
            "properties" => properties(mapping, &mut root, value, "")?,
            "dynamic" => root.dynamic = Some(dynamic(value)?),
            "_source" if value["enabled"] != Json::Bool(false) => {}
            "_source" => return Err(ElasticError::unsupported("indices without _source")),
            "date_detection" => mapping.dates_are_texts = plain(value) == "false",
            "_meta" | "numeric_detection" | "_routing" => {}
            "dynamic_templates" if value.as_array().is_some_and(Vec::is_empty) => {}
            "dynamic_templates" => return Err(ElasticError::unsupported("dynamic_templates")),
            _ => {
                let message = format!(
                    "Root mapping definition has unsupported parameters:  [{key} : {}]",
                    plain(value)
                );
                return Err(wrapped(ElasticError::mapper(message)));
            }
        }
    }
    mapping.root = root;
    Ok(())
}

fn wrapped(cause: ElasticError) -> ElasticError {
    let reason = format!("Failed to parse mapping [_doc]: {}", cause.reason);
    ElasticError::mapper(reason).caused_by(cause)
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn dynamic(value: &Json) -> Outcome<Dynamic> {
    match plain(value).as_str() {
        "true" => Ok(Dynamic::Add),
        "false" => Ok(Dynamic::Ignore),
        "strict" => Ok(Dynamic::Refuse),
        other => {
            let message = format!("Could not convert [dynamic] to boolean: [{other}]");
            Err(ElasticError::mapper(message))
        }
    }
}

fn properties(mapping: &mut Mapping, object: &mut Object, json: &Json, path: &str) -> Outcome {
    let Json::Object(json) = json else {
        return Err(ElasticError::mapper("Expected map for property [properties]"));
    };
    for (name, json) in json {
        let Json::Object(json) = json else {
            let message = format!("Expected map for property [fields] on field [{name}]");
            return Err(wrapped(ElasticError::mapper(message)));
        };
        // Dotted names are paths.
        let mut around = &mut *object;
        let mut parts = name.split('.').peekable();
        let mut full = path.to_owned();
        while let Some(part) = parts.next() {
            if !full.is_empty() {
                full.push('.');
            }
            full.push_str(part);
            if parts.peek().is_none() {
                property(mapping, around, part, json, &full)?;
                break;
            }
            if part.is_empty() {
                let message = format!(
                    "object field starting or ending with a [.] makes object resolution \
                     ambiguous: [{name}]"
                );
                return Err(ElasticError::argument(message));
            }
            around = inner(around, part, &full)?;
        }
    }
    Ok(())
}

/// The object of this name inside an object; made when it is missing.
fn inner<'a>(object: &'a mut Object, name: &str, path: &str) -> Outcome<&'a mut Object> {
    // A name with many dots is as deep as braces are: what is made here is walked by functions that call themselves.
    if path.split('.').count() >= MAX_DEPTH {
        let message = format!(
            "Limit of mapping depth [{MAX_DEPTH}] has been exceeded due to object field [{path}]"
        );
        return Err(ElasticError::argument(message));
    }
    let child = object.children.entry(name.to_owned());
    match child.or_insert_with(|| Child::Object(Object::default())) {
        Child::Object(object) => Ok(object),
        Child::Field(_) => {
            let message =
                format!("can't merge a non object mapping [{path}] with an object mapping");
            Err(ElasticError::argument(message))
        }
    }
}

fn property(
    mapping: &mut Mapping,
    object: &mut Object,
    name: &str,
    json: &Map<String, Json>,
    path: &str,
) -> Outcome {
    if name.is_empty() {
        return Err(wrapped(ElasticError::argument("name cannot be empty string")));
    }
    let kind = json.get("type").and_then(Json::as_str);
    if kind.is_none_or(|kind| kind == "object") {
        if kind.is_none() && !json.contains_key("properties") && !json.contains_key("dynamic") {
            let message = format!("No type specified for field [{name}]");
            return Err(wrapped(ElasticError::mapper(message)));
        }
        let child = inner(object, name, path)?;
        for (key, value) in json {
            match key.as_str() {
                "type" => {}
                "properties" => properties(mapping, child, value, path)?,
                "dynamic" => child.dynamic = Some(dynamic(value)?),
                "enabled" => child.disabled = plain(value) == "false",
                _ => return Err(unknown_parameter(name, key, value)),
            }
        }
        return Ok(());
    }
    let number = match object.children.get(name) {
        Some(Child::Object(_)) => {
            let message =
                format!("can't merge a non object mapping [{path}] with an object mapping");
            return Err(ElasticError::argument(message));
        }
        Some(Child::Field(number)) => Some(*number),
        None => None,
    };
    let number = field(mapping, number, name, json, path)?;
    object.children.insert(name.to_owned(), Child::Field(number));
    Ok(())
}

fn unknown_parameter(name: &str, key: &str, value: &Json) -> ElasticError {
    let message = format!(
        "Mapping definition for [{name}] has unsupported parameters:  [{key} : {}]",
        plain(value)
    );
    wrapped(ElasticError::mapper(message))
}

/// Adds a field, or checks that it is what it was; gives its number.
fn field(
    mapping: &mut Mapping,
    existing: Option<usize>,
    name: &str,
    json: &Map<String, Json>,
    path: &str,
) -> Outcome<usize> {
    let kind_name = json.get("type").map(plain).unwrap_or_default();
    let Some(kind) = Kind::parse(&kind_name) else {
        if UNSUPPORTED_KINDS.contains(&kind_name.as_str()) {
            return Err(ElasticError::unsupported(&format!("the type [{kind_name}]")));
        }
        let message = format!("No handler for type [{kind_name}] declared on field [{name}]");
        return Err(wrapped(ElasticError::mapper(message)));
    };
    let mut options = Map::new();
    for (key, value) in json {
        match key.as_str() {
            "type" | "fields" => continue,
            "analyzer" | "search_analyzer" | "search_quote_analyzer"
                if plain(value) != "standard" =>
            {
                let analyzer = plain(value);
                return Err(ElasticError::unsupported(&format!(
                    "the analyzer [{analyzer}] of field [{name}]: use standard"
                )));
            }
            "ignore_malformed" if plain(value) == "true" => {
                return Err(ElasticError::unsupported("ignore_malformed"));
            }
            key if UNSUPPORTED.contains(&key) => {
                return Err(ElasticError::unsupported(&format!("[{key}] of field [{name}]")));
            }
            key if ACCEPTED.contains(&key) => {}
            _ => return Err(unknown_parameter(name, key, value)),
        }
        options.insert(key.clone(), value.clone());
    }
    let number = match existing {
        Some(number) => {
            let old = &mapping.fields[number];
            if old.kind != kind {
                let (old, new) = (old.kind.name(), kind.name());
                let message =
                    format!("mapper [{path}] cannot be changed from type [{old}] to [{new}]");
                return Err(ElasticError::argument(message));
            }
            unchanged(old, &options, path)?;
            number
        }
        None => add(mapping, path, kind)?,
    };
    let formats = match options.get("format") {
        Some(format) => Formats::parse(&plain(format)).ok_or_else(|| {
            ElasticError::unsupported(&format!("the date format [{}]", plain(format)))
        })?,
        None => Formats::default(),
    };
    let ignore_above = options.get("ignore_above").and_then(Json::as_u64);
    let field = &mut mapping.fields[number];
    field.index = options.get("index").map(plain).as_deref() != Some("false");
    field.ignore_above = ignore_above.map_or(usize::MAX, |limit| limit as usize);
    field.formats = formats;
    field.options = options;
    if let Some(Json::Object(subs)) = json.get("fields") {
        for (sub, json) in subs {
            let Json::Object(json) = json else {
                let message = format!("Expected map for property [fields] on field [{sub}]");
                return Err(wrapped(ElasticError::mapper(message)));
            };
            sub_field(mapping, number, sub, json, path)?;
        }
    }
    Ok(number)
}

/// Checks that what is fixed about a field stays.
fn unchanged(old: &Field, options: &Map<String, Json>, path: &str) -> Outcome {
    for (key, default) in FIXED {
        let of = |options: &Map<String, Json>| {
            options.get(key).map_or_else(|| default.to_owned(), plain)
        };
        let (was, is) = (of(&old.options), of(options));
        if was != is {
            let message = format!(
                "Mapper for [{path}] conflicts with existing mapper:\n\tCannot update parameter \
                 [{key}] from [{was}] to [{is}]"
            );
            return Err(ElasticError::argument(message));
        }
    }
    Ok(())
}

fn sub_field(
    mapping: &mut Mapping,
    of: usize,
    name: &str,
    json: &Map<String, Json>,
    path: &str,
) -> Outcome {
    let known = mapping.fields[of].subs.iter().find(|(known, _)| known == name);
    let known = known.map(|(_, number)| *number);
    let number = field(mapping, known, name, json, &format!("{path}.{name}"))?;
    if known.is_none() {
        mapping.fields[of].subs.push((name.to_owned(), number));
    }
    Ok(())
}

/// Adds a field without any parameter. One of this path that is there already keeps its column.
pub(super) fn add(mapping: &mut Mapping, path: &str, kind: Kind) -> Outcome<usize> {
    if let Some(number) = mapping.by_path.get(path) {
        return Ok(*number);
    }
    if mapping.fields.len() >= MAX_FIELDS {
        let message = format!("Limit of total fields [{MAX_FIELDS}] has been exceeded");
        return Err(ElasticError::argument(message));
    }
    check_path(path)?;
    let (mapped, block) = mapping.take_column(path, kind);
    let number = mapping.fields.len();
    mapping.fields.push(Field {
        path: path.to_owned(),
        kind,
        mapped,
        block,
        index: true,
        ignore_above: usize::MAX,
        formats: Formats::default(),
        subs: Vec::new(),
        options: Map::new(),
    });
    mapping.by_path.insert(path.to_owned(), number);
    Ok(number)
}

/// Adds a field as dynamic mapping does: text gets a multi-field `keyword` of 256 characters.
pub(super) fn add_dynamic(mapping: &mut Mapping, missing: &Missing) -> Outcome {
    let mut json = Map::new();
    json.insert("type".to_owned(), missing.kind.name().into());
    if missing.kind == Kind::Text {
        let keyword = serde_json::json!({ "keyword": { "type": "keyword", "ignore_above": 256 } });
        json.insert("fields".to_owned(), keyword);
    }
    if let Some(format) = missing.format.filter(|format| *format != date::DEFAULT) {
        json.insert("format".to_owned(), format.into());
    }
    let mut properties_json = Map::new();
    properties_json.insert(missing.path.clone(), Json::Object(json));
    if mapping.field(&missing.path).is_some() {
        return Ok(());
    }
    let mut merged = mapping.clone();
    let mut root = std::mem::take(&mut merged.root);
    properties(&mut merged, &mut root, &Json::Object(properties_json), "")?;
    merged.root = root;
    *mapping = merged;
    Ok(())
}
