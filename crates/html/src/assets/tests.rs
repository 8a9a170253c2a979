use super::*;
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn uplot_is_the_published_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/uplot");
    let sums = std::fs::read_to_string(folder.join("SHA256")).unwrap();
    assert_eq!(sums.lines().count(), 2, "the script and its licence");
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let own: String =
            digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(own, sum, "{name} is not the file of uPlot {UPLOT_VERSION}");
    }
    let version = format!("(v{})", UPLOT_VERSION.trim());
    assert!(script().lines().next().unwrap().contains(&version), "version {version}");
}

#[test]
fn the_script_puts_no_text_into_markup() {
    for script in SCRIPTS {
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "XMLHttpRequest",
            "import(",
        ] {
            assert!(!script.contains(word), "{word} in the script");
        }
    }
    // The network is for the live page only.
    let live = include_str!("../../assets/script/live.js");
    for word in ["fetch(", "new EventSource("] {
        let uses: usize = SCRIPTS.iter().map(|script| script.matches(word).count()).sum();
        assert_eq!(uses, live.matches(word).count(), "{word} outside live.js");
    }
}

#[test]
fn the_script_keeps_to_the_form_that_can_be_made_lean() {
    for line in SCRIPTS.iter().flat_map(|script| script.lines()).map(str::trim) {
        let is_comment = ["//", "/*", "*"].iter().any(|mark| line.starts_with(mark));
        if is_comment {
            continue;
        }
        assert!(!line.contains(" // ") && !line.contains("/*"), "a comment beside code: {line}");
        // A name that is made shorter must not be that of a property, nor be taken by the short one.
        let (long, short) = lean::OFTEN;
        let is_word = |c: char| c.is_alphanumeric() || "_$".contains(c);
        let words: Vec<&str> = line.split(|c| !is_word(c)).collect();
        assert!(!words.contains(&short), "the name {short}: {line}");
        for property in ["{ LONG }", "{ LONG,", ", LONG }", " LONG:", "{LONG", ".LONG"] {
            let property = property.replace("LONG", long);
            assert!(!line.replace("...", "").contains(&property), "{property} in {line}");
        }
        for mark in ['"', '`'] {
            assert_eq!(
                line.matches(mark).count() % 2,
                0,
                "a string over the end of a line: {line}"
            );
        }
    }
}

/// Colours by the name of their custom property: the light one and the dark one.
fn colours() -> BTreeMap<String, [String; 2]> {
    let mut colours = BTreeMap::new();
    for line in include_str!("../../assets/page.css").lines() {
        let Some((name, value)) =
            line.trim().strip_prefix("--").and_then(|line| line.split_once(": "))
        else {
            continue;
        };
        let value = value.trim_end_matches(';');
        if let Some(pair) =
            value.strip_prefix("light-dark(").and_then(|pair| pair.strip_suffix(')'))
        {
            let (light, dark) = pair.split_once(", ").unwrap();
            colours.insert(name.to_owned(), [light.to_owned(), dark.to_owned()]);
        } else if let Some(other) =
            value.strip_prefix("var(--").and_then(|other| other.strip_suffix(')'))
        {
            let pair: [String; 2] = colours[other].clone();
            colours.insert(name.to_owned(), pair);
        }
    }
    colours
}

/// Relative luminance as WCAG 2 has it.
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn colours_have_the_contrast_of_wcag_aa() {
    assert!((contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9);
    let colours = colours();
    let tones = colours.keys().filter(|name| name.starts_with("tone-"));
    let texts: Vec<&String> = tones
        .chain(colours.keys().filter(|name| ["ink", "muted", "link"].contains(&name.as_str())))
        .collect();
    assert!(texts.len() > 30, "{texts:?}");
    for name in texts {
        for paper in ["paper", "card"] {
            for theme in [0, 1] {
                let ratio = contrast(&colours[name][theme], &colours[paper][theme]);
                assert!(ratio >= 4.5, "{name} on {paper}, theme {theme}: {ratio:.2}");
            }
        }
    }
}

#[test]
fn every_tone_of_the_contract_has_a_colour() {
    let colours = colours();
    let tones = "offered achieved ok failed response service server lag p50 p90 p99 max cpu memory network disk neutral good \
                 warn bad series-1 series-2 series-3 series-4 series-5 series-6 series-7 series-8";
    for tone in tones.split_whitespace() {
        assert!(colours.contains_key(&format!("tone-{tone}")), "{tone}");
    }
}

#[test]
fn the_heat_map_gets_darker_or_lighter_all_the_way() {
    let colours = colours();
    for (theme, sign) in [(0, -1.0), (1, 1.0)] {
        let steps: Vec<f64> =
            (0..6).map(|step| sign * luminance(&colours[&format!("heat-{step}")][theme])).collect();
        assert!(steps.is_sorted_by(|a, b| a < b), "theme {theme}: {steps:?}");
    }
}
