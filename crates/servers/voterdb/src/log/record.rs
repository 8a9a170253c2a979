//! Records of the command log, and of snapshots, which are logs of a moment's rows.
//!
//! A record is its length and a checksum (4 bytes each, little-endian), then its kind and what that kind has: rows of votes
//! (phone, state and contestant: 8, 8 and 4 bytes each), a greeting, or a transaction over all partitions by what it was
//! called with. They stand in an order in which running them one after another gives the same tables again.

use crate::result::Datum;
use crate::tables::{Greeting, State, Vote};

/// Length and checksum in front of a record.
pub(crate) const HEAD_BYTES: usize = 8;
/// Bytes of a row of votes.
const VOTE_BYTES: usize = 20;
/// The longest record; a longer length is no record. A statement is at most a message long.
const RECORD_BYTES_MAX: usize = 64 << 20;
/// Votes of one record, at most.
const VOTES_MAX: usize = 1 << 16;

const VOTES: u8 = 1;
const GREETING: u8 = 2;
const INITIALIZE: u8 = 3;
const STATEMENTS: u8 = 4;
const CONTESTANT: u8 = 5;
const AREA_CODE: u8 = 6;
const END: u8 = 7;

/// Records that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    /// Beginning of the incomplete record of votes.
    votes_at: Option<usize>,
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    Votes(Vec<Vote>),
    Greeting(String, Greeting),
    Initialize(i32, String),
    /// Statements, with their parameters.
    Statements(String, Vec<Datum<'static>>),
    Contestant(i32, String),
    AreaCode(i16, State),
    /// The end of a snapshot, which is whole with it only.
    End,
}

impl Records {
    /// Adds a row of votes.
    #[inline]
    pub(crate) fn vote(&mut self, vote: Vote) {
        let at = match self.votes_at {
            Some(at) if self.bytes.len() - at < HEAD_BYTES + 1 + VOTES_MAX * VOTE_BYTES => at,
            _ => {
                self.end_votes();
                self.begin(VOTES)
            }
        };
        self.votes_at = Some(at);
        let mut row = [0; VOTE_BYTES];
        row[..8].copy_from_slice(&vote.phone.to_le_bytes());
        row[8..16].copy_from_slice(&vote.state.bits().to_le_bytes());
        row[16..].copy_from_slice(&vote.contestant.to_le_bytes());
        self.bytes.extend_from_slice(&row);
    }

    pub(crate) fn greeting(&mut self, dialect: &str, greeting: &Greeting) {
        self.end_votes();
        let at = self.begin(GREETING);
        self.text(Some(dialect));
        self.text(greeting.hello.as_deref());
        self.text(greeting.world.as_deref());
        self.end(at);
    }

    pub(crate) fn initialize(&mut self, most: i32, names: &str) {
        self.end_votes();
        let at = self.begin(INITIALIZE);
        self.bytes.extend_from_slice(&most.to_le_bytes());
        self.text(Some(names));
        self.end(at);
    }

    pub(crate) fn statements(&mut self, text: &str, params: &[Datum<'_>]) {
        self.end_votes();
        let at = self.begin(STATEMENTS);
        self.text(Some(text));
        for param in params {
            match param {
                Datum::Null => self.bytes.push(0),
                Datum::Int(number) => {
                    self.bytes.push(1);
                    self.bytes.extend_from_slice(&number.to_le_bytes());
                }
                Datum::Float(number) => {
                    self.bytes.push(2);
                    self.bytes.extend_from_slice(&number.to_le_bytes());
                }
                Datum::State(_) | Datum::Text(_) => {
                    self.bytes.push(3);
                    param.with_text(|text| self.text(Some(text)));
                }
            }
        }
        self.end(at);
    }

    pub(crate) fn contestant(&mut self, number: i32, name: &str) {
        self.end_votes();
        let at = self.begin(CONTESTANT);
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.text(Some(name));
        self.end(at);
    }

    pub(crate) fn area_code(&mut self, code: i16, state: State) {
        self.end_votes();
        let at = self.begin(AREA_CODE);
        self.bytes.extend_from_slice(&code.to_le_bytes());
        self.bytes.extend_from_slice(&state.bits().to_le_bytes());
        self.end(at);
    }

    /// Ends a snapshot.
    pub(crate) fn end_snapshot(&mut self) {
        self.end_votes();
        let at = self.begin(END);
        self.end(at);
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes of whole records; this one is empty afterwards and keeps its memory.
    pub(crate) fn move_to(&mut self, out: &mut Vec<u8>) {
        self.end_votes();
        if out.is_empty() {
            std::mem::swap(out, &mut self.bytes);
        } else {
            out.append(&mut self.bytes);
        }
    }

    fn begin(&mut self, kind: u8) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD_BYTES]);
        self.bytes.push(kind);
        at
    }

    fn end_votes(&mut self) {
        if let Some(at) = self.votes_at.take() {
            self.end(at);
        }
    }

    fn end(&mut self, at: usize) {
        let body = at + HEAD_BYTES;
        // A record is shorter than a message.
        let length = (self.bytes.len() - body) as u32;
        let sum = crc32fast::hash(&self.bytes[body..]);
        self.bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        self.bytes[at + 4..body].copy_from_slice(&sum.to_le_bytes());
    }

    fn text(&mut self, text: Option<&str>) {
        let length = text.map_or(u32::MAX, |text| text.len() as u32);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
    }
}

/// Reads the header of a record: its length and its checksum. `None` for a length that no record has.
pub(crate) fn head(head: [u8; HEAD_BYTES]) -> Option<(usize, u32)> {
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let sum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    (1..=RECORD_BYTES_MAX).contains(&length).then_some((length, sum))
}

/// The record of a body with this checksum; nothing when it is not sound.
pub(crate) fn record(body: &[u8], sum: u32) -> Option<Record> {
    if crc32fast::hash(body) == sum { read(body) } else { None }
}

fn read(body: &[u8]) -> Option<Record> {
    let (kind, rest) = body.split_first()?;
    let mut scan = Scan(rest);
    let record = match *kind {
        VOTES => {
            let rows = rest.chunks_exact(VOTE_BYTES);
            if !rows.remainder().is_empty() {
                return None;
            }
            return rows.map(vote).collect::<Option<_>>().map(Record::Votes);
        }
        GREETING => {
            let dialect = scan.text()??;
            Record::Greeting(dialect, Greeting { hello: scan.text()?, world: scan.text()? })
        }
        CONTESTANT => Record::Contestant(i32::from_le_bytes(scan.array()?), scan.text()??),
        AREA_CODE => {
            let code = i16::from_le_bytes(scan.array()?);
            Record::AreaCode(code, State::from_bits(u64::from_le_bytes(scan.array()?))?)
        }
        END => Record::End,
        INITIALIZE => Record::Initialize(i32::from_le_bytes(scan.array()?), scan.text()??),
        STATEMENTS => {
            let text = scan.text()??;
            let mut params = Vec::new();
            while !scan.0.is_empty() {
                params.push(match scan.array::<1>()? {
                    [0] => Datum::Null,
                    [1] => Datum::Int(i64::from_le_bytes(scan.array()?)),
                    [2] => Datum::Float(f64::from_le_bytes(scan.array()?)),
                    [3] => Datum::text(scan.text()??),
                    _ => return None,
                });
            }
            Record::Statements(text, params)
        }
        _ => return None,
    };
    scan.0.is_empty().then_some(record)
}

fn vote(row: &[u8]) -> Option<Vote> {
    let mut scan = Scan(row);
    Some(Vote {
        phone: i64::from_le_bytes(scan.array()?),
        state: State::from_bits(u64::from_le_bytes(scan.array()?))?,
        contestant: i32::from_le_bytes(scan.array()?),
    })
}

struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (found, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*found)
    }

    /// A text, or that there is none; nothing at all when the bytes are no text.
    fn text(&mut self) -> Option<Option<String>> {
        let length = u32::from_le_bytes(self.array()?);
        if length == u32::MAX {
            return Some(None);
        }
        let (text, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok().map(Some)
    }
}

/// Reads records, one behind the other, and writes each again; for fuzzing. A checksum that does not fit is passed over, since
/// a mutation finds none that does.
///
/// # Panics
/// When a record is written so that it reads as another.
pub(crate) fn read_and_write(mut bytes: &[u8]) {
    while let Some((start, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let Some((length, sum)) = head(*start) else { return };
        let Some((body, behind)) = rest.split_at_checked(length) else { return };
        let _ = record(body, sum);
        let Some(found) = read(body) else { return };
        let (mut records, mut written) = (Records::default(), Vec::new());
        match &found {
            Record::Votes(votes) => votes.iter().for_each(|vote| records.vote(*vote)),
            Record::Greeting(dialect, greeting) => records.greeting(dialect, greeting),
            Record::Initialize(most, names) => records.initialize(*most, names),
            Record::Statements(text, params) => records.statements(text, params),
            Record::Contestant(number, name) => records.contestant(*number, name),
            Record::AreaCode(code, state) => records.area_code(*code, *state),
            Record::End => records.end_snapshot(),
        }
        records.move_to(&mut written);
        // Numbers that are none differ from themselves: their texts are compared.
        let again = written.get(HEAD_BYTES..).and_then(read);
        let is_empty = matches!(&found, Record::Votes(votes) if votes.is_empty());
        assert!(is_empty || format!("{again:?}") == format!("{:?}", Some(&found)), "{found:?}");
        bytes = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let state = "[a-zé]{0,2}".prop_map(|text| State::new(&text).unwrap());
        let vote = (any::<i64>(), state.clone(), any::<i32>());
        let vote = vote.prop_map(|(phone, state, contestant)| Vote { phone, state, contestant });
        let text = proptest::option::of(".{0,20}");
        let param = prop_oneof![
            Just(Datum::Null),
            any::<i64>().prop_map(Datum::Int),
            (-1e9..1e9).prop_map(Datum::Float),
            ".{0,9}".prop_map(Datum::text),
        ];
        prop_oneof![
            proptest::collection::vec(vote, 1..50).prop_map(Record::Votes),
            (".{0,20}", text.clone(), text).prop_map(|(dialect, hello, world)| {
                Record::Greeting(dialect, Greeting { hello, world })
            }),
            (any::<i32>(), ".{0,20}").prop_map(|(most, names)| Record::Initialize(most, names)),
            (".{0,20}", proptest::collection::vec(param, 0..5))
                .prop_map(|(text, params)| Record::Statements(text, params)),
            (any::<i32>(), ".{0,20}").prop_map(|(number, name)| Record::Contestant(number, name)),
            (any::<i16>(), state).prop_map(|(code, state)| Record::AreaCode(code, state)),
            Just(Record::End),
        ]
    }

    fn write(record: &Record, out: &mut Records) {
        match record {
            Record::Votes(votes) => votes.iter().for_each(|vote| out.vote(*vote)),
            Record::Greeting(dialect, greeting) => out.greeting(dialect, greeting),
            Record::Initialize(most, names) => out.initialize(*most, names),
            Record::Statements(text, params) => out.statements(text, params),
            Record::Contestant(number, name) => out.contestant(*number, name),
            Record::AreaCode(code, state) => out.area_code(*code, *state),
            Record::End => out.end_snapshot(),
        }
    }

    /// All records of some bytes, until one is not sound.
    fn read_all(mut bytes: &[u8]) -> Vec<Record> {
        let mut found = Vec::new();
        while let Some((start, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
            let Some((length, sum)) = head(*start) else { break };
            let Some(one) = rest.get(..length).and_then(|body| record(body, sum)) else { break };
            found.push(one);
            bytes = &rest[length..];
        }
        found
    }

    proptest! {
        #[test]
        fn records_come_back_and_a_changed_byte_is_seen(
            records in proptest::collection::vec(any_record(), 1..8),
            at in any::<proptest::sample::Index>(),
            bit in 0u8..8,
        ) {
            let mut out = Records::default();
            let mut expected: Vec<Record> = Vec::new();
            for one in records {
                write(&one, &mut out);
                // Votes one behind the other are one record.
                match (expected.last_mut(), one) {
                    (Some(Record::Votes(votes)), Record::Votes(more)) => votes.extend(more),
                    (_, one) => expected.push(one),
                }
            }
            let mut bytes = Vec::new();
            out.move_to(&mut bytes);
            prop_assert!(out.is_empty());
            prop_assert_eq!(read_all(&bytes), expected.clone());
            let cut = at.index(bytes.len());
            let before = read_all(&bytes[..cut]);
            prop_assert!(before.len() < expected.len() && expected.starts_with(&before));
            bytes[cut] ^= 1 << bit;
            let after = read_all(&bytes);
            prop_assert!(after.len() < expected.len() && expected.starts_with(&after));
        }

        #[test]
        fn bytes_at_random_are_no_records(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read_all(&bytes);
            read(&bytes);
        }
    }

    #[test]
    fn many_votes_are_several_records() {
        let mut out = Records::default();
        let vote = Vote { phone: 1, state: State::UNKNOWN, contestant: 2 };
        (0..VOTES_MAX + 10).for_each(|_| out.vote(vote));
        let mut bytes = Vec::new();
        out.move_to(&mut bytes);
        let lengths: Vec<usize> = read_all(&bytes)
            .iter()
            .map(|record| if let Record::Votes(votes) = record { votes.len() } else { 0 })
            .collect();
        assert_eq!(lengths, [VOTES_MAX, 10]);
    }
}
