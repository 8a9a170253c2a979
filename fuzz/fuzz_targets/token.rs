//! Continuation tokens, and the walk that goes on from them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::vespa::ProgressToken;

fuzz_target!(|bytes: &[u8]| {
    let Ok(token) = ProgressToken::decode(bytes) else { return };
    let Ok(mut token) = token.resume(3, 1) else { return };
    for _ in 0..100 {
        let Some(step) = token.next_bucket() else { break };
        token.finish_bucket(step.bucket);
    }
    let _ = (token.percent_finished(), token.encode());
});
