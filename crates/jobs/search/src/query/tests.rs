use super::*;
use crate::SearchError;

fn one(text: &str) -> Result<Clause, SearchError> {
    parse(&format!("[[query]]\nname = \"q\"\n{text}"), "q.toml").map(|mut all| all.remove(0).clause)
}

#[test]
fn every_kind_is_read() {
    for (text, kind) in [
        ("kind = \"fuzzy\"\ntext = \"Harbor\"", "fuzzy"),
        (
            "kind = \"match\"\ntext = \"two words\"\noperator = \"and\"\ndistance = \"cell\"",
            "match",
        ),
        ("kind = \"phrase\"\ntext = \"two words\"", "phrase"),
        ("kind = \"term\"\nfield = \"category\"\ntext = \"games\"", "term"),
        ("kind = \"term\"\nfield = \"score\"\nvalues = [7]", "term"),
        ("kind = \"terms\"\nfield = \"category\"\nvalues = [\"a\", \"b\"]", "terms"),
        ("kind = \"prefix\"\ntext = \"har\"", "prefix"),
        ("kind = \"range\"\nfield = \"score\"\nat-least = 5\nbelow = 9", "range"),
        ("kind = \"exists\"\nfield = \"author\"", "exists"),
        ("kind = \"ids\"\nvalues = [\"s1\"]", "ids"),
        ("kind = \"all\"", "all"),
        ("kind = \"bool\"\nmust = [{ kind = \"all\" }]", "bool"),
        ("kind = \"raw\"\nvespa = \"select * from doc where true\"", "raw"),
    ] {
        let clause = one(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(clause.kind(), kind);
    }
}

#[test]
fn a_word_of_a_text_field_is_in_lower_case_and_follows_the_cell() {
    let clause = one("kind = \"fuzzy\"\ntext = \"Harbor\"").unwrap();
    let expected = Clause::Fuzzy {
        field: "body".to_owned(),
        word: "harbor".to_owned(),
        distance: Distance::OfCell,
    };
    assert_eq!(clause, expected);
    assert!(clause.is_fuzzy());
    assert_eq!((Distance::OfCell.in_cell(4), Distance::Fixed(1).in_cell(4)), (4, 1));
    let keyword = one("kind = \"prefix\"\nfield = \"author\"\ntext = \"User\"").unwrap();
    assert!(matches!(keyword, Clause::Prefix { text, .. } if text == "User"));
    let exact = one("kind = \"match\"\ntext = \"a b\"").unwrap();
    assert!(!exact.is_fuzzy(), "a match is exact unless it says otherwise");
}

#[test]
fn should_counts_once_where_nothing_else_must() {
    let minimum = |text: &str| match one(text).unwrap() {
        Clause::Bool { minimum, .. } => minimum,
        other => panic!("{other:?}"),
    };
    let all = "{ kind = \"all\" }";
    assert_eq!(minimum(&format!("kind = \"bool\"\nshould = [{all}, {all}]")), 1);
    assert_eq!(minimum(&format!("kind = \"bool\"\nmust = [{all}]\nshould = [{all}]")), 0);
    assert_eq!(minimum(&format!("kind = \"bool\"\nshould = [{all}, {all}]\nminimum = 2")), 2);
}

#[test]
fn what_is_wrong_is_told_with_its_query() {
    for (text, part) in [
        ("kind = \"fuzy\"\ntext = \"x\"", "unknown kind 'fuzy'; there are fuzzy"),
        ("kind = \"fuzzy\"\ntext = \"two words\"", "takes one word"),
        ("kind = \"fuzzy\"", "needs a text"),
        ("kind = \"match\"\ntext = \"x\"\noperator = \"xor\"", "operator 'xor'"),
        ("kind = \"match\"\ntext = \"x\"\ndistance = 9", "0 to 8"),
        ("kind = \"match\"\ntext = \"x\"\nminimum = 1", "match has no 'minimum'"),
        ("kind = \"range\"\nfield = \"score\"", "needs a bound"),
        ("kind = \"bool\"", "needs must"),
        ("kind = \"bool\"\nshould = [{ kind = \"all\" }]\nminimum = 2", "more than the 1"),
        ("kind = \"bool\"\nshould = [{ kind = \"all\" }]\nminimum = 0", "leave it out"),
        ("kind = \"bool\"\nmust = [{ kind = \"all\", size = 3 }]", "belong to the query"),
        ("kind = \"raw\"\nelasticsearch = \"{\"", "is not JSON"),
        ("kind = \"match\"\ntext = \"...\"", "no word"),
        ("kind = \"all\"\nrepeat = 0", "repeat is 1"),
        ("kind = \"all\"\nsize = 20000", "size is 0 to 10000"),
        ("kind = \"term\"\nfield = \"a b\"\ntext = \"x\"", "letters, digits"),
    ] {
        let error = one(text).unwrap_err().to_string();
        assert!(error.contains("q.toml") && error.contains(part), "{text}: {error}");
        assert!(error.contains("'q'") && !error.contains('\n'), "{error}");
    }
    let unknown = one("kind = \"all\"\nsizes = 3").unwrap_err().to_string();
    assert!(unknown.starts_with("q.toml:4: "), "{unknown}");
    let half = one("kind = \"match\"\ntext = \"x\"\ndistance = 2.5").unwrap_err().to_string();
    assert_eq!(
        half,
        "q.toml:5: field `query.distance`: distance is \"cell\", or a whole number of 0 to 8"
    );
    let twice = "[[query]]\nname=\"a\"\nkind=\"all\"\n".repeat(2);
    assert!(parse(&twice, "f").unwrap_err().to_string().contains("two of this name"));
    assert!(parse("", "f").unwrap_err().to_string().contains("no query"));
}

#[test]
fn words_are_what_tokenizers_agree_on() {
    assert_eq!(words("Hello, World-2!"), ["hello", "world", "2"]);
}

#[test]
fn a_place_for_a_rows_value_is_a_word() {
    assert_eq!(
        words("Old {{Term}} and {{{raw}}}, x"),
        ["old", "{{Term}}", "and", "{{{raw}}}", "x"]
    );
    assert_eq!(words("{{open"), ["open"]);
    // As many places as a template has, without a frame of the stack for each.
    assert_eq!(words(&"x {{y}} ".repeat(100_000)).len(), 200_000);
    let made = parse("[[query]]\nname = \"a\"\nkind = \"fuzzy\"\ntext = \"{{Term}}\"", "q");
    let Clause::Fuzzy { word, .. } = &made.unwrap()[0].clause else { panic!() };
    assert_eq!(word, "{{Term}}");
}

#[test]
fn the_distances_that_are_asked_for_are_known() {
    let asked = |text: &str| one(text).unwrap().distances(2).into_iter().collect::<Vec<_>>();
    assert_eq!(asked("kind = \"fuzzy\"\ntext = \"sea\""), [2]);
    let both = "kind = \"bool\"\nmust = [{ kind = \"match\", text = \"a\", distance = 4 }]\n\
                must-not = [{ kind = \"fuzzy\", text = \"b\" }]";
    assert_eq!(asked(both), [2, 4]);
    assert!(asked("kind = \"match\"\ntext = \"a\"").is_empty(), "exact");
    assert_eq!(asked("kind = \"raw\"\nvespa = \"x {distance}\""), [2]);
    assert!(asked("kind = \"raw\"\nvespa = \"x\"").is_empty());
}
