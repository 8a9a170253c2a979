//! Answers for operations whose shard gives none.

use super::*;
use crate::index::Defaults;
use crate::mapping::Mapping;
use crate::settings::Settings;
use crate::shard::COMPACT_FROM_BYTES;
use plimsoll_disk::simulated::Simulated;
use plimsoll_front::Durability;
use std::path::Path;

fn index(disk: &Simulated) -> Index {
    let defaults = Defaults {
        disk: Arc::new(disk.clone()),
        durability: Durability::Sync,
        scans: None,
        compact_from: COMPACT_FROM_BYTES,
        drafts: Arc::default(),
    };
    let (root, uuid) = (Path::new("/indices"), "uuid".to_owned());
    let made = Index::create(root, "kept", uuid, Settings::default(), Mapping::default(), defaults);
    made.expect("the disk is empty and has no fault")
}

#[test]
fn an_unanswered_write_is_not_reported_as_rejected() {
    let disk = Simulated::new();
    let index = index(&disk);
    let shard = &index.shards[0];
    let names = || vec![(7, "a".to_owned())];
    let done = unanswered(shard, names()).next().unwrap();
    assert_eq!((done.number, done.id.as_str()), (7, "a"));
    let error = done.result.err().unwrap();
    assert_eq!((error.status.as_u16(), error.kind), (503, "unavailable_shards_exception"));
    assert!(error.reason.contains("it may still be carried out"), "{}", error.reason);
    let error = refused(shard, names()).next().unwrap().result.err().unwrap();
    assert_eq!((error.status.as_u16(), error.kind), (429, "es_rejected_execution_exception"));
    // The last sync fails: both give the failure of the shard.
    disk.switch_off();
    let _ = index.stop();
    for done in unanswered(shard, names()).chain(refused(shard, names())) {
        let error = done.result.err().unwrap();
        assert_eq!(error.status.as_u16(), 500);
        assert!(error.reason.starts_with("the shard has failed: "), "{}", error.reason);
    }
}
