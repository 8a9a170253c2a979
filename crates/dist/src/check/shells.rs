//! Completions as the shells load them from a package, and manual pages as `man` prints them.

use super::{Release, ensure, files_below};
use crate::programs::{ended, output};
use anyhow::Result;
use std::process::Command;

/// Loads the completions that the .deb installs, in real shells, and completes a word with each.
pub fn shells(release: &Release<'_>) -> Result<String> {
    let root = release.work.path().join("deb");
    output(Command::new("dpkg-deb").arg("-x").arg(release.file(&release.names.deb)).arg(&root))?;
    let share = root.join("usr/share");
    let share = share.to_string_lossy();
    let bash = ". /usr/share/bash-completion/bash_completion; __load_completion plimsoll || exit 1; \
                COMP_WORDS=(plimsoll comp); COMP_CWORD=1; COMPREPLY=(); complete -p plimsoll >&2 || exit 1; \
                _plimsoll plimsoll comp plimsoll; printf '%s\\n' \"${COMPREPLY[@]}\"";
    // The line editor of zsh needs a terminal: what it would offer is what the function gives to `_describe`.
    let zsh = format!(
        "fpath=({share}/zsh/vendor-completions $fpath); autoload -Uz compinit; compinit -u -D; \
         [[ $_comps[plimsoll] = _plimsoll ]] || exit 1; _arguments() {{ : }}; \
         _describe() {{ local name=$argv[4]; print -rl -- ${{(P)name}} }}; \
         autoload +X _plimsoll; _plimsoll; _plimsoll_commands"
    );
    let fish = format!(
        "set -g fish_complete_path {share}/fish/vendor_completions.d; complete --do-complete 'plimsoll comp'"
    );
    for (shell, flags, script) in [
        ("bash", &["--norc", "-c"][..], bash.to_owned()),
        ("zsh", &["-f", "-c"], zsh),
        ("fish", &["--no-config", "-c"], fish),
    ] {
        let mut command = Command::new(shell);
        command.args(flags).arg(&script).env("HOME", release.work.path());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}/usr/bin:{path}", root.display()));
        command.env("BASH_COMPLETION_USER_DIR", format!("{share}/bash-completion"));
        let offered = output(&mut command)?;
        for word in ["compare", "completions"] {
            ensure(offered.contains(word), || format!("{shell} does not offer {word}: {offered}"))?;
        }
    }
    Ok("bash, zsh and fish complete 'comp'".to_owned())
}

/// All manual pages, through man with all warnings.
pub fn pages(release: &Release<'_>) -> Result<String> {
    let folder = release.archive.join("man/man1");
    let pages = files_below(&folder)?;
    ensure(pages.len() > 20, || format!("{} pages", pages.len()))?;
    for page in &pages {
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]).arg(folder.join(page));
        let ended =
            ended(man.env("LC_ALL", "C.UTF-8").env("MANROFFSEQ", "").env("MANWIDTH", "80"))?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure(ended.status.success() && said.is_empty(), || format!("{page}: {said}"))?;
    }
    Ok(format!("{} pages without a warning", pages.len()))
}
