//! What is there after a stop, and after a crash.

use super::{Client, NAMES, TestServer};
use crate::{Durability, Kept, Server, VoterConfig};
use plimsoll_core::clock::now_ns;
use plimsoll_wire::volt::{Login, Value};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn config(folder: &Path, durability: Durability) -> VoterConfig {
    VoterConfig {
        partitions: 2,
        durability,
        data: Some(folder.to_owned()),
        ..VoterConfig::default()
    }
}

/// What a crash would leave of a folder: its files as they are now.
fn copied(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

/// The files of a folder with this ending, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|own| own == ending)).collect();
    found.sort();
    found
}

/// Everything that can be asked for, as texts.
fn everything(client: &mut Client) -> Vec<Vec<Vec<String>>> {
    [
        "select phone_number, state, contestant_number from votes order by 1, 2, 3",
        "select phone_number, num_votes from v_votes_by_phone_number order by 1",
        "select * from v_votes_by_contestant_number_state order by 1, 2",
        "select * from contestants order by 1",
        "select * from area_code_state order by 1",
        "select * from helloworld order by dialect",
    ]
    .iter()
    .map(|sql| client.rows(sql))
    .collect()
}

/// Writes of every kind.
fn write(client: &mut Client) {
    for number in 0..200 {
        assert_eq!(client.vote(2_120_000_000 + number, 1 + number as i32 % 6, 2), 0);
    }
    client.call("Insert", &["French", "Bonjour", "Monde"].map(Value::String));
    client.rows("insert into helloworld (dialect) values ('Silence')");
    client.rows("update votes set state = 'ZZ' where mod(phone_number, 7) = 3");
    client.rows("insert into contestants values (9, 'Zoë')");
    client.rows("delete from area_code_state where area_code = 907");
    let params = [
        Value::String("delete from votes where phone_number = ? or contestant_number = ?"),
        Value::BigInt(2_120_000_001),
        Value::Integer(3),
    ];
    assert_eq!(client.call("@AdHoc", &params).status, 1);
    // The second of these fails: the first is not done either.
    client.refusal("delete from votes where state = 'ZZ'; select 1 / 0 from contestants");
    client.rows("insert into votes values (3, 'NY', 1); insert into contestants values (10, 'Yo')");
    for number in 0..50 {
        client.vote(9_070_000_000 + number, 9, 1);
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_crash_and_after_a_stop() {
    for durability in [Durability::Sync, Durability::Async, Durability::None] {
        let folder = tempfile::tempdir().unwrap();
        let server = TestServer::start(config(folder.path(), durability));
        let mut client = server.voter();
        write(&mut client);
        let expected = everything(&mut client);
        let crashed = copied(folder.path());
        server.stop();
        assert_eq!(files(folder.path(), "snapshot").len(), 1, "a clean stop leaves a snapshot");
        assert!(files(folder.path(), "log").is_empty(), "and no log");
        let mut again = vec![folder.path()];
        if durability == Durability::Sync {
            again.push(crashed.path());
        }
        for path in again {
            // With other partitions, twice.
            for partitions in [3, 1] {
                let config = VoterConfig { partitions, ..config(path, durability) };
                let server = TestServer::start(config);
                let mut client = server.client();
                assert!(everything(&mut client) == expected, "{durability:?} {partitions}");
                assert_eq!(
                    client.long("Initialize", &[Value::Integer(6), Value::String(NAMES)]),
                    8
                );
                // The views were read back too.
                assert_eq!(client.vote(2_120_000_000, 1, 1), 2);
            }
        }
    }
}

#[test]
fn an_asynchronous_log_is_written_soon() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(config(folder.path(), Durability::Async));
    let mut client = server.voter();
    write(&mut client);
    let expected = everything(&mut client);
    let until_ns = now_ns() + super::LIMIT.as_nanos() as u64;
    loop {
        let crashed = copied(folder.path());
        let server = TestServer::start(config(crashed.path(), Durability::None));
        if everything(&mut server.client()) == expected {
            return;
        }
        assert!(now_ns() < until_ns, "the log was never written");
    }
}

#[test]
fn a_torn_end_is_cut_off_and_other_damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(config(folder.path(), Durability::Sync));
    let mut client = server.voter();
    for number in 0..100 {
        client.vote(2_120_000_000 + number, 1, 1);
    }
    let crashed = copied(folder.path());
    drop(server);
    let log = files(crashed.path(), "log").pop().unwrap();
    // Behind the last record there are zeros; it ends with three zeros of its own, those of contestant 1.
    let end = |log: &Path| {
        let bytes = std::fs::read(log).unwrap();
        bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 4
    };
    let length = end(&log);
    assert!(std::fs::metadata(&log).unwrap().len() > length);
    let file = OpenOptions::new().write(true).open(&log).unwrap();
    let open =
        |path: &Path| Server::open(config(path, Durability::Sync)).map(|server| server.kept());
    assert_eq!(open(crashed.path()).unwrap(), Kept { votes: 100, torn_bytes: 0 });
    // The last record loses a byte, more bytes, or gets others behind it.
    file.set_len(length - 1).unwrap();
    let kept = open(crashed.path()).unwrap();
    assert_eq!(kept.votes, 99, "each vote was awaited, and so is a record");
    assert!(kept.torn_bytes > 0);
    assert_eq!(
        open(crashed.path()).unwrap(),
        Kept { votes: 99, torn_bytes: 0 },
        "cut off for good"
    );
    let length = std::fs::metadata(&log).unwrap().len();
    file.write_all_at(&[7; 5], length).unwrap();
    assert_eq!(open(crashed.path()).unwrap(), Kept { votes: 99, torn_bytes: 5 });
    // A log with another one behind it must be whole.
    let next = log.with_file_name("0000000007.log");
    std::fs::write(&next, b"plimvot2").unwrap();
    assert_eq!(open(crashed.path()).unwrap().votes, 99);
    file.write_all_at(&[0xff], length - 3).unwrap();
    let told = open(crashed.path()).unwrap_err().to_string();
    assert!(
        told.contains("damaged at byte") && told.contains(&log.display().to_string()),
        "{told}"
    );
    // One that a crash left before its first record: made, or made and filled ahead.
    file.write_all_at(&[0; 1], length - 3).unwrap();
    std::fs::write(&next, []).unwrap();
    assert_eq!(open(crashed.path()).unwrap().votes, 99);
    std::fs::write(&next, [0; 4096]).unwrap();
    assert_eq!(open(crashed.path()).unwrap(), Kept { votes: 99, torn_bytes: 0 });
    // Zeros with something behind them were begun.
    std::fs::write(&next, [[0; 512], [1; 512]].concat()).unwrap();
    assert!(open(crashed.path()).unwrap_err().to_string().contains("no file of this server"));
    std::fs::write(&log, b"something else entirely").unwrap();
    assert!(open(crashed.path()).unwrap_err().to_string().contains("no file of this server"));
}

#[test]
fn a_long_log_gives_way_to_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let config = VoterConfig { log_bytes_max: 2_000, ..config(folder.path(), Durability::Sync) };
    let server = TestServer::start(config.clone());
    let mut client = server.voter();
    let until_ns = now_ns() + super::LIMIT.as_nanos() as u64;
    let (mut phone, mut snapshots) = (2_120_000_000, Vec::new());
    while snapshots.len() < 3 {
        assert!(now_ns() < until_ns, "no snapshots: {snapshots:?}");
        for _ in 0..20 {
            assert_eq!(client.vote(phone, 1, 1), 0);
            phone += 1;
        }
        for path in files(folder.path(), "snapshot") {
            if !snapshots.contains(&path) {
                snapshots.push(path);
            }
        }
    }
    let expected = everything(&mut client);
    // A crash in the middle of a snapshot leaves an unfinished one, which counts for nothing.
    std::fs::write(folder.path().join("9999999999.unfinished"), b"plimsnp1").unwrap();
    drop(client);
    drop(server);
    let server = TestServer::start(config);
    assert!(files(folder.path(), "unfinished").is_empty(), "nor does it stay");
    assert!(everything(&mut server.client()) == expected);
}

#[test]
fn snapshots_that_fail_are_told_once_and_again_when_they_go_well() {
    let folder = tempfile::tempdir().unwrap();
    let config = VoterConfig { log_bytes_max: 2_000, ..config(folder.path(), Durability::Sync) };
    let (server, told) = TestServer::telling(config.clone());
    // A folder is where the file should be.
    let in_the_way: Vec<PathBuf> =
        (2..200).map(|number| folder.path().join(format!("{number:010}.unfinished"))).collect();
    in_the_way.iter().for_each(|path| std::fs::create_dir(path).unwrap());
    let mut client = server.voter();
    let overview = |client: &mut Client| {
        let answer = client.call("@SystemInformation", &[Value::String("OVERVIEW")]);
        let row = answer.tables[0].1.iter().find(|row| row[1] == "SNAPSHOTS");
        row.unwrap()[2].clone()
    };
    assert_eq!(overview(&mut client), "none needed");
    let mut phone = 2_120_000_000;
    let mut vote_until = |client: &mut Client, is_reached: &dyn Fn(&mut Client) -> bool| {
        let until_ns = now_ns() + super::LIMIT.as_nanos() as u64;
        while !is_reached(client) {
            assert!(now_ns() < until_ns, "{:?}", told.lock().unwrap());
            for _ in 0..20 {
                assert_eq!(client.vote(phone, 1, 1), 0);
                phone += 1;
            }
        }
    };
    // Several have failed, and one line was told.
    vote_until(&mut client, &|_| files(folder.path(), "log").len() >= 4);
    vote_until(&mut client, &|client| overview(client).starts_with("failing: "));
    let lines = told.lock().unwrap().clone();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("snapshot ") && lines[0].contains("look at --data"), "{lines:?}");
    in_the_way.iter().for_each(|path| std::fs::remove_dir(path).unwrap());
    vote_until(&mut client, &|client| overview(client) == "written");
    // The line comes right behind.
    vote_until(&mut client, &|_| told.lock().unwrap().len() > 1);
    let lines = told.lock().unwrap().clone();
    assert_eq!(lines[1..], ["snapshots are written again"]);
    let expected = everything(&mut client);
    drop(client);
    drop(server);
    assert!(everything(&mut TestServer::start(config).client()) == expected);
}

#[test]
fn a_folder_is_one_servers_and_must_be_usable() {
    let folder = tempfile::tempdir().unwrap();
    let _server = TestServer::start(config(folder.path(), Durability::Sync));
    let second = Server::open(config(folder.path(), Durability::Sync)).err().unwrap().to_string();
    assert!(second.contains("another server has this folder"), "{second}");
    let file = folder.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    assert!(Server::open(config(&file, Durability::Sync)).is_err());
    let no_folder = VoterConfig { durability: Durability::Sync, ..VoterConfig::default() };
    assert!(Server::open(no_folder).is_err());
}

/// Set in the process that is killed.
const VICTIM: &str = "PLIMSOLL_VOTER_TEST_VICTIM";

/// Not a test by itself: the server that the test below starts and kills.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(VICTIM) else { return };
    let server = TestServer::start(config(Path::new(&folder), Durability::Sync));
    std::fs::write(Path::new(&folder).join("address.new"), server.address.to_string()).unwrap();
    std::fs::rename(Path::new(&folder).join("address.new"), Path::new(&folder).join("address"))
        .unwrap();
    std::thread::sleep(super::LIMIT * 2);
}

#[test]
fn acknowledged_votes_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let mut next = 2_120_000_000;
    let mut acknowledged = Vec::new();
    for round in 0..2 {
        let _ = std::fs::remove_file(folder.path().join("address"));
        let mut server = Command::new(std::env::current_exe().unwrap())
            .args(["tests::durability::victim", "--exact", "--nocapture"])
            .env(VICTIM, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let until_ns = now_ns() + super::LIMIT.as_nanos() as u64;
        let address = loop {
            if let Ok(address) = std::fs::read_to_string(folder.path().join("address")) {
                break address.parse().unwrap();
            }
            assert!(now_ns() < until_ns, "the server did not start");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let mut client = Client::open(address);
        client.log_in(&Login::new("", ""));
        client.long("Initialize", &[Value::Integer(6), Value::String(NAMES)]);
        // Many under way, some acknowledged, when the process is killed.
        for _ in 0..3_000 {
            let params = [Value::BigInt(next), Value::Integer(1), Value::BigInt(1)];
            client.submit("Vote", &params);
            next += 1;
        }
        let first = next - 3_000;
        // Handle 1 was Initialize.
        for _ in 0..500 + 700 * round {
            let answer = client.answer();
            assert_eq!(answer.tables[0].1[0][0], "0");
            acknowledged.push(first + answer.handle - 2);
        }
        server.kill().unwrap();
        server.wait().unwrap();
        while let Some(message) = client.message() {
            let response = plimsoll_wire::volt::Response::read(&message).unwrap();
            acknowledged.push(first + response.handle - 2);
        }
    }
    let server = TestServer::start(config(folder.path(), Durability::Sync));
    let mut client = server.client();
    let rows = client.rows("select phone_number from votes");
    let there: std::collections::BTreeSet<i64> =
        rows.iter().map(|row| row[0].parse().unwrap()).collect();
    let lost = acknowledged.iter().filter(|phone| !there.contains(phone)).count();
    assert_eq!(lost, 0, "of {} that were acknowledged", acknowledged.len());
    assert!(there.len() <= 6_000 && there.len() >= acknowledged.len());
}
