//! Circles between the files of a crate.
//!
//! A module and its children are one: a child may use its parent, and a parent its children. Between the children of one
//! module, each taken with all that is below it, arrows must not form a circle. A name that a module passes on
//! (`pub use`) counts as the module that has it. Tests do not count.

use super::{rooms, root, sources};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Path of a module inside its crate; empty for the crate itself.
type Module = Vec<String>;

/// The arrows of a crate: each module, the modules that it uses, and the path by which.
type Arrows = BTreeMap<Module, BTreeMap<Module, String>>;

/// A `use` item with its braces opened, in single paths.
fn paths_of(item: &str) -> Vec<String> {
    let item = item.trim();
    let Some((before, inner)) = item.split_once('{') else {
        let path = item.split(" as ").next().unwrap_or_default();
        return vec![path.trim().trim_end_matches("::*").trim_end_matches("::self").to_owned()];
    };
    let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, sign) in inner.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| paths_of(&format!("{}{}", before.trim(), part.trim()))).collect()
}

/// What one crate has: modules with their text, and names that modules pass on.
struct Crate {
    modules: BTreeMap<Module, String>,
    passed_on: BTreeMap<Module, Module>,
    uses: Regex,
    inner: Regex,
}

impl Crate {
    fn read(folder: &Path) -> Self {
        let (comment, test, is_test) = (
            Regex::new(r"//[^\n]*").unwrap(),
            Regex::new(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))?\s+)?mod \w+ \{").unwrap(),
            Regex::new(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))?\s+)?mod (\w+);").unwrap(),
        );
        let mut modules = BTreeMap::new();
        let mut tests = BTreeSet::new();
        for (path, text) in sources(folder) {
            let inside = path.strip_prefix(folder).unwrap().with_extension("");
            let mut module: Module =
                inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&&**last)) {
                module.pop();
            }
            let text = comment.replace_all(&text, "");
            for found in is_test.captures_iter(&text) {
                tests.insert([module.clone(), vec![found[1].to_owned()]].concat());
            }
            let end = test.find(&text).map_or(text.len(), |found| found.start());
            modules.insert(module, text[..end].to_owned());
        }
        modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        let mut read = Self {
            modules,
            passed_on: BTreeMap::new(),
            uses: Regex::new(r"(?s)(pub(?:\([a-z: ]+\))?\s+)?\buse\s+([^;]+);").unwrap(),
            inner: Regex::new(r"\b(?:crate|super)(?:::\w+)+").unwrap(),
        };
        read.passed_on = read.passes_on();
        read
    }

    fn passes_on(&self) -> BTreeMap<Module, Module> {
        let mut passed = BTreeMap::new();
        for (module, text) in &self.modules {
            for item in self.uses.captures_iter(text).filter(|item| item.get(1).is_some()) {
                for path in paths_of(&item[2]) {
                    if let Some(from) = self.absolute(&path, module) {
                        let name = from.last().cloned();
                        passed.insert([&module[..], name.as_slice()].concat(), from);
                    }
                }
            }
        }
        passed
    }

    /// The path from the root of the crate; `None` for a path into another crate.
    fn absolute(&self, path: &str, module: &[String]) -> Option<Module> {
        let mut base: Module = module.to_vec();
        let mut parts = path.split("::").map(str::trim).peekable();
        match *parts.peek()? {
            "crate" => {
                parts.next();
                base.clear();
            }
            "self" => {
                parts.next();
            }
            "super" => {
                while parts.next_if_eq(&"super").is_some() {
                    base.pop()?;
                }
            }
            child => {
                let child = [&base[..], &[child.to_owned()]].concat();
                self.modules.get(&child)?;
            }
        }
        base.extend(parts.map(str::to_owned));
        Some(base)
    }

    /// The module in which the item of a path is.
    fn home(&self, mut path: Module) -> Module {
        for _ in 0..8 {
            let passed = (1..=path.len()).find_map(|end| {
                let from = self.passed_on.get(&path[..end])?;
                let is_module = self.modules.contains_key(&path[..end]);
                (!is_module).then(|| [&from[..], &path[end..]].concat())
            });
            match passed {
                Some(from) if from != path => path = from,
                _ => break,
            }
        }
        while !self.modules.contains_key(&path) && path.pop().is_some() {}
        path
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (module, text) in &self.modules {
            let items = self.uses.captures_iter(text).flat_map(|item| paths_of(&item[2]));
            let rest = self.uses.replace_all(text, "");
            let inside = self.inner.find_iter(&rest).map(|found| found.as_str().to_owned());
            for path in items.chain(inside) {
                let Some(home) = self.absolute(&path, module).map(|path| self.home(path)) else {
                    continue;
                };
                if home != *module {
                    arrows.entry(module.clone()).or_default().entry(home).or_insert(path);
                }
            }
        }
        arrows
    }
}

/// The modules that can be reached from one over arrows.
fn reached<'a>(from: &'a str, arrows: &'a BTreeMap<&str, BTreeSet<&str>>) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(one) = next.pop() {
        let new = arrows.get(one).into_iter().flatten().filter(|to| seen.insert(**to));
        next.extend(new.copied());
    }
    seen
}

/// The circles of a crate: parent and members, with the arrows between them.
fn circles(folder: &Path) -> Vec<(String, String)> {
    let code = Crate::read(folder);
    let all = code.arrows();
    let mut found = Vec::new();
    for parent in code.modules.keys() {
        let depth = parent.len();
        let below = |module: &Module| module.len() > depth && module.starts_with(parent);
        let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut edges = Vec::new();
        for (from, to, path) in
            all.iter().flat_map(|(from, to)| to.iter().map(move |(to, path)| (from, to, path)))
        {
            if below(from) && below(to) && from[depth] != to[depth] {
                arrows.entry(&from[depth]).or_default().insert(&to[depth]);
                edges.push((&from[depth], &to[depth], from.join("::"), path));
            }
        }
        // Two modules are in one circle if each can be reached from the other.
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            arrows.keys().map(|one| (*one, reached(one, &arrows))).collect();
        let mut left: BTreeSet<&str> =
            reach.iter().filter(|(one, to)| to.contains(*one)).map(|(one, _)| *one).collect();
        while let Some(first) = left.pop_first() {
            let back = |one: &&str| reach[*one].contains(first) && reach[first].contains(one);
            let mut members: BTreeSet<&str> = left.iter().copied().filter(back).collect();
            left.retain(|one| !members.contains(one));
            members.insert(first);
            let is_inside = |name: &str| members.contains(name);
            let of_circle = edges.iter().filter(|(from, to, ..)| is_inside(from) && is_inside(to));
            let lines: Vec<String> = of_circle
                .map(|(_, to, from, path)| format!("  {from} uses {to}: {path}"))
                .collect();
            let names: Vec<&str> = members.iter().copied().collect();
            let place = if parent.is_empty() { "-".to_owned() } else { parent.join("::") };
            found.push((format!("{place} {}", names.join(" ")), lines.join("\n")));
        }
    }
    found
}

#[test]
fn files_of_a_crate_form_no_circle() {
    let mut found = Vec::new();
    for room in rooms() {
        for (circle, arrows) in circles(&root().join("crates").join(&room).join("src")) {
            found.push(format!("{room} {circle}\n{arrows}"));
        }
    }
    let hint = "move what both need into a file of its own, or make one the child of the other";
    assert!(found.is_empty(), "circles between files; {hint}:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found_and_a_parent_with_its_children_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::Three;\n");
    write("a.rs", "mod inner;\nuse crate::{b::{One, Two}, other};\n");
    write("a/inner.rs", "use super::super::Three;\n// use crate::b::One;\n");
    write("b.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::x;\n}\n");
    write("c.rs", "use crate::b::One;\n");
    assert_eq!(circles(folder.path()), []);
    write("c.rs", "fn f() {\n    crate::a::x()\n}\n");
    let found = circles(folder.path());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "- a c");
    assert!(found[0].1.contains("a::inner uses c: super::super::Three"), "{}", found[0].1);
}
