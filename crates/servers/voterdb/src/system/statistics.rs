//! `@Statistics`: what the server has measured of itself.

mod processes;

use super::topology;
use crate::connection_counts::Calls;
use crate::message::{Reply, write_table};
use crate::procedures::Procedure;
use crate::result::{Datum, ResultTable, Type};
use crate::shared::Shared;
use crate::sql::{Database, TABLES, Table};
use crate::statistics::{Counts, ProcedureCounts};
use hdrhistogram::Histogram;
use plimsoll_core::clock::wall_us;
use plimsoll_wire::volt::{Kind, Status, TableWriter, Value};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The counts at the last call that requested differences.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    latency_us: Option<Histogram<u64>>,
    latency_ms: u64,
    cpu: processes::CpuReading,
}

const SELECTORS: &str = "TOPO, PROCEDUREPROFILE, PROCEDURE, LATENCY, INITIATOR, TABLE, MEMORY, CPU";

/// Answers `@Statistics` over partitions that stand still.
pub(crate) fn statistics(
    shared: &Shared,
    params: &[Datum<'_>],
    database: &Database<'_>,
    transactions: &ProcedureCounts,
    baseline: &mut Baseline,
) -> Reply {
    let selector = params.first().and_then(|first| first.with_text(str::to_ascii_uppercase));
    let is_interval = matches!(params.get(1), Some(Datum::Int(flag)) if *flag != 0);
    let page = Page { shared, now_ms: wall_us() / 1_000 };
    let tables = match selector.as_deref().unwrap_or_default() {
        "TOPO" => topology::tables(shared, is_interval),
        "PROCEDUREPROFILE" => Ok(one(&page.profile(database, transactions))),
        "PROCEDURE" => Ok(one(&page.procedures(database, transactions))),
        "LATENCY" => Ok(vec![page.latency(is_interval, baseline)]),
        "INITIATOR" => Ok(one(&page.initiators())),
        "TABLE" => Ok(one(&page.tables(database))),
        "MEMORY" => Ok(one(&page.memory(database))),
        "CPU" => Ok(one(&page.cpu(&mut baseline.cpu))),
        other => {
            Err(format!("First argument to @Statistics: {other} is not known; known: {SELECTORS}"))
        }
    };
    match tables {
        Ok(tables) => {
            let procedure = Procedure::Statistics;
            Reply { procedure, status: Status::SUCCESS, text: None, tables }
        }
        Err(text) => Reply::failed(Procedure::Statistics, Status::GRACEFUL_FAILURE, text),
    }
}

fn one(table: &ResultTable) -> Vec<Vec<u8>> {
    vec![write_table(table)]
}

fn int(number: u64) -> Datum<'static> {
    Datum::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The counts of a procedure over all threads that run it.
fn all_counts(
    procedure: Procedure,
    database: &Database<'_>,
    transactions: &ProcedureCounts,
) -> Counts {
    let mut sum = *transactions.get(procedure);
    for partition in database.partitions.iter() {
        sum.add(partition.counts.get(procedure));
    }
    sum
}

struct Page<'s> {
    shared: &'s Shared,
    now_ms: u64,
}

impl Page<'_> {
    /// The columns that most tables begin with.
    fn host(&self) -> [Datum<'static>; 3] {
        [int(self.now_ms), int(0), Datum::text(self.shared.identity.hostname.clone())]
    }

    fn table(&self, columns: &[(&str, Type)]) -> ResultTable {
        let host =
            [("TIMESTAMP", Type::BigInt), ("HOST_ID", Type::Integer), ("HOSTNAME", Type::Text)];
        ResultTable::new(&[&host[..], columns].concat())
    }

    fn row(&self, table: &mut ResultTable, values: impl IntoIterator<Item = Datum<'static>>) {
        table.rows.push(self.host().into_iter().chain(values).collect());
    }

    /// The share of the time that each procedure takes, in ns.
    fn profile(&self, database: &Database<'_>, transactions: &ProcedureCounts) -> ResultTable {
        let number = |name| (name, Type::BigInt);
        let mut table = ResultTable::new(&[
            number("TIMESTAMP"),
            ("PROCEDURE", Type::Text),
            number("WEIGHTED_PERC"),
            number("INVOCATIONS"),
            number("AVG"),
            number("MIN"),
            number("MAX"),
            number("ABORTS"),
            number("FAILURES"),
        ]);
        let all = Procedure::ALL.into_iter().map(|procedure| {
            let counts = all_counts(procedure, database, transactions);
            (procedure, counts, u128::from(counts.mean_ns()) * u128::from(counts.invocations))
        });
        let mut all: Vec<_> = all.filter(|(_, counts, _)| counts.invocations > 0).collect();
        all.sort_by_key(|(_, _, weight)| std::cmp::Reverse(*weight));
        let sum = all.iter().map(|(_, _, weight)| weight).sum::<u128>().max(1);
        for (procedure, counts, weight) in all {
            table.rows.push(vec![
                int(self.now_ms),
                Datum::text(procedure.name()),
                int((weight * 100 / sum) as u64),
                int(counts.invocations),
                int(counts.mean_ns()),
                int(counts.min_ns),
                int(counts.max_ns),
                int(counts.aborts),
                int(counts.failures),
            ]);
        }
        table
    }

    /// The procedures that each partition ran, and the thread of transactions, whose partition is 16383.
    fn procedures(&self, database: &Database<'_>, transactions: &ProcedureCounts) -> ResultTable {
        let number = |name| (name, Type::BigInt);
        let mut table = self.table(&[
            ("SITE_ID", Type::Integer),
            ("PARTITION_ID", Type::Integer),
            ("PROCEDURE", Type::Text),
            number("INVOCATIONS"),
            number("TIMED_INVOCATIONS"),
            number("MIN_EXECUTION_TIME"),
            number("MAX_EXECUTION_TIME"),
            number("AVG_EXECUTION_TIME"),
            number("ABORTS"),
            number("FAILURES"),
        ]);
        let parts = database.partitions.iter().zip(0u64..);
        let parts = parts.map(|(partition, number)| (number, number, &partition.counts));
        let multi = plimsoll_wire::volt::MULTI_PARTITION as u64;
        for (site, partition, counts) in parts.chain([(0, multi, transactions)]) {
            for procedure in Procedure::ALL {
                let counts = counts.get(procedure);
                if counts.invocations == 0 {
                    continue;
                }
                let numbers = [
                    counts.invocations,
                    counts.timed,
                    counts.min_ns,
                    counts.max_ns,
                    counts.mean_ns(),
                    counts.aborts,
                    counts.failures,
                ];
                let names = [int(site), int(partition), Datum::text(procedure.name())];
                self.row(&mut table, names.into_iter().chain(numbers.map(int)));
            }
        }
        table
    }

    /// Latency inside the server in us, since the start or since the last call that asked for an interval.
    fn latency(&self, is_interval: bool, baseline: &mut Baseline) -> Vec<u8> {
        let mut latency_us: Option<Histogram<u64>> = None;
        for counts in &self.shared.counts {
            let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut latency_us {
                None => latency_us = Some(counts.latency_us.clone()),
                // All have the same bounds.
                Some(sum) => drop(sum.add(&counts.latency_us)),
            }
        }
        let mut since_ms = self.shared.identity.start_ms;
        let whole = latency_us.clone();
        if is_interval {
            if let (Some(sum), Some(before)) = (&mut latency_us, &baseline.latency_us) {
                let _ = sum.subtract(before);
                since_ms = baseline.latency_ms;
            }
            baseline.latency_us = whole;
            baseline.latency_ms = self.now_ms;
        }
        let interval_ms = self.now_ms.saturating_sub(since_ms).max(1);
        let count = latency_us.as_ref().map_or(0, Histogram::len);
        let columns = [
            ("TIMESTAMP", Kind::BigInt),
            ("HOST_ID", Kind::Integer),
            ("HOSTNAME", Kind::String),
            ("INTERVAL", Kind::Integer),
            ("COUNT", Kind::Integer),
            ("TPS", Kind::Integer),
            ("P50", Kind::BigInt),
            ("P95", Kind::BigInt),
            ("P99", Kind::BigInt),
            ("P99.9", Kind::BigInt),
            ("P99.99", Kind::BigInt),
            ("P99.999", Kind::BigInt),
            ("MAX", Kind::BigInt),
        ];
        let at = |quantile: f64| {
            let value = latency_us.as_ref().map_or(0, |sum| sum.value_at_quantile(quantile));
            Value::BigInt(value as i64)
        };
        let whole = |number: u64| Value::Integer(i32::try_from(number).unwrap_or(i32::MAX));
        let mut bytes = Vec::new();
        TableWriter::new(&mut bytes, &columns).row(&[
            Value::BigInt(self.now_ms as i64),
            Value::Integer(0),
            Value::String(&self.shared.identity.hostname),
            whole(interval_ms),
            whole(count),
            whole((u128::from(count) * 1_000 / u128::from(interval_ms)) as u64),
            at(0.5),
            at(0.95),
            at(0.99),
            at(0.999),
            at(0.9999),
            at(0.99999),
            Value::BigInt(latency_us.as_ref().map_or(0, Histogram::max) as i64),
        ]);
        bytes
    }

    /// The calls of each connection, with times in ms.
    fn initiators(&self) -> ResultTable {
        let (number, whole) = (|name| (name, Type::BigInt), |name| (name, Type::Integer));
        let mut table = self.table(&[
            whole("SITE_ID"),
            number("CONNECTION_ID"),
            ("CONNECTION_HOSTNAME", Type::Text),
            ("PROCEDURE_NAME", Type::Text),
            number("INVOCATIONS"),
            whole("AVG_EXECUTION_TIME"),
            whole("MIN_EXECUTION_TIME"),
            whole("MAX_EXECUTION_TIME"),
            number("ABORTS"),
            number("FAILURES"),
        ]);
        for connection in self.shared.registry.all() {
            let mut put = |name: &str, calls: &Calls| {
                let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
                let invocations = of(&calls.invocations);
                if invocations == 0 {
                    return;
                }
                self.row(
                    &mut table,
                    [
                        int(0),
                        int(connection.id),
                        Datum::text(connection.host.clone()),
                        Datum::text(name),
                        int(invocations),
                        int(of(&calls.total_ms) / invocations),
                        int(of(&calls.min_ms)),
                        int(of(&calls.max_ms)),
                        int(of(&calls.aborts)),
                        int(of(&calls.failures)),
                    ],
                );
            };
            put(Procedure::Vote.name(), &connection.votes);
            for (name, calls) in connection.others() {
                put(name, &calls);
            }
        }
        table
    }

    /// Rows and memory of each table, partition by partition.
    fn tables(&self, database: &Database<'_>) -> ResultTable {
        let number = |name| (name, Type::BigInt);
        let mut table = self.table(&[
            ("SITE_ID", Type::Integer),
            number("PARTITION_ID"),
            ("TABLE_NAME", Type::Text),
            ("TABLE_TYPE", Type::Text),
            number("TUPLE_COUNT"),
            number("TUPLE_ALLOCATED_MEMORY"),
        ]);
        for (place, partition) in database.partitions.iter().enumerate() {
            for one in TABLES {
                let (rows, bytes) = match one {
                    Table::Votes => (partition.votes().len(), partition.votes().bytes()),
                    Table::VotesByPhone => {
                        let view = partition.by_phone();
                        // A key, a count and a byte of control each.
                        (view.len(), view.capacity() * 17)
                    }
                    Table::VotesByState => {
                        (partition.by_state().len(), partition.by_state().capacity() * 25)
                    }
                    Table::Contestants => {
                        let names = partition.replicated.contestants();
                        (names.len(), names.values().map(|name| name.len() + 28).sum())
                    }
                    Table::AreaCodeState => {
                        let codes = partition.replicated.area_codes().len();
                        (codes, codes * 16)
                    }
                    Table::HelloWorld => {
                        let rows = partition.greetings().len();
                        (rows, rows * 72)
                    }
                };
                let site = place as u64;
                self.row(
                    &mut table,
                    [
                        int(site),
                        int(site),
                        Datum::text(one.name()),
                        Datum::text("PersistentTable"),
                        int(rows as u64),
                        int(bytes as u64 / 1024),
                    ],
                );
            }
        }
        table
    }

    /// Memory of the process in kB, and rows.
    fn memory(&self, database: &Database<'_>) -> ResultTable {
        let number = |name| (name, Type::BigInt);
        let mut table = self.table(&[
            ("RSS", Type::Integer),
            number("TUPLEDATA"),
            number("INDEXMEMORY"),
            number("TUPLECOUNT"),
            number("PHYSICALMEMORY"),
        ]);
        let sum = |of: &dyn Fn(usize) -> usize| {
            (0..database.partitions.len()).map(of).sum::<usize>() as u64
        };
        let partitions = &database.partitions;
        self.row(
            &mut table,
            [
                int(processes::resident_kb()),
                int(sum(&|part| partitions[part].votes().bytes()) / 1024),
                int(sum(&|part| partitions[part].by_phone().capacity() * 17) / 1024),
                int(sum(&|part| partitions[part].votes().len())),
                int(processes::physical_kb()),
            ],
        );
        table
    }

    /// The process's share of all processors since the last look, in percent.
    fn cpu(&self, reading: &mut processes::CpuReading) -> ResultTable {
        let mut table = self.table(&[("PERCENT_USED", Type::BigInt)]);
        self.row(&mut table, [int(reading.percent())]);
        table
    }
}
