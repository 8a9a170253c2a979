//! pyvespa: synchronous and asynchronous feeding, single documents, visits, queries, removing everything.

use super::clients::{LONG, python};
use super::sets::{Documents, dump, expect_equal};
use crate::process::{Place, Running};
use std::path::Path;

#[test]
fn pyvespa_does_all_it_can() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/documents/pyvespa.py");
    let place = Place::new();
    let target = place.serve(&["search", "--durability", "async"]);
    let run = |what: &str| {
        let args = [script.as_os_str(), target.url.as_ref(), what.as_ref()];
        let mut command = place.program(python(), args);
        // Without a folder for compiled files inside of the sources.
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("HOME", place.path());
        Running::start(command, b"").wait(LONG).expect(0)
    };
    let used = run("use");
    let held: Documents = serde_json::from_str(&used.stdout).unwrap();
    assert!(held.len() > 700, "{}", held.len());
    expect_equal(&dump(&place, &target, &["--slices", "4"]).0, &held);
    run("delete");
    expect_equal(&dump(&place, &target, &["--slices", "4"]).0, &Documents::new());
}
