//! What the simulated disk keeps and loses, and that it is as the real one for a program that works on it.

use crate::simulated::{Fault, Forgets, Plan, Simulated};
use crate::sweep::{Start, Store, first_finding, sweep};
use crate::{Disk, Kind, Mode, Real, durable, read};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const FILE: &str = "/file";
const SEEDS: u64 = 400;

/// A disk with a folder and a file in it that was synced.
fn begun(content: &[u8]) -> Simulated {
    let disk = Simulated::new();
    durable::replace(&disk, Path::new("/new"), Path::new(FILE), content).unwrap();
    disk
}

/// The contents that power cuts leave.
fn left(disk: &Simulated) -> BTreeSet<Vec<u8>> {
    let seeds = 0..SEEDS;
    seeds.map(|seed| read(&disk.after_power_cut(seed), Path::new(FILE)).unwrap()).collect()
}

#[test]
fn what_was_synced_stays() {
    let disk = begun(b"one");
    let file = disk.open(Path::new(FILE), Mode::Change).unwrap();
    file.write_all_at(b"two", 3).unwrap();
    file.sync_data().unwrap();
    assert_eq!(left(&disk), [b"onetwo".to_vec()].into());
}

#[test]
fn what_was_not_synced_is_lost_kept_torn_and_reordered() {
    let disk = begun(b"----");
    let file = disk.open(Path::new(FILE), Mode::Change).unwrap();
    file.write_all_at(b"ab", 0).unwrap();
    file.write_all_at(b"cd", 2).unwrap();
    let left = left(&disk);
    for wanted in [&b"----"[..], b"abcd", b"ab--", b"--cd", b"a---"] {
        assert!(left.contains(wanted), "{}", String::from_utf8_lossy(wanted));
    }
    assert_eq!(read(&disk.after_kill(), Path::new(FILE)).unwrap(), b"abcd");
}

#[test]
fn a_name_needs_the_sync_of_its_folder() {
    let disk = begun(b"old");
    let file = disk.open(Path::new("/other"), Mode::Create).unwrap();
    file.write_all_at(b"new", 0).unwrap();
    file.sync_all().unwrap();
    disk.rename(Path::new("/other"), Path::new(FILE)).unwrap();
    assert_eq!(left(&disk), [b"old".to_vec(), b"new".to_vec()].into());
    disk.sync_folder(Path::new("/")).unwrap();
    assert_eq!(left(&disk), [b"new".to_vec()].into());
}

#[test]
fn a_removed_name_comes_back_until_its_folder_is_synced() {
    let disk = begun(b"old");
    disk.remove_file(Path::new(FILE)).unwrap();
    let is_back = |seed| disk.after_power_cut(seed).kind(Path::new(FILE)).is_ok();
    let backs: BTreeSet<bool> = (0..SEEDS).map(is_back).collect();
    assert_eq!(backs, [false, true].into());
    disk.sync_folder(Path::new("/")).unwrap();
    assert!((0..SEEDS).all(|seed| disk.after_power_cut(seed).kind(Path::new(FILE)).is_err()));
}

#[test]
fn a_sync_that_failed_has_dropped_the_data() {
    let mut left = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = begun(b"--");
        let file = disk.open(Path::new(FILE), Mode::Change).unwrap();
        disk.plan(Plan { at: 1, fault: Fault::Io }, seed);
        file.write_all_at(b"ab", 0).unwrap();
        assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(5));
        file.sync_data().unwrap();
        // Programs still see them.
        assert_eq!(read(&disk, Path::new(FILE)).unwrap(), b"ab");
        left.insert(read(&disk.after_power_cut(seed), Path::new(FILE)).unwrap());
    }
    assert!(left.contains(&b"--"[..]) && left.len() > 1, "{left:?}");
}

#[test]
fn faults_strike_where_they_are_planned_and_say_what_they_are() {
    for (fault, number, again) in [
        (Fault::Io, 5, false),
        (Fault::IoFromThen, 5, true),
        (Fault::Full, 28, false),
        (Fault::FullFromThen, 28, true),
    ] {
        let disk = begun(b"");
        let file = disk.open(Path::new(FILE), Mode::Change).unwrap();
        disk.plan(Plan { at: 1, fault }, 0);
        file.write_all_at(b"0", 0).unwrap();
        let failed = file.write_all_at(b"1234", 1).unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(number), "{fault:?}");
        assert_eq!(file.write_all_at(b"12345678", 1).is_err(), again, "{fault:?}");
        assert!(disk.has_struck() && disk.lines().iter().any(|line| line.contains("<- E")));
        // A full disk can be read, and names be removed.
        let reads = read(&disk, Path::new(FILE)).is_ok();
        assert_eq!(reads, fault != Fault::IoFromThen, "{fault:?}");
    }
    let disk = begun(b"");
    disk.plan(Plan { at: 0, fault: Fault::PowerCut }, 0);
    assert!(disk.remove_file(Path::new(FILE)).is_err());
    assert!(disk.remove_file(Path::new(FILE)).is_err(), "nothing works without power");
}

/// A step of a program.
#[derive(Clone, Debug)]
enum Step {
    Open(u8, Mode),
    Write(u8, u8, Vec<u8>),
    Length(u8, u8),
    Rename(u8, u8),
    Remove(u8),
    Folder(u8),
    RemoveFolder(u8),
    Sync,
}

fn any_step() -> impl Strategy<Value = Step> {
    let mode =
        prop_oneof![Just(Mode::Read), Just(Mode::Change), Just(Mode::Keep), Just(Mode::Create)];
    let bytes = proptest::collection::vec(any::<u8>(), 1..20);
    prop_oneof![
        (0u8..4, mode).prop_map(|(name, mode)| Step::Open(name, mode)),
        (0u8..4, 0u8..40, bytes).prop_map(|(name, at, bytes)| Step::Write(name, at, bytes)),
        (0u8..4, 0u8..40).prop_map(|(name, length)| Step::Length(name, length)),
        (0u8..4, 0u8..4).prop_map(|(from, to)| Step::Rename(from, to)),
        (0u8..4).prop_map(Step::Remove),
        (0u8..4).prop_map(Step::Folder),
        (0u8..4).prop_map(Step::RemoveFolder),
        Just(Step::Sync),
    ]
}

/// Does a step; tells whether that went well.
fn step(disk: &dyn Disk, folder: &Path, step: &Step) -> bool {
    let path = |name: &u8| folder.join(name.to_string());
    let change = |name: &u8| disk.open(&path(name), Mode::Change);
    let is_folder = |name: &u8| disk.kind(&path(name)).is_ok_and(|kind| kind == Kind::Folder);
    match step {
        // What a folder can be opened for is no matter of stores.
        Step::Open(name, _) | Step::Remove(name) if is_folder(name) => false,
        Step::Rename(from, to) if is_folder(from) || is_folder(to) => false,
        Step::RemoveFolder(name) if !is_folder(name) => false,
        Step::Open(name, mode) => disk.open(&path(name), *mode).is_ok(),
        Step::Write(name, at, bytes) => {
            change(name).and_then(|file| file.write_all_at(bytes, (*at).into())).is_ok()
        }
        Step::Length(name, length) => {
            change(name).and_then(|file| file.set_length((*length).into())).is_ok()
        }
        Step::Rename(from, to) => disk.rename(&path(from), &path(to)).is_ok(),
        Step::Remove(name) => disk.remove_file(&path(name)).is_ok(),
        Step::Folder(name) => durable::create_folders(disk, &path(name).join("in")).is_ok(),
        Step::RemoveFolder(name) => disk.remove_folder(&path(name)).is_ok(),
        Step::Sync => disk.sync_folder(folder).is_ok(),
    }
}

/// The files and folders, by their names.
fn everything(disk: &dyn Disk, folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut paths = disk.list(folder).unwrap();
    paths.sort();
    let one = |path: PathBuf| {
        let is_file = disk.kind(&path).unwrap() == Kind::File;
        let content = is_file.then(|| read(disk, &path).unwrap());
        (path.strip_prefix(folder).unwrap().to_owned(), content)
    };
    paths.into_iter().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn programs_see_the_same_on_both_disks(steps in proptest::collection::vec(any_step(), 0..40)) {
        let (real, simulated) = (tempfile::tempdir().unwrap(), Simulated::new());
        let root = Path::new("/root");
        durable::create_folders(&simulated, root).unwrap();
        for one in &steps {
            let same = step(&Real, real.path(), one) == step(&simulated, root, one);
            prop_assert!(same, "{:?}", one);
        }
        prop_assert_eq!(everything(&Real, real.path()), everything(&simulated, root));
        let copy = tempfile::tempdir().unwrap();
        simulated.copy_to(copy.path()).unwrap();
        prop_assert_eq!(everything(&Real, &copy.path().join("root")), everything(&simulated, root));
    }
}

/// A counter in a file that is replaced.
struct Counter;

impl Store for Counter {
    type Acknowledged = u8;

    fn name(&self) -> &'static str {
        "counter"
    }

    fn work(&self, disk: &Simulated) -> u8 {
        let is_kept = |count: &u8| {
            durable::replace(disk, Path::new("/new"), Path::new(FILE), &[*count]).is_ok()
        };
        (1..4).take_while(is_kept).last().unwrap_or(0)
    }

    fn start(&self, disk: &Simulated, acknowledged: &u8) -> Start {
        match read(disk, Path::new(FILE)) {
            Ok(found) if found.len() == 1 && found[0] >= *acknowledged => Start::Whole,
            Ok(found) => Start::Wrong(format!("{found:?}, and {acknowledged} was kept")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && *acknowledged == 0 => {
                Start::Whole
            }
            Err(error) => Start::Said(error.to_string()),
        }
    }
}

#[test]
fn a_sweep_finds_what_is_forgotten_and_nothing_else() {
    let swept = sweep(&Counter, 20, 1);
    assert_eq!((swept.findings, swept.operations), (0, 15), "{:?}", swept.shown);
    assert!(swept.crashes > 1000 && swept.faults > 500 && swept.said > 0, "{}", swept.row());
    for forgets in [Forgets::Files, Forgets::Folders] {
        let finding = first_finding(&Counter, forgets).expect("nothing is found");
        let text = finding.to_string();
        assert!(text.contains("power cut") && text.contains("rename /new to /file"), "{text}");
    }
}

/// A store that gives up with a panic.
struct Panics;

impl Store for Panics {
    type Acknowledged = ();

    fn name(&self) -> &'static str {
        "panics"
    }

    fn work(&self, disk: &Simulated) {
        disk.open(Path::new(FILE), Mode::Create).expect("a disk that works");
    }

    fn start(&self, _: &Simulated, (): &()) -> Start {
        Start::Whole
    }
}

#[test]
fn a_panic_is_a_finding() {
    let swept = sweep(&Panics, 1, 1);
    assert!(swept.findings > 0 && swept.shown[0].what.contains("a disk that works"));
}
