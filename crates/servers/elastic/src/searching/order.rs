//! `sort`, as clients write it.

use super::super::dialect::Context;
use super::super::error::{At, ElasticError};
use super::super::mapping::Kind;
use plimsoll_index::mapping::FieldKind;
use plimsoll_index::plan::{MAX_ORDER_FIELDS, SortBy, SortColumn};
use serde_json::Value as Json;

/// One criterion, before it is known what the index makes of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Criterion {
    pub(crate) field: String,
    pub(crate) descending: bool,
    pub(crate) missing_first: bool,
    /// The type of the field if the mapping does not have it.
    unmapped: Option<String>,
}

impl Criterion {
    fn new(field: &str) -> Self {
        // The best come first.
        let descending = field == "_score";
        Self { field: field.to_owned(), descending, missing_first: false, unmapped: None }
    }

    /// Reads `field:desc`.
    ///
    /// # Errors
    /// When the order is none.
    pub(crate) fn from_parameter(text: &str) -> Result<Self, ElasticError> {
        match text.rsplit_once(':') {
            None => Ok(Self::new(text)),
            Some((field, order)) => {
                let mut criterion = Self::new(field);
                criterion.descending = descending(order)?;
                Ok(criterion)
            }
        }
    }
}

fn descending(order: &str) -> Result<bool, ElasticError> {
    match order.to_ascii_lowercase().as_str() {
        "asc" => Ok(false),
        "desc" => Ok(true),
        _ => {
            let reason =
                format!("No enum constant org.elasticsearch.search.sort.SortOrder.{order}");
            Err(ElasticError::argument(reason))
        }
    }
}

/// Reads the list of criteria.
///
/// # Errors
/// When it is not understood.
pub(crate) fn read(json: &Json, at: &At<'_>) -> Result<Vec<Criterion>, ElasticError> {
    let items = json.as_array().map_or(std::slice::from_ref(json), Vec::as_slice);
    let mut found = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let at = at.item(number);
        match item {
            Json::String(name) => found.push(Criterion::new(name)),
            Json::Object(object) => {
                for (name, options) in object {
                    found.push(criterion(name, options, &at.key(name))?);
                }
            }
            _ => {
                let reason = "malformed sort format, within the sort array, an object, or an \
                              actual string are allowed";
                return Err(ElasticError::argument(reason));
            }
        }
    }
    if found.len() > MAX_ORDER_FIELDS {
        return Err(ElasticError::unsupported(&format!(
            "more than {MAX_ORDER_FIELDS} sort fields"
        )));
    }
    Ok(found)
}

fn criterion(name: &str, options: &Json, at: &At<'_>) -> Result<Criterion, ElasticError> {
    let mut criterion = Criterion::new(name);
    let object = match options {
        Json::String(order) => {
            criterion.descending = descending(order)?;
            return Ok(criterion);
        }
        Json::Object(object) => object,
        _ => return Err(ElasticError::parsing(at, "malformed sort format")),
    };
    let mut mode = None;
    for (key, value) in object {
        let text = value.as_str().unwrap_or("");
        match (key.as_str(), text) {
            ("order", order) => criterion.descending = descending(order)?,
            ("missing", "_first") => criterion.missing_first = true,
            ("missing", "_last") => criterion.missing_first = false,
            ("missing", _) => return Err(ElasticError::unsupported("[missing] with a value")),
            ("unmapped_type", kind) => criterion.unmapped = Some(kind.to_owned()),
            ("mode", name) => mode = Some(name),
            _ => {
                let reason = format!("[field_sort] unknown field [{key}]");
                return Err(ElasticError::parsing(&at.key(key), reason));
            }
        }
    }
    let own = if criterion.descending { "max" } else { "min" };
    match mode.filter(|mode| *mode != own) {
        Some(mode) => Err(ElasticError::unsupported(&format!("the sort mode [{mode}]"))),
        None => Ok(criterion),
    }
}

/// The columns of one index for the criteria.
///
/// # Errors
/// When a field cannot be sorted by.
pub(crate) fn columns(
    criteria: &[Criterion],
    context: &Context<'_>,
) -> Result<Vec<SortColumn>, ElasticError> {
    // That is the order without any, as Elasticsearch has it too.
    if matches!(criteria, [only] if only.field == "_score" && only.descending) {
        return Ok(Vec::new());
    }
    let column = |criterion: &Criterion| {
        let (descending, missing_first) = (criterion.descending, criterion.missing_first);
        let by = match criterion.field.as_str() {
            "_score" => SortBy::Score,
            "_doc" | "_shard_doc" => SortBy::Position,
            name => match context.mapping.field(name) {
                None if criterion.unmapped.is_some() => SortBy::Nothing,
                None => {
                    let reason = format!("No mapping found for [{name}] in order to sort on");
                    return Err(context.refused(reason).all_shards_failed(context.index));
                }
                Some(field) if field.kind == Kind::Text => {
                    let reason = format!(
                        "Text fields are not optimised for operations that require per-document \
                         field data like aggregations and sorting, so these operations are \
                         disabled by default. Please use a keyword field instead. Alternatively, \
                         set fielddata=true on [{name}] in order to load field data by uninverting \
                         the inverted index. Note that this can use significant memory."
                    );
                    return Err(ElasticError::argument(reason).all_shards_failed(context.index));
                }
                Some(field) => {
                    let column = field.mapped.column.clone().unwrap_or_default();
                    SortBy::Column { name: column, kind: field.mapped.kind }
                }
            },
        };
        Ok(SortColumn { by, descending, missing_first })
    };
    criteria.iter().map(column).collect()
}

/// The value in the reply for a missing value.
pub(crate) fn missing(column: &SortColumn) -> Json {
    let smallest = column.missing_first != column.descending;
    match &column.by {
        SortBy::Column { kind: FieldKind::Long, .. } => {
            if smallest {
                i64::MIN.into()
            } else {
                i64::MAX.into()
            }
        }
        SortBy::Column { kind: FieldKind::Real { .. }, .. } => {
            if smallest {
                "-Infinity".into()
            } else {
                "Infinity".into()
            }
        }
        _ => Json::Null,
    }
}
