//! The makers' own clients for Python, as `.ci/clients` installs them, against the embedded server.

use crate::documents::clients::{LONG, python};
use crate::process::{Place, Running};
use std::path::Path;

#[test]
fn the_clients_of_elasticsearch_and_opensearch_do_all_they_can() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines/clients.py");
    let place = Place::new();
    let target = place.serve(&["search", "--durability", "none"]);
    for client in ["elasticsearch7", "elasticsearch8", "opensearchpy"] {
        let args = [script.as_os_str(), target.url.as_ref(), client.as_ref()];
        let mut command = place.program(python(), args);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("HOME", place.path());
        let ended = Running::start(command, b"").wait(LONG).expect(0);
        assert_eq!(ended.stdout, format!("{client}: fine\n"), "{}", ended.stderr);
        assert_eq!(ended.stderr, "", "{client} warns");
    }
}
