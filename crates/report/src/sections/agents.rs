//! Agents of a run on several machines.

use crate::number::significant;
use crate::sheet::{Cell, Field, Listed, Part, Section, Tone};
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::RunRecord;
use plimsoll_record::fleet::{AgentFigures, AgentResult, Members, Role};

/// Agents in the table; the record holds all of them.
const ROWS_MAX: usize = 200;

/// The table of agents.
pub fn section(record: &RunRecord) -> Option<Section> {
    let fleet = record.job_results.fleet()?;
    let parts = match fleet.members {
        Members::Agents => {
            "Each agent with the role load made its part of the load, and with the role feed of the feed; one with the role watch made \
             none."
        }
        Members::Processes => "Each process made its part of the load.",
    };
    let note = format!(
        "{parts} Percentiles above are those of all requests of the load together, not of these rows. Start skew: p99 {} ms, at most {} ms.",
        significant(fleet.start_skew_p99_ms),
        significant(fleet.start_skew_max_ms)
    );
    let title = match fleet.members {
        Members::Agents => "Agents",
        Members::Processes => "Processes",
    };
    let list = Listed { at: &["fleet", "agents"], items: &fleet.agents };
    let table = list.some(&fields(fleet.members), ROWS_MAX, tone);
    let mut section = Section::new("agents", title, &note).with(Part::Table(table));
    let watchers = fleet.agents.iter().filter(|agent| agent.role == Role::Watch);
    for agent in watchers.filter(|agent| agent.trouble.is_some()) {
        let why = agent.trouble.as_deref().unwrap_or_default();
        section
            .parts
            .push(Part::Text(Tone::Warn, format!("agent {}, which watches: {why}", agent.name)));
    }
    for trouble in &fleet.troubles {
        section.parts.push(Part::Text(Tone::Bad, trouble.clone()));
    }
    Some(section)
}

fn fields(members: Members) -> Vec<Field<'static, AgentResult>> {
    let own = |label: &str, field: &'static str, cell: fn(&AgentFigures) -> Cell| {
        Field::new(label, &format!("figures/{field}"), move |agent: &AgentResult| {
            Cell::or_unknown(agent.figures.as_ref(), cell)
        })
    };
    vec![
        Field::text(members.word_for_one(), move |agent: &AgentResult| {
            members.short(&agent.name).to_owned()
        }),
        Field::text("machine", |agent: &AgentResult| agent.host.clone()),
        Field::text("role", |agent: &AgentResult| agent.role.name().to_owned()),
        Field::text("part", |agent: &AgentResult| match agent.role {
            Role::Load | Role::Feed => agent.part.clone(),
            Role::Watch => "none".to_owned(),
        }),
        own("sent", "sent", |figures| Cell::count(figures.sent)),
        own("ok", "ok", |figures| Cell::count(figures.ok)),
        own("failed", "failed", |figures| Cell::count(figures.failed)),
        own("ok/s", "ok_per_s", |figures| Cell::per_s(figures.ok_per_s)),
        own("p50", "p50_ms", |figures| Cell::ms(figures.p50_ms)),
        own("p95", "p95_ms", |figures| Cell::ms(figures.p95_ms)),
        own("p99", "p99_ms", |figures| Cell::ms(figures.p99_ms)),
        own("lag p99", "lag_p99_ms", |figures| Cell::ms(figures.lag_p99_ms)),
        own("CPU", "cpu_s", |figures| Cell::seconds(figures.cpu_s)),
        Field::new("clock ahead", "clock_ahead_ms", |agent: &AgentResult| {
            Cell::ms(agent.clock_ahead_ms)
        }),
        Field::new("round trip", "round_trip_ms", |agent: &AgentResult| {
            Cell::ms(agent.round_trip_ms)
        }),
        Field::new("started late", "start_late_ms", |agent: &AgentResult| {
            Cell::ms(agent.start_late_ms)
        }),
        Field::text("own verdict", |agent: &AgentResult| match (&agent.trouble, agent.verdict) {
            (Some(_), _) => "lost".to_owned(),
            (None, None) if agent.role == Role::Watch => "none".to_owned(),
            (None, Some(kind)) => kind.name().to_owned(),
            (None, None) => "unknown".to_owned(),
        }),
    ]
}

fn tone(agent: &AgentResult) -> Tone {
    match agent.verdict {
        _ if agent.trouble.is_some() => Tone::Bad,
        Some(VerdictKind::GeneratorLimited | VerdictKind::Void) => Tone::Warn,
        _ => Tone::Plain,
    }
}
