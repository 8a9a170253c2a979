//! Requests before a visit: which clusters there are, and whether the target takes the request at all.
//!
//! A streamed reply begins with its status, and only then is the request looked at: what is wrong with a selection is then
//! said nowhere. So one small request goes ahead that does not stream.

use super::task::{ROOT, Task};
use crate::{Answered, VisitForm, VisitStep, read_answer};
use anyhow::Result;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS, now_ns};
use plimsoll_core::schedule::Slice;
use plimsoll_engine::exchange::{Exchange, ExchangeError};
use plimsoll_job::prepare::tls_of;
use plimsoll_job::signals;
use plimsoll_job::usage::usage;
use plimsoll_wire::Fault;
use plimsoll_wire::http1::{Http1, Keep, Request};
use plimsoll_workloads::render::HttpForm;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// For how long a container is looked for where none can be reached, ns.
const ABSENT_NS: u64 = 2 * SECOND_NS;
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time that the server may work on the request ahead of the visit, s. It answers with what it has then.
const ASKED_S: u32 = 2;
/// Longest wait for its reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// The vespa command line's name for all clusters; a server that rejects it names its clusters.
const ALL_CLUSTERS: &str = "*";

/// Outcome of the contact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contact {
    /// The visit may begin.
    Ready,
    /// It cannot take place.
    Failed(String),
    /// The user wants the end.
    Stopped,
}

/// Learns the cluster's name where it is not given, and has the target check the request.
///
/// # Errors
/// When the user must choose among several clusters, or an address or TLS option is wrong.
pub fn contact(task: &mut Task) -> Result<Contact> {
    signals::stop_flag()?;
    if task.form.cluster.is_none() && task.form.path == ROOT {
        let cluster = Some(ALL_CLUSTERS.to_owned());
        let all = VisitForm { cluster, selection: None, field_set: None, ..small(&task.form) };
        match ask(task, &all)? {
            Asked::Answer(Answered::Refused(why)) => match &clusters(&why)[..] {
                [] => {}
                [only] => task.form.cluster = Some(only.clone()),
                several => {
                    return Err(usage(format!(
                        "the target has the content clusters {}; choose one with --cluster NAME",
                        several.join(", ")
                    )));
                }
            },
            Asked::Answer(_) => {}
            Asked::Nothing(contact) => return Ok(contact),
        }
    }
    let small = small(&task.form);
    // A proxy may have answered once in place of the target.
    for is_last in [false, true] {
        match ask(task, &small)? {
            Asked::Answer(Answered::Refused(why)) => return Ok(Contact::Failed(why)),
            Asked::Answer(Answered::Stranger(why)) if is_last => return Ok(Contact::Failed(why)),
            Asked::Answer(Answered::Stranger(_)) => {}
            Asked::Answer(Answered::Visit | Answered::Unknown) => break,
            Asked::Nothing(contact) => return Ok(contact),
        }
    }
    Ok(Contact::Ready)
}

/// The smallest request that the target must look at as at the visit's own.
fn small(form: &VisitForm) -> VisitForm {
    VisitForm {
        slices: 1,
        slice_id: None,
        part: Slice::WHOLE,
        stream: false,
        gzip: false,
        concurrency: None,
        wanted: Some(1),
        timeout_s: ASKED_S,
        ..form.clone()
    }
}

enum Asked {
    Answer(Answered),
    Nothing(Contact),
}

/// Asks the first container that answers; looks for one for a while.
fn ask(task: &Task, form: &VisitForm) -> Result<Asked> {
    let tls = tls_of(&task.scenario, &task.urls)?;
    let mut headers = form.headers();
    headers.extend(task.headers.iter().cloned());
    let until_ns = now_ns() + ABSENT_NS;
    let mut silent = false;
    loop {
        let mut why = String::new();
        for (url, target) in task.urls.iter().zip(&task.targets) {
            if signals::is_stopped() {
                return Ok(Asked::Nothing(Contact::Stopped));
            }
            let http = HttpForm::new(&url.authority, &headers, false).map_err(usage)?;
            let mut request =
                Request { keep: Keep { body: true, ..Keep::default() }, ..Request::default() };
            let step = VisitStep { slice: 0, space: 0, token: None, plain: true };
            form.render(&http, step, &mut request.bytes);
            let tls = tls.as_ref().filter(|_| url.authority.tls);
            let connected = Exchange::connect_secure(Http1::default(), target, tls, PATIENCE);
            let answer =
                connected.and_then(|mut line| line.ask(&request, |reply| read_answer(form, reply)));
            match answer {
                Ok(answer) => return Ok(Asked::Answer(answer)),
                // The visit itself may be answered: it waits longer.
                Err(ExchangeError::TimedOut(_)) => silent = true,
                Err(error @ ExchangeError::Fault(fault))
                    if !matches!(fault, Fault::Closed { .. }) =>
                {
                    let text = format!("{}: {error}", target.host);
                    return Ok(Asked::Nothing(Contact::Failed(text)));
                }
                Err(ExchangeError::Connect { address, error })
                    if error.kind() == std::io::ErrorKind::ConnectionRefused =>
                {
                    why = format!("{address}: connection refused: nothing is listening there");
                }
                Err(error) => why = error.to_string(),
            }
        }
        if silent {
            return Ok(Asked::Answer(Answered::Unknown));
        }
        if now_ns() + 100 * MILLISECOND_NS >= until_ns {
            let tried = match task.urls.len() {
                1 => String::new(),
                n => format!("none of the {n} containers can be reached; the last one: "),
            };
            return Ok(Asked::Nothing(Contact::Failed(format!("{tried}{why}"))));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The names in `Your Vespa deployment has no content cluster '*', only 'a', 'b'`.
fn clusters(refusal: &str) -> Vec<String> {
    let Some((_, names)) = refusal.split_once("no content cluster '*', only ") else {
        return Vec::new();
    };
    names.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_named_in_the_refusal() {
        let refusal = |names: &str| {
            clusters(&format!(
                "HTTP 400: Your Vespa deployment has no content cluster '*', only {names}"
            ))
        };
        assert_eq!(refusal("'music'"), ["music"]);
        assert_eq!(refusal("'a', 'b-2', 'c'"), ["a", "b-2", "c"]);
        assert!(clusters("HTTP 404: Nothing at '/document/v1/'").is_empty());
    }
}
