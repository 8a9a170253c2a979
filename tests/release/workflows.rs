//! The workflows of the forge: linted by actionlint and zizmor, as `.ci/linters` installs them, and by rules of their own.

use super::{linter, read, root};
use crate::process::{Place, Running};
use saphyr::{LoadableYamlNode, Yaml};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Permissions to write, and why: (workflow, job, permission).
const WRITES: [(&str, &str, &str); 3] = [
    // The signature of the workflow, and the attestation.
    ("release.yml", "attest", "id-token"),
    ("release.yml", "attest", "attestations"),
    // The draft of a release.
    ("release.yml", "draft", "contents"),
];

fn workflows() -> Vec<(String, String)> {
    let folder = root().join(".github/workflows");
    let mut found: Vec<(String, String)> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// A mapping as pairs; nothing for anything else.
fn pairs<'a>(node: Option<&'a Yaml<'a>>) -> Vec<(&'a str, &'a Yaml<'a>)> {
    let Some(mapping) = node.and_then(Yaml::as_mapping) else { return Vec::new() };
    mapping.iter().map(|(key, value)| (key.as_str().unwrap_or_default(), value)).collect()
}

/// An action by owner, name and commit, if that is what it is pinned to.
fn pinned(uses: &str) -> Option<(&str, &str)> {
    let (action, commit) = uses.split_once('@')?;
    let is_commit = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
    (is_commit && action.contains('/')).then_some((action, commit))
}

/// The faults of a workflow by our own rules.
fn faults(name: &str, text: &str) -> Vec<String> {
    let documents = Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let workflow = &documents[0];
    let mut faults = Vec::new();
    let mut fault = |place: &str, what: String| faults.push(format!("{name}: {place}: {what}"));
    let permissions = workflow.as_mapping_get("permissions").and_then(Yaml::as_mapping);
    if permissions.is_none_or(|permissions| !permissions.is_empty()) {
        fault("permissions", "write 'permissions: {}', and what a job needs in the job".to_owned());
    }
    if workflow.as_mapping_get("concurrency").is_none() {
        fault("concurrency", "missing".to_owned());
    }
    for (job, node) in pairs(workflow.as_mapping_get("jobs")) {
        match node.as_mapping_get("timeout-minutes").and_then(Yaml::as_integer) {
            Some(1..=300) => {}
            other => fault(job, format!("timeout-minutes {other:?}; write 1 to 300")),
        }
        if node.as_mapping_get("permissions").is_none() {
            fault(job, "no permissions".to_owned());
        }
        for (permission, level) in pairs(node.as_mapping_get("permissions")) {
            let may_write = WRITES.contains(&(name, job, permission));
            let level = level.as_str().unwrap_or_default();
            if level != "read" && !(may_write && level == "write") {
                fault(job, format!("permission {permission}: {level}"));
            }
        }
        let steps = node.as_mapping_get("steps").and_then(Yaml::as_sequence);
        for step in steps.map_or(&[][..], |steps| steps) {
            for what in step_faults(step) {
                fault(job, what);
            }
        }
    }
    // The comment behind a hash is for people and for the program that updates it; the parser drops it.
    for line in text.lines().filter(|line| line.contains("uses:")) {
        let version = line.split_once(" # v").map_or("", |(_, version)| version);
        if version.split('.').count() != 3 || !version.starts_with(|c: char| c.is_ascii_digit()) {
            fault("uses", format!("'{}': write the version behind it: # v1.2.3", line.trim()));
        }
    }
    faults
}

fn step_faults(step: &Yaml) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(uses) = step.as_mapping_get("uses").and_then(Yaml::as_str) {
        if pinned(uses).is_none() {
            faults.push(format!("uses: {uses}: pin it to a commit of 40 digits"));
        }
        let with = step.as_mapping_get("with");
        let keeps = with.and_then(|with| with.as_mapping_get("persist-credentials"));
        if uses.starts_with("actions/checkout@") && keeps.and_then(Yaml::as_bool) != Some(false) {
            faults.push("checkout keeps its credentials; write persist-credentials: false".into());
        }
    }
    let run = step.as_mapping_get("run").and_then(Yaml::as_str).unwrap_or_default();
    if run.contains("${{") {
        faults.push(format!("an expression in a script, which could be a command; use env: {run}"));
    }
    faults
}

#[test]
fn workflows_are_pinned_limited_and_may_write_only_where_they_must() {
    let all = workflows();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ci.yml", "nightly.yml", "release.yml"]);
    let found: Vec<String> = all.iter().flat_map(|(name, text)| faults(name, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_fault_of_a_workflow_is_found() {
    let (name, good) = workflows().into_iter().find(|(name, _)| name == "ci.yml").unwrap();
    let checkout = good.lines().find(|line| line.contains("uses: actions/checkout")).unwrap();
    let commit = checkout.split(['@', ' ']).find(|word| word.len() == 40).unwrap();
    for (from, to, expected) in [
        (commit, "v7", "pin it to a commit"),
        (commit, &commit[..39], "pin it to a commit"),
        (" # v7.0.1", "", "write the version behind it"),
        ("permissions: {}\n", "", "write 'permissions: {}'"),
        ("permissions: {}\n", "permissions: write-all\n", "write 'permissions: {}'"),
        ("contents: read", "contents: write", "permission contents: write"),
        ("    permissions:\n      contents: read\n", "", "no permissions"),
        ("    timeout-minutes: 30\n", "", "timeout-minutes"),
        ("persist-credentials: false", "fetch-depth: 1", "checkout keeps its credentials"),
        ("run: make \"$TARGET\"", "run: make ${{ matrix.target }}", "an expression in a script"),
        ("concurrency:\n", "concurrent:\n", "concurrency"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from} is not in {name}");
        let found = faults(&name, &bad);
        assert!(found.iter().any(|one| one.contains(expected)), "{from} -> {to}: {found:?}");
    }
}

#[test]
fn an_action_has_one_version_everywhere() {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, text) in workflows() {
        for line in text.lines().filter_map(|line| line.split_once("uses: ")) {
            let (action, version) = line.1.split_once('@').unwrap();
            seen.entry(action.to_owned()).or_default().insert(version.to_owned());
        }
    }
    assert!(seen.len() >= 4, "{seen:?}");
    for (action, versions) in seen {
        assert_eq!(versions.len(), 1, "{action}: {versions:?}");
        // Fewer makers have to be trusted.
        assert!(action.starts_with("actions/"), "{action} is not one of the forge's own");
    }
}

/// Scripts of all steps, with the values of the matrix that a script takes from its environment.
fn scripts() -> String {
    workflows().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn workflows_call_targets_and_scripts_that_exist() {
    let (text, makefile, ci) = (scripts(), read("Makefile"), read(".ci/run"));
    let mut targets: BTreeSet<&str> = BTreeSet::new();
    for (at, _) in text.match_indices("make ") {
        let word = text[at + 5..].split_whitespace().next().unwrap_or_default();
        targets.insert(word);
    }
    targets.extend(text.lines().filter_map(|line| line.trim().strip_prefix("target: ")));
    targets.remove("\"$TARGET\"");
    for wanted in ["test", "test-fast", "package", "install-check", "dist", "simulate", "fuzz"] {
        assert!(targets.contains(wanted), "no workflow calls make {wanted}: {targets:?}");
    }
    for target in targets {
        let rule = format!("\n{target}:");
        assert!(makefile.contains(&rule), "a workflow calls make {target}: not in the Makefile");
    }
    for line in text.lines().filter(|line| line.contains("./.ci/")) {
        let script = line.split_whitespace().find_map(|word| word.strip_prefix("./")).unwrap();
        assert!(root().join(script).is_file(), "{line}: no {script}");
    }
    let steps = text.lines().find_map(|line| line.trim().strip_prefix("step: [")).unwrap();
    for step in steps.trim_end_matches(']').split(", ") {
        let is_step = |line: &str| line.starts_with("step ") && line.ends_with(&format!(" {step}"));
        assert!(ci.lines().any(is_step), ".ci/run has no step {step}");
    }
}

/// cargo starts a bench in the folder of its package, and everything else where it was called.
#[test]
fn rules_name_pages_where_their_programs_look_for_them() {
    let mut seen = 0;
    for line in read("Makefile").lines().filter(|line| line.starts_with('\t')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| ["--write", "--page"].contains(&pair[0])) {
            let page = pair[1].trim_end_matches(',').trim_end_matches(')');
            let relative = page.strip_prefix("$(CURDIR)/");
            assert!(root().join(relative.unwrap_or(page)).is_file(), "{line}: no {page}");
            assert_eq!(relative.is_some(), words.contains(&"bench"), "{line}");
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen} pages");
}

/// Runs a linter on a folder of workflows; returns its exit code and what it printed.
fn lint(place: &Place, program: &Path, arguments: &[&str]) -> (i32, String) {
    let command = place.program(program, arguments);
    let ended = Running::start(command, b"").wait(Duration::from_secs(60));
    (ended.code.unwrap_or(-1), ended.stdout + &ended.stderr)
}

/// The workflows in a folder of their own, one of them changed.
fn copied(change: impl Fn(&str) -> String) -> Place {
    let place = Place::new();
    std::fs::create_dir_all(place.path().join(".github/workflows")).unwrap();
    for (name, text) in workflows() {
        let text = if name == "ci.yml" { change(&text) } else { text };
        place.file(&format!(".github/workflows/{name}"), text);
    }
    place
}

const FILES: [&str; 3] =
    [".github/workflows/ci.yml", ".github/workflows/nightly.yml", ".github/workflows/release.yml"];

#[test]
fn actionlint_has_no_complaint() {
    let program = linter("ACTIONLINT", "actionlint");
    let place = copied(str::to_owned);
    let (code, said) = lint(&place, &program, &FILES);
    assert_eq!((code, said.as_str()), (0, ""));
    // shellcheck is what reads the scripts; without it, actionlint would be silent about them.
    for (from, to, complaint) in [
        ("ubuntu-24.04-arm", "ubuntu-24.04-leg", "label"),
        ("matrix.runner }}", "matrix.runer }}", "runer"),
        ("run: make \"$TARGET\"", "run: make $TARGET", "shellcheck"),
    ] {
        let place = copied(|text| text.replace(from, to));
        let (code, said) = lint(&place, &program, &FILES);
        assert!(code == 1 && said.contains(complaint), "{from} -> {to}: {code}: {said}");
    }
}

#[test]
fn zizmor_has_no_complaint() {
    let program = linter("ZIZMOR", "bin/zizmor");
    let arguments = ["--offline", "--no-progress", "--persona", "auditor", ".github"];
    let place = copied(str::to_owned);
    std::fs::copy(
        root().join(".github/dependabot.yml"),
        place.path().join(".github/dependabot.yml"),
    )
    .unwrap();
    let (code, said) = lint(&place, &program, &arguments);
    assert_eq!(code, 0, "{said}");
    let place = copied(|text| text.replace("persist-credentials: false", "fetch-depth: 1"));
    let (code, said) = lint(&place, &program, &arguments);
    assert!(code != 0 && said.contains("artipacked"), "{code}: {said}");
}
