//! `plimsoll completions` and `plimsoll man`: what a real shell and a real formatter make of them.

use crate::cli::parser::{commands, name, path};
use crate::process::{Ended, PATIENCE, Place, Running};
use std::path::Path;

fn run(place: &Place, program: &str, args: &[&str]) -> Ended {
    Running::start(place.program(program, args), b"").wait(PATIENCE)
}

/// Fails with the command that installs a program, if it is missing.
fn needs(program: &str, package: &str) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    assert!(has, "{program} is missing; install it: .ci/tools {program}:{package}");
}

/// The words that bash offers at the end of a line.
fn offered(place: &Place, line: &[&str]) -> Vec<String> {
    let last = line.len() - 1;
    let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source script.bash; COMP_WORDS=({}); COMP_CWORD={last}; COMPREPLY=(); \
         complete -p plimsoll >&2; _plimsoll plimsoll '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        line[last],
        line[last - 1],
    );
    let ended = run(place, "bash", &["--norc", "-c", &script]).expect(0);
    assert!(ended.stderr.contains("-F _plimsoll"), "{}", ended.stderr);
    ended.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let place = Place::new();
    place.file("script.bash", place.run(["completions", "bash"]).expect(0).stdout);
    assert_eq!(offered(&place, &["plimsoll", "comp"]), ["compare", "completions"]);
    let flags = offered(&place, &["plimsoll", "load", "--ju"]);
    assert_eq!(flags, ["--junit"]);
    assert_eq!(offered(&place, &["plimsoll", "runs", "prune", "--older"]), ["--older-than"]);
    let formats = offered(&place, &["plimsoll", "report", "--format", "j"]);
    assert_eq!(formats, ["json", "junit"]);
    for command in commands() {
        let line: Vec<String> = [vec!["plimsoll".to_owned()], path(&command)].concat();
        let mut line: Vec<&str> = line.iter().map(String::as_str).collect();
        line.push("--");
        let found = offered(&place, &line);
        assert!(found.contains(&"--help".to_owned()), "{}: {found:?}", name(&command));
    }
}

#[test]
fn scripts_of_all_shells_know_all_commands() {
    let place = Place::new();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = place.run(["completions", shell]).expect(0).stdout;
        for command in commands() {
            let word = path(&command).pop().unwrap_or("plimsoll".to_owned());
            assert!(script.contains(&word), "{shell}: no {word}");
        }
        let file = place.file("script", script);
        needs(shell, shell);
        run(&place, shell, &[check, file.to_str().unwrap()]).expect(0);
    }
    let ended = place.run(["completions", "tcsh"]).expect(64);
    assert!(ended.stderr.contains("bash, zsh or fish"), "{}", ended.stderr);
}

#[test]
fn zsh_and_fish_load_the_script_from_a_folder_and_complete() {
    let place = Place::new();
    for (shell, file) in [("zsh", "_plimsoll"), ("fish", "plimsoll.fish")] {
        place.file(file, place.run(["completions", shell]).expect(0).stdout);
        needs(shell, shell);
    }
    // The line editor of zsh needs a terminal: what it would offer is what the function gives to `_describe`.
    let zsh = "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; print -r -- $_comps[plimsoll]; \
               _arguments() { : }; _describe() { local name=$argv[4]; print -rl -- ${(P)name} }; \
               autoload +X _plimsoll; _plimsoll; _plimsoll_commands";
    let offered = run(&place, "zsh", &["-f", "-c", zsh]).stdout;
    assert!(offered.starts_with("_plimsoll\n"), "{offered}");
    let commands = commands();
    let words: Vec<String> = commands.iter().filter_map(|one| path(one).first().cloned()).collect();
    for word in &words {
        assert!(offered.contains(&format!("{word}:")), "zsh: no {word} in\n{offered}");
    }
    let fish = "set -g fish_complete_path $PWD; complete --do-complete 'plimsoll '; \
                complete --do-complete 'plimsoll load --ju'; complete --do-complete 'plimsoll report --format j'";
    // fish completes only commands that it finds.
    let mut command = place.program("fish", ["--no-config", "-c", fish]);
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    let offered = Running::start(command, b"").wait(PATIENCE).expect(0).stdout;
    let firsts: Vec<&str> = offered.lines().filter_map(|line| line.split('\t').next()).collect();
    for word in words.iter().map(String::as_str).chain(["--junit", "json", "junit"]) {
        assert!(firsts.contains(&word), "fish: no {word} in\n{offered}");
    }
}

/// A page as `man` shows it.
fn shown(place: &Place, page: &Path) -> String {
    needs("groff", "groff");
    let page = page.to_str().unwrap();
    let ended =
        run(place, "groff", &["-man", "-Tutf8", "-P-c", "-rLL=100n", "-ww", page]).expect(0);
    assert_eq!(ended.stderr, "", "{page}: groff warns");
    let (mut text, mut before) = (String::new(), None);
    // Old formatters print a character twice for bold.
    for c in ended.stdout.chars() {
        match c {
            '\u{8}' => before = text.pop(),
            c => {
                text.push(c);
                before = None;
            }
        }
    }
    assert_eq!(before, None);
    text.replace(['\u{2010}', '\u{2212}'], "-")
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    let ended = place.run(["man", "--out", "pages"]).expect(0);
    let mut wanted: Vec<String> =
        commands().iter().map(|command| format!("{}.1", name(command).replace(' ', "-"))).collect();
    wanted.sort();
    let entries = std::fs::read_dir(place.path().join("pages")).unwrap();
    let mut found: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, wanted);
    assert!(ended.stderr.contains(&format!("{} pages in pages", wanted.len())), "{}", ended.stderr);
    for command in commands() {
        let file = format!("pages/{}.1", name(&command).replace(' ', "-"));
        let text = shown(&place, &place.path().join(&file));
        for part in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES"] {
            assert!(text.contains(part), "{file}: no {part}\n{text}");
        }
        for example in crate::cli::parser::examples(&command) {
            for line in &example.lines {
                let line = line.trim();
                assert!(text.contains(line), "{file}: no line '{line}'\n{text}");
            }
        }
    }
}

#[test]
fn a_page_is_printed_by_the_words_of_its_command() {
    let place = Place::new();
    let page = place.run(["man", "serve", "null"]).expect(0).stdout;
    assert!(page.contains(".TH plimsoll-serve-null 1"), "{page}");
    assert_eq!(place.run(["man"]).expect(0).stdout.matches(".TH plimsoll 1").count(), 1);
    needs("man", "man-db");
    place.file("page.1", &page);
    let mut man = place.program("man", ["--warnings", "-l", "page.1"]);
    man.env("MANPAGER", "cat").env("PAGER", "cat").env("LC_ALL", "C.UTF-8");
    let shown = Running::start(man, b"").wait(PATIENCE).expect(0);
    assert!(shown.stdout.contains("plimsoll-serve-null"), "{}", shown.stdout);
    assert_eq!(shown.stderr, "", "man warns");
    for (words, told) in [
        (&["man", "serch"][..], "did you mean 'search'?"),
        (&["man", "load", "x"], "plimsoll load has no commands"),
        (&["man", "--out", "/dev/null/x"], "--out /dev/null/x"),
    ] {
        let ended = place.run(words).expect(64);
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
}
