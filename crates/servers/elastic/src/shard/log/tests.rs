use super::*;
use plimsoll_disk::Real;
use plimsoll_disk::simulated::{Fault, Plan, Simulated};

fn disk() -> Arc<dyn Disk> {
    Arc::new(Real)
}

fn record(row: u64, source: &[u8]) -> Record<'_> {
    Record { removed: false, version: 3, sequence: 9, row, id: "é1", routing: "r", source }
}

#[test]
fn a_shorter_log_takes_the_place_of_a_longer_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.log");
    let log = Log::open(&disk(), &path).unwrap();
    for row in 0..1000 {
        let mut bytes = Vec::new();
        let one = record(row, b"source");
        one.write(&mut bytes);
        assert_eq!(bytes.len(), one.bytes() as usize);
        log.append(&bytes, false).unwrap();
    }
    let mut places = Vec::new();
    let made = log
        .compacted(|_, record| record.row % 10 == 3, |record, at| places.push((record.row, at)))
        .unwrap()
        .unwrap();
    assert_eq!(places.len(), 100);
    assert_eq!(made.end(), log.end());
    assert!(made.length() < log.length() / 9 && made.id != log.id);
    let mut more = Vec::new();
    record(1000, b"more").write(&mut more);
    places.push((1000, made.length()));
    made.append(&more, true).unwrap();
    for made in [made, Log::open(&disk(), &path).unwrap()] {
        for (row, at) in &places {
            assert_eq!(made.read(*at).unwrap().record().unwrap().row, *row);
        }
    }
    // Whoever still has the longer one reads it as before.
    assert_eq!(log.read(START).unwrap().record().unwrap().row, 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn only_the_log_that_a_start_finds_is_written() {
    let (path, mut checked) = (Path::new("/documents.log"), 0);
    for at in 0..12 {
        let simulated = Simulated::new();
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let log = Log::open(&disk, path).unwrap();
        disk.sync_folder(Path::new("/")).unwrap();
        simulated.plan(Plan { at, fault: Fault::Io }, at);
        let Ok(made) = log.compacted(|_, _| true, |_, _| {}) else { continue };
        let log = made.unwrap_or(log);
        if log.append(&[1; 30], true).is_err() {
            continue;
        }
        checked += 1;
        for disk in [simulated.after_kill(), simulated.after_power_cut(at)] {
            let found = Log::open(&(Arc::new(disk) as Arc<dyn Disk>), path).unwrap();
            assert_eq!((found.id, found.length()), (log.id, log.length()), "EIO at {at}");
        }
    }
    assert!(checked > 2, "{checked}");
}

#[test]
fn records_are_read_and_a_torn_one_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = Log::open(&disk(), &path).unwrap();
    let mut positions = Vec::new();
    for row in 0..2000 {
        let mut bytes = Vec::new();
        let source = vec![b'x'; row as usize % 300];
        record(row, &source).write(&mut bytes);
        positions.push(log.length());
        log.append(&bytes, false).unwrap();
        if row % 3 == 0 {
            let at = positions[row as usize / 2];
            assert_eq!(log.read(at).unwrap().record().unwrap().row, row / 2);
        }
    }
    let whole = log.length();
    log.file.write_all_at(&[7; 100], whole).unwrap();
    let (id, _) = (log.id, drop(log));
    let log = Log::open(&disk(), &path).unwrap();
    assert_eq!((log.id, log.length()), (id, whole + 100));
    let mut rows = Vec::new();
    log.replay(whole, |at, record| {
        assert_eq!(at, positions[record.row as usize]);
        assert_eq!((record.id, record.routing, record.version), ("é1", "r", 3));
        rows.push(record.row);
        Ok(())
    })
    .unwrap();
    assert_eq!(rows, (0..2000).collect::<Vec<_>>());
    assert_eq!(log.length(), whole);
    // Damage where something was known to be is not passed over.
    log.file.write_all_at(&[7], positions[5] + 20).unwrap();
    let error = log.replay(whole, |_, _| Ok(())).unwrap_err().to_string();
    assert!(error.contains(&path.display().to_string()) && error.contains("restore"), "{error}");
}
