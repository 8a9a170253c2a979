//! Contents of every package of a release: the program, its licences, and the pages and scripts that it prints itself.

use crate::book;
use crate::compile::{Built, Target};
use crate::graph::Package;
use crate::licences::third_party;
use crate::programs::output;
use crate::sources::Sources;
use crate::tree::{Tree, gzip};
use anyhow::{Context, Result};

/// Shells, and the name of the file in which each looks for the completions of plimsoll.
const SHELLS: [(&str, &str); 3] =
    [("bash", "plimsoll"), ("zsh", "_plimsoll"), ("fish", "plimsoll.fish")];

/// The parts of all packages for one target.
pub struct Contents {
    /// The program, linked against the system's C library.
    pub program: Vec<u8>,
    /// The program, linked against nothing.
    pub fixed: Vec<u8>,
    /// Manual pages.
    pub man: Tree,
    /// A file of completions for each shell: bash, zsh, fish.
    pub completions: Vec<(&'static str, &'static str, String)>,
    /// The book as HTML.
    pub book: Tree,
    /// Licence of plimsoll.
    pub licence: String,
    /// Licences of all that it contains.
    pub third_party: String,
    /// Its first page.
    pub readme: String,
    /// Its changes.
    pub changes: String,
}

impl Contents {
    /// Gathers the parts; manual pages and completions are printed by the program itself.
    ///
    /// # Errors
    /// When a file is missing, or the program cannot be run.
    pub fn gather(
        sources: &Sources,
        packages: &[Package],
        built: &Built,
        target: &Target,
    ) -> Result<Self> {
        let read = |path: &std::path::Path| {
            std::fs::read(path).with_context(|| format!("reading {}", path.display()))
        };
        let folder = tempfile::tempdir()?;
        let mut man = target.command(&built.fixed)?;
        output(man.args(["man", "--out"]).arg(folder.path()))?;
        let mut completions = Vec::new();
        for (shell, name) in SHELLS {
            let script = output(target.command(&built.fixed)?.args(["completions", shell]))?;
            completions.push((shell, name, script));
        }
        Ok(Self {
            program: read(&built.shared)?,
            fixed: read(&built.fixed)?,
            man: Tree::read(folder.path())?,
            completions,
            book: book::pages(sources)?,
            licence: sources.read("LICENSE")?,
            third_party: third_party(sources, packages)?,
            readme: sources.read("README.md")?,
            changes: sources.read("CHANGELOG.md")?,
        })
    }

    /// The files of the archive, below its folder.
    #[must_use]
    pub fn archive(&self) -> Tree {
        let mut tree = Tree::default();
        tree.add_program("plimsoll", self.program.clone());
        tree.add("LICENSE", self.licence.clone());
        tree.add("THIRD-PARTY.txt", self.third_party.clone());
        tree.add("README.md", self.readme.clone());
        tree.add("CHANGELOG.md", self.changes.clone());
        tree.graft("man/man1", &self.man);
        for (_, name, script) in &self.completions {
            tree.add(format!("completions/{name}"), script.clone());
        }
        tree.graft("book", &self.book);
        tree
    }

    /// The files of a distribution's package. `zsh` is the folder in which its zsh looks for completions.
    ///
    /// # Errors
    /// Never: files are packed in memory.
    pub fn installed(&self, zsh: &str) -> Result<Tree> {
        let mut tree = Tree::default();
        tree.add_program("usr/bin/plimsoll", self.program.clone());
        for (name, page) in &self.man.files {
            tree.add(format!("usr/share/man/man1/{name}.gz"), gzip(&page.bytes)?);
        }
        for (shell, name, script) in &self.completions {
            let folder = match *shell {
                "bash" => "usr/share/bash-completion/completions",
                "zsh" => zsh,
                _ => "usr/share/fish/vendor_completions.d",
            };
            tree.add(format!("{folder}/{name}"), script.clone());
        }
        let doc = "usr/share/doc/plimsoll";
        tree.add(format!("{doc}/README.md"), self.readme.clone());
        tree.add(format!("{doc}/changelog.gz"), gzip(self.changes.as_bytes())?);
        tree.add(format!("{doc}/THIRD-PARTY.txt.gz"), gzip(self.third_party.as_bytes())?);
        tree.graft(&format!("{doc}/book"), &self.book);
        Ok(tree)
    }
}
