//! `minimum_should_match`: how many of the optional clauses must match.

use super::super::error::ElasticError;
use serde_json::Value as Json;

/// Number of `clauses` that a specification such as `2`, `-1`, `75%`, `-25%` or `2<75% 9<-3` requires. It
/// may be more than there are, and then nothing matches.
///
/// # Errors
/// When it is none of these.
pub(super) fn required(json: &Json, clauses: usize) -> Result<usize, ElasticError> {
    let text = json.as_str().map_or_else(|| json.to_string(), ToOwned::to_owned);
    let failed = || {
        let reason = format!("For input string: \"{text}\"");
        ElasticError::new(400, "number_format_exception", reason)
    };
    let clauses = clauses as i64; // Far fewer than 2^63.
    let simple = |text: &str| -> Option<i64> {
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent: i64 = percent.parse().ok().filter(|p| (-1000..=1000).contains(p))?;
                let share = clauses * percent / 100;
                Some(if percent < 0 { clauses + share } else { share })
            }
            None => {
                let number: i64 = text.parse().ok()?;
                Some(if number < 0 { clauses.saturating_add(number) } else { number })
            }
        }
    };
    // Blanks around the sign do not count.
    let parts: Vec<&str> = text.split('<').map(str::trim).collect();
    let joined = parts.join("<");
    let trimmed = joined.as_str();
    let required = if trimmed.contains('<') {
        let mut result = clauses;
        for part in trimmed.split_whitespace() {
            let (above, value) = part.split_once('<').ok_or_else(failed)?;
            if clauses <= above.parse().map_err(|_| failed())? {
                break;
            }
            result = simple(value).ok_or_else(failed)?;
        }
        result
    } else {
        simple(trimmed).ok_or_else(failed)?
    };
    Ok(usize::try_from(required).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_forms_count() {
        let required = |json: Json, clauses| required(&json, clauses).unwrap();
        assert_eq!(required(json!(2), 5), 2);
        assert_eq!(required(json!("-2"), 5), 3);
        assert_eq!(required(json!("75%"), 4), 3);
        assert_eq!(required(json!("75%"), 5), 3);
        assert_eq!(required(json!("-25%"), 5), 4);
        assert_eq!(required(json!("2<75%"), 2), 2);
        assert_eq!(required(json!("2<75%"), 4), 3);
        assert_eq!(required(json!("2<-25% 9<-3"), 8), 6);
        assert_eq!(required(json!("2<-25% 9<-3"), 10), 7);
        assert_eq!(required(json!(" 2 < -25%  9 <-3 "), 10), 7);
        assert_eq!(required(json!(9), 2), 9);
        assert_eq!(required(json!(-9), 2), 0);
        assert!(super::required(&json!("x"), 1).is_err());
    }
}
