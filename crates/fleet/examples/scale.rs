//! Many simulated agents and a real coordinator over a real nats-server: what a coordinator needs, and where its limit is.
//!
//! `scale table PAGE AGENTS...` starts a nats-server and, for each number of agents, both sides in processes of their own, and
//! writes a table into a page (`make fleet-scale`). The sides are `scale agents BUS AGENTS SECONDS` and `scale coordinator BUS AGENTS`.

use plimsoll_bus::{Bus, BusAddress, Nats, NatsOptions};
use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_core::interval::{Compact, Interval};
use plimsoll_core::record::{FailureSample, Machine, Sink};
use plimsoll_core::rng::Rng;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::run::RunEnd;
use plimsoll_fleet::coordinator::Load;
use plimsoll_fleet::end::EndLine;
use plimsoll_fleet::figures::Figures;
use plimsoll_fleet::files::Outgoing;
use plimsoll_fleet::hall::{FleetName, Wanted, find, process_number};
use plimsoll_fleet::link::Packet;
use plimsoll_fleet::member::{Member, Order};
use plimsoll_fleet::message::{Build, Call, Here, Role, Up};
use plimsoll_fleet::place::{CoordinatorPost, Setting};
use plimsoll_record::Tool;
use plimsoll_record::fleet::Members;
use serde_json::Value;
use std::collections::HashMap;
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Agents of one connection to the bus.
const AGENTS_EACH: usize = 250;
/// Requests of an agent in a second.
const REQUESTS: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["agents", bus, agents, seconds] => simulated(bus, agents.parse()?, seconds.parse()?),
        ["coordinator", bus, agents] => {
            // A refused run is a row of the table, in the words that a user would read.
            coordinator(bus, agents.parse()?)
                .or_else(|error| Ok(writeln!(std::io::stderr(), "{error}")?))
        }
        ["table", page, agents @ ..] => table(page, agents),
        _ => {
            Err("scale table PAGE AGENTS..., agents BUS AGENTS SECONDS, coordinator BUS AGENTS"
                .into())
        }
    }
}

/// Length of each run, s.
const SECONDS: u64 = 20;

/// A process that is ended when it is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn table(page: &str, agents: &[&str]) -> Result<(), Box<dyn Error>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let server = Path::new("target/clients/nats/nats-server");
    let mut server = Command::new(server);
    server.args(["-a", "127.0.0.1", "-p", &port]).stderr(Stdio::null());
    let _server = Ended(
        server.spawn().map_err(|error| format!("nats-server: {error}; run: make test-tools"))?,
    );
    let bus = format!("nats://127.0.0.1:{port}");
    let own = std::env::current_exe()?;
    let mut text = "| agents | CPU of the coordinator, cores | per agent-second | memory | received per agent-second | sent per agent-second | result after the end | lost |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    for count in agents {
        let mut side = Command::new(&own);
        let _agents = Ended(side.args(["agents", &bus, count, &SECONDS.to_string()]).spawn()?);
        std::thread::sleep(Duration::from_secs(2));
        let done = Command::new(&own).args(["coordinator", &bus, count]).output()?;
        let Ok(line) = serde_json::from_slice::<Value>(&done.stdout) else {
            let why = String::from_utf8_lossy(&done.stderr);
            let why = why.lines().last().unwrap_or("it printed nothing").replace('|', " ");
            text +=
                &format!("| {count} | the run was refused on this machine: {why} | | | | | | |\n");
            continue;
        };
        let number = |field: &str| line[field].as_f64().unwrap_or(f64::NAN);
        let each = number("agents") * number("seconds");
        text += &format!(
            "| {count} | {:.2} | {:.0} us | {:.0} MB | {:.0} B | {:.0} B | {:.2} s | {} |\n",
            number("cpu_cores"),
            number("cpu_cores") * number("seconds") / each * 1e6,
            number("rss_max_mb"),
            number("bus_received_mb") * 1e6 / each,
            number("bus_sent_mb") * 1e6 / each,
            number("result_after_s"),
            line["troubles"],
        );
    }
    let machine = plimsoll_engine::health::machine();
    let today = plimsoll_core::clock::format_utc(plimsoll_core::clock::wall_us());
    text += &format!(
        "\n*Printed on {} on {} processors ({}); the agents, their histograms of 10,000 requests a second and the server ran on the same ones.*\n",
        &today[..10],
        machine.cpus,
        machine.cpu
    );
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(plimsoll_zoo::page::refresh(page, "fleet-scale", &text)?)
}

fn connect(bus: &str, name: &str) -> Result<Nats, Box<dyn Error>> {
    let address: BusAddress = bus.parse()?;
    let wait_for_server = Duration::from_secs(5);
    Ok(Nats::connect(&NatsOptions { wait_for_server, ..NatsOptions::new(address, name) })?)
}

fn build() -> Build {
    Build { tool: Tool::default(), program_sha256: "scale".to_owned() }
}

/// Everything that an agent sends, made once: all agents send the same.
struct Made {
    seconds: Vec<Compact>,
    end: EndLine,
    figures: Figures,
}

impl Made {
    fn of(seconds: u64) -> Self {
        let some = seconds_of(1);
        let mut totals = Interval::new(1);
        let mut lines = Vec::new();
        for number in 0..seconds {
            let mut second = some[(number % some.len() as u64) as usize].clone();
            (second.from_ns, second.to_ns) = (number * SECOND_NS, (number + 1) * SECOND_NS);
            totals.merge(&second);
            lines.push(Compact::from(&second));
        }
        let end = RunEnd { totals, measured_s: seconds as f64, ..RunEnd::default() };
        Self { seconds: lines, end: EndLine::from(&end), figures: Figures::of(&end) }
    }
}

fn seconds_of(seed: u64) -> Vec<Interval> {
    let mut rng = Rng::new(seed);
    let second = |number: u64| {
        let mut second = Interval::new(1);
        (second.from_ns, second.to_ns) = (number * SECOND_NS, (number + 1) * SECOND_NS);
        second.ledger.scheduled = REQUESTS;
        (second.ledger.sent, second.ledger.ok) = (REQUESTS, REQUESTS);
        for _ in 0..REQUESTS {
            let time_ns = (rng.exponential() * 3e6) as u64 + 200_000;
            second.classes[0].record_ok(time_ns, time_ns - 20_000);
            second.lag.record(rng.below(60_000));
        }
        second
    };
    (0..4).map(second).collect()
}

struct Agent {
    number: u64,
    member: Option<(Member, String)>,
    start_ns: Option<u64>,
    next: u64,
    /// Time at which it is looked at again if nothing arrives, ns.
    due_ns: u64,
    is_over: bool,
}

fn simulated(bus: &str, agents: usize, seconds: u64) -> Result<(), Box<dyn Error>> {
    let made = Arc::new(Made::of(seconds));
    let threads: Vec<_> = (0..agents.div_ceil(AGENTS_EACH))
        .map(|group| {
            let (bus, made) = (bus.to_owned(), made.clone());
            let first = group * AGENTS_EACH;
            let count = AGENTS_EACH.min(agents - first);
            std::thread::spawn(move || {
                group_of(&bus, first, count, &made).map_err(|error| error.to_string())
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread died")??;
    }
    Ok(())
}

/// Runs the agents of one connection. Each is looked at when something came for it, or when it has something to send, as a process
/// of its own would be: looking at all of them all the time took the processors that server and coordinator need.
fn group_of(bus: &str, first: usize, count: usize, made: &Made) -> Result<(), Box<dyn Error>> {
    let bus = connect(bus, "scale agents")?;
    let fleet = FleetName::default();
    let new = |number| Agent {
        number,
        member: None,
        start_ns: None,
        next: 0,
        due_ns: u64::MAX,
        is_over: false,
    };
    let mut agents: Vec<Agent> = (0..count).map(|_| new(process_number())).collect();
    let inboxes: HashMap<String, usize> =
        (0..).zip(&agents).map(|(index, agent)| (fleet.inbox(agent.number), index)).collect();
    let mut subjects: Vec<&str> = inboxes.keys().map(String::as_str).collect();
    subjects.push(CALLS);
    let inbox = bus.subscribe_all(&subjects)?;
    while agents.iter().any(|agent| !agent.is_over) {
        let due_ns = agents.iter().filter(|agent| !agent.is_over).map(|agent| agent.due_ns).min();
        let wait_ns = due_ns.unwrap_or(0).saturating_sub(now_ns()).min(SECOND_NS);
        let mut message = inbox.next(Duration::from_nanos(wait_ns))?;
        while let Some(own) = message {
            match inboxes.get(&own.subject) {
                Some(&index) => hear(&mut agents[index], &fleet, &own.payload),
                None => answer(&agents, first, &bus, &own.payload)?,
            }
            message = inbox.next(Duration::ZERO)?;
        }
        let now = now_ns();
        for agent in agents.iter_mut().filter(|agent| agent.due_ns <= now && !agent.is_over) {
            step(agent, &bus, made, now)?;
        }
    }
    Ok(())
}

/// Subject of the calls of coordinators.
const CALLS: &str = "plimsoll.default.call";

/// Those that are free answer a call.
fn answer(agents: &[Agent], first: usize, bus: &Nats, call: &[u8]) -> Result<(), Box<dyn Error>> {
    let call: Call = serde_json::from_slice(call)?;
    let subject = format!("plimsoll.default.here.{:016x}", call.coordinator);
    for (index, agent) in agents.iter().enumerate().filter(|(_, agent)| agent.member.is_none()) {
        let here = Here {
            coordinator: call.coordinator,
            agent: agent.number,
            name: format!("agent-{}", first + index),
            host: "simulated".to_owned(),
            pid: 0,
            role: Role::Load,
            build: build(),
            is_busy: false,
        };
        let _ = bus.publish(&subject, &serde_json::to_vec(&here)?);
    }
    Ok(())
}

/// Takes a message of the coordinator, after which there may be something to send.
fn hear(agent: &mut Agent, fleet: &FleetName, bytes: &[u8]) {
    let Ok(packet) = Packet::decode(bytes) else { return };
    let (member, _) = agent.member.get_or_insert_with(|| {
        let from = packet.from();
        (Member::new(agent.number, from, now_ns()), fleet.inbox(from))
    });
    member.receive(bytes, now_ns());
    agent.due_ns = 0;
}

fn step(agent: &mut Agent, bus: &Nats, made: &Made, now: u64) -> Result<(), Box<dyn Error>> {
    let Some((member, to)) = &mut agent.member else { return Ok(()) };
    while let Some(start_ns) = agent.start_ns
        && (agent.next as usize) < made.seconds.len()
        && now >= start_ns + (agent.next + 1) * SECOND_NS
    {
        let second = made.seconds[agent.next as usize].clone();
        agent.next += 1;
        member.say(&Up::Second(second))?;
        if agent.next as usize == made.seconds.len() {
            member.ended(Ok(made.end.clone()), Vec::new())?;
            member.say(&Up::Finished {
                verdict: Verdict::new(VerdictKind::Valid, Vec::new()),
                figures: Some(Box::new(made.figures.clone())),
            })?;
        }
    }
    for bytes in member.poll(now) {
        let _ = bus.publish(to, &bytes);
    }
    while let Some(order) = member.next_order() {
        match order {
            Order::Plan(_) => member.at_line("key".to_owned(), Machine::default(), now_ns()),
            Order::Start { at_ns } => agent.start_ns = Some(at_ns),
            Order::Bye | Order::Abort { .. } => agent.is_over = true,
            Order::Piece { .. }
            | Order::Shared(_)
            | Order::EndEarly
            | Order::Watch { .. }
            | Order::MeasuredFrom { .. }
            | Order::Stop => {}
        }
    }
    if agent.is_over {
        for bytes in member.poll(now_ns()) {
            let _ = bus.publish(to, &bytes);
        }
    }
    let next_ns = match agent.start_ns {
        Some(start_ns) if (agent.next as usize) < made.seconds.len() => {
            start_ns + (agent.next + 1) * SECOND_NS
        }
        _ => u64::MAX,
    };
    agent.due_ns = member.due_ns(now).min(next_ns);
    Ok(())
}

/// Counts what is shown, and when the last second came.
#[derive(Default)]
struct Counted {
    seconds: u64,
    requests: u64,
    last_ns: u64,
    start_ns: u64,
    /// CPU time of this process when the start was agreed on, s: it is that of the load from here.
    began_cpu_s: f64,
}

impl Sink for Counted {
    fn counts_from(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        self.began_cpu_s = cpu_s();
    }

    fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
        self.seconds += 1;
        self.requests += interval.ledger.ok;
        self.last_ns = self.start_ns + interval.to_ns;
        Ok(())
    }

    fn failure(&mut self, _: &FailureSample) -> std::io::Result<()> {
        Ok(())
    }
}

fn coordinator(bus: &str, agents: usize) -> Result<(), Box<dyn Error>> {
    let bus = Arc::new(connect(bus, "scale coordinator")?);
    let (fleet, own) = (FleetName::default(), process_number());
    let inbox = bus.subscribe(&fleet.inbox(own))?;
    let wanted = Wanted { agents, watchers: 0, within: Duration::from_secs(60) };
    let number = agents;
    let found = find(&*bus, (&fleet, own), &build(), wanted, &|| false, &mut |_| {})?;
    let (words, files) = (Vec::new(), Outgoing::default());
    let run = "scale".to_owned();
    let (agents, watchers, members) = (found, 0, Members::Agents);
    let setting = Setting { bus, fleet, own, inbox, agents, members, watchers, run, words, files };
    let post = CoordinatorPost::start(setting)?;
    let mut counted = Counted::default();
    let stop = AtomicBool::new(false);
    let load = Load { key: "key".to_owned(), warmup_ns: 0 };
    let end = post.conduct(load, &mut counted, &mut |_| {}, &mut |_| false, &stop)?;
    let end = end.end;
    let result_after_s = now_ns().saturating_sub(counted.last_ns) as f64 / 1e9;
    let (reports, troubles) = post.finish();
    let skew_ns = |report: &plimsoll_fleet::coordinator::AgentReport| report.clock.1 / 2;
    let mut skews: Vec<u64> = reports.iter().map(skew_ns).collect();
    skews.sort_unstable();
    let line = serde_json::json!({
        "agents": number,
        "seconds": counted.seconds,
        "requests": end.totals.ledger.ok,
        "requests_shown": counted.requests,
        "cpu_cores": (cpu_s() - counted.began_cpu_s) / end.measured_s,
        "rss_max_mb": plimsoll_engine::health::rss_max_bytes() as f64 / 1e6,
        "bus_sent_mb": post.bytes().0 as f64 / 1e6,
        "bus_received_mb": post.bytes().1 as f64 / 1e6,
        "result_after_s": result_after_s,
        "clock_error_p99_ms": skews[skews.len() * 99 / 100] as f64 / 1e6,
        "troubles": troubles.len(),
        "first_trouble": troubles.first(),
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// CPU time of this process, s.
fn cpu_s() -> f64 {
    let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    own.tv_sec as f64 + own.tv_nsec as f64 / 1e9
}
