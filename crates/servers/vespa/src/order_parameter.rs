//! The order of hits as a request parameter: `sorting`.

use plimsoll_index::query::OrderBy;

/// Names of the relevance.
const RELEVANCE: [&str; 3] = ["[rank]", "[relevance]", "[relevancy]"];

/// Reads `-score +category`: fields, each ascending unless `-` stands before it.
///
/// # Errors
/// With what to tell the client.
pub(crate) fn order(text: &str) -> Result<Vec<OrderBy>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let [word] = words[..]
        && let Some(name) = word.strip_prefix('-')
        && RELEVANCE.contains(&name)
    {
        // The order without a sorting.
        return Ok(Vec::new());
    }
    words.into_iter().map(criterion).collect()
}

fn criterion(word: &str) -> Result<OrderBy, String> {
    let (descending, name) = match word.strip_prefix(['+', '-']) {
        Some(name) => (word.starts_with('-'), name),
        None => (false, word),
    };
    let field = match (name.split_once('('), name.rfind(')')) {
        // Texts are ordered without regard to their case anyway.
        (Some((function, rest)), Some(_)) if function.eq_ignore_ascii_case("lowercase") => {
            &rest[..rest.rfind(')').unwrap_or(rest.len())]
        }
        (Some((function, _)), Some(_)) => {
            let message = format!("the function '{function}' is not supported by this server");
            return Err(format!("Could not set 'sorting' to '{word}': {message}"));
        }
        _ => name,
    };
    if field.starts_with('[') {
        return Err(format!(
            "Could not set 'sorting' to '{word}': by this server hits are ordered by fields, or by '-[relevance]' alone"
        ));
    }
    if field.is_empty() {
        return Err(format!("Could not set 'sorting' to '{word}': a field name is missing"));
    }
    Ok(OrderBy { field: field.to_owned(), descending })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_signs() {
        let shown = |text: &str| -> Result<Vec<String>, String> {
            let sign = |by: &OrderBy| if by.descending { '-' } else { '+' };
            Ok(order(text)?.iter().map(|by| format!("{}{}", sign(by), by.field)).collect())
        };
        assert_eq!(shown("-score category +a.b").unwrap(), ["-score", "+category", "+a.b"]);
        assert_eq!(shown("-lowercase(author)").unwrap(), ["-author"]);
        for none in ["", "  ", "-[rank]", "-[relevance]"] {
            assert_eq!(shown(none).unwrap(), [""; 0], "{none}");
        }
        for (refused, told) in [
            ("+[rank]", "ordered by fields"),
            ("-score -[rank]", "ordered by fields"),
            ("[docid]", "ordered by fields"),
            ("-uca(author,en)", "the function 'uca'"),
            ("raw(author)", "the function 'raw'"),
            ("-", "a field name is missing"),
        ] {
            let error = order(refused).unwrap_err();
            assert!(error.contains(told) && error.contains("'sorting'"), "{refused}: {error}");
        }
    }
}
