//! The same sources, in another folder and without their repository, make the same bytes.

use super::{Release, ensure};
use crate::compile::Target;
use crate::release::{self, SUMS};
use anyhow::{Context, Result};

/// Builds again and compares every file.
pub fn reproducible(release: &Release<'_>) -> Result<String> {
    // A longer name than that of any other folder: no length may remain either.
    let parent = release.sources.root.join("target/dist-check");
    let place = parent.join("a-folder-with-a-much-longer-name-than-the-first-one/plimsoll");
    if parent.exists() {
        std::fs::remove_dir_all(&parent).with_context(|| parent.display().to_string())?;
    }
    std::fs::create_dir_all(&place)?;
    release.sources.copy(&place)?;
    let other = release.sources.moved(place.clone());
    let target: Target = release.target.clone();
    release::make(&other, release.toolbox, &[target])?;
    let again = release::folder(&other);
    let mut count = 0;
    for entry in std::fs::read_dir(&again)? {
        let name = entry?.file_name();
        if name == SUMS {
            continue;
        }
        let first = std::fs::read(release.folder.join(&name))?;
        let same = first == std::fs::read(again.join(&name))?;
        ensure(same, || {
            format!("{} differs; both are kept, in {}", name.display(), again.display())
        })?;
        count += 1;
    }
    std::fs::remove_dir_all(&parent)?;
    Ok(format!("{count} files have the same bytes when they are built in another folder"))
}
