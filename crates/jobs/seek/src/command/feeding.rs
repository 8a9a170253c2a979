//! Operations on documents at a rate that is sought.

use super::Task;
use super::searching::{Subject, search};
use anyhow::Result;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::LoadModel;
use plimsoll_engine::target::Target;
use plimsoll_feed::forms_of;
use plimsoll_feed::{OperationSessions, OperationSet, Source};
use plimsoll_job::contact::reach;
use plimsoll_job::keeping::{About, Finished};
use plimsoll_job::output::Output;
use plimsoll_job::prepare::{check_classes, check_limits, http_of, plan_of, tls_of};
use plimsoll_job::url::Url;
use plimsoll_job::usage::usage;
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_workloads::http::Troubles;
use std::path::Path;
use std::sync::Arc;

/// The statuses beside 2xx that an operation may have and be accepted.
const ACCEPTED: [u16; 2] = [404, 412];

/// Operations of a file.
pub fn of_feed(
    mut task: Task,
    file: &Path,
    accept: &[u16],
    votes: bool,
    output: &Output,
) -> Result<Finished> {
    check(&task.scenario, accept, votes)?;
    check_limits(&task.scenario)?;
    let urls =
        task.scenario.targets.iter().map(|url| Url::parse(url)).collect::<Result<Vec<_>>>()?;
    if let Some(url) = urls.iter().find(|url| url.target != "/") {
        return Err(usage(format!(
            "'{}': operations have their own paths; write scheme, host and port only",
            url.target
        )));
    }
    let set = OperationSet::read(&mut Source::open(file)?, accept.to_vec())
        .map_err(|error| usage(format!("--feed {}: {error}", file.display())))?;
    let (class_names, set) = (set.class_names(), Arc::new(set));
    check_classes(&task.scenario, &class_names)?;
    let limits = task.limits(&class_names, |_| true)?;
    let tls = tls_of(&task.scenario, &urls)?;
    let targets: Vec<Target> =
        urls.iter().map(|u| Target::resolve(&u.authority.host, u.authority.port)).collect();
    let how = (task.scenario.headers.as_slice(), "auto");
    let forms = Arc::new(forms_of(how, &urls, &targets, task.scenario.http2)?);
    output.check()?;
    reach(&targets, task.scenario.connect_timeout)?;
    let plan = plan_of(&task.scenario, targets, tls, class_names.len());
    let about = About {
        plan: &plan,
        class_names,
        distinct_requests: Some(set.len() as u64),
        troubles: Troubles::default(),
    };
    task.scenario.queries = Some(file.to_owned());
    let (http, threads) = (http_of(&task.scenario), task.scenario.threads);
    let mut sessions = |_seed| {
        let one = |_| {
            let own = OperationSessions::new(set.clone(), forms.clone());
            Box::new(own) as Box<dyn Sessions<Http> + Send>
        };
        Ok((0..threads).map(one).collect())
    };
    let subject = Subject { about: &about, limits, sessions: &mut sessions };
    search(&task, subject, output, || http)
}

/// Rejects flags that operations do not have, before anything is sent.
fn check(scenario: &Scenario, accept: &[u16], votes: bool) -> Result<()> {
    let plain = Scenario::default();
    let is_http = |target: &String| target.starts_with("http://") || target.starts_with("https://");
    let wrong = if !scenario.targets.iter().all(is_http) {
        "--feed writes to a document API over HTTP; write http://HOST:PORT, or leave --feed out"
    } else if votes || scenario.queries.is_some() || scenario.has_body() {
        "--feed and --queries, --body or --votes are different requests; leave one out"
    } else if matches!(scenario.load, LoadModel::Users { .. }) {
        "--users ask requests; operations of --feed come by themselves; leave one out"
    } else if scenario.order != plain.order || scenario.rows.is_some() || scenario.post {
        "--feed sends the operations in the order of the file; leave --order, --rows and --post out"
    } else if scenario.method.is_some() || !scenario.keepalive {
        "--method and --no-keepalive are none of --feed; leave them out"
    } else if !scenario.classes.is_empty()
        || !scenario.checks.is_empty()
        || scenario.hits != plain.hits
    {
        "--feed has the classes put, update and remove, and checks each answer as plimsoll feed does; leave --class, \
         --check and --hits out"
    } else if scenario.server_time.is_some() || scenario.traceparent.is_some() {
        "operations of --feed have no --server-time and no --traceparent; leave them out"
    } else if accept.iter().any(|status| !ACCEPTED.contains(status)) {
        "--accept: only 404 (no such document or type) and 412 (condition not met) can be accepted"
    } else {
        return Ok(());
    };
    Err(usage(wrong))
}
