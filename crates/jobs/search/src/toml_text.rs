//! Reading TOML, with one short line for what is wrong.

use super::SearchError;
use plimsoll_workloads::edit_distance::near_miss;
use serde::de::DeserializeOwned;

/// Reads a text; `shown` is the file's name for messages.
///
/// # Errors
/// Wrong TOML or an unknown field, with its line.
pub(super) fn read<T: DeserializeOwned>(text: &str, shown: &str) -> Result<T, SearchError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let message = error.message().replace('\n', " ");
        let message = suggestion(&message).unwrap_or(message);
        SearchError::new(format!("{shown}:{line}: {message}"))
    })
}

/// A shorter message where one of the names that could have stood there is near to the one that does.
fn suggestion(message: &str) -> Option<String> {
    // serde's words: unknown field `a`, expected one of `b`, `c`.
    let rest = message.strip_prefix("unknown field `")?;
    let (word, known) = rest.split_once("`, expected ")?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let near = near_miss(word, &known)?;
    Some(format!("unknown field `{word}`; did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Own {
        #[allow(dead_code, reason = "only its name is read")]
        users: Option<u32>,
        #[allow(dead_code, reason = "only its name is read")]
        sizes: Option<u32>,
    }

    #[test]
    fn an_unknown_field_is_told_with_the_one_that_was_meant() {
        let told = |text| read::<Own>(text, "m.toml").unwrap_err().0;
        assert_eq!(
            told("users = 1\nsize = 2"),
            "m.toml:2: unknown field `size`; did you mean `sizes`?"
        );
        let other = told("colour = 2");
        assert_eq!(other, "m.toml:1: unknown field `colour`, expected `users` or `sizes`");
        assert!(told("users = ").starts_with("m.toml:1: "));
        assert!(read::<Own>("\u{feff}users = 1\r\n", "m").is_ok());
    }
}
