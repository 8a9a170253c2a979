//! Messages: logins are answered at once, calls go where they run, and answers are written.

use super::super::connection::{Connection, OUTPUT_BYTES_MAX, Phase};
use super::Network;
use crate::arguments::{self, Refused, VoteArguments};
use crate::message::{Ask, Batch, Errand, Hello, Item, Letter, Reply, Work};
use crate::procedures::{Place, Procedure};
use crate::shared::Shared;
use crate::system;
use plimsoll_serving::tickets::Ticket;
use plimsoll_wire::volt::{
    Answer, Call, CallError, FRAME_HEAD_BYTES, LoginCall, LoginCode, LoginReply, ResponseWriter,
    Status, TableView, frame_length,
};

/// Calls of a batch before it is handed over, so that the partition begins while more are read.
const BATCH_ITEMS: usize = 256;
/// Longest login, so that an unauthenticated client cannot fill the memory for incomplete messages.
const LOGIN_BYTES_MAX: usize = 64 * 1024;
/// Largest number of calls over all partitions in flight in a network thread: their answers can be long.
const ASKS_MAX: usize = 64;
/// Empty batches that are kept, to be filled again.
const SPARE_MAX: usize = 64;
/// Reading begins again below this share of the limits.
const RESUME_PERCENT: usize = 80;

/// The unread bytes of a connection.
pub(super) enum Rest<T> {
    Kept(T),
    /// It sent what is no message: the connection is of no more use.
    Close,
}

impl<T> Rest<T> {
    pub(super) fn map<U>(self, with: impl FnOnce(T) -> U) -> Rest<U> {
        match self {
            Self::Kept(kept) => Rest::Kept(with(kept)),
            Self::Close => Rest::Close,
        }
    }
}

/// Outcome of a message.
enum Taken {
    /// It is answered, or on its way.
    Message,
    /// It is a call over all partitions, on its way.
    Ask,
    /// It is one for which there is no room.
    NotYet,
    /// It is no message.
    Wrong,
}

/// Calls that were read and not answered, and batches on their way out.
pub(super) struct CallsUnderWay {
    /// For each partition.
    open: Vec<Batch>,
    spare: Vec<Batch>,
    count: usize,
    bytes: usize,
    /// Number of them over all partitions.
    asks: usize,
    count_max: usize,
    bytes_max: usize,
    is_full: bool,
    is_full_of_asks: bool,
}

impl CallsUnderWay {
    pub(super) fn new(shared: &Shared) -> Self {
        Self {
            open: (0..shared.routing.partitions()).map(|_| Batch::default()).collect(),
            spare: Vec::new(),
            count: 0,
            bytes: 0,
            asks: 0,
            count_max: shared.config.pending_calls,
            bytes_max: shared.config.pending_bytes,
            is_full: false,
            is_full_of_asks: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.count == 0
    }

    /// Returns true if sockets are left alone until some calls have been answered.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns true if a call over all partitions may begin.
    pub(super) fn has_room_to_ask(&self) -> bool {
        !self.is_full_of_asks
    }

    fn begin(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
        self.is_full |= self.count >= self.count_max || self.bytes >= self.bytes_max;
    }

    fn begin_ask(&mut self, bytes: usize) {
        self.begin(bytes);
        self.asks += 1;
        self.is_full_of_asks |= self.asks >= ASKS_MAX;
    }

    fn end(&mut self, batch: &Batch) {
        self.count -= batch.items.len();
        self.bytes -= batch.bytes;
        self.asks -= usize::from(batch.is_ask);
        let is_low = |now: usize, most: usize| now * 100 < most * RESUME_PERCENT || now == 0;
        if is_low(self.count, self.count_max) && is_low(self.bytes, self.bytes_max) {
            self.is_full = false;
        }
        if is_low(self.asks, ASKS_MAX) {
            self.is_full_of_asks = false;
        }
    }

    /// Adds a call for a partition; a batch that is long enough goes off.
    #[inline]
    fn put(
        &mut self,
        partition: usize,
        item: Item,
        bytes: usize,
        now_ns: u64,
        (network, shared): (usize, &Shared),
    ) {
        self.begin(bytes);
        let batch = &mut self.open[partition];
        if batch.items.is_empty() {
            batch.arrived_ns = now_ns;
        }
        batch.items.push(item);
        batch.bytes += bytes;
        if batch.items.len() == BATCH_ITEMS {
            self.hand_over(partition, network, shared);
        }
    }

    fn hand_over(&mut self, partition: usize, network: usize, shared: &Shared) {
        let empty = self.spare.pop().unwrap_or_default();
        let mut batch = std::mem::replace(&mut self.open[partition], empty);
        batch.network = network;
        shared.partitions[partition].put(Letter::Batch(batch));
    }

    /// Hands over what has come together.
    pub(super) fn flush(&mut self, network: usize, shared: &Shared) {
        for partition in 0..self.open.len() {
            if !self.open[partition].items.is_empty() {
                self.hand_over(partition, network, shared);
            }
        }
    }

    fn keep(&mut self, mut batch: Batch) {
        if self.spare.len() < SPARE_MAX {
            batch.items.clear();
            (batch.bytes, batch.is_ask) = (0, false);
            self.spare.push(batch);
        }
    }
}

impl Network {
    /// Takes the whole messages at the front of some bytes, and says how many bytes they were.
    pub(super) fn messages(&mut self, ticket: Ticket, input: &[u8]) -> Rest<usize> {
        let mut used = 0;
        loop {
            let length = match frame_length(&input[used..]) {
                Ok(Some(length)) => length,
                Ok(None) if self.is_too_long_a_login(ticket, input.len() - used) => {
                    return Rest::Close;
                }
                Ok(None) => return Rest::Kept(used),
                Err(_) => return Rest::Close,
            };
            let body = &input[used + FRAME_HEAD_BYTES..used + length];
            let Some(connection) = self.table.get_mut(ticket) else { return Rest::Close };
            if self.calls.is_full() || connection.waiting_bytes() > OUTPUT_BYTES_MAX {
                self.hold(ticket);
                return Rest::Kept(used);
            }
            let taken = match connection.phase {
                Phase::Login => self.login(ticket, body),
                Phase::Open => self.call(ticket, body),
                Phase::Refused => return Rest::Kept(input.len()),
            };
            match taken {
                Taken::Message => used += length,
                Taken::Ask => {
                    used += length;
                    // Calls that every partition takes part in are taken one from each connection in turn.
                    if used < input.len() {
                        self.hold(ticket);
                        return Rest::Kept(used);
                    }
                }
                Taken::NotYet => {
                    self.hold_until_asks_end(ticket);
                    return Rest::Kept(used);
                }
                Taken::Wrong => return Rest::Close,
            }
        }
    }

    /// Returns true if a client that has not logged in has sent this many bytes without a complete message.
    fn is_too_long_a_login(&mut self, ticket: Ticket, bytes: usize) -> bool {
        bytes > LOGIN_BYTES_MAX
            && self.table.get_mut(ticket).is_some_and(|open| open.phase == Phase::Login)
    }

    fn login(&mut self, ticket: Ticket, body: &[u8]) -> Taken {
        let Some(connection) = self.table.get_mut(ticket) else { return Taken::Wrong };
        let code = match LoginCall::read(body) {
            Ok(login) => self.shared.users.judge(&login),
            Err(error) => error.code(),
        };
        let reply = if code == LoginCode::OK {
            connection.phase = Phase::Open;
            LoginReply::Welcome(self.shared.identity.welcome(connection.counts.id))
        } else {
            connection.phase = Phase::Refused;
            LoginReply::Refused(code)
        };
        reply.put(&mut connection.output);
        Self::mark_dirty(&mut self.dirty, ticket, connection);
        Taken::Message
    }

    /// Sends a call where it runs, or answers it.
    #[inline]
    fn call(&mut self, ticket: Ticket, body: &[u8]) -> Taken {
        let call = match Call::read(body) {
            Ok(call) => call,
            Err(CallError::Version(version)) => {
                let text = CallError::Version(version).to_string();
                self.refuse(ticket, 0, None, &unexpected(text));
                return Taken::Message;
            }
            Err(CallError::Bytes(_)) => return Taken::Wrong,
        };
        if call.procedure == "Vote" {
            match VoteArguments::of(&call) {
                Ok(VoteArguments { phone, contestant, most }) => {
                    let work = Work::Vote { phone, contestant, most };
                    let partition = self.shared.routing.of_long(phone);
                    self.put(partition, Item { ticket, handle: call.handle, work }, body.len());
                }
                Err(refused) => self.refuse(ticket, call.handle, Some(Procedure::Vote), &refused),
            }
            return Taken::Message;
        }
        let done = match Procedure::find(call.procedure) {
            Some(procedure) => self.other(ticket, &call, procedure, body.len()),
            None => {
                let name: String =
                    call.procedure.chars().take(200).flat_map(char::escape_default).collect();
                let text = format!("Procedure {name} was not found");
                self.refuse(ticket, call.handle, None, &unexpected(text));
                Ok(Taken::Message)
            }
        };
        done.unwrap_or_else(|(procedure, refused)| {
            self.refuse(ticket, call.handle, Some(procedure), &refused);
            Taken::Message
        })
    }

    #[inline]
    fn put(&mut self, partition: usize, item: Item, bytes: usize) {
        self.calls.put(partition, item, bytes, self.now_ns, (self.number, &self.shared));
    }

    /// A call of any procedure but `Vote`.
    fn other(
        &mut self,
        ticket: Ticket,
        call: &Call<'_>,
        procedure: Procedure,
        bytes: usize,
    ) -> Result<Taken, (Procedure, Refused)> {
        let handle = call.handle;
        let refused = |refused| (procedure, refused);
        match procedure.place() {
            Place::Partition => {
                let texts = arguments::hello(call, procedure).map_err(refused)?;
                // As everywhere, NULL belongs to the first.
                let key = texts.first().and_then(Option::as_deref);
                let partition = key.map_or(0, |key| self.shared.routing.of_text(key));
                let work = Work::Hello(Box::new(Hello { procedure, texts }));
                self.put(partition, Item { ticket, handle, work }, bytes);
            }
            Place::Everywhere if !self.calls.has_room_to_ask() => return Ok(Taken::NotYet),
            Place::Everywhere => {
                let params = arguments::general(call, procedure).map_err(refused)?;
                self.calls.begin_ask(bytes);
                // What this connection sent before runs before.
                self.calls.flush(self.number, &self.shared);
                let ask = Ask {
                    network: self.number,
                    arrived_ns: self.now_ns,
                    bytes,
                    ticket,
                    handle,
                    procedure,
                    params,
                    timeout_ms: call.timeout_ms,
                };
                self.shared.transactions.put(Errand::Ask(Box::new(ask)));
                return Ok(Taken::Ask);
            }
            Place::Network => {
                let params = arguments::general(call, procedure).map_err(refused)?;
                let reply = system::answer(&self.shared, procedure, &params);
                if let Some(connection) = self.table.get_mut(ticket) {
                    write(connection, handle, &reply, 0);
                    connection.counts.count(procedure, 0, reply.status);
                    Self::mark_dirty(&mut self.dirty, ticket, connection);
                }
            }
        }
        Ok(Taken::Message)
    }

    /// Answers a call that goes nowhere.
    fn refuse(
        &mut self,
        ticket: Ticket,
        handle: i64,
        procedure: Option<Procedure>,
        refused: &Refused,
    ) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let Refused { status, text } = refused;
        ResponseWriter::failure(&mut connection.output, handle, *status, text, 0);
        if let Some(procedure) = procedure {
            connection.counts.count(procedure, 0, *status);
        }
        Self::mark_dirty(&mut self.dirty, ticket, connection);
    }

    /// Writes the answers of a batch into the buffers of their connections.
    pub(super) fn answered(&mut self, batch: Batch) {
        self.calls.end(&batch);
        let took_ns = self.now_ns.saturating_sub(batch.arrived_ns);
        let took_ms = took_ns / 1_000_000;
        let shown_ms = i32::try_from(took_ms).unwrap_or(i32::MAX);
        for item in &batch.items {
            let Some(connection) = self.table.get_mut(item.ticket) else { continue };
            match &item.work {
                Work::Voted(code) => {
                    let (out, code) = (&mut connection.output, *code);
                    ResponseWriter::vote_like(out, item.handle, code, shown_ms);
                    connection.counts.votes.count(took_ms, Status::SUCCESS);
                }
                Work::Done(reply) => {
                    write(connection, item.handle, reply, shown_ms);
                    match reply.procedure {
                        Procedure::Vote => connection.counts.votes.count(took_ms, reply.status),
                        procedure => connection.counts.count(procedure, took_ms, reply.status),
                    }
                }
                // Nothing comes back that was not answered.
                Work::Vote { .. } | Work::Hello(_) => continue,
            }
            Self::mark_dirty(&mut self.dirty, item.ticket, connection);
        }
        let counts = &self.shared.counts[self.number];
        let mut counts = counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        counts.latency_us.saturating_record_n((took_ns / 1_000).max(1), batch.items.len() as u64);
        drop(counts);
        self.calls.keep(batch);
    }
}

fn unexpected(text: String) -> Refused {
    Refused { status: Status::UNEXPECTED_FAILURE, text }
}

/// Writes a reply with its tables.
fn write(connection: &mut Connection, handle: i64, reply: &Reply, round_trip_ms: i32) {
    let answer = Answer {
        handle,
        status: reply.status,
        status_text: reply.text.as_deref(),
        round_trip_ms,
        ..Answer::default()
    };
    let mut writer = ResponseWriter::new(&mut connection.output, &answer);
    for table in &reply.tables {
        // Tables were written by this program: they can be read.
        if let Some(Ok(table)) = table.get(FRAME_HEAD_BYTES..).map(TableView::read) {
            writer.copy(&table);
        }
    }
}
