//! Replies of visits: one JSON object, whole or streamed, or JSON lines with tokens in between.

use super::plan::{Form, Plan};
use super::{JSON_TYPE, Outcome, Request};
use crate::container::Container;
use crate::store::{Found, StoreError};
use crate::visit::{Collect, Reader, VisitError};
use hyper::StatusCode;
use plimsoll_core::clock::now_ns;
use plimsoll_documents::document::Values;
use plimsoll_documents::field_set::FieldSet;
use plimsoll_documents::render::{Tensors, push_stored};
use plimsoll_documents::schema::Schemas;
use plimsoll_front::gzip::{self, Fragment, Joiner};
use plimsoll_front::{Gone, PieceSender, Reply, json, mark_gzip, reply, stream};
use plimsoll_serving::json::push_text;
use plimsoll_wire::vespa::ProgressToken;
use std::sync::Arc;
use std::time::Duration;

const LINES_TYPE: &str = "application/jsonl; charset=UTF-8";
/// A reply of this size is sent while the rest of it is made.
const COMMIT_BYTES: usize = 4 << 20;

/// Writes documents as they stand in the reply.
struct Entries {
    bytes: Vec<u8>,
    lines: bool,
    packs: bool,
    fields: Arc<FieldSet>,
    tensors: Tensors,
    schemas: Arc<Schemas>,
}

impl Collect for Entries {
    type Output = Fragment;

    fn take(&mut self, found: &Found<'_>, _: Option<Values>) -> Result<(), StoreError> {
        let out = &mut self.bytes;
        if !self.lines && !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(match (found.removed, self.lines) {
            (true, _) => b"{\"remove\":".as_slice(),
            (false, true) => b"{\"put\":",
            (false, false) => b"{\"id\":",
        });
        push_text(out, found.id);
        if !found.removed {
            out.extend_from_slice(b",\"fields\":");
            push_stored(out, &self.schemas, found.content, &self.fields, self.tensors)?;
        }
        out.push(b'}');
        if self.lines {
            out.push(b'\n');
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn finish(self) -> Fragment {
        Joiner::fragment(self.packs && !self.bytes.is_empty(), self.bytes)
    }
}

/// The way a visit ended.
enum End {
    Finished,
    /// More is left: time is up, or there is enough.
    Paused,
    Failed(VisitError),
}

/// A reply in the making.
struct Visiting {
    reader: Reader<Entries>,
    joiner: Joiner,
    lines: bool,
    /// Bytes that were made and not sent yet.
    buffer: Vec<u8>,
    documents: u64,
    deadline_ns: u64,
    nothing: bool,
}

impl Visiting {
    /// Adds a piece; gives how the visit ended, when it has.
    async fn step(&mut self) -> Option<End> {
        if self.nothing {
            return Some(End::Finished);
        }
        let piece = match self.reader.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return Some(End::Finished),
            Err(error) => return Some(End::Failed(error)),
        };
        if piece.documents > 0 {
            if !self.lines && self.documents > 0 {
                self.push(b",");
            }
            self.documents += piece.documents;
            self.joiner.join(&piece.output, &mut self.buffer);
        }
        let token = self.reader.token();
        if !piece.whole || token.is_done() {
            return None;
        }
        if self.reader.has_enough() || now_ns() >= self.deadline_ns {
            return Some(End::Paused);
        }
        if self.lines && piece.documents > 0 {
            let line = token_line(token, true);
            self.push(line.as_bytes());
        }
        None
    }

    /// Adds bytes that are no documents.
    fn push(&mut self, bytes: &[u8]) {
        let fragment = Joiner::fragment(self.joiner.packs(), bytes.to_vec());
        self.joiner.join(&fragment, &mut self.buffer);
    }

    /// Adds what stands before the documents.
    fn open(&mut self, path: &str) {
        let head = self.joiner.head();
        self.buffer.extend_from_slice(head);
        if !self.lines {
            let mut bytes = b"{\"pathId\":".to_vec();
            push_text(&mut bytes, path);
            bytes.extend_from_slice(b",\"documents\":[");
            self.push(&bytes);
        }
    }

    /// Adds what stands behind the documents; gives everything that was not sent yet.
    fn close(mut self, end: &End) -> Vec<u8> {
        let token = self.reader.token();
        let mut bytes = Vec::new();
        let documents = self.documents;
        if self.lines {
            let stats = format!("{{\"sessionStats\":{{\"documentCount\":{documents}}}}}\n");
            bytes.extend_from_slice(stats.as_bytes());
            if let End::Failed(error) = end {
                bytes.extend_from_slice(b"{\"message\":{\"text\":");
                push_text(&mut bytes, &error.to_string());
                bytes.extend_from_slice(b",\"severity\":\"error\"}}\n");
            }
            let more = !matches!(end, End::Finished);
            bytes.extend_from_slice(token_line(token, more).as_bytes());
        } else {
            bytes.extend_from_slice(format!("],\"documentCount\":{documents}").as_bytes());
            match end {
                End::Finished => {}
                End::Paused => {
                    let token = token.encode();
                    bytes.extend_from_slice(format!(",\"continuation\":\"{token}\"").as_bytes());
                }
                End::Failed(error) => {
                    bytes.extend_from_slice(b",\"message\":");
                    push_text(&mut bytes, &error.to_string());
                }
            }
            bytes.push(b'}');
        }
        self.push(&bytes);
        self.joiner.finish(&mut self.buffer);
        self.buffer
    }
}

/// A line that says how far the visit has come; with a token unless it is the last one.
fn token_line(token: &ProgressToken, more: bool) -> String {
    if more {
        let percent = token.percent_finished();
        let token = token.encode();
        format!("{{\"continuation\":{{\"token\":\"{token}\",\"percentFinished\":{percent:?}}}}}\n")
    } else {
        "{\"continuation\":{\"percentFinished\":100.0}}\n".to_owned()
    }
}

/// Answers a visit.
pub(super) async fn answer(
    container: &Container,
    request: &Request<'_>,
    plan: Plan,
    form: Form,
) -> Reply {
    let gzip = gzip::accepted(request.headers);
    let (lines, tensors, fields) = (form.lines, form.tensors, Arc::new(form.fields));
    let schemas = Arc::clone(&container.app.store.schemas);
    let session = plan.session;
    let make = move || Entries {
        bytes: Vec::new(),
        lines,
        packs: gzip,
        fields: Arc::clone(&fields),
        tensors,
        schemas: Arc::clone(&schemas),
    };
    let pace = (plan.concurrency, form.wanted_documents);
    let reader = Reader::new(&container.app, plan.visit, plan.wanted, plan.token, pace, make);
    let mut visiting = Visiting {
        reader,
        joiner: Joiner::new(gzip),
        lines,
        buffer: Vec::new(),
        documents: 0,
        deadline_ns: plan.deadline_ns,
        nothing: plan.nothing,
    };
    visiting.open(request.path);
    let patience = container.app.config.front.write_timeout;
    let mut reply = if form.stream {
        streamed(visiting, patience)
    } else {
        whole(visiting, request, session, patience).await
    };
    if gzip && reply.status() != StatusCode::GATEWAY_TIMEOUT {
        mark_gzip(&mut reply);
    }
    reply
}

/// Collects the reply; when it grows large, goes on as a streamed one.
async fn whole(
    mut visiting: Visiting,
    request: &Request<'_>,
    session: Duration,
    patience: Duration,
) -> Reply {
    let start_ns = now_ns();
    let first = tokio::time::timeout(
        Duration::from_nanos(visiting.deadline_ns.saturating_sub(start_ns)),
        visiting.step(),
    );
    let Ok(mut end) = first.await else { return nothing_visited(session).reply(request.path) };
    loop {
        let Some(end) = end else {
            if visiting.buffer.len() >= COMMIT_BYTES {
                return streamed(visiting, patience);
            }
            end = visiting.step().await;
            continue;
        };
        let status = match &end {
            End::Failed(VisitError::Store(StoreError::Full(_))) => StatusCode::INSUFFICIENT_STORAGE,
            End::Failed(VisitError::Stopping) => StatusCode::SERVICE_UNAVAILABLE,
            End::Failed(VisitError::Evaluation(_)) => StatusCode::BAD_REQUEST,
            End::Failed(VisitError::Store(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            End::Finished | End::Paused => StatusCode::OK,
        };
        return json(status, JSON_TYPE, visiting.close(&end));
    }
}

fn streamed(visiting: Visiting, patience: Duration) -> Reply {
    let (sender, body) = stream(patience);
    let kind = if visiting.lines { LINES_TYPE } else { JSON_TYPE };
    tokio::spawn(async move {
        // The client went away, which ends the visit and is no event.
        let _ = send(visiting, sender).await;
    });
    reply(StatusCode::OK, kind, body)
}

async fn send(mut visiting: Visiting, sender: PieceSender) -> Result<(), Gone> {
    loop {
        let end = tokio::select! {
            biased;
            () = sender.gone() => return Err(Gone),
            end = visiting.step() => end,
        };
        match end {
            None => sender.send(std::mem::take(&mut visiting.buffer)).await?,
            Some(end) => {
                sender.send(visiting.close(&end)).await?;
                return sender.end().await;
            }
        }
    }
}

/// The answer when the time was up before anything was visited.
fn nothing_visited(session: Duration) -> Outcome {
    let ms = session.as_millis();
    let message = format!("No buckets visited within timeout of {ms}ms (request timeout -5s)");
    Outcome::refused(StatusCode::GATEWAY_TIMEOUT, message)
}
