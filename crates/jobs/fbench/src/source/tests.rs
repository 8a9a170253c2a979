use super::*;
use plimsoll_core::rng::Rng;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{LoadModel, Think};
use plimsoll_core::units::Span;
use plimsoll_engine::sim::parts::{Asked, asked, difference, in_parts};
use plimsoll_engine::target::Target;
use plimsoll_job::prepare::plan_of;
use plimsoll_workloads::render::{FbenchForm, FbenchOptions as FormOptions};

/// Query files of `clients` clients, of which each has a few records.
fn write_files(folder: &Path, clients: u64, rng: &mut Rng) {
    for client in 0..clients {
        let lines: String =
            (0..1 + rng.below(9)).map(|line| format!("/c{client}/{line}\n")).collect();
        std::fs::write(folder.join(format!("q{client:03}")), lines).unwrap();
    }
}

fn forms() -> Vec<Form> {
    let form = FbenchForm::new(&FormOptions {
        host: "h:1".to_owned(),
        headers: &[],
        append: "",
        post: false,
        coverage: false,
        close: false,
    });
    vec![Form::Fbench(form.unwrap())]
}

fn part(scenario: &Scenario, options: &SourceOptions<'_>) -> (Vec<Asked>, u64) {
    let options = SourceOptions { slice: scenario.slice, ..*options };
    let sources = Sources::open(&options, &forms()).unwrap();
    let troubles = Troubles::default();
    let sessions = sources.sessions(scenario.threads, forms(), 0, "", &troubles).unwrap();
    let plan = plan_of(scenario, vec![Target::resolve("127.0.0.1", 9)], None, 1);
    let text =
        |request: &plimsoll_wire::http1::Request| String::from_utf8(request.bytes.clone()).unwrap();
    let asked = asked(&plan, sessions, text).unwrap();
    (asked, u64::from(sources.exhausted.load(std::sync::atomic::Ordering::Relaxed)))
}

#[test]
fn the_clients_of_all_parts_ask_what_those_of_one_process_ask() {
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let clients = 5 + rng.below(20);
        write_files(folder.path(), clients, &mut rng);
        let (numbered, shared) = (rng.below(2) == 0, rng.below(2) == 0);
        let pattern = folder.path().join(if numbered { "q%03d" } else { "q000" });
        let options = SourceOptions {
            pattern: &pattern.display().to_string(),
            output: None,
            clients: clients as u32,
            slice: Slice::WHOLE,
            post: false,
            base64: false,
            max_line: 1024,
            restart: rng.below(3) as i64 - 1,
            shared,
        };
        let cycle_ns = rng.below(2) * 10_000_000;
        let scenario = Scenario {
            load: LoadModel::Closed { clients: clients as u32, think: Think::None, cycle_ns },
            duration: Some(Span { ns: 300_000_000 }),
            seed,
            ..Scenario::default()
        };
        let (parts, threads) = (1 + rng.below(5) as u32, 1 + rng.below(3) as u32);
        let union = |parts, threads| -> (Vec<Asked>, u64) {
            let each = in_parts(&scenario, parts, threads).map(|own| part(&own, &options));
            each.fold(Default::default(), |(mut all, exhausted), (asked, own)| {
                all.extend(asked);
                (all, exhausted + own)
            })
        };
        let ((union, ended), (whole, ended_whole)) =
            (union(parts, threads), union(1, parts * threads));
        assert!(!whole.is_empty());
        assert_eq!(ended, ended_whole, "seed {seed}");
        assert_eq!(difference(union, whole), None, "seed {seed}, {parts} x {threads}");
    }
}

#[test]
fn a_part_needs_the_files_of_its_own_clients_only() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), 6, &mut Rng::new(1));
    for other in [0, 2, 4] {
        std::fs::remove_file(folder.path().join(format!("q{other:03}"))).unwrap();
    }
    let options = SourceOptions {
        pattern: &folder.path().join("q%03d").display().to_string(),
        output: None,
        clients: 6,
        slice: Slice { index: 1, of: 2 },
        post: false,
        base64: false,
        max_line: 1024,
        restart: -1,
        shared: false,
    };
    assert_eq!(Sources::open(&options, &forms()).unwrap().files.len(), 3);
    assert!(Sources::open(&SourceOptions { slice: Slice::WHOLE, ..options }, &forms()).is_err());
}
