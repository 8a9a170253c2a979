//! The runner of all tests: what failed beside others is asked once more, alone, and named.

use crate::process::{Ended, Place, Running};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Output of the first round: two of three tests failed.
const FIRST: &str = "\
test a::one ... FAILED
test a::two ... FAILED

failures:

---- a::one stdout ----

thread 'a::one' (12) panicked at tests/a.rs:1:1:
36 requests came, not 40

---- a::two stdout ----

thread 'a::two' (13) panicked at tests/a.rs:2:1:
nothing came

failures:
    a::one
    a::two

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
";

/// Runs the runner with a cargo that says `FIRST` with code 101, and to whoever asks again `second`.
fn tests_with(first: &str, second: &str, second_code: i32) -> (Ended, String) {
    let place = Place::new();
    let (first, second) = (place.file("first", first), place.file("second", second));
    let (first, second) = (first.display(), second.display());
    let asked = place.path().join("asked");
    let cargo = place.script(
        "cargo",
        &format!(
            "#!/bin/sh\necho \"$*\" >> {}\ncase \"$*\" in\n*--exact*) cat {second}; exit {second_code};;\n*) cat {first}; exit 101;;\nesac\n",
            asked.display()
        ),
    );
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/tests"));
    command.env("CARGO", &cargo);
    let ended = Running::start(command, b"").wait(Duration::from_secs(20));
    (ended, std::fs::read_to_string(asked).unwrap())
}

#[test]
fn what_passes_alone_is_named_with_what_it_said_before() {
    let alone = "test result: ok. 2 passed; 0 failed; 0 ignored; finished in 1.00s\n";
    let (ended, asked) = tests_with(FIRST, alone, 0);
    let ended = ended.expect(0);
    assert!(asked.ends_with("-- --exact --test-threads 1 a::one a::two\n"), "{asked}");
    let (_, end) = ended.stdout.split_once("the machine was not quiet: 2 tests").unwrap();
    assert!(end.contains("  a::one: 36 requests came, not 40\n"), "{end}");
    assert!(end.contains("  a::two: nothing came\n"), "{end}");
}

#[test]
fn what_fails_alone_fails() {
    let alone = "test result: FAILED. 1 passed; 1 failed; 0 ignored; finished in 1.00s\n";
    tests_with(FIRST, alone, 101).0.expect(101);
}

#[test]
fn a_second_round_that_ran_fewer_tests_excuses_none() {
    let alone = "test result: ok. 1 passed; 0 failed; 0 ignored; finished in 1.00s\n";
    tests_with(FIRST, alone, 0).0.expect(101);
}

#[test]
fn what_does_not_compile_or_has_no_name_is_not_asked_again() {
    let (ended, asked) = tests_with("error: could not compile `a`\n", "", 0);
    ended.expect(101);
    assert_eq!(asked.lines().count(), 1, "{asked}");
    // A test of a documentation has a name that cannot be asked for: then nobody is.
    let of_docs = FIRST.replace("a::two", "src/a.rs - two (line 3)");
    let (ended, asked) = tests_with(&of_docs, "", 0);
    ended.expect(101);
    assert_eq!(asked.lines().count(), 1, "{asked}");
}

#[test]
fn twenty_five_failures_are_no_accident() {
    let names: String = (0..25).map(|i| format!("    a::t{i}\n")).collect();
    let many =
        format!("\nfailures:\n{names}\ntest result: FAILED. 0 passed; 25 failed; 0 ignored\n");
    let (ended, asked) = tests_with(&many, "", 0);
    ended.expect(101);
    assert_eq!(asked.lines().count(), 1, "{asked}");
}
