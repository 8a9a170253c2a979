//! Text cut as Lucene's `StandardTokenizer` cuts it: by the word boundaries of UAX #29, keeping the
//! pieces that hold a letter, a digit, an ideograph or an emoji, lower-cased.
//!
//! Runs of ASCII, which are most of most texts, go through a table; what touches any other
//! character goes through an automaton with Lucene's rules, whose classes are those of Unicode 12.1.

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind};
use std::cell::RefCell;
use std::sync::LazyLock;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Longer words are cut into pieces of this many UTF-16 units.
pub(crate) const MAX_WORD: usize = 255;

/// The role of an ASCII character at a word boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Always a boundary on both sides.
    Hard,
    Letter,
    Digit,
    /// `_`, which joins letters and digits.
    Join,
    /// Between two letters no boundary.
    MidLetter,
    /// Between two digits no boundary.
    MidNumber,
    /// Between two letters, or two digits, no boundary.
    MidBoth,
    /// A boundary among ASCII; among other characters it may be none.
    Soft,
    /// A boundary, with which an emoji of a key may begin.
    Key,
    /// Not ASCII.
    Other,
}

const CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut table = [Class::Hard; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'_' => Class::Join,
            b':' => Class::MidLetter,
            b',' | b';' => Class::MidNumber,
            b'.' | b'\'' => Class::MidBoth,
            b'"' => Class::Soft,
            b'#' | b'*' => Class::Key,
            128.. => Class::Other,
            _ => Class::Hard,
        };
        byte += 1;
    }
    table
}

/// The byte ranges of the words of a text.
pub struct Cuts<'a> {
    text: &'a str,
    at: usize,
    /// End of the stretch that is cut by the rules for any text.
    region: usize,
    /// The rest of a word that is too long.
    long: Option<(usize, usize)>,
}

impl<'a> Cuts<'a> {
    /// The words of a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, region: 0, long: None }
    }

    fn class(&self, at: usize) -> Class {
        self.text.as_bytes().get(at).map_or(Class::Hard, |byte| CLASSES[usize::from(*byte)])
    }

    /// The next word, however long.
    fn word(&mut self) -> Option<(usize, usize)> {
        loop {
            if self.at < self.region
                && let Some(found) = self.region_word()
            {
                return Some(found);
            }
            let class = self.class(self.at);
            match class {
                _ if self.at >= self.text.len() => return None,
                Class::Letter | Class::Digit | Class::Join => match self.ascii_word() {
                    Some((found, true)) => return Some(found),
                    Some((_, false)) => {}
                    None => self.enter_region(),
                },
                Class::Other => self.enter_region(),
                Class::Key if self.class(self.at + 1) == Class::Other => self.enter_region(),
                _ => self.at += 1,
            }
        }
    }

    /// Takes a word of ASCII, and whether it is more than `_`. Nothing when another character
    /// touches it: then nothing is taken.
    fn ascii_word(&mut self) -> Option<((usize, usize), bool)> {
        let start = self.at;
        let mut at = start;
        let mut real = false;
        let mut last = Class::Join;
        loop {
            let class = self.class(at);
            match class {
                Class::Letter | Class::Digit => real = true,
                Class::Join => {}
                Class::MidLetter | Class::MidNumber | Class::MidBoth => {
                    let next = self.class(at + 1);
                    let joins = next == last
                        && match class {
                            Class::MidLetter => last == Class::Letter,
                            Class::MidNumber => last == Class::Digit,
                            _ => last == Class::Letter || last == Class::Digit,
                        };
                    if !joins {
                        if next == Class::Other {
                            return None;
                        }
                        break;
                    }
                }
                Class::Other => return None,
                Class::Soft if self.class(at + 1) == Class::Other => return None,
                Class::Soft | Class::Key | Class::Hard => break,
            }
            last = class;
            at += 1;
        }
        self.at = at;
        Some(((start, at), real))
    }

    /// From here to the next certain boundary the rules for any text hold.
    fn enter_region(&mut self) {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let certain = |byte: &u8| matches!(CLASSES[usize::from(*byte)], Class::Hard | Class::Key);
        let length = rest.iter().position(certain).unwrap_or(rest.len());
        self.region = self.at + 1 + length;
    }

    /// The longest word that begins in the region, at the earliest place.
    fn region_word(&mut self) -> Option<(usize, usize)> {
        while self.at < self.region {
            let start = self.at;
            if let Some(end) = longest(self.text, start, self.region) {
                self.at = end;
                return Some((start, end));
            }
            self.at += self.text[start..].chars().next().map_or(1, char::len_utf8);
        }
        None
    }
}

impl Iterator for Cuts<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let (start, end) = self.long.take().or_else(|| self.word())?;
        if end - start <= MAX_WORD {
            return Some((start, end));
        }
        let mut units = 0;
        for (at, c) in self.text[start..end].char_indices() {
            units += c.len_utf16();
            if units > MAX_WORD {
                self.long = Some((start + at, end));
                return Some((start, start + at));
            }
        }
        Some((start, end))
    }
}

/// Characters of scripts that are written without spaces and that the rules do not cut well
/// (Line_Break=Complex_Context), in Unicode 12.1.
const COMPLEX: &str = concat!(
    r"\x{e01}-\x{e3a}\x{e40}-\x{e4e}\x{e81}\x{e82}\x{e84}\x{e86}-\x{e8a}\x{e8c}-\x{ea3}\x{ea5}",
    r"\x{ea7}-\x{ebd}\x{ec0}-\x{ec4}\x{ec6}\x{ec8}-\x{ecd}\x{edc}-\x{edf}\x{1000}-\x{103f}",
    r"\x{1050}-\x{108f}\x{109a}-\x{109f}\x{1780}-\x{17d3}\x{17d7}\x{17dc}\x{17dd}",
    r"\x{1950}-\x{196d}\x{1970}-\x{1974}\x{1980}-\x{19ab}\x{19b0}-\x{19c9}\x{19da}\x{19de}",
    r"\x{19df}\x{1a20}-\x{1a5e}\x{1a60}-\x{1a7c}\x{1aa0}-\x{1aad}\x{a9e0}-\x{a9ef}",
    r"\x{a9fa}-\x{a9fe}\x{aa60}-\x{aac2}\x{aadb}-\x{aadf}\x{11700}-\x{1171a}",
    r"\x{1171d}-\x{1172b}\x{1173a}\x{1173b}\x{1173f}",
);
/// Characters that clung to the character before them (WB4) in Unicode 12.1 and no longer do.
macro_rules! clung {
    () => {
        r"\x{600}-\x{605}\x{6dd}\x{70f}\x{8e2}\x{110bd}\x{110cd}"
    };
}
/// Characters that cling to the character before them.
const CLINGING: &str =
    concat!(r"[[\p{wb=Format}\p{wb=Extend}\p{wb=ZWJ}", clung!(), r"]&&\p{age=12.1}]");
/// Letters that were none in Unicode 12.1.
const NO_LETTERS: &str = concat!(r"\x{2e5}-\x{2eb}\x{55a}\x{58a}\x{a708}-\x{a716}", clung!());
/// Digits that were none.
const NO_DIGITS: &str = concat!(r"\x{19da}", clung!());

/// Everything that is a word, as one expression.
fn rules() -> String {
    let one = |class: &str| format!(r"(?:[[{class}]&&\p{{age=12.1}}]{CLINGING}*)");
    let letter = one(&format!(r"[\p{{wb=ALetter}}\p{{wb=Hebrew_Letter}}]--[{NO_LETTERS}]"));
    let hebrew = one(r"\p{wb=Hebrew_Letter}");
    let digit = one(&format!(r"[\p{{wb=Numeric}}\x{{ff10}}-\x{{ff19}}]--[{NO_DIGITS}]"));
    let katakana = one(r"\p{wb=Katakana}");
    let join = one(r"\p{wb=ExtendNumLet}");
    let mid_letter = one(r"[\p{wb=MidLetter}\p{wb=MidNumLet}\p{wb=Single_Quote}]--\x{55f}");
    let mid_number = one(r"\p{wb=MidNum}\p{wb=MidNumLet}\p{wb=Single_Quote}\x{fe10}\x{fe14}");
    let (quote, double) = (one("'"), one("\""));
    // WB5 to WB13: letters, digits and kana, and what may stand between them.
    let part = format!(
        "(?:{katakana}(?:{join}*{katakana})*|(?:{hebrew}(?:{quote}|{double}{hebrew})|\
         {digit}(?:(?:{join}*|{mid_number}){digit})*|\
         {letter}(?:(?:{join}*|{mid_letter}){letter})*)+)"
    );
    let word = format!("{join}*{part}(?:{join}+{part})*{join}*");
    // Scripts without spaces stay in one piece; ideographs and hiragana stand alone.
    let complex = format!("(?:[{COMPLEX}]{CLINGING}*)+");
    let alone = one(r"[\p{Han}\p{Hiragana}]--\x{16fe2}");
    format!("{word}|{complex}|{alone}|{}", emoji())
}

/// Emoji as UTS #51 puts them together: alone, joined, with tags, keys and flags.
fn emoji() -> String {
    let clinging = format!(r"[{CLINGING}--[\x{{fe0e}}\x{{fe0f}}]]*");
    let never_alone = r"0-9\#\*\x{1f1e6}-\x{1f1ff}\p{Emoji_Modifier}";
    let base = format!(r"[\p{{Extended_Pictographic}}[\p{{Emoji}}--[{never_alone}]]]{clinging}");
    let shaded = format!(r"\p{{Emoji_Modifier_Base}}{clinging}");
    let one = format!(
        r"(?:\x{{200d}}*{base}\x{{fe0f}}?|(?:\x{{200d}}*{shaded})?\p{{Emoji_Modifier}}{clinging})"
    );
    let tags = r"[\x{e0020}-\x{e007e}]+\x{e007f}";
    let key = format!(r"[0-9\#\*]{clinging}\x{{fe0f}}?\x{{20e3}}{clinging}");
    let flag = format!(r"(?:[\x{{1f1e6}}-\x{{1f1ff}}]{CLINGING}*){{2}}");
    format!(r"{one}(?:(?:\x{{200d}}{one})*|{tags})|{key}|{flag}")
}

/// The automaton for any text; of its matches the longest counts.
static RULES: LazyLock<Option<DFA>> = LazyLock::new(|| {
    DFA::builder()
        .configure(DFA::config().match_kind(MatchKind::All))
        .thompson(thompson::Config::new().shrink(false))
        .build(&rules())
        .ok()
});

thread_local! {
    /// The states that a thread has met so far, 2 MB at most.
    static STATES: RefCell<Option<Cache>> = const { RefCell::new(None) };
}

/// The end of the longest word that begins exactly here.
fn longest(text: &str, start: usize, end: usize) -> Option<usize> {
    let rules = RULES.as_ref()?;
    STATES.with_borrow_mut(|states| {
        let states = states.get_or_insert_with(|| rules.create_cache());
        let input = Input::new(text).range(start..end).anchored(Anchored::Yes);
        // Without bytes that end a search it ends only at the end.
        let found = rules.try_search_fwd(states, &input).ok().flatten();
        found.map(|found| found.offset()).filter(|end| *end > start)
    })
}

/// Appends text in lower case, character by character as Lucene does.
pub fn push_lower(out: &mut String, text: &str) {
    if text.is_ascii() {
        let start = out.len();
        out.push_str(text);
        out[start..].make_ascii_lowercase();
        return;
    }
    // A capital I with a dot has a lower-case form of two characters, of which one counts.
    out.extend(text.chars().filter_map(|c| c.to_lowercase().next()));
}

/// Calls `visit` with every word of a text as the index holds it. `lower` is a place for it.
pub fn each_word(text: &str, lower: &mut String, mut visit: impl FnMut(&str)) {
    // ASCII keeps its length in lower case, so that the whole text is folded at once.
    let ascii = text.is_ascii();
    if ascii {
        lower.clear();
        push_lower(lower, text);
    }
    for (start, end) in Cuts::new(text) {
        if ascii {
            visit(&lower[start..end]);
        } else {
            lower.clear();
            push_lower(lower, &text[start..end]);
            visit(lower);
        }
    }
}

/// The tokenizer of text fields.
#[derive(Clone, Default)]
pub(crate) struct StandardTokenizer {
    token: Token,
}

/// The words of one text.
pub(crate) struct StandardStream<'a> {
    text: &'a str,
    cuts: Cuts<'a>,
    token: &'a mut Token,
}

impl Tokenizer for StandardTokenizer {
    type TokenStream<'a> = StandardStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> StandardStream<'a> {
        self.token.reset();
        StandardStream { text, cuts: Cuts::new(text), token: &mut self.token }
    }
}

impl TokenStream for StandardStream<'_> {
    fn advance(&mut self) -> bool {
        let Some((start, end)) = self.cuts.next() else { return false };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.offset_from = start;
        self.token.offset_to = end;
        self.token.text.clear();
        push_lower(&mut self.token.text, &self.text[start..end]);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let cut = |(start, end): (usize, usize)| {
            let mut word = String::new();
            push_lower(&mut word, &text[start..end]);
            word
        };
        let cut: Vec<String> = Cuts::new(text).map(cut).collect();
        let mut visited = Vec::new();
        each_word(text, &mut String::new(), |word| visited.push(word.to_owned()));
        assert_eq!(visited, cut);
        cut
    }

    #[test]
    fn words_are_those_of_lucene() {
        let cases: [(&str, &[&str]); 27] = [
            ("Hello, World!", &["hello", "world"]),
            ("don't can’t 'quoted'", &["don't", "can’t", "quoted"]),
            ("3.14 1,000 a.b 1.a x;y 1;2", &["3.14", "1,000", "a.b", "1", "a", "x", "y", "1;2"]),
            ("foo_bar _x __ a_ 1_2", &["foo_bar", "_x", "a_", "1_2"]),
            ("example.com e-mail u:v 1:2", &["example.com", "e", "mail", "u:v", "1", "2"]),
            ("a..b a.-b a.", &["a", "b", "a", "b", "a"]),
            ("naïve CAFÉ Ünder_x", &["naïve", "café", "ünder_x"]),
            ("foo.é é.foo é,1 1,é", &["foo.é", "é.foo", "é", "1", "1", "é"]),
            ("x² ½ ①", &["x"]),
            ("漢字かな カタカナ", &["漢", "字", "か", "な", "カタカナ"]),
            ("ภาษาไทย ok", &["ภาษาไทย", "ok"]),
            ("© ® ™ 🙂 👍🏽", &["©", "®", "™", "🙂", "👍🏽"]),
            ("#️⃣ *⃣ 1️⃣ #x", &["#️⃣", "*⃣", "1️⃣", "x"]),
            ("👨\u{200d}👩\u{200d}👧 🇩🇪🇫🇷 🇩", &["👨\u{200d}👩\u{200d}👧", "🇩🇪", "🇫🇷"]),
            ("אב\"ג ד'ה צ'", &["אב\"ג", "ד'ה", "צ'"]),
            ("カタ_カナ ｶﾅ 한국어", &["カタ_カナ", "ｶﾅ", "한국어"]),
            ("a\u{2e5}b a\u{600}b 1\u{fe10}2 \u{16fe2}", &["a", "b", "a\u{600}b", "1\u{fe10}2"]),
            ("٣٤ ３４ ª ʼa", &["٣٤", "３４", "ª", "ʼa"]),
            ("\u{200d}a a\u{200d} 𠀀𠀁 ກຂ", &["a", "a\u{200d}", "𠀀", "𠀁", "ກຂ"]),
            ("“smart” — dash–dash…", &["smart", "dash", "dash"]),
            ("a\"b a\"é", &["a", "b", "a", "é"]),
            ("I.B.M. U.S.A", &["i.b.m", "u.s.a"]),
            ("c++ c# $5 50% #tag @me", &["c", "c", "5", "50", "tag", "me"]),
            ("İstanbul ΣΑΣ", &["istanbul", "σασ"]),
            ("1_000.5 x1.2y", &["1_000.5", "x1.2y"]),
            ("tab\tnew\nline\r\nend", &["tab", "new", "line", "end"]),
            ("", &[]),
        ];
        for (text, wanted) in cases {
            assert_eq!(words(text), wanted, "{text}");
        }
        let long = "a".repeat(300);
        assert_eq!(words(&long).iter().map(String::len).collect::<Vec<_>>(), [255, 45]);
    }

    proptest! {
        /// The table for ASCII gives what the rules give.
        #[test]
        fn the_table_agrees_with_the_rules(text in "[ab1_.,:;'\" é’#*\u{fe0f}\u{20e3}-]{0,24}") {
            let mut by_rules = Vec::new();
            let mut at = 0;
            while at < text.len() {
                match longest(&text, at, text.len()) {
                    Some(end) => {
                        by_rules.push(&text[at..end]);
                        at = end;
                    }
                    None => at += text[at..].chars().next().map_or(1, char::len_utf8),
                }
            }
            let by_table: Vec<&str> = Cuts::new(&text).map(|(a, b)| &text[a..b]).collect();
            prop_assert_eq!(by_table, by_rules);
        }
    }
}
