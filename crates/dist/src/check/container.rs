//! The container image: read by skopeo and umoci, and its program in a root that holds nothing else.

use super::packages::used;
use super::{Release, ensure, files_below};
use crate::image::{USER, WORK};
use crate::programs::output;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unpacks an image and returns its root.
pub(super) fn unpack(file: &Path, work: &Path, tag: &str) -> Result<PathBuf> {
    let layout = work.join("layout");
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["--insecure-policy", "copy", "--quiet"]).arg(from(file));
    output(skopeo.arg(format!("oci:{}:{tag}", layout.display())))?;
    let bundle = work.join("bundle");
    let mut umoci = Command::new("umoci");
    output(umoci.args(["unpack", "--image", &format!("{}:{tag}", layout.display())]).arg(&bundle))?;
    let root = bundle.join("rootfs");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    for folder in [work, &bundle, &root] {
        std::fs::set_permissions(folder, Clone::clone(&mode))?;
    }
    Ok(root)
}

fn from(file: &Path) -> String {
    format!("oci-archive:{}", file.display())
}

/// The image as independent readers see it, and the program in it as its user.
pub fn image(release: &Release<'_>) -> Result<String> {
    let file = release.file(&release.names.image);
    let inspect = |flags: &[&str]| -> Result<Value> {
        let mut skopeo = Command::new("skopeo");
        let text = output(skopeo.arg("inspect").args(flags).arg(from(&file)))?;
        serde_json::from_str(&text).context("skopeo inspect")
    };
    let manifest = inspect(&["--raw"])?;
    let layers = manifest["layers"].as_array().map_or(0, Vec::len);
    ensure(layers == 1, || format!("{layers} layers"))?;
    let config = inspect(&["--config"])?;
    let own = &config["config"];
    ensure(own["User"] == format!("{USER}:{USER}"), || format!("user {}", own["User"]))?;
    ensure(own["Entrypoint"][0] == "/usr/bin/plimsoll", || own["Entrypoint"].to_string())?;
    ensure(own["WorkingDir"] == format!("/{WORK}"), || own["WorkingDir"].to_string())?;
    let labels = &own["Labels"];
    let revision = &labels["org.opencontainers.image.revision"];
    ensure(*revision == release.sources.commit, || format!("revision {revision}"))?;
    let files = files_below(&release.image)?;
    let wanted = [
        "usr/bin/plimsoll",
        "usr/share/doc/plimsoll/LICENSE",
        "usr/share/doc/plimsoll/THIRD-PARTY.txt",
    ];
    ensure(files == wanted, || format!("files {files:?}"))?;
    let used = used(&release.image, None, USER, WORK)?;
    Ok(format!("1 layer, {} files, {used}", wanted.len()))
}

/// Names are resolved from `/etc/hosts` and by DNS, whatever modules `/etc/nsswitch.conf` asks for.
pub fn names(release: &Release<'_>) -> Result<String> {
    let etc = release.image.join("etc");
    std::fs::create_dir_all(&etc)?;
    std::fs::write(etc.join("hosts"), "127.0.0.1 localhost listed.example\n")?;
    std::fs::write(
        etc.join("resolv.conf"),
        "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
    )?;
    std::fs::write(
        etc.join("nsswitch.conf"),
        "hosts: mdns4_minimal [NOTFOUND=return] resolve [!UNAVAIL=return] myhostname\n",
    )?;
    let script = release.work.path().join("names.py");
    std::fs::write(&script, include_str!("names.py"))?;
    let mut python = Command::new("unshare");
    python.args(["--net", "python3"]).arg(&script).arg(&release.image).arg(USER.to_string());
    let said = output(&mut python);
    std::fs::remove_dir_all(&etc)?;
    Ok(said?.trim().to_owned())
}
