//! The package for Fedora, RHEL and openSUSE.

use crate::compile::Target;
use crate::contents::Contents;
use crate::deb::{DESCRIPTION, SUMMARY};
use crate::elf::Needs;
use crate::sources::Sources;
use anyhow::{Context, Result};
use rpm::{BuildConfig, CompressionType, Dependency, FileOptions, PackageBuilder};

/// Returns the package.
///
/// # Errors
/// When the builder refuses a file.
pub fn package(
    sources: &Sources,
    contents: &Contents,
    needs: &Needs,
    target: &Target,
) -> Result<Vec<u8>> {
    let epoch = u32::try_from(sources.epoch).context("the time of the commit is after 2106")?;
    let config = BuildConfig::v4().compression(CompressionType::Gzip).source_date(epoch);
    let mut builder =
        PackageBuilder::new("plimsoll", &sources.version, "Apache-2.0", &target.processor, SUMMARY);
    builder.using_config(config).release("1").description(DESCRIPTION);
    builder.build_host("reproducible").group("Applications/Internet");
    let mut data = contents.installed("usr/share/zsh/site-functions")?;
    data.add("usr/share/licenses/plimsoll/LICENSE", contents.licence.clone());
    for folder in ["usr/share/doc/plimsoll", "usr/share/licenses/plimsoll"] {
        builder.with_dir_entry(FileOptions::dir(format!("/{folder}")).permissions(0o755))?;
    }
    for folder in data.folders().iter().filter(|path| path.starts_with("usr/share/doc/plimsoll/")) {
        builder.with_dir_entry(FileOptions::dir(format!("/{folder}")).permissions(0o755))?;
    }
    for (path, file) in data.files {
        let mut options = FileOptions::new(format!("/{path}")).permissions(file.mode as u16);
        if path.starts_with("usr/share/doc/") || path.starts_with("usr/share/man/") {
            options = options.doc();
        } else if path.starts_with("usr/share/licenses/") {
            options = options.license();
        }
        builder.with_file_contents(file.bytes, options).with_context(|| path.clone())?;
    }
    for requirement in requirements(needs) {
        builder.requires(Dependency::any(requirement));
    }
    let mut bytes = Vec::new();
    builder.build()?.write(&mut bytes)?;
    Ok(bytes)
}

/// The libraries and versions of symbols, as rpm names them.
#[must_use]
pub fn requirements(needs: &Needs) -> Vec<String> {
    let mut found = Vec::new();
    for (library, versions) in &needs.versions {
        if !versions.is_empty() {
            found.push(format!("{library}()(64bit)"));
        }
        found.extend(versions.iter().map(|version| format!("{library}({version})(64bit)")));
    }
    found
}
