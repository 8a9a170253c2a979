//! The sessions of HTTP loads: rendered requests in every order, classes, and checks of the content.

use super::{Cast, Order, Outcome, outcome, perform};
use crate::asker::CLASSES;
use crate::diary::Diary;
use crate::faults::Fault;
use crate::scene::{Model, Scene};
use crate::speakers::application::{Application, Content, stamp};
use crate::speakers::http1::Http1Speaker;
use crate::speakers::http2::Http2Speaker;
use crate::speakers::{Request, Speaker};
use crate::station::Station;
use crate::truth::Fate;
use plimsoll_core::outcome::Failure;
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_core::schedule::LoadModel;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::Http1;
use plimsoll_wire::http2::Http2;
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::checks::{Checks, HitCounter};
use plimsoll_workloads::classes::Classes;
use plimsoll_workloads::http::{Cursor, Form, HttpSessions, Judge, Rendered, Way, shuffled};
use plimsoll_workloads::query_file::Passes;
use plimsoll_workloads::render::{HttpForm, RenderedSet, RequestParts};
use plimsoll_workloads::script::{Script, UserOrder};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Faults of the server, but for those that a load cannot see: an answer to another query of the same form, for instance the
/// second one to the query before.
const FAULTS: &[Fault] = &[
    Fault::Stalled,
    Fault::Late,
    Fault::Reset,
    Fault::Closed,
    Fault::HalfClosed,
    Fault::ResetInside,
    Fault::CutInside,
    Fault::Garbage,
    Fault::Flipped,
    Fault::TooLong,
    Fault::TooShort,
    Fault::Refusal,
    Fault::Empty,
    Fault::IdleClosed,
];

/// The end of each good reply, which is checked for: a body that is cut has it not.
const MARK: &str = "\"whole\":true}";

/// A search server that sometimes finds nothing.
#[derive(Debug)]
struct Shop {
    /// Of a thousand queries, how many find nothing.
    misses: u64,
}

impl Application for Shop {
    fn reply(&mut self, _: &Request, refuses: bool, is_empty: bool, rng: &mut Rng) -> Content {
        let hits = if rng.below(1000) < self.misses { 0 } else { 1 + rng.below(100) };
        let status = if refuses { [404, 429, 500, 503][rng.below(4) as usize] } else { 200 };
        let fate = match (refuses, is_empty || hits == 0) {
            (true, _) => Fate::No(Failure::Status),
            (false, true) => Fate::No(Failure::Check),
            (false, false) => Fate::Right,
        };
        let padding = ".".repeat(rng.below(400) as usize);
        let body = match is_empty {
            true => Vec::new(),
            false => format!(
                "{{\"root\":{{\"fields\":{{\"totalCount\":{hits}}}}},\"text\":\"{padding}\",{MARK}"
            )
            .into_bytes(),
        };
        let headers = vec![("content-type", "application/json".to_owned())];
        Content { status, headers, body, fate }
    }
}

/// A few queries, the same for each target.
fn rendered(rng: &mut Rng, targets: usize, form: &HttpForm) -> Rendered {
    let count = 1 + rng.below(40);
    let lengths: Vec<usize> =
        (0..count).map(|_| (rng.below(3) * rng.below(2000)) as usize).collect();
    let mut set = RenderedSet::default();
    for (number, length) in lengths.iter().enumerate() {
        let target = format!("/search/?q={number}");
        let body = vec![b'q'; *length];
        let (method, body) = if *length > 0 { ("POST", Some(&body[..])) } else { ("GET", None) };
        let parts = RequestParts { method, target: target.as_bytes(), headers: &[], body };
        set.push((number % CLASSES) as u8, number as u64 + 1, |out| form.render(&parts, out));
    }
    Rendered { per_target: vec![set; targets] }
}

fn sessions(rng: &mut Rng, scene: &Scene, passes: Passes) -> HttpSessions {
    let fail = |what: &str| -> ! { panic!("the sessions cannot be set up: {what}") };
    let authority = Authority { host: "127.0.0.1".to_owned(), port: 80, tls: false };
    let form = HttpForm::new(&authority, &[], false).unwrap_or_else(|error| fail(&error));
    let rendered = Arc::new(rendered(rng, scene.plan.targets.len(), &form));
    let count = rendered.per_target[0].len();
    let cursors = match &scene.plan.model {
        LoadModel::Users { requests, .. } => {
            let order = [UserOrder::File, UserOrder::Shuffle, UserOrder::Random, UserOrder::Block];
            let order = order[rng.below(4) as usize];
            let script = Script::new(order, &vec![1; count], *requests, scene.seed);
            vec![Cursor::Users(rendered, script.unwrap_or_else(|error| fail(&error)))]
        }
        _ => {
            let readers = 1 + rng.below(3);
            let order = shuffled(count, scene.seed);
            let kind = rng.below(3);
            let way = |reader: u64| {
                let way = Way::new(0..count, reader, readers, passes);
                match kind {
                    0 => way,
                    1 => way.shuffled(order.clone()),
                    _ => way.random(scene.seed, reader),
                }
            };
            (0..readers).map(|reader| Cursor::Rendered(rendered.clone(), way(reader))).collect()
        }
    };
    let checks = Checks::new(&[format!("body~{MARK}"), "hits>=1".to_owned()]);
    let judge = Judge {
        checks: checks.unwrap_or_else(|error| fail(&error.to_string())),
        hits: Some(HitCounter::default()),
        ..Judge::default()
    };
    let forms = vec![Form::Own { form, method: "GET".to_owned(), body: None }];
    HttpSessions::new(cursors, Arc::new(forms), Classes::default(), judge)
}

pub(super) fn run(order: Order) -> Outcome {
    let mut rng = Rng::new(derive_seed(order.seed, "sessions-of"));
    let mut scene = Scene::draw(order.seed, "sessions", Model::Any, FAULTS);
    // The file says how much there is to ask.
    let is_short = rng.below(4) == 0 && !matches!(scene.plan.model, LoadModel::Users { .. });
    let passes = if is_short { Passes::Count(1 + rng.below(3)) } else { Passes::Unlimited };
    (scene.source, scene.pause_ns) = (is_short.then_some(u64::MAX), 0);
    let application = Shop { misses: rng.below(2) * rng.below(200) };
    if rng.below(2) == 0 {
        let http = Http::One(Http1::default());
        return load(order, &scene, (rng, passes), http, Http1Speaker { application });
    }
    let http = Http::Two(Http2 { streams_max: 1 + rng.below(60) as u32, ..Http2::default() });
    load(order, &scene, (rng, passes), http, Http2Speaker { application, windows_zero: 0 })
}

fn load<K: Speaker + 'static>(
    order: Order,
    scene: &Scene,
    (mut rng, passes): (Rng, Passes),
    protocol: Http,
    speaker: K,
) -> Outcome {
    let sessions = sessions(&mut rng, scene, passes);
    let peer = Rc::new(RefCell::new(Station::new(speaker, scene.script.clone())));
    let cast = Cast { protocol, sessions, diary: Diary::shared(), peer };
    let (played, log, findings) = perform(order, scene, cast, stamp);
    outcome(order, scene, (&played, &log, findings))
}
