//! The thread of a partition: it runs calls one after another, and lends the partition to transactions that need all.

use super::message::{Batch, Hello, Letter, Reply, Work};
use super::procedures::Procedure;
use super::result::{Datum, ResultTable, Type};
use super::shared::{Deliveries, Shared};
use super::sql::{SqlError, greeting};
use super::tables::{Partition, Vote};
use plimsoll_wire::volt::Status;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

/// The state of the thread.
pub(crate) struct Executor {
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    /// Takes the partition to a transaction over all of them.
    pub(crate) lend: SyncSender<Partition>,
    /// Brings it back.
    pub(crate) back: Receiver<Partition>,
}

impl Executor {
    /// Runs until the server stops; then the partition stays with whoever borrowed it last.
    pub(crate) fn run(self, mut partition: Partition) {
        let mut letters = Vec::new();
        let mut done = Deliveries::new(&self.shared);
        while self.shared.partitions[self.number].take(&mut letters) {
            for letter in letters.drain(..) {
                match letter {
                    Letter::Batch(mut batch) => {
                        run_batch(&mut partition, &mut batch, &mut done);
                        done.batches.push(batch);
                    }
                    Letter::Lend => {
                        // What was done before is in the log before what the transaction does.
                        self.shared.deliver(&mut done);
                        if self.lend.send(partition).is_err() {
                            return;
                        }
                        let Ok(own) = self.back.recv() else { return };
                        partition = own;
                    }
                }
            }
            self.shared.deliver(&mut done);
        }
    }
}

/// Runs the calls of a batch; the answers stand in their places.
fn run_batch(partition: &mut Partition, batch: &mut Batch, done: &mut Deliveries) {
    for item in &mut batch.items {
        match &item.work {
            Work::Vote { phone, contestant, most } => {
                let (phone, contestant, most) = (*phone, *contestant, *most);
                let began = partition.counts.of(Procedure::Vote).begin();
                if phone == i64::MIN {
                    item.work = null_phone(partition, contestant, most);
                } else {
                    let (code, row) = partition.vote(phone, contestant, most);
                    if let Some(vote) = row {
                        done.vote(vote);
                    }
                    item.work = Work::Voted(code);
                }
                partition.counts.of(Procedure::Vote).end(began);
            }
            Work::Hello(hello) => {
                let began = partition.counts.of(hello.procedure).begin();
                let procedure = hello.procedure;
                let reply = run_hello(partition, hello, done);
                if reply.status != Status::SUCCESS {
                    partition.counts.of(procedure).aborts += 1;
                }
                item.work = Work::Done(Box::new(reply));
                partition.counts.of(procedure).end(began);
            }
            Work::Voted(_) | Work::Done(_) => {}
        }
    }
}

/// A vote from nowhere: the rules come first, and then the row cannot be inserted.
fn null_phone(partition: &mut Partition, contestant: i32, most: i64) -> Work {
    if let Some(code) = partition.rejects(None, contestant, most) {
        return Work::Voted(code);
    }
    partition.counts.of(Procedure::Vote).failures += 1;
    let text = "VOLTDB ERROR: CONSTRAINT VIOLATION Attempted violation of constraint: \
                 VOTES.PHONE_NUMBER is NOT NULL";
    Work::Done(Box::new(Reply::failed(Procedure::Vote, Status::GRACEFUL_FAILURE, text)))
}

fn run_hello(partition: &mut Partition, hello: &Hello, done: &mut Deliveries) -> Reply {
    let text = |place: usize| hello.texts.get(place).and_then(Option::as_deref);
    if hello.procedure == Procedure::Select {
        let mut table = ResultTable::new(&[("HELLO", Type::Text), ("WORLD", Type::Text)]);
        if let Some(found) = text(0).and_then(|dialect| partition.greetings().get(dialect)) {
            let shown = |text: &Option<String>| text.clone().map_or(Datum::Null, Datum::text);
            table.rows.push(vec![shown(&found.hello), shown(&found.world)]);
        }
        return Reply::tables(Procedure::Select, &[table]);
    }
    let refused = |error: SqlError| {
        Reply::failed(Procedure::Insert, Status::GRACEFUL_FAILURE, error.to_string())
    };
    let (dialect, greeting) = match greeting(text(0), text(1), text(2)) {
        Ok(row) => row,
        Err(error) => return refused(error),
    };
    if partition.greetings().contains_key(&dialect) {
        let text = format!("HELLOWORLD has a row with the key {dialect} already");
        return refused(SqlError::Constraint(text));
    }
    done.greeting(&dialect, &greeting);
    partition.greetings_mut().insert(dialect, greeting);
    Reply::tables(Procedure::Insert, &[ResultTable::modified(1)])
}

impl Deliveries {
    #[inline]
    fn vote(&mut self, vote: Vote) {
        if self.is_logged {
            self.records.vote(vote);
        }
    }

    fn greeting(&mut self, dialect: &str, greeting: &super::tables::Greeting) {
        if self.is_logged {
            self.records.greeting(dialect, greeting);
        }
    }
}
