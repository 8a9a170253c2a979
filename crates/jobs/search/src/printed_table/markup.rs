//! Markup around texts and numbers in Markdown.

/// A text without the emphasis or the link that is all around it.
pub fn plain(text: &str) -> &str {
    let text = text.trim();
    let around = |mark: &&str| text.strip_prefix(*mark)?.strip_suffix(*mark);
    let link = || {
        let (shown, target) = text.strip_prefix('[')?.strip_suffix(')')?.split_once("](")?;
        // One link behind another is no link around both.
        (!target.contains("](")).then_some(shown)
    };
    let inside = ["**", "__", "*", "_", "`"].iter().find_map(around).or_else(link);
    inside.filter(|inside| !inside.trim().is_empty()).map_or(text, plain)
}

/// A text without links, emphasis and code anywhere in it.
pub fn without_markup(text: &str) -> String {
    let (mut left, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("](") {
        let Some((_, behind)) = after.split_once(')') else { break };
        let (head, shown) = before.rsplit_once('[').unwrap_or((before, ""));
        left.extend([head, shown]);
        rest = behind;
    }
    left += rest;
    left.replace(['*', '`'], "")
}

/// Returns true if a cell was withheld: a hyphen, or one of the dashes that editors make of it.
pub fn is_dash(text: &str) -> bool {
    matches!(text, "-" | "\u{2013}" | "\u{2014}" | "\u{2212}")
}

/// A whole number without the commas that part its thousands; none where they part something else.
pub fn thousands(text: &str) -> Option<String> {
    let groups: Vec<&str> = text.split(',').collect();
    let digits = |group: &&str| group.bytes().all(|byte| byte.is_ascii_digit());
    let whole = groups.len() == 1
        || (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3);
    (whole && groups.iter().all(digits)).then(|| groups.concat())
}

/// A number as people print it; none where it is not a number.
///
/// # Errors
/// A comma that may separate thousands or be a decimal point.
pub fn number(text: &str) -> Result<Option<f64>, String> {
    let (whole, decimals) = match text.split_once('.') {
        Some((whole, decimals)) => (whole, format!(".{decimals}")),
        None => (text, String::new()),
    };
    let groups: Vec<&str> = whole.split(',').collect();
    let digits = |group: &&str| group.bytes().all(|byte| byte.is_ascii_digit());
    if decimals.is_empty() && groups.len() == 2 && groups.iter().all(digits) {
        return Err(format!(
            "the comma in '{text}' may separate thousands or be a decimal point; write it without a comma"
        ));
    }
    match groups.len() {
        1 => Ok(text.parse().ok()),
        _ => Ok(thousands(whole).and_then(|whole| (whole + &decimals).parse().ok())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_around_is_taken_away() {
        for (text, inside) in [
            (" **1GB** ", "1GB"),
            ("[**5**](a.html)", "5"),
            ("**0.250 [1]**", "0.250 [1]"),
            ("`_x_`", "x"),
            ("[a](b) [c](d)", "[a](b) [c](d)"),
            ("**", "**"),
            ("", ""),
        ] {
            assert_eq!(plain(text), inside);
        }
        assert_eq!(without_markup("[Old](http://a) **and** [new](b): `x`"), "Old and new: x");
        assert_eq!(without_markup("a](b"), "a](b");
    }

    #[test]
    fn commas_part_thousands_where_they_can_be_nothing_else() {
        assert_eq!(number("0.847"), Ok(Some(0.847)));
        assert_eq!(number("1,234.5"), Ok(Some(1234.5)));
        assert_eq!(number("12,345,678"), Ok(Some(12_345_678.0)));
        assert!(number("1,234").is_err() && number("0,847").is_err());
        assert_eq!((number("1,2,3"), number("1,23.4")), (Ok(None), Ok(None)));
        assert_eq!((number("fast"), number("a,b")), (Ok(None), Ok(None)));
        assert_eq!(thousands("1,000").as_deref(), Some("1000"));
        assert_eq!((thousands("1,5"), thousands("one")), (None, None));
    }
}
