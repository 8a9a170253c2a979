//! The bill of materials of a binary, as CycloneDX JSON.

use crate::graph::{Name, Package};
use crate::sources::Sources;
use anyhow::{Context, Result};
use plimsoll_core::clock::format_utc;
use serde_json::{Value, json};

/// Returns the bill of materials of the program for a target.
///
/// Packages that are linked are `required`; those that only take part in the build are `excluded`.
///
/// # Errors
/// When the program is not among the packages.
pub fn cyclonedx(sources: &Sources, packages: &[Package], target: &str) -> Result<Vec<u8>> {
    let is_program = |own: &&Package| own.name.0 == "plimsoll";
    let program = packages.iter().find(is_program).context("no package plimsoll")?;
    let mut subject = component(program);
    subject["type"] = json!("application");
    let components: Vec<Value> =
        packages.iter().filter(|own| !is_program(own)).map(component).collect();
    let dependencies: Vec<Value> = packages
        .iter()
        .map(|own| json!({"ref": purl(&own.name), "dependsOn": own.uses.iter().map(purl).collect::<Vec<_>>()}))
        .collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": format_utc(sources.epoch * 1_000_000),
            "component": subject,
            "properties": [
                {"name": "plimsoll:commit", "value": sources.commit},
                {"name": "plimsoll:target", "value": target},
            ],
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok((serde_json::to_string_pretty(&bill)? + "\n").into_bytes())
}

fn component(package: &Package) -> Value {
    let (name, version) = &package.name;
    let mut own = json!({
        "type": "library",
        "bom-ref": purl(&package.name),
        "name": name,
        "version": version,
        "description": package.description.trim(),
        "scope": if package.linked { "required" } else { "excluded" },
        "licenses": [{"expression": package.licence}],
        "purl": purl(&package.name),
    });
    if let Some(checksum) = &package.checksum {
        own["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(url) = &package.repository {
        own["externalReferences"] = json!([{"type": "vcs", "url": url}]);
    }
    own
}

/// Address of a package among all packages.
fn purl((name, version): &Name) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::packages;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn a_bill_names_every_package_of_the_lock_file_that_is_linked() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sources = Sources::at(&root).unwrap();
        let target = "x86_64-unknown-linux-gnu";
        let packages = packages(&root, target).unwrap();
        let bill = cyclonedx(&sources, &packages, target).unwrap();
        assert_eq!(bill, cyclonedx(&sources, &packages, target).unwrap());
        let bill: Value = serde_json::from_slice(&bill).unwrap();
        let components = bill["components"].as_array().unwrap();
        assert_eq!(components.len() + 1, packages.len());
        let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap();
        let mut known: BTreeSet<&str> =
            [bill["metadata"]["component"]["bom-ref"].as_str().unwrap()].into();
        for own in components {
            let (name, version) = (own["name"].as_str().unwrap(), own["version"].as_str().unwrap());
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "{entry}");
            let is_local = name.starts_with("plimsoll-");
            assert_eq!(own.get("hashes").is_none(), is_local, "{name}");
            if let Some(hashes) = own.get("hashes") {
                assert!(lock.contains(hashes[0]["content"].as_str().unwrap()), "{name}");
            }
            assert!(known.insert(own["bom-ref"].as_str().unwrap()), "{name} twice");
        }
        for edge in bill["dependencies"].as_array().unwrap() {
            let ends = edge["dependsOn"].as_array().unwrap().iter().chain([&edge["ref"]]);
            for end in ends {
                assert!(known.contains(end.as_str().unwrap()), "{end}");
            }
        }
    }
}
