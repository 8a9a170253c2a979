//! Digests of simulated runs. The same seed gives the same run, whatever is rebuilt in the engine.
//!
//! A change that is meant to change runs (an order of connections, a delay, a draw from a seed) changes digests too: the
//! failed test prints all of them, to be pasted here, and the commit says why they changed.

use crate::calls::caller;
use crate::multiplex::{REPLY, Server, frame, plan, run};
use crate::scene::{Outcome, Scene};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::Failure;
use plimsoll_core::rng::Rng;
use plimsoll_engine::shard::{ShardEnd, ShardPlan};
use plimsoll_engine::sim::{Act, Acts};

/// First seed of the runs over HTTP/1.1.
const HTTP_FROM: u64 = 7000;

/// FNV-1a over numbers and text.
struct Digest(u64);

impl Digest {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| self.bytes(&number.to_le_bytes()));
    }

    fn histogram(&mut self, histogram: &Histogram) {
        self.numbers(histogram.cells().flat_map(|(value, count)| [value, count]));
    }

    fn interval(&mut self, interval: &Interval) {
        let (ledger, counters) = (&interval.ledger, &interval.counters);
        self.numbers([interval.from_ns, interval.to_ns, u64::from(interval.in_flight)]);
        self.numbers([ledger.scheduled, ledger.sent, ledger.ok, ledger.unfinished]);
        self.numbers([ledger.refused.queue_full, ledger.refused.queue_timeout]);
        self.numbers([ledger.unsent.stopped]);
        self.numbers(Failure::ALL.map(|kind| ledger.failed.get(kind)));
        self.numbers([counters.bytes_sent, counters.bytes_received, counters.bytes_body]);
        self.numbers([counters.connects, counters.reused, counters.retries, counters.waited]);
        self.numbers([counters.cycles_late, counters.ended_in_time, counters.ok_in_time]);
        self.numbers([counters.exhausted, counters.refused_late, interval.delays.disturbed]);
        let delays = &interval.delays;
        for histogram in [&interval.lag, &interval.unserved, &delays.receive, &delays.send] {
            self.histogram(histogram);
        }
        self.histogram(&delays.starved);
        self.histogram(&delays.connection);
        self.numbers(interval.statuses.iter().flat_map(|(&code, &count)| [code.into(), count]));
        for class in &interval.classes {
            self.numbers([class.service_sum_ns, class.service_min_ns, class.failed_min_ns]);
            self.histogram(&class.response);
            self.histogram(&class.service);
            self.histogram(&class.failed);
        }
    }

    fn end(&mut self, end: &ShardEnd) {
        self.interval(&end.rest);
        end.warmup.iter().for_each(|warmup| self.interval(warmup));
        self.numbers([end.measured_ns.0, end.measured_ns.1, end.client_elapsed_ns]);
        self.numbers([end.clients_measured, end.connections].map(u64::from));
        self.numbers([end.last_success.0, end.last_success.1]);
        self.numbers([end.interrupted, end.drain_cut, end.refused.is_some()].map(u64::from));
        self.numbers([end.round_trips.len() as u64, end.slowest.len() as u64]);
        for mark in [end.marks.0, end.marks.1] {
            self.numbers([mark.at_ns, mark.idle_ns, mark.stopped_ns]);
        }
        for slow in &end.slowest {
            self.numbers([slow.times.intended_ns, slow.times.sent_ns, slow.times.done_ns]);
            self.bytes(slow.text.as_bytes());
        }
    }

    fn outcome(&mut self, outcome: &Outcome) {
        outcome.seconds.iter().for_each(|second| self.interval(second));
        self.end(&outcome.end);
        self.numbers([outcome.start_ns, outcome.over_ns, outcome.failures_told as u64]);
        for asked in &outcome.diary.asked {
            self.numbers([asked.client, asked.target].map(u64::from));
            let (_, times) = asked.end.map_or_else(Default::default, |(_, times)| ((), times));
            self.numbers([times.intended_ns, times.sent_ns, times.done_ns]);
        }
        for seen in &outcome.seen {
            self.bytes(seen.request.as_bytes());
            self.numbers([seen.connection, u64::from(seen.prior), seen.at_ns]);
        }
        self.numbers(outcome.knocks.iter().map(|knock| knock.at_ns));
        for window in &outcome.windows {
            self.numbers([window.scheduled, window.late[0], window.failed, window.completed]);
            self.numbers([window.response_sum_s.to_bits()]);
        }
    }
}

/// A run over HTTP/1.1. Some begin with few connections and open more when they need them; some use each connection
/// for one request.
fn over_http(seed: u64) -> u64 {
    let mut scene = Scene::draw(seed);
    match seed % 4 {
        0 => {
            scene.plan.connections = 40;
            scene.plan.warm_connections = Some(1 + (seed % 5) as u32);
        }
        1 => scene.plan.keep_alive = false,
        _ => {}
    }
    let mut digest = Digest::new();
    digest.outcome(&scene.run());
    digest.0
}

/// A run with many requests on a connection; some behind slots, some over connections that grow.
fn multiplexed(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let server = Server::new(move |_, tag| {
        let after_ns = rng.below(300) * MILLISECOND_NS;
        match rng.below(30) {
            0 => vec![(after_ns, Act::Reset)],
            1 => vec![(after_ns, Act::Close)],
            2 => Acts::new(),
            3 => vec![(after_ns, Act::Bytes(frame(b'!', tag)))],
            _ => vec![(after_ns, Act::Bytes(frame(REPLY, tag)))],
        }
    });
    server.borrow_mut().accepts = 1 + (seed % 7) as usize;
    let (caller, _) = caller(0);
    let clients = 1 + (seed * 7 % 50) as u32;
    let mut plan = plan(clients, 1 + (seed % 6) as u32, Some(600));
    plan.limits.duration_ns = 3 * SECOND_NS;
    if seed.is_multiple_of(3) {
        let (slots, queue_max) = (1 + clients / 2, 3);
        let queue_timeout_ns = 200 * MILLISECOND_NS;
        let admission = AdmissionModel::Managed { slots, queue_max, queue_timeout_ns };
        plan = ShardPlan { admission, warm_connections: Some(1), ..plan };
    }
    let mut digest = Digest::new();
    digest.end(&run(plan, 1 + (seed % 60) as u32, &server, caller));
    digest.0
}

fn compare(name: &str, digest: impl Fn(u64) -> u64, seeds: std::ops::Range<u64>, kept: &[u64]) {
    let found: Vec<u64> = seeds.clone().map(digest).collect();
    let changed: Vec<u64> =
        seeds.zip(found.iter().zip(kept)).filter(|(_, (a, b))| a != b).map(|(s, _)| s).collect();
    assert!(
        found.len() == kept.len() && changed.is_empty(),
        "runs of the seeds {changed:?} are not what they were; {name}: {found:#018x?}"
    );
}

#[test]
fn runs_over_http_are_what_they_were() {
    let seeds = HTTP_FROM..HTTP_FROM + HTTP.len() as u64;
    compare("HTTP", over_http, seeds, &HTTP);
}

#[test]
fn multiplexed_runs_are_what_they_were() {
    compare("MULTIPLEXED", multiplexed, 0..MULTIPLEXED.len() as u64, &MULTIPLEXED);
}

const HTTP: [u64; 64] = [
    0x4ba3_ec41_e63a_e04a,
    0x21dd_d29e_a825_a975,
    0x94e5_b830_0f17_cf41,
    0xecf0_9a4c_aea6_9fa2,
    0x6f17_5542_69ed_3aa4,
    0x3a90_a1dc_bd22_9991,
    0xc49e_5230_17af_ea96,
    0xe4f3_a5f3_5f2a_948b,
    0x4a63_7eef_a900_d108,
    0x6e56_f4f5_d854_dd0b,
    0x213b_3525_36e1_c52e,
    0x9dc5_eea9_eb7c_62d7,
    0x5a6e_212f_c1d1_3bd9,
    0x97d4_1bbd_bbcc_5e19,
    0x2ec8_63cc_9d73_a490,
    0xedbe_20e7_b52a_8a51,
    0x3107_fa03_1bf5_03fb,
    0xd30b_6eb4_36c5_7223,
    0x019d_4127_9be4_78b6,
    0x3eed_e4a3_c63f_21ef,
    0xc5d6_de5b_ad63_4625,
    0x46e7_4170_8448_a591,
    0xfe22_346e_8c4f_780c,
    0x959a_f9a9_03b2_fbe5,
    0xa663_c0af_d7b9_27d5,
    0xc16b_4658_6145_9eeb,
    0x07ca_5710_8f20_6643,
    0x9e1a_e3e3_8e0a_06f9,
    0x2e26_9dec_c3fe_b30f,
    0xb95c_5d0f_7035_1433,
    0xd140_9032_036b_5fbe,
    0xf590_0d16_973b_584d,
    0xabaf_19b8_4732_5676,
    0x98f8_8ebd_561d_00e1,
    0xacdf_6c2a_8efe_466c,
    0x9d78_9816_f22f_2c21,
    0x6076_f872_7c92_91a5,
    0x6718_f046_9117_7f88,
    0x2c85_1f88_2fe7_f6ae,
    0x124e_b975_9eba_df2e,
    0x90ec_3d10_1278_b26f,
    0x4854_72c6_ed03_77b0,
    0x1a48_2206_ca27_c438,
    0x34d1_0d45_8a22_0a23,
    0x943a_4785_e326_83d7,
    0xefa4_4316_ecf2_1262,
    0xf9ed_2610_a29d_3c6b,
    0xa5bb_cccf_be8a_6cb9,
    0x0a3c_dd24_c85c_9e98,
    0xe189_f0c9_5484_f01a,
    0x206b_5aa9_f35c_dfa1,
    0xe633_d595_2159_8691,
    0x462c_e981_64e7_325d,
    0x8d37_73e5_0a64_d84b,
    0xecf1_206e_c65d_4f6a,
    0x99bd_3c96_4c10_2569,
    0xfa7b_9268_a7e7_da22,
    0x5a43_defa_9f7b_febf,
    0xa76c_2d3a_5c62_93f1,
    0x4dee_2c21_c51d_174c,
    0x155d_68f9_7eb5_6577,
    0x2af0_561e_bc21_4ae4,
    0xe6bc_f972_8192_7a4b,
    0xbe93_e992_bd53_31fc,
];
const MULTIPLEXED: [u64; 36] = [
    0x6989_f0cb_329b_3c78,
    0x1ad5_1c1a_a817_73cb,
    0x6a3f_daec_8bbd_4525,
    0x9d2f_40bc_d19c_45b0,
    0x5d0a_0476_874b_acc7,
    0x464a_98ca_ad6b_1629,
    0xce88_c888_8240_0e86,
    0x9a1b_66f8_0b97_7955,
    0x5641_baa6_3336_bb3a,
    0xf569_af37_63b8_8972,
    0x4749_1016_b2d9_e202,
    0xf939_b9ae_2f44_6f97,
    0xbe46_1fb7_0c48_de15,
    0xa243_fd7a_2fb6_b633,
    0xe5a6_68ae_5877_bcc9,
    0xa195_68f2_e02a_c8de,
    0xe910_fdf7_0ea3_b30f,
    0x8993_c13a_1812_d6e5,
    0x0881_9cdb_6b83_b449,
    0x6cfd_4a47_aa9b_31d6,
    0xfd29_6962_1d11_5482,
    0x022a_fc2d_3bef_5a66,
    0xab44_a22c_63c4_7e0f,
    0xb38c_fec8_4cfa_a1fb,
    0x2728_9fa5_974d_9995,
    0x0632_a216_77f8_ba61,
    0x4ce8_a91c_fcf0_dfe9,
    0x79eb_4770_514e_2c8d,
    0x1b41_1d2c_0023_ceb9,
    0xb2d3_99f5_9743_f927,
    0x964c_b4d2_f36d_b8cf,
    0xe11c_94b4_9806_6dc8,
    0xc6a9_52ae_a43d_65c2,
    0xc369_32b2_ad91_b3d2,
    0x9032_3ae1_ca20_cc0e,
    0xd6d1_e6df_6177_fa02,
];
