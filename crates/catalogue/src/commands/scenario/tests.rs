use super::*;
use clap::Args;
use plimsoll_load::LoadArgs;

fn parser() -> clap::Command {
    let load = LoadArgs::augment_args(clap::Command::new("load"));
    clap::Command::new("plimsoll").subcommand(load)
}

fn of(text: &str) -> Result<Vec<String>, String> {
    command_line(text, Path::new("s.toml"), &[], &parser()).map(|line| line.words)
}

#[test]
fn each_mistake_is_one_line_with_file_line_and_field() {
    for (text, line) in [
        (
            "url = \"http://h:1/\"\ntimout = 5",
            "s.toml:2: unknown field `timout`; did you mean `timeout`?",
        ),
        ("url = \"http://h:1/\"\nhttp2 = 1", "s.toml:2: field `http2`: expected true or false"),
        (
            "url = \"http://h:1/\"\nrate = [1, 2]",
            "s.toml:2: field `rate`: expected one value, not a list",
        ),
        (
            "url = \"http://h:1/\"\nrate = { a = 1 }",
            "s.toml:2: field `rate`: expected a text or a number, not a table",
        ),
        (
            "url = \"http://h:1/\"\nthink = true",
            "s.toml:2: field `think`: expected a text or a number, not true",
        ),
        (
            "url = \"http://h:1/\"\nduration = \"5x\"",
            "s.toml:2: field `duration`: '5x' is not a duration; expected a number and a unit, such as 500ms, 10s or 1m30s",
        ),
        (
            "url = \"http://h:1/\"\narrivals = \"poison\"",
            "s.toml:2: field `arrivals`: 'poison' is not known; did you mean 'poisson'?",
        ),
        ("rate = 5", "s.toml: field `url` is missing"),
        (
            "command = \"lood\"",
            "s.toml:1: field `command`: 'lood' is not a command of files; did you mean `load`?",
        ),
    ] {
        assert_eq!(of(text).unwrap_err(), line, "{text}");
    }
    let told = of("url = \"http://h:1/\"\nslo = [\n\"p95=1s\",\n\"p95=100\"]").unwrap_err();
    assert!(told.starts_with("s.toml:4: field `slo`: 'p95=100'"), "{told}");
    assert!(of("url = ").unwrap_err().starts_with("s.toml:1: "));
}

#[test]
fn paths_begin_at_the_files_folder_and_flags_take_the_place_of_fields() {
    let text =
        "urls = [\"http://h:1/\"]\nrate = 5\nqueries = \"q.txt\"\nbody = \"@b\"\nkeepalive = false";
    let more = ["--rate".to_owned(), "7".to_owned()];
    let line = command_line(text, Path::new("in/s.toml"), &more, &parser()).unwrap();
    let joined = line.words.join(" ");
    for word in
        ["--queries=in/q.txt", "--body=@in/b", "--no-keepalive", "--rate 7", "-- http://h:1/"]
    {
        assert!(joined.contains(word), "{joined}");
    }
    assert!(!joined.contains("--rate=5"), "{joined}");
}

#[test]
fn the_older_form_is_told_by_its_own_fields() {
    let mut load = parser().find_subcommand("load").unwrap().clone();
    load.build();
    let is_older = |text| is_older(text, &load);
    assert!(
        is_older("job = \"x\"\ntargets = []")
            && is_older("load = {}")
            && is_older("[rows]\nfile = \"a\"")
    );
    assert!(!is_older("targets = []\nchecks = []") && !is_older("job = \"x\"\nurl = \"a\""));
}
