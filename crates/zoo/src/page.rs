//! Tables in a page of the book, between the markers of the target of `make` that prints them.

fn markers(target: &str) -> [String; 2] {
    ["begin", "end"].map(|edge| format!("<!-- {edge}: make {target} -->"))
}

/// Puts `text` between the markers of `target` in a page.
///
/// # Errors
/// When the page does not have the two markers, in order.
pub fn replaced(page: &str, target: &str, text: &str) -> Result<String, String> {
    let [begin, end] = markers(target);
    let missing = || format!("the page has no '{begin}' followed by '{end}'");
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim()))
}

/// Does the same with the file of a page.
///
/// # Errors
/// When it cannot be read or written, or has no markers: one line with its path.
pub fn refresh(path: &str, target: &str, text: &str) -> Result<(), String> {
    let page = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let page = replaced(&page, target, text).map_err(|problem| format!("{path}: {problem}"))?;
    std::fs::write(path, page).map_err(|error| format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_between_the_markers_is_replaced_and_no_other() {
        let [begin, end] = markers("x-zoo");
        let page = format!("before\n{begin}\nold\n{end}\nafter\n");
        let new = replaced(&page, "x-zoo", "\nnew\n").unwrap();
        assert_eq!(new, format!("before\n{begin}\n\nnew\n\n{end}\nafter\n"));
        assert_eq!(replaced(&new, "x-zoo", "new"), Ok(new.clone()));
        assert!(replaced("nothing", "x-zoo", "new").is_err());
        assert!(replaced(&format!("{end}{begin}"), "x-zoo", "new").is_err());
        assert!(replaced(&page, "y-zoo", "new").unwrap_err().contains("make y-zoo"));
    }
}
