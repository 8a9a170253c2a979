//! Short versions of `make soak` and `make slow-clients`.

use crate::process::Place;
use plimsoll_sabotage::sabotages::interposer::Interposed;
use plimsoll_sabotage::soak::measure::{self, Plan, Soaked};
use plimsoll_sabotage::soak::slow::{self, SUBJECTS, Slow};
use plimsoll_sabotage::soak::target::{self, faults};
use plimsoll_sabotage::sockets::stage::Stage;
use plimsoll_sabotage::targets::leak::Leak;
use std::time::Duration;

fn stage() -> Stage {
    Stage::of(env!("CARGO_BIN_EXE_plimsoll").into())
}

/// Twelve seconds over TLS on a target that misbehaves, by a generator that is made to lose something.
fn soak(interposed: Interposed) -> Soaked {
    let (server, _) = target::start(Leak::default()).unwrap();
    let plan = Plan { rate_per_s: 400.0, length: Duration::from_secs(12), interposed };
    measure::run(&stage(), &plan, &format!("https://{}", server.address), &[]).unwrap()
}

#[test]
fn a_soak_finds_planted_leaks_with_their_size_and_has_the_faults_that_it_promises() {
    let _place = Place::alone();
    let leaking = Interposed {
        leaked_bytes_per_s: 1_000_000,
        descriptor_every: Some(Duration::from_millis(200)),
        ..Interposed::default()
    };
    let (sound, leaking) = std::thread::scope(|scope| {
        let sound = scope.spawn(|| soak(Interposed::default()));
        let leaking = soak(leaking);
        (sound.join().unwrap(), leaking)
    });
    for (figure, planted_per_hour) in [("memory", 3_600.0), ("descriptors", 5.0 * 3_600.0)] {
        let of = |soaked: &Soaked| soaked.line("plimsoll load", figure).unwrap().growth;
        let (without, with) = (of(&sound), of(&leaking));
        assert_eq!(with.answer.words(), "grows", "{}", leaking.markdown());
        let found = with.per_hour / planted_per_hour;
        assert!((0.5..1.5).contains(&found), "{figure}: {}", leaking.markdown());
        assert!(without.per_hour < planted_per_hour / 5.0, "{figure}: {}", sound.markdown());
    }
    assert!(leaking.grows());
    let count = |pointer: &str| sound.record.pointer(pointer).unwrap().as_u64().unwrap();
    let failed = count("/ledger/failed/status");
    let due = count("/ledger/sent") / faults().fail_every;
    assert!(failed > 0 && failed.abs_diff(due) <= due / 5, "{failed} of {due} statuses");
    assert!(count("/counters/connects") > count("/ledger/sent") / 200, "{}", sound.words());
}

#[test]
fn slow_and_silent_clients_cost_a_server_little_and_harm_no_other_client() {
    let _place = Place::busy();
    let slow = Slow {
        count: 600,
        every: Duration::from_millis(400),
        alone: Duration::from_millis(500),
        healthy: Duration::from_secs(1),
    };
    for subject in &SUBJECTS {
        let row = slow::measure(&stage(), subject, slow).unwrap();
        assert_eq!(row.defects(), Vec::<String>::new(), "{row:?}");
    }
}
