//! Every target on the inputs in the repository and on mutations of them: targets cannot rot, and what was found once stays
//! fixed.

use plimsoll_core::rng::Rng;
use plimsoll_fuzzing::{TARGETS, corpus, mutation, target, words};
use std::path::Path;

/// Mutations of a target; the seed is fixed, so that a failure comes again.
const MUTATIONS: usize = 3000;
/// Longer inputs are not mutated: without optimisation they take most of the time.
const MUTATED_BYTES_MAX: usize = 600;

/// Shows the input at hand if the target panics.
struct AtHand<'b>(&'b str, &'b [u8]);

impl Drop for AtHand<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = self.1.escape_ascii();
            #[allow(clippy::print_stderr)]
            {
                eprintln!("target {}, input: b\"{text}\"", self.0);
            }
        }
    }
}

fn run(name: &str) {
    let target = target(name).expect("a target of this name");
    let path = corpus::path(name);
    let file = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; make fuzz-corpus", path.display()));
    let inputs = corpus::unpack(&file).expect("a sound file of inputs");
    assert!(!inputs.is_empty());
    let one = |input: &[u8]| {
        let _at_hand = AtHand(name, input);
        (target.run)(input);
    };
    inputs.iter().for_each(|input| one(input));
    let mut short: Vec<&Vec<u8>> =
        inputs.iter().filter(|input| input.len() <= MUTATED_BYTES_MAX).collect();
    if short.is_empty() {
        short = inputs.iter().take(1).collect();
    }
    let mut rng = Rng::new(20_261_126);
    // A longer search for a developer; the suite has a few seconds.
    let mutations = std::env::var("PLIMSOLL_MUTATIONS").ok().and_then(|number| number.parse().ok());
    let mutations = if short[0].len() > MUTATED_BYTES_MAX { MUTATIONS / 30 } else { MUTATIONS }
        .max(mutations.unwrap_or(0));
    for _ in 0..mutations {
        let mut pick = || short[rng.below(short.len() as u64) as usize];
        let (mut input, other) = (pick().clone(), pick());
        mutation::mutate(&mut rng, &mut input, other, words::of(name), target.longest);
        one(&input);
    }
}

macro_rules! tests {
    ($($name:ident = $room:ident :: $function:ident, $longest:literal, $reads:literal;)+) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )+
    };
}

plimsoll_fuzzing::each_target!(tests);

#[test]
fn every_target_has_a_program_a_corpus_and_a_row_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let list = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let mut bytes = 0;
    for target in TARGETS {
        let name = target.name;
        let program =
            std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("plimsoll_fuzzing::{name}")), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(list.contains(&format!("| `{name}` |")), "{name}");
        let file = std::fs::read(corpus::path(name)).unwrap();
        assert!(file.len() <= corpus::TARGET_BYTES_MAX, "{name}: {} bytes", file.len());
        bytes += file.len();
    }
    assert!(bytes < 3_000_000, "{bytes}");
    let programs = std::fs::read_dir(folder.join("fuzz_targets")).unwrap().count();
    assert_eq!(programs, TARGETS.len(), "a program without a target");
}
