use super::*;
use anyhow::Result;
use clap::Parser;
use plimsoll_record::bench_shape::{Bench, Rhythm, Shape, preset};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    flags: BenchFlags,
}

fn flags(text: &str) -> BenchFlags {
    let words = std::iter::once("voter").chain(text.split(' ').filter(|word| !word.is_empty()));
    Cli::try_parse_from(words).unwrap().flags
}

fn shape(text: &str) -> Result<(Shape, Vec<String>), String> {
    let flags = flags(text);
    let read = flags.shape(Bench::Voter).and_then(|(shape, targets)| {
        flags.check(&shape, &targets)?;
        flags.names()?;
        flags.slice()?;
        Ok((shape, targets))
    });
    read.map_err(|error| error.to_string())
}

#[test]
fn presets_words_and_flags_come_to_the_same_shape() {
    let (named, targets) = shape("VSM volt://a:1 --target volt://b:2").unwrap();
    assert_eq!((Some(&named), targets.len()), (preset("VSM").as_ref(), 2));
    let words = "run VSM voter 100000 steady 200 x managed 100000 200 100 verbose 100 volt://h";
    assert_eq!(shape(words).unwrap(), (named.clone(), vec!["volt://h".to_owned()]));
    // The limit in VSM is Erlvolt's, which has no use for it with steady calls; a flag without use is refused.
    let flags = "--client VSM --mode managed --queue 100000 --slots 200 --dump-interval 100ms";
    assert_eq!(shape(flags).unwrap().0, Shape { limit: None, ..named });
    let burst = shape("--preset vsd --rhythm bursts --delay 5ms --burst 7 --calls 10").unwrap().0;
    assert_eq!((burst.size, burst.calls, burst.rhythm), (7, Some(10), Rhythm::Burst));
    assert_eq!(shape("--duration 3s").unwrap().0.calls, None);
    assert_eq!(shape("--clients 3").unwrap().0.size, 3);
    assert_eq!(flags_of_hello().client, "HSD");
}

fn flags_of_hello() -> Shape {
    let told = flags("VSD").shape(Bench::Hello).unwrap_err().to_string();
    assert!(told.contains("calls voter"), "{told}");
    flags("").shape(Bench::Hello).unwrap().0
}

/// A search judges its own limits: an assertion beside them would pass whatever came out.
#[test]
fn a_search_rejects_assertions() {
    let mut flags = flags("--seek p99=10ms");
    assert!(flags.shape(Bench::Voter).is_ok());
    flags.assertions = vec!["global p95 < 1us".parse().unwrap()];
    let printed = flags.shape(Bench::Voter).unwrap_err().to_string();
    assert!(printed.contains("leave out --slo and --assert"), "{printed}");
}

#[test]
fn every_contradiction_has_its_line() {
    let cases = [
        ("VDS", "did you mean 'VSD'"),
        ("127.0.0.1:21212", "write volt://127.0.0.1:21212"),
        ("VSD VSM", "a preset is already named"),
        ("VSD --preset VSM", "named twice"),
        ("run VSD voter", "has 2"),
        ("--rhythm burst", "needs a delay"),
        ("VBD --clients 5", "a burst has a size"),
        ("VSD --delay 5ms", "go with --rhythm burst"),
        ("--limit 5", "--limit go with --rhythm burst"),
        ("VBM --rate 5 --limit 5", "--limit go with --rhythm burst"),
        ("VBM --auto-tune p99=10ms", "use --mode direct"),
        ("--queue 5", "--queue goes with --mode managed"),
        ("--slots 5", "--slots goes with"),
        ("--queue-timeout 5s", "--queue-timeout goes with --mode managed"),
        ("VSM --mode direct --queue-timeout 5s", "--queue-timeout goes with --mode managed"),
        ("--mode managed --slots 0", "slots must be at least 1"),
        ("--arrivals uniform", "--arrivals goes with --rate; add --rate, or leave out"),
        ("--seek p99=10ms --arrivals poisson", "--arrivals goes with --rate"),
        ("--tune-by client", "--tune-by goes with --auto-tune"),
        ("--rate 5 --tune-by server", "--tune-by goes with --auto-tune"),
        ("--budget 5m", "--budget goes with --seek"),
        ("--auto-tune p99=10ms --budget 5m", "--budget goes with --seek"),
        ("--rate 5 --clients 5", "set the pace"),
        ("--rate 5 --seek p99=10ms", "exclude each other"),
        ("--seek p99=10ms --calls 5", "leave out --calls"),
        ("--seek p99=10ms --slo errors=0.1%", "another --seek"),
        ("--contestants 13", "--contestants 13: use 1 to 12"),
        ("--contestants 0", "--contestants must be 1 to 12"),
        ("--names a,b,c,d,e,f,g,h,i,j,k,l,m", "--contestants 13: use 1 to 12"),
        ("--names a,,b", "1 to 50 bytes"),
        ("--names a,a", "the same name"),
        ("--names a,b --contestants 3", "names 2"),
        ("--slice 0/2", "from 1/N to N/N"),
        ("--slice 3/2", "from 1/N to N/N"),
        ("--sql function", "name a postgres:// target"),
        ("--threads 3 --clients 2", "fewer than one"),
        ("--own-range --part 0/3 --clients 2", "fewer than one"),
        ("--own-range --part 0/3 --calls 2", "one for each of the processes"),
        ("--verbosity loud", "write quiet"),
        ("--tune-by server --auto-tune p99=1ms postgres://h", "reports no times"),
    ];
    for (text, part) in cases {
        let told = shape(text).unwrap_err();
        assert!(told.contains(part), "{text}: {told}");
    }
}
