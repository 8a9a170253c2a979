//! The thread that runs what needs all partitions: it borrows them, so that all see one moment, and gives them back.

use super::application;
use super::log::{Folder, Rows, write_snapshot};
use super::message::{Ask, Errand, Letter, Reply};
use super::procedures::Procedure;
use super::result::{Datum, ResultTable, Type};
use super::shared::{Deliveries, Shared};
use super::sql::{self, Database, SqlError};
use super::statistics::ProcedureCounts;
use super::system::{self, Baseline};
use super::tables::Partition;
use plimsoll_core::clock::now_ns;
use plimsoll_wire::volt::Status;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::{Builder, JoinHandle};

/// Longest time that statements may take when the caller does not say, as in VoltDB.
const STATEMENTS_MS: u64 = 10_000;
/// Longest text about a statement that failed, characters.
const ERROR_CHARS_MAX: usize = 1_000;
/// The longest that a caller may say.
const STATEMENTS_MS_MAX: u64 = 3_600_000;

/// The state of the thread.
pub(crate) struct Transactions {
    pub(crate) shared: Arc<Shared>,
    /// Receivers of the partitions, in order.
    pub(crate) lent: Vec<Receiver<Partition>>,
    /// Senders that return them, in order.
    pub(crate) back: Vec<SyncSender<Partition>>,
    pub(crate) done: Deliveries,
    /// Folder of snapshots.
    pub(crate) folder: Option<Arc<Folder>>,
    /// The snapshot that is being written.
    pub(crate) writing: Option<JoinHandle<()>>,
}

impl Transactions {
    /// Runs until nothing more will come; then all partitions are taken, and their threads end. Nothing comes back when one
    /// of those has ended before.
    pub(crate) fn run(mut self) -> Option<Vec<Partition>> {
        let shared = Arc::clone(&self.shared);
        let mut errands = Vec::new();
        let mut counts = ProcedureCounts::default();
        let mut baseline = Baseline::default();
        while shared.transactions.take(&mut errands) {
            let mut partitions = self.borrow()?;
            let mut database = Database { partitions: &mut partitions, routing: &shared.routing };
            let mut wants_snapshot = false;
            for errand in errands.drain(..) {
                match errand {
                    Errand::Ask(ask) => {
                        let began_ns = now_ns();
                        let procedure = ask.procedure;
                        let reply = match procedure {
                            Procedure::Statistics => {
                                let params = &ask.params;
                                system::statistics(
                                    &shared,
                                    params,
                                    &database,
                                    &counts,
                                    &mut baseline,
                                )
                            }
                            _ => run(&ask, &mut database, &mut self.done),
                        };
                        let counted = counts.of(procedure);
                        counted.count(now_ns().saturating_sub(began_ns));
                        counted.aborts += u64::from(reply.status == Status::USER_ABORT);
                        counted.failures += u64::from(reply.status < Status::USER_ABORT);
                        self.done.batches.push(ask.answered(reply));
                    }
                    Errand::Snapshot => wants_snapshot = true,
                }
            }
            // In the log before anything that the partitions do afterwards.
            shared.deliver(&mut self.done);
            if wants_snapshot {
                self.snapshot(&partitions);
            }
            for (partition, back) in partitions.into_iter().zip(&self.back) {
                back.send(partition).ok()?;
            }
        }
        if let Some(writing) = self.writing.take() {
            writing.join().ok()?;
        }
        self.borrow()
    }

    /// Begins a new log, and writes the rows from before it while the partitions go on.
    fn snapshot(&mut self, partitions: &[Partition]) {
        let is_busy = self.writing.as_ref().is_some_and(|writing| !writing.is_finished());
        let (Some(log), Some(folder), false) = (&self.shared.log, &self.folder, is_busy) else {
            return;
        };
        let Some(number) = log.cut() else { return };
        let (rows, folder) = (Rows::of(partitions), Arc::clone(folder));
        let shared = Arc::clone(&self.shared);
        // Without it the logs from before stay, and another is asked for when the log is longer still.
        let write = move || shared.snapshots.ended(number, &write_snapshot(&folder, number, &rows));
        let writing = Builder::new().name("voter-snapshot".to_owned()).spawn(write);
        self.writing =
            writing.map_err(|error| self.shared.snapshots.ended(number, &Err(error))).ok();
    }

    /// Takes all partitions, each when it has done what was asked of it before. Nothing comes back when a thread of theirs has ended.
    fn borrow(&self) -> Option<Vec<Partition>> {
        for mailbox in &self.shared.partitions {
            mailbox.put(Letter::Lend);
        }
        self.lent.iter().map(|lent| lent.recv().ok()).collect()
    }
}

/// Runs a procedure or statements.
fn run(ask: &Ask, database: &mut Database<'_>, done: &mut Deliveries) -> Reply {
    let int = |place: usize| match ask.params.get(place) {
        Some(Datum::Int(number)) => *number,
        _ => i64::from(i32::MIN),
    };
    let tables = match ask.procedure {
        Procedure::Initialize => {
            let names = ask.params.get(1).and_then(|names| names.with_text(str::to_owned));
            let (most, names) = (int(0) as i32, names.unwrap_or_default());
            return match application::initialize(most, &names, database) {
                Ok(count) => {
                    if done.is_logged {
                        done.records.initialize(most, &names);
                    }
                    Reply::tables(Procedure::Initialize, &[ResultTable::long(count)])
                }
                Err(error) => {
                    let text = format!("VOLTDB ERROR: UNEXPECTED FAILURE: {error}");
                    Reply::failed(Procedure::Initialize, Status::UNEXPECTED_FAILURE, text)
                }
            };
        }
        Procedure::Results => vec![application::results(database)],
        Procedure::GetStateHeatmap => application::heatmap(database),
        Procedure::ContestantWinningStates => {
            vec![application::winning_states(int(0), int(1), database)]
        }
        Procedure::Quiesce => {
            let mut table = ResultTable::new(&[("STATUS", Type::BigInt)]);
            table.rows.push(vec![Datum::Int(0)]);
            vec![table]
        }
        _ => return statements(ask, database, done),
    };
    Reply::tables(ask.procedure, &tables)
}

fn statements(ask: &Ask, database: &mut Database<'_>, done: &mut Deliveries) -> Reply {
    let failed = |error: &SqlError| {
        // Words of the statement stand in it, and those may be long and hold anything.
        let line = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = error.to_string().chars().take(ERROR_CHARS_MAX).map(line).collect();
        Reply::failed(Procedure::AdHoc, Status::GRACEFUL_FAILURE, text)
    };
    let (text, params) = match ask.params.split_first() {
        Some((Datum::Text(text), params)) => (text, params),
        _ => return failed(&SqlError::Compile("the statement is NULL".to_owned())),
    };
    let statements = match sql::parse(text) {
        Ok(statements) => statements,
        Err(error) => return failed(&error),
    };
    let asked_ms = ask.timeout_ms.and_then(|ms| u64::try_from(ms).ok());
    let limit_ms = match asked_ms.unwrap_or(STATEMENTS_MS) {
        0 => STATEMENTS_MS_MAX,
        ms => ms.min(STATEMENTS_MS_MAX),
    };
    let deadline_ns = now_ns() + limit_ms * 1_000_000;
    let changes = statements.iter().any(|statement| !statement.is_read_only());
    // One alone changes all its rows or none by itself.
    let is_several = changes && statements.len() > 1;
    if is_several {
        database.partitions.iter_mut().for_each(Partition::begin);
    }
    let reply = match sql::run(&statements, params, database, deadline_ns) {
        Ok(tables) => Reply::tables(Procedure::AdHoc, &tables),
        Err(error) => failed(&error),
    };
    let is_done = reply.status == Status::SUCCESS;
    if is_several {
        let end = if is_done { Partition::commit } else { Partition::roll_back };
        database.partitions.iter_mut().for_each(end);
    }
    if is_done && changes && done.is_logged {
        done.records.statements(text, params);
    }
    reply
}
