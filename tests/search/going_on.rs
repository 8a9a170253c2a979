//! Matrices and engines that are killed.

use super::engine::{Engine, Faults};
use super::{cells, mine, record, records, search};
use crate::process::{PATIENCE, Place, Running, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::Duration;

/// Waits until a file of the only record's parts is there.
fn wait_for_part(place: &Place, name: &str) {
    until(name, Duration::from_secs(60), || {
        records(place).iter().any(|folder| folder.join("matrix").join(name).exists())
    });
}

fn start(place: &Place, arguments: &[&str]) -> Running {
    place.start([&["search"], arguments].concat())
}

#[test]
fn a_matrix_that_was_killed_goes_on_where_it_was() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    let own = mine(&engine);
    let cell = ["--sizes", "100kB", "--duration", "700ms", "--warmup", "0s"];
    let asked = [&["--engine", &own, "--users", "1,2,3"], &cell[..]].concat();
    let matrix = start(&place, &asked);
    wait_for_part(&place, "cell-00000.json");
    matrix.signal(Signal::KILL);
    matrix.wait(PATIENCE);
    let folder = records(&place).pop().unwrap();
    let part = folder.join("matrix/cell-00000.json");
    let first = std::fs::read(&part).unwrap();
    let path = folder.display().to_string();
    let so_far = place.run(["report", &path]).stdout;
    assert!(so_far.contains("of 3 cells measured\n"), "{so_far}");
    // Another matrix is not gone on with.
    let other = ["--engine", &own, "--sizes", "100kB", "--users", "1,2", "--resume", &path];
    let told = search(&place, &other).expect(64).stderr;
    assert!(told.contains("users was [1,2,3] and is [1,2]"), "{told}");
    // The same command finds it.
    let again = search(&place, &asked).expect(0).stderr;
    assert!(again.contains("resuming"), "{again}");
    assert_eq!(records(&place).len(), 1, "no second record");
    let record = record(&place);
    let users: Vec<u64> =
        cells(&record).iter().map(|cell| cell["users"].as_u64().unwrap()).collect();
    assert_eq!(users, [1, 2, 3]);
    assert_eq!(std::fs::read(&part).unwrap(), first, "it was not measured again");
    let kept: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(kept["cell"]["ok_per_s"], cells(&record)[0]["ok_per_s"]);
    assert_eq!(record.verdict(), "valid");
    // All cells' requests are in the books, those of the first sitting too.
    let counted: u64 = cells(&record).iter().map(|cell| cell["ok"].as_u64().unwrap()).sum();
    assert!(record.ok() <= counted && record.ok() > 0);
}

#[test]
fn a_matrix_whose_rows_have_changed_is_another_one() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    place.file("q.toml", "[[query]]\nname = \"a\"\nkind = \"match\"\ntext = \"{{word}}\"\n");
    place.file("rows.csv", "word\nsea\n");
    let own = mine(&engine);
    let cell = ["--sizes", "100kB", "--duration", "700ms", "--warmup", "0s", "--users", "1,2,3"];
    let rows = ["--engine", &own, "--queries", "q.toml", "--rows", "rows.csv"];
    let asked = [&rows[..], &cell].concat();
    let matrix = start(&place, &asked);
    wait_for_part(&place, "cell-00000.json");
    matrix.signal(Signal::KILL);
    matrix.wait(PATIENCE);
    let folder = records(&place).pop().unwrap().display().to_string();
    place.file("rows.csv", "word\nland\n\n");
    let told = search(&place, &[&asked[..], &["--resume", &folder]].concat()).expect(64).stderr;
    assert!(told.contains("a file that it reads has changed"), "{told}");
}

#[test]
fn an_engine_of_ours_that_dies_is_started_again_and_its_cell_marked() {
    let place = Place::new();
    let cell = ["--sizes", "100kB", "--duration", "3s", "--warmup", "0s", "--users", "1,2"];
    let own = ["--engine", "vespa-api", "--query-hits", "10"];
    let matrix = start(&place, &[&own[..], &cell].concat());
    wait_for_part(&place, "answers-00-00-2x1.json");
    std::thread::sleep(Duration::from_millis(700));
    let pid = matrix.wait_for_descendant("serve search", PATIENCE);
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    let ended = matrix.wait(PATIENCE).expect(0);
    assert!(ended.stderr.contains("restarting it"), "{}", ended.stderr);
    let record = record(&place);
    let marked = |cell: &Value| cell["marks"].to_string().contains("engine restarted");
    assert_eq!(cells(&record).iter().map(marked).collect::<Vec<_>>(), [true, false]);
    assert!(cells(&record).iter().all(|cell| cell["ok_per_s"].is_number()));
}

#[test]
fn an_engine_that_dies_takes_only_its_own_cells_with_it() {
    let place = Place::busy();
    let dying = Engine::start(Faults { die_at: Some(60), ..Faults::default() });
    let sound = Engine::start(Faults::default());
    let (dying, sound) = (format!("dying={}", dying.url), format!("sound={}", sound.url));
    // The list three times over, so that its sixtieth search is asked for on the slowest machine.
    let passes = ["--sizes", "100kB", "--passes", "3", "--users", "1,3"];
    let engines = ["--engine", &dying, "--engine", &sound];
    let ended = super::search(&place, &[&engines[..], &passes].concat()).expect(0);
    assert!(ended.took < Duration::from_secs(60), "it was waited for too long");
    let record = record(&place);
    let (of_sound, of_dying): (Vec<&Value>, Vec<&Value>) =
        cells(&record).iter().partition(|cell| cell["engine"] == "sound");
    assert!(of_sound.iter().all(|cell| cell["ok_per_s"].is_number()), "{of_sound:?}");
    let told = |cell: &&Value| cell["reason"].to_string().contains("cannot restart it");
    assert!(of_dying.iter().any(told), "{of_dying:?}");
}

#[test]
fn one_process_at_a_time_is_at_a_matrix() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    let own = mine(&engine);
    let cell = ["--sizes", "100kB", "--duration", "60s", "--warmup", "0s", "--users", "1"];
    let asked = [&["--engine", &own], &cell[..]].concat();
    let first = start(&place, &asked);
    wait_for_part(&place, "answers-00-00-2x1.json");
    let told = search(&place, &asked).expect(64).stderr;
    assert!(told.contains("another process is measuring this matrix"), "{told}");
    assert!(told.contains("--fresh") && told.trim().lines().count() == 1, "{told}");
    // A lock goes with its process, however that ends.
    first.signal(Signal::KILL);
    first.wait(PATIENCE);
    let second = start(&place, &asked);
    until("it goes on", PATIENCE, || second.stderr_so_far().contains("resuming"));
    second.signal(Signal::INT);
    second.wait(PATIENCE).expect(3);
}

#[test]
fn a_disk_that_is_full_costs_one_line_and_no_finished_cell() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    let own = mine(&engine);
    let cell = ["--sizes", "100kB", "--duration", "1s", "--warmup", "0s", "--users", "1,2"];
    let asked = [&["--engine", &own], &cell[..]].concat();
    let matrix = start(&place, &asked);
    wait_for_part(&place, "answers-00-00-2x1.json");
    // A folder in the file's place fails for root too.
    let folder = records(&place).pop().unwrap();
    let in_the_way = folder.join("matrix/.cell-00001.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let ended = matrix.wait(PATIENCE).expect(1);
    let told = ended.stderr.lines().last().unwrap();
    let parts = ["stopped with 1 cells in", "the same command resumes there", "cell-00001"];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    std::fs::remove_dir(&in_the_way).unwrap();
    search(&place, &asked).expect(0);
    assert_eq!((records(&place).len(), cells(&record(&place)).len()), (1, 2));
}

#[test]
fn an_engine_that_dies_while_its_documents_are_awaited_is_not_waited_for() {
    let place = Place::new();
    let dying = Engine::start(Faults { die_at_count: true, ..Faults::default() });
    let cell = ["--sizes", "100kB", "--duration", "200ms", "--warmup", "0s", "--users", "1"];
    let ended = search(&place, &[&["--engine", &mine(&dying)], &cell[..]].concat()).expect(4);
    let reason = &super::reasons(&record(&place))[0];
    assert!(reason.contains("while waiting until all documents can be found"), "{reason}");
    assert!(ended.took < Duration::from_secs(60), "{:?}", ended.took);
}

#[test]
fn an_engine_of_ours_that_dies_of_its_text_is_started_again_and_loaded_again() {
    let place = Place::new();
    let port = crate::server::closed_port();
    place.file(
        "m.toml",
        format!(
            "sizes = [\"8MB\"]\nusers = [1, 2]\nduration = \"300ms\"\nwarmup = \"0s\"\nhits = 10\n\
             [[engine]]\nname = \"own\"\nserve = [\"search\", \"--port\", \"{port}\"]\ndialect = \"vespa\"\n"
        ),
    );
    let matrix = start(&place, &["m.toml"]);
    wait_for_part(&place, "probe-00.json");
    let pid = matrix.wait_for_descendant("serve search", PATIENCE);
    let count = format!(
        "http://127.0.0.1:{port}/search/?yql=select%20*%20from%20doc%20where%20true&hits=0"
    );
    until("some documents are there", PATIENCE, || {
        let (_, body) = crate::process::curl(&[&count]);
        let reply: Value = serde_json::from_str(&body).unwrap_or_default();
        reply.pointer("/root/fields/totalCount").and_then(Value::as_u64) > Some(100)
    });
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    let ended = matrix.wait(PATIENCE).expect(0);
    assert!(ended.stderr.contains("own died") && ended.stderr.contains("restarting it"));
    let record = record(&place);
    for cell in cells(&record) {
        assert!(cell["ok_per_s"].is_number(), "{cell}");
        assert!(cell["marks"].to_string().contains("engine restarted"), "{cell}");
    }
    let loads = super::list(&record, "loads");
    let troubled: Vec<bool> = loads.iter().map(|load| load["trouble"].is_string()).collect();
    assert_eq!(troubled, [true, false], "{loads:?}");
}
