//! The container image: an OCI image layout as one tar file, written without a daemon.

use crate::compile::Target;
use crate::contents::Contents;
use crate::sources::Sources;
use crate::tree::{Folder, Tree, gzip};
use anyhow::Result;
use plimsoll_core::clock::format_utc;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Number of the user and group as which the program runs. No distribution has given it to a service.
pub const USER: u64 = 65_532;
/// Folder in which it runs: run records are written there.
pub const WORK: &str = "data";

/// Returns SHA-256 in hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the image for `docker load`, `podman load` and `skopeo copy oci-archive:FILE`.
///
/// # Errors
/// When a path is too long for the format.
pub fn image(
    sources: &Sources,
    contents: &Contents,
    target: &Target,
    libc: &str,
) -> Result<Vec<u8>> {
    let plain = layer(sources, contents)?;
    let packed = gzip(&plain)?;
    let tag = format!("plimsoll:{}", sources.version);
    let labels = labels(sources, libc);
    let config = serde_json::to_vec(&json!({
        "created": format_utc(sources.epoch * 1_000_000),
        "architecture": target.debian(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", format!("HOME=/{WORK}")],
            "Entrypoint": ["/usr/bin/plimsoll"],
            "WorkingDir": format!("/{WORK}"),
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&plain))]},
        "history": [{
            "created": format_utc(sources.epoch * 1_000_000),
            "created_by": "make dist",
        }],
    }))?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
        "annotations": labels,
    }))?;
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    entry["platform"] = json!({"architecture": target.debian(), "os": "linux"});
    entry["annotations"] = json!({"org.opencontainers.image.ref.name": sources.version});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    });
    let mut layout = Tree::default();
    layout.add("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#);
    layout.add("index.json", serde_json::to_vec(&index)?);
    // Docker before version 25 reads this file and the same blobs.
    let blob = |bytes: &[u8]| format!("blobs/sha256/{}", sha256(bytes));
    let old = json!([{"Config": blob(&config), "RepoTags": [tag], "Layers": [blob(&packed)]}]);
    layout.add("manifest.json", serde_json::to_vec(&old)?);
    for bytes in [config, manifest, packed] {
        layout.add(blob(&bytes), bytes);
    }
    layout.tar(sources.epoch, &[])
}

/// The only layer: the program, its licences, and folders that its user may write to.
fn layer(sources: &Sources, contents: &Contents) -> Result<Vec<u8>> {
    let mut tree = Tree::default();
    tree.add_program("usr/bin/plimsoll", contents.fixed.clone());
    tree.add("usr/share/doc/plimsoll/LICENSE", contents.licence.clone());
    tree.add("usr/share/doc/plimsoll/THIRD-PARTY.txt", contents.third_party.clone());
    let folders = [
        Folder { path: "tmp", mode: 0o1777, owner: 0 },
        Folder { path: WORK, mode: 0o755, owner: USER },
    ];
    tree.tar(sources.epoch, &folders)
}

fn labels(sources: &Sources, libc: &str) -> Value {
    json!({
        "org.opencontainers.image.title": "plimsoll",
        "org.opencontainers.image.description": crate::deb::SUMMARY,
        "org.opencontainers.image.version": sources.version,
        "org.opencontainers.image.revision": sources.commit,
        "org.opencontainers.image.created": format_utc(sources.epoch * 1_000_000),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "io.plimsoll.libc": libc,
    })
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": format!("sha256:{}", sha256(bytes)), "size": bytes.len()})
}
