//! Connections that speak HTTP: ranking, statistics, and the scores themselves.

use super::metrics::Bad;
use super::pagerank::{Direction, Ranks, ranks};
use super::service::{Answer, Service};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use plimsoll_core::clock::now_ns;
use plimsoll_serving::http::Method as Counted;
use plimsoll_serving::room::Seat;
use plimsoll_serving::write_limit::{WRITE, WriteLimited};
use plimsoll_wire::rank::{KIND_RANK, KIND_REFUSED};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot, watch};

type Reply = Response<Full<Bytes>>;

/// Longest time that the body of a request may take to arrive.
const BODY: Duration = Duration::from_secs(60);
/// The most iterations that `/pagerank` makes.
const ITERATIONS_MAX: u32 = 1_000;
/// The most scores in one reply.
const SCORES_MAX: usize = 1 << 20;
/// The most edges in one reply.
const EDGES_MAX: usize = 1 << 20;

/// The state that HTTP connections share.
pub(crate) struct Pages {
    service: Arc<Service>,
    /// Names for requests that bring none: 0, 1, 2, ...
    next_id: AtomicU64,
    /// One whole PageRank at a time, so that they cannot take the machine.
    ranking: Semaphore,
}

impl Pages {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self { service, next_id: AtomicU64::new(0), ranking: Semaphore::new(1) }
    }
}

/// Serves one connection.
pub(crate) async fn serve(
    stream: TcpStream,
    pages: Arc<Pages>,
    idle: Duration,
    mut stopping: watch::Receiver<bool>,
    seat: &Arc<Seat>,
) {
    let own = Arc::clone(seat);
    let service = service_fn(move |request| {
        let (pages, seat) = (Arc::clone(&pages), Arc::clone(&own));
        async move { Ok::<_, Infallible>(pages.answer(request, &seat).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .serve_connection(TokioIo::new(WriteLimited::new(stream, WRITE)), service);
    tokio::pin!(connection);
    tokio::select! {
        // Clients may go away in the middle of anything; that is no event here.
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

impl Pages {
    async fn answer(&self, request: Request<Incoming>, seat: &Seat) -> Reply {
        let (head, body) = request.into_parts();
        // A body that is still to come keeps no place.
        let _served = body.is_end_stream().then(|| seat.serve());
        let query = head.uri.query().unwrap_or("");
        let reads = head.method == Method::GET || head.method == Method::HEAD;
        match head.uri.path() {
            "/rank" if reads || head.method == Method::POST => {
                self.rank(&head.method, query, body, seat).await
            }
            "/rank" => not_allowed("GET, POST"),
            "/metrics" | "/_stats" | "/pagerank" | "/graph" if !reads => not_allowed("GET"),
            "/metrics" => {
                let page = self.service.metrics.render(self.service.now());
                reply(StatusCode::OK, "text/plain; version=0.0.4", page.into())
            }
            "/_stats" => self.stats(query),
            "/pagerank" => self.pagerank(query).await,
            "/graph" => self.graph(),
            path => {
                let known = "/rank, /metrics, /_stats, /pagerank and /graph";
                failure(StatusCode::NOT_FOUND, &format!("nothing at {path}; there are {known}"))
            }
        }
    }

    async fn rank(&self, method: &Method, query: &str, body: Incoming, seat: &Seat) -> Reply {
        let id = match parameters(query, ["id"]) {
            Ok([None]) => None,
            Ok([Some(id)]) => match id.parse() {
                Ok(id) => Some(id),
                Err(_) => return bad_number("id", id),
            },
            Err(text) => return failure(StatusCode::BAD_REQUEST, &text),
        };
        if let Err((status, text)) = self.drop_body(body).await {
            return failure(status, &text);
        }
        let _served = seat.serve();
        let id = id.unwrap_or_else(|| self.next_id.fetch_add(1, Ordering::Relaxed));
        let counted = if *method == Method::POST { Counted::Post } else { Counted::Get };
        let arrived_ns = now_ns();
        self.service.metrics.arrived(Some(counted), arrived_ns);
        let (sender, answer) = oneshot::channel();
        let service = Arc::clone(&self.service);
        let deliver = move |answer: Answer| {
            if sender.send(answer).is_err() {
                service.metrics.abandoned.fetch_add(1, Ordering::Relaxed);
            }
        };
        self.service.submit(id, arrived_ns, Box::new(deliver));
        let Ok(answer) = answer.await else {
            return failure(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        };
        let (status, kind) = match answer.kind {
            KIND_RANK => (StatusCode::OK, "application/octet-stream"),
            KIND_REFUSED => (StatusCode::SERVICE_UNAVAILABLE, "text/plain"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "text/plain"),
        };
        let mut reply = reply(status, kind, answer.payload);
        let headers = reply.headers_mut();
        headers.insert("x-rank-id", HeaderValue::from(id));
        headers.insert("x-rank-processing-ns", HeaderValue::from(answer.processing_ns));
        reply
    }

    /// Reads a body and forgets it, as frames' payloads are.
    async fn drop_body(&self, mut body: Incoming) -> Result<(), (StatusCode, String)> {
        let most = u64::from(self.service.config.request_bytes_max);
        let dropped = tokio::time::timeout(BODY, async {
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                let data = frame.map(|frame| frame.into_data().map_or(0, |data| data.len()));
                bytes += data.map_err(|_| (StatusCode::BAD_REQUEST, "the body is cut".into()))?;
                if bytes as u64 > most {
                    self.service.metrics.count_bad(Bad::Length);
                    let text = format!("the body has more than {most} bytes");
                    return Err((StatusCode::PAYLOAD_TOO_LARGE, text));
                }
            }
            Ok(())
        });
        dropped
            .await
            .unwrap_or_else(|_| Err((StatusCode::REQUEST_TIMEOUT, "the body is too slow".into())))
    }

    fn stats(&self, query: &str) -> Reply {
        let reset = match parameters(query, ["reset"]) {
            Ok([None | Some("0")]) => false,
            Ok([Some("1")]) => true,
            Ok([Some(other)]) => return bad_number("reset", other),
            Err(text) => return failure(StatusCode::BAD_REQUEST, &text),
        };
        let Service { metrics, config, .. } = &*self.service;
        let summary = metrics.summary(config, self.service.now(), reset);
        match serde_json::to_vec(&summary) {
            Ok(text) => reply(StatusCode::OK, "application/json", text),
            Err(error) => failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    async fn pagerank(&self, query: &str) -> Reply {
        let data = Arc::clone(&self.service.stages.data);
        let asked = match RankQuery::parse(query, data.graph.nodes()) {
            Ok(asked) => asked,
            Err(text) => return failure(StatusCode::BAD_REQUEST, &text),
        };
        let Ok(_turn) = self.ranking.acquire().await else {
            return failure(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        };
        let service = Arc::clone(&self.service);
        let computed = tokio::task::spawn_blocking(move || {
            let before_ns = plimsoll_serving::cpu_time::thread_cpu_ns();
            let ranks = ranks(&data.graph, asked.iterations, 0.0, asked.way);
            let page = asked.page(&ranks, data.graph.edges());
            let spent_ns = plimsoll_serving::cpu_time::thread_cpu_ns().saturating_sub(before_ns);
            service.metrics.page_cpu_ns.fetch_add(spent_ns, Ordering::Relaxed);
            page
        });
        match computed.await {
            Ok(page) => reply(StatusCode::OK, "application/json", page.to_string().into()),
            Err(error) => failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    fn graph(&self) -> Reply {
        let graph = &self.service.stages.data.graph;
        if graph.edges() > EDGES_MAX {
            let text = format!(
                "the graph has {} edges and at most {EDGES_MAX} are listed; serve a smaller --scale",
                graph.edges()
            );
            return failure(StatusCode::PAYLOAD_TOO_LARGE, &text);
        }
        let targets: Vec<&[u32]> = (0..graph.nodes()).map(|node| graph.targets(node)).collect();
        let page = json!({ "nodes": graph.nodes(), "edges": graph.edges(), "targets": targets });
        reply(StatusCode::OK, "application/json", page.to_string().into())
    }
}

/// The parameters of `/pagerank`.
struct RankQuery {
    iterations: u32,
    way: Direction,
    /// Number of best nodes; nothing for the scores of all nodes in their order.
    top: Option<usize>,
}

impl RankQuery {
    fn parse(query: &str, nodes: usize) -> Result<Self, String> {
        let [iterations, direction, top] = parameters(query, ["iterations", "direction", "top"])?;
        let iterations = match iterations.map(str::parse) {
            None => 20,
            Some(Ok(iterations @ 1..=ITERATIONS_MAX)) => iterations,
            Some(_) => return Err(format!("iterations is a number from 1 to {ITERATIONS_MAX}")),
        };
        let way = match direction {
            None | Some("pull") => Direction::Pull,
            Some("push") => Direction::Push,
            Some(_) => return Err("direction is pull or push".to_owned()),
        };
        let top = match top.map(|top| (top, top.parse::<usize>())) {
            None => Some(10),
            Some(("all", _)) if nodes <= SCORES_MAX => None,
            Some((_, Ok(top))) if (1..=SCORES_MAX).contains(&top) => Some(top),
            Some(_) => {
                return Err(format!("top is a number from 1 to {SCORES_MAX}, or all if not more"));
            }
        };
        Ok(Self { iterations, way, top })
    }

    fn page(&self, ranks: &Ranks, edges: usize) -> serde_json::Value {
        let mut page = json!({
            "nodes": ranks.scores.len(),
            "edges": edges,
            "damping": super::pagerank::DAMPING,
            "iterations": ranks.iterations,
            "change": ranks.change,
            "sum": ranks.scores.iter().sum::<f64>(),
        });
        match self.top {
            None => page["scores"] = json!(ranks.scores),
            Some(top) => {
                let mut nodes: Vec<usize> = (0..ranks.scores.len()).collect();
                let better = |a: &usize, b: &usize| {
                    ranks.scores[*b].total_cmp(&ranks.scores[*a]).then(a.cmp(b))
                };
                nodes.sort_unstable_by(better);
                let row = |node: &usize| json!({ "node": node, "score": ranks.scores[*node] });
                page["top"] = nodes.iter().take(top).map(row).collect();
            }
        }
        page
    }
}

/// The values of the known names in a query; each at most once, and no others.
fn parameters<'q, const N: usize>(
    query: &'q str,
    names: [&str; N],
) -> Result<[Option<&'q str>; N], String> {
    let mut values = [None; N];
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match names.iter().position(|known| *known == name) {
            Some(place) if values[place].is_none() => values[place] = Some(value),
            Some(_) => return Err(format!("{name} is given twice")),
            None => return Err(format!("unknown parameter {name}; known: {}", names.join(", "))),
        }
    }
    Ok(values)
}

fn bad_number(name: &str, value: &str) -> Reply {
    failure(StatusCode::BAD_REQUEST, &format!("{name}={value} is out of range"))
}

fn not_allowed(methods: &'static str) -> Reply {
    let text = format!("the method must be {methods}");
    let mut reply = failure(StatusCode::METHOD_NOT_ALLOWED, &text);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    reply
}

fn failure(status: StatusCode, text: &str) -> Reply {
    reply(status, "text/plain", format!("{text}\n").into())
}

fn reply(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}
