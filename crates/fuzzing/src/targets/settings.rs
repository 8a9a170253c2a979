//! Texts of users: job and scenario files, matrices, lists of queries, values of flags, addresses.

use crate::holds::{one_line, printed};
use crate::memory::{Allowed, within};
use plimsoll_core::assertion::Assertion;
use plimsoll_core::schedule::{Pause, UserProfile};
use plimsoll_core::slo::{ClassSlo, Slo};
use plimsoll_core::units::{Count, Rate, Share, Size, Span};
use plimsoll_core::{clock, secrets};
use plimsoll_job::postgres::Address;
use plimsoll_job::toml_text;
use plimsoll_job::url::Url;
use plimsoll_record::bench_shape::Shape;
use plimsoll_search::{query, spec};
use plimsoll_workloads::http::ServerClock;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

const TEXT_MEMORY: Allowed = Allowed { base: 200_000, each: 1000 };
/// A table of a TOML file of one byte takes some hundred, and the parser of flags some megabytes.
const TOML_MEMORY: Allowed = Allowed { base: 8 << 20, each: 4000 };

fn parser() -> &'static clap::Command {
    static PARSER: OnceLock<clap::Command> = OnceLock::new();
    PARSER.get_or_init(plimsoll::parser)
}

/// Files in TOML: jobs, scenarios, matrices, lists of queries, with variables of the environment in them.
///
/// # Panics
/// When a property does not hold.
pub fn toml(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let shown = "fuzzed.toml";
    within(bytes.len(), TOML_MEMORY, || {
        if let Err(error) = plimsoll_catalogue::job::Job::parse(text, shown) {
            printed(&error);
        }
        if let Err(error) = toml_text::expanded(text, shown) {
            one_line(&error);
        }
        if let Err(error) = query::parse(text, shown) {
            one_line(&error);
        }
        match spec::read(text, Path::new(shown)) {
            Ok((matrix, hints)) => {
                hints.iter().for_each(one_line);
                if let Err(error) = matrix.resolve("") {
                    one_line(&spec::wrong_in(text, Path::new(shown), &error));
                }
            }
            Err(error) => one_line(&error),
        }
    });
}

/// A scenario file, as the command line that it stands for.
///
/// # Panics
/// When a property does not hold.
pub fn scenarios(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    within(bytes.len(), TOML_MEMORY, || {
        let path = Path::new("fuzzed.toml");
        match plimsoll_catalogue::command_line(text, path, &[], parser()) {
            Ok(line) => {
                line.hints.iter().for_each(one_line);
                assert!(!line.words.is_empty());
            }
            Err(error) => one_line(&error),
        }
    });
}

/// A value whose text is read as the same value.
fn value<T>(text: &str)
where
    T: FromStr + Display,
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            let shown = value.to_string();
            match shown.parse::<T>() {
                Ok(again) => assert_eq!(again.to_string(), shown, "of '{text}'"),
                Err(error) => panic!("'{text}' is shown as '{shown}', which is refused: {error}"),
            }
        }
        Err(error) => one_line(&error),
    }
}

/// Values of flags: times, sizes, rates, shares, limits, assertions, profiles of users, presets.
///
/// # Panics
/// When a property does not hold.
pub fn values(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    within(bytes.len(), TEXT_MEMORY, || {
        value::<Span>(text);
        value::<Rate>(text);
        value::<Share>(text);
        value::<Count>(text);
        value::<Slo>(text);
        value::<ClassSlo>(text);
        value::<Assertion>(text);
        value::<Pause>(text);
        value::<UserProfile>(text);
        text.parse::<Size>().err().iter().for_each(one_line);
        text.parse::<ServerClock>().err().iter().for_each(one_line);
        if let Some(us) = clock::parse_utc(text) {
            assert_eq!(clock::parse_utc(&clock::format_utc(us)), Some(us / 1_000_000 * 1_000_000));
        }
        let words: Vec<&str> = text.split(' ').collect();
        match Shape::of_words(&words) {
            Ok(shape) => {
                shape.check().err().iter().for_each(one_line);
                let _ = shape.to_string();
            }
            Err(error) => one_line(&error),
        }
    });
}

/// Addresses: URLs of HTTP, PostgreSQL, VoltDB, OTLP and the live page.
///
/// # Panics
/// When a property does not hold.
pub fn addresses(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    within(bytes.len(), TEXT_MEMORY, || {
        match Url::parse(text) {
            Ok(url) => url_as_others_read_it(text, &url),
            Err(error) => printed(&error),
        }
        match Address::parse(text) {
            Ok(address) => {
                let shown = address.shown();
                // A user may be called as the password is.
                let is_own = |word: &&str| word.len() > 8 && text.matches(*word).count() <= 1;
                if let Some(password) = address.password().filter(is_own) {
                    assert!(!shown.contains(password), "the password is shown: {shown}");
                }
                let again = Address::parse(&address.written());
                assert!(again.is_ok_and(|again| again.written() == address.written()), "{text}");
            }
            Err(error) => printed(&error),
        }
        if let Err(error) = plimsoll_voter::Database::parse(&[text.to_owned()]) {
            printed(&error);
        }
        match text.parse::<plimsoll_outlets::otlp::Endpoint>() {
            Ok(endpoint) => assert!(endpoint.uri().parse::<http::Uri>().is_ok()),
            Err(error) => one_line(&error),
        }
        text.parse::<plimsoll_live::Address>().err().iter().for_each(one_line);
        let shown = secrets::without_address_secrets(text);
        assert_eq!(secrets::without_address_secrets(&shown), shown, "of '{text}'");
    });
}

/// Host, port and target of a URL that is accepted, as the http crate reads them where it accepts it too.
fn url_as_others_read_it(text: &str, url: &Url) {
    let Ok(uri) = text.parse::<http::Uri>() else { return };
    let Some(authority) = uri.authority() else { return };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    assert_eq!(url.authority.host, host, "the host of {text}");
    let usual = if url.authority.tls { 443 } else { 80 };
    assert_eq!(url.authority.port, authority.port_u16().unwrap_or(usual), "the port of {text}");
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    // A query without a path follows the root.
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    assert_eq!(url.target, target, "the target of {text}");
}
