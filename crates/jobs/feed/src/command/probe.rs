//! Version of HTTP that a target speaks: one small request in the newer one tells.

use anyhow::Result;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{LoadModel, Slice, Think};
use plimsoll_core::units::Span;
use plimsoll_engine::run::run as run_engine;
use plimsoll_engine::target::Target;
use plimsoll_job::keeping::Nowhere;
use plimsoll_job::prepare::{http_of, plan_of, tls_of};
use plimsoll_job::url::Url;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use plimsoll_workloads::render::{HttpForm, RequestParts};
use std::sync::mpsc::{Sender, channel};

/// Time that an answer is waited for.
const PATIENCE: Span = Span::seconds(3);
/// Path that Vespa's containers answer without any work.
const PATH: &[u8] = b"/status.html";

/// Result of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Reply,
    Failed(Failure),
}

/// Asks once.
struct Question {
    form: HttpForm,
    asked: bool,
    answer: Option<Answer>,
    answered: Sender<Option<Answer>>,
}

impl Sessions<Http> for Question {
    fn next(&mut self, _client: u32, _target: u32, request: &mut Request) -> Turn {
        if std::mem::replace(&mut self.asked, true) {
            return Turn::Exhausted;
        }
        let parts = RequestParts { method: "GET", target: PATH, ..RequestParts::default() };
        request.bytes.clear();
        self.form.render(&parts, &mut request.bytes);
        Turn::Ask(Submission::default())
    }

    fn judge(&mut self, _: u32, _: &Submission, reply: &Reply<'_>, _: Times) -> Judgement {
        self.answer = Some(Answer::Reply);
        let outcome = Outcome::Ok;
        Judgement { outcome, status: reply.status, hits: None, body_bytes: reply.body_bytes }
    }

    fn lost(&mut self, _: u32, _: &Submission, failure: Failure, _: Times) {
        self.answer = Some(Answer::Failed(failure));
    }

    fn finish(self: Box<Self>, _: u64) {
        // Nobody waits for the answer of a run that failed to start.
        let _ = self.answered.send(self.answer);
    }

    fn describe(&self, _: &Submission, _: &Request) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &Reply<'_>) -> (String, String) {
        (String::new(), String::new())
    }
}

/// Returns true if the first reachable target supports HTTP/2: as the client's first word, or chosen in the TLS
/// handshake. Where none can be reached it makes no difference.
///
/// # Errors
/// When the engine cannot start, or TLS options are wrong.
pub fn speaks_http2(scenario: &Scenario, urls: &[Url], targets: &[Target]) -> Result<bool> {
    let stop = plimsoll_job::signals::stop_flag()?;
    for (url, target) in urls.iter().zip(targets) {
        let mut own = scenario.clone();
        own.http2 = true;
        own.slice = Slice::WHOLE;
        own.load = LoadModel::Closed { clients: 1, think: Think::None, cycle_ns: 0 };
        (own.connections, own.requests) = (Some(1), Some(1));
        (own.timeout, own.duration) = (PATIENCE, Some(PATIENCE));
        let tls = tls_of(&own, urls)?;
        let mut plan = plan_of(&own, vec![target.clone()], tls, 1);
        plan.preconnect = false;
        let (answered, received) = channel();
        let form = HttpForm::new(&url.authority, &[], false).map_err(plimsoll_job::usage::usage)?;
        let question = Question { form, asked: false, answer: None, answered };
        let sessions: Vec<Box<dyn Sessions<Http> + Send>> = vec![Box::new(question)];
        let http = http_of(&own);
        run_engine(&plan, || http, sessions, &mut Nowhere, &mut |_| {}, &stop)?;
        match received.try_recv().ok().flatten() {
            Some(Answer::Reply) => return Ok(true),
            Some(Answer::Failed(Failure::Connect)) | None => {}
            Some(Answer::Failed(_)) => return Ok(false),
        }
    }
    Ok(true)
}
