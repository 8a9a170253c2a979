//! Takes comments and blanks out of script and style. It knows no syntax, so the files keep to a form that a formatter makes:
//! a comment has its lines for itself, a statement ends with a semicolon, and no string or pattern goes over a line's end.

/// Characters after which, or before which, a line of the script may go on in the next.
const JOINS_AFTER: &str = "{}([,;=>:&|?+";
const JOINS_BEFORE: &str = ")}].?:,&|";

/// The name that the script has most often. It is the name of variables only, never of a property, and becomes a short one.
pub const OFTEN: (&str, &str) = ("figure", "f");

/// Returns a script without comments and blanks.
pub fn script(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_after_constant = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || ["//", "/*", "*"].iter().any(|mark| line.starts_with(mark)) {
            continue;
        }
        let is_joined = out.ends_with(|c| JOINS_AFTER.contains(c))
            || line.starts_with(|c| JOINS_BEFORE.contains(c));
        if !is_joined && !out.is_empty() {
            out.push('\n');
        }
        if line.starts_with(['}', ']', ')']) && out.ends_with(',')
            || line.starts_with('}') && out.ends_with(';')
        {
            out.pop();
        }
        let constant = line.strip_prefix("const ");
        match constant.filter(|_| is_after_constant) {
            // One statement declares constants that follow each other.
            Some(declared) => {
                out.pop();
                out.push(',');
                push_lean(&mut out, declared);
            }
            None => push_lean(&mut out, line),
        }
        is_after_constant = constant.is_some() && line.ends_with(';');
    }
    out.push('\n');
    out
}

/// Appends a line of a script without the blanks that separate nothing.
fn push_lean(out: &mut String, line: &str) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut quote = None;
    let mut before = '\n';
    let mut word_at = out.len();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match quote {
            Some(_) if c == '\\' => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            Some(mark) if c == mark => quote = None,
            Some(_) => {}
            None if c == ' ' => {
                let next = chars.peek().copied().unwrap_or('\n');
                let is_between_words = is_word(before) && is_word(next);
                // `a - -b` and `a + +b` are not `a --b` and `a ++b`.
                if !is_between_words && (before != next || !"+-/".contains(before)) {
                    continue;
                }
            }
            // `0.5` is `.5`.
            None if c == '0' && chars.peek() == Some(&'.') && !is_word(before) && before != '.' => {
                continue;
            }
            None if ['"', '\'', '`'].contains(&c) => quote = Some(c),
            None => {}
        }
        if is_word(c) && !is_word(before) {
            word_at = out.len();
        }
        out.push(c);
        let is_end = !chars.peek().is_some_and(|next| is_word(*next));
        if quote.is_none() && is_end && out[word_at..] == *OFTEN.0 {
            out.replace_range(word_at.., OFTEN.1);
        }
        before = c;
    }
}

/// Returns a style sheet without comments and blanks.
pub fn style(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        bare.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    let mut out = String::with_capacity(bare.len());
    for word in bare.split_ascii_whitespace() {
        // A blank before `:` or `(` or around `+` and `-` has a meaning; beside these it has none.
        let is_needed = !out.ends_with(|c| "{};,>:".contains(c))
            && !word.starts_with(|c| "{};,>".contains(c))
            && !out.is_empty();
        if is_needed {
            out.push(' ');
        }
        if word.starts_with('}') && out.ends_with(';') {
            out.pop();
        }
        // `0.5rem` is `.5rem`.
        out.push_str(word.strip_prefix('0').filter(|rest| rest.starts_with('.')).unwrap_or(word));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_keeps_strings_and_loses_the_rest() {
        let text = "// A comment.\n/** Another. */\nconst a = { b: 1,\n  c: \"x  =  y\",\n};\nlet d = a - -1;\n\
                    return `a ${ b }  c`;\nfoo()\n  .bar();\n";
        assert_eq!(
            script(text),
            "const a={b:1,c:\"x  =  y\"};let d=a- -1;return`a ${ b }  c`;foo().bar();\n"
        );
        assert_eq!(script("a = \"\\\" b  c\";\n"), "a=\"\\\" b  c\";\n", "escaped quotes");
        assert_eq!(
            script("figure = (figures, b.figured, \"figure\");\n"),
            "f=(figures,b.figured,\"figure\");\n",
            "the name that there is most often"
        );
        assert_eq!(script("a = [0.5, 10.5, 0];\n"), "a=[.5,10.5,0];\n", "fractions");
        assert_eq!(
            script(
                "const a = 1;\nconst b = 2;\nf();\nconst c = () => {\n  const d = 3;\n};\nconst e = 4;\n"
            ),
            "const a=1,b=2;f();const c=()=>{const d=3};const e=4;\n",
            "constants that follow each other"
        );
        assert_eq!(script("x\ny\n"), "x\ny\n", "lines that may be statements stay apart");
    }

    #[test]
    fn style_keeps_blanks_with_a_meaning() {
        let text = "/* Head. */\na > b , c d:hover {\n  margin: 0 0.5em;\n  width: calc(1px + 2px);\n}\n@media (x: 1) { e { f: g; } }\n";
        assert_eq!(
            style(text),
            "a>b,c d:hover{margin:0 .5em;width:calc(1px + 2px)}@media (x:1){e{f:g}}"
        );
    }
}
