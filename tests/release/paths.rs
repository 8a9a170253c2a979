//! Paths in sources that leave the folder of their crate: in a published package they lead nowhere.

use std::path::{Component, Path, PathBuf};

/// A path without `.` and `..`, as far as its words say it.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The string literals of a source with `../` in them, that are paths to something outside of the folder `home` of its crate:
/// from the folder of the source, as `include_str!` and `#[path]` read them, or from `home`, as `CARGO_MANIFEST_DIR` does.
pub(super) fn that_leave(home: &Path, file: &Path, source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in source.lines().enumerate() {
        for literal in line.split('"').skip(1).step_by(2).filter(|text| text.contains("../")) {
            let literal_path = literal.trim_start_matches('/');
            let leaves = [file.parent().unwrap_or(home), home].into_iter().any(|from| {
                let to = plain(&from.join(literal_path));
                !to.starts_with(home) && to.exists()
            });
            if leaves {
                found.push(format!("{}:{}: \"{literal}\"", file.display(), number + 1));
            }
        }
    }
    found
}

#[test]
fn a_path_out_of_the_crate_is_found_and_one_inside_is_not() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("crates/one");
    std::fs::create_dir_all(home.join("src/deep")).unwrap();
    for file in ["page.html", "crates/two.json", "crates/one/own.json", "crates/one/src/near.txt"] {
        std::fs::write(place.path().join(file), "").unwrap();
    }
    let file = home.join("src/deep/code.rs");
    let found = |source: &str| that_leave(&home, &file, source).len();
    assert_eq!(found("include_str!(\"../../../../page.html\")"), 1);
    assert_eq!(found("include_bytes!(\"../../../two.json\")"), 1);
    assert_eq!(found("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../two.json\")"), 1);
    assert_eq!(found("Path::new(env!(\"CARGO_MANIFEST_DIR\")).join(\"../..\")"), 1);
    assert_eq!(found("a(\"../../../../page.html\", \"../../../two.json\")"), 2);
    assert_eq!(found("include_str!(\"../../own.json\"), include_str!(\"../near.txt\")"), 0);
    assert_eq!(found("let hostile = \"../../../../../nothing/is/here\";"), 0);
    assert_eq!(found("// ../../../../page.html"), 0);
}
