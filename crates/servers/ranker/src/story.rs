//! The stories that a request ranks, made of objects, as structures in memory and in Thrift's compact
//! protocol. Names of types and numbers of fields are those of the original's interface.

use super::compact::{Malformed, Reader, Writer, kind};
use super::pagerank::Ranked;
use plimsoll_core::rng::Rng;
use std::collections::BTreeMap;

/// Entries of each map and actions of each object.
const ENTRIES: usize = 5;
/// Number of types of object.
const OBJECT_KINDS: u64 = 26;
/// The text in each object's map.
const TEXT: &str = "a text of 25 characters .";
/// Characters of a reply's metadata.
const METADATA_CHARS: usize = 200;

/// An action of a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Action {
    kind: i16,
    time_us: i64,
    time_ms: i32,
    actor_id: i64,
}

/// Something that a story is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    id: i64,
    kind: i32,
    actor_id: i64,
    created_at: i64,
    numbers: BTreeMap<i16, i64>,
    texts: BTreeMap<i16, String>,
    lists: BTreeMap<i16, Vec<i64>>,
    actions: Vec<Action>,
    weight: f64,
}

/// One entry of a feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Story {
    pub(crate) id: i64,
    pub(crate) objects: Vec<Object>,
    pub(crate) weight: f64,
    pub(crate) kind: i32,
}

/// A reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Response {
    pub(crate) query_id: i64,
    pub(crate) stories: Vec<Story>,
    /// Always empty in the original, and so here.
    pub(crate) object_counts: Vec<i32>,
    pub(crate) metadata: String,
}

/// Random letters and digits.
pub(crate) fn letters(count: usize, rng: &mut Rng) -> Vec<u8> {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut letters = Vec::with_capacity(count);
    letters.resize_with(count, || ALPHABET[rng.below(62) as usize]);
    letters
}

impl Action {
    fn random(rng: &mut Rng) -> Self {
        Self {
            kind: rng.next_u64() as i16,
            time_us: rng.next_u64() as i64,
            time_ms: rng.next_u64() as i32,
            actor_id: rng.next_u64() as i64,
        }
    }

    fn write(&self, to: &mut Writer) {
        to.begin();
        to.field(1, kind::I16);
        to.integer(self.kind.into());
        to.field(2, kind::I64);
        to.integer(self.time_us);
        to.field(3, kind::I32);
        to.integer(self.time_ms.into());
        to.field(4, kind::I64);
        to.integer(self.actor_id);
        to.end();
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut action = Self::default();
        from.begin();
        while let Some((id, kind)) = from.field()? {
            match (id, kind) {
                (1, kind::I16) => action.kind = from.integer()?,
                (2, kind::I64) => action.time_us = from.integer()?,
                (3, kind::I32) => action.time_ms = from.integer()?,
                (4, kind::I64) => action.actor_id = from.integer()?,
                _ => from.skip(kind)?,
            }
        }
        Ok(action)
    }
}

impl Object {
    fn random(rng: &mut Rng) -> Self {
        let mut object = Self {
            id: rng.next_u64() as i64,
            kind: rng.below(OBJECT_KINDS) as i32,
            actor_id: rng.next_u64() as i64,
            created_at: rng.next_u64() as i64,
            weight: rng.uniform(),
            ..Self::default()
        };
        for _ in 0..ENTRIES {
            object.numbers.insert(rng.next_u64() as i16, 42);
            object.texts.insert(rng.next_u64() as i16, TEXT.to_owned());
            object.lists.insert(rng.next_u64() as i16, Vec::new());
        }
        object.actions = (0..ENTRIES).map(|_| Action::random(rng)).collect();
        object
    }

    fn write(&self, to: &mut Writer) {
        to.begin();
        to.field(1, kind::I64);
        to.integer(self.id);
        to.field(2, kind::I32);
        to.integer(self.kind.into());
        to.field(3, kind::I64);
        to.integer(self.actor_id);
        to.field(4, kind::I64);
        to.integer(self.created_at);
        to.field(5, kind::MAP);
        to.map(self.numbers.len(), kind::I16, kind::I64);
        for (key, number) in &self.numbers {
            to.integer((*key).into());
            to.integer(*number);
        }
        to.field(6, kind::MAP);
        to.map(self.texts.len(), kind::I16, kind::BINARY);
        for (key, text) in &self.texts {
            to.integer((*key).into());
            to.binary(text.as_bytes());
        }
        to.field(7, kind::MAP);
        to.map(self.lists.len(), kind::I16, kind::LIST);
        for (key, list) in &self.lists {
            to.integer((*key).into());
            to.list(list.len(), kind::I64);
            list.iter().for_each(|number| to.integer(*number));
        }
        to.field(8, kind::LIST);
        to.list(self.actions.len(), kind::STRUCT);
        self.actions.iter().for_each(|action| action.write(to));
        to.field(9, kind::DOUBLE);
        to.double(self.weight);
        to.end();
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut object = Self::default();
        from.begin();
        while let Some((id, kind)) = from.field()? {
            match (id, kind) {
                (1, kind::I64) => object.id = from.integer()?,
                (2, kind::I32) => object.kind = from.integer()?,
                (3, kind::I64) => object.actor_id = from.integer()?,
                (4, kind::I64) => object.created_at = from.integer()?,
                (5, kind::MAP) => {
                    object.numbers = read_map(from, kind::I64, |from| from.integer())?;
                }
                (6, kind::MAP) => object.texts = read_map(from, kind::BINARY, |from| from.text())?,
                (7, kind::MAP) => {
                    let integers =
                        |from: &mut Reader<'_>| read_list(from, kind::I64, |from| from.integer());
                    object.lists = read_map(from, kind::LIST, integers)?;
                }
                (8, kind::LIST) => object.actions = read_list(from, kind::STRUCT, Action::read)?,
                (9, kind::DOUBLE) => object.weight = from.double()?,
                _ => from.skip(kind)?,
            }
        }
        Ok(object)
    }
}

fn read_list<T>(
    from: &mut Reader<'_>,
    expected: u8,
    read: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let (elements, kind) = from.list()?;
    if elements > 0 && kind != expected {
        return Err(Malformed::element());
    }
    (0..elements).map(|_| read(from)).collect()
}

fn read_map<T>(
    from: &mut Reader<'_>,
    expected: u8,
    read: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<BTreeMap<i16, T>, Malformed> {
    let (entries, key, value) = from.map()?;
    if entries > 0 && (key, value) != (kind::I16, expected) {
        return Err(Malformed::element());
    }
    (0..entries).map(|_| Ok((from.integer()?, read(from)?))).collect()
}

impl Story {
    fn random(objects: usize, rng: &mut Rng) -> Self {
        Self {
            id: rng.next_u64() as i64,
            objects: (0..objects).map(|_| Object::random(rng)).collect(),
            weight: rng.uniform(),
            kind: rng.below(OBJECT_KINDS) as i32,
        }
    }

    fn write(&self, to: &mut Writer) {
        to.begin();
        to.field(1, kind::I64);
        to.integer(self.id);
        to.field(2, kind::LIST);
        to.list(self.objects.len(), kind::STRUCT);
        self.objects.iter().for_each(|object| object.write(to));
        to.field(3, kind::DOUBLE);
        to.double(self.weight);
        to.field(4, kind::I32);
        to.integer(self.kind.into());
        to.end();
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut story = Self::default();
        from.begin();
        while let Some((id, kind)) = from.field()? {
            match (id, kind) {
                (1, kind::I64) => story.id = from.integer()?,
                (2, kind::LIST) => story.objects = read_list(from, kind::STRUCT, Object::read)?,
                (3, kind::DOUBLE) => story.weight = from.double()?,
                (4, kind::I32) => story.kind = from.integer()?,
                _ => from.skip(kind)?,
            }
        }
        Ok(story)
    }
}

impl Response {
    /// A reply of `stories` random stories, each of `objects` objects.
    pub(crate) fn random(query: u64, stories: usize, objects: usize, rng: &mut Rng) -> Self {
        let stories = (0..stories).map(|_| Story::random(objects, rng)).collect();
        let metadata = letters(METADATA_CHARS, rng);
        Self {
            query_id: query as i64,
            stories,
            object_counts: Vec::new(),
            // The alphabet is ASCII.
            metadata: String::from_utf8(metadata).unwrap_or_default(),
        }
    }

    /// Lets the first stories be those that were ranked best.
    pub(crate) fn rank(&mut self, best: &[Ranked]) {
        for (story, ranked) in self.stories.iter_mut().zip(best) {
            (story.id, story.weight) = (ranked.node.into(), ranked.score.into());
        }
    }

    /// The reply as bytes; `buffer` is used again.
    pub(crate) fn serialise(&self, buffer: Vec<u8>) -> Vec<u8> {
        let mut to = Writer::reusing(buffer);
        to.begin();
        to.field(1, kind::I64);
        to.integer(self.query_id);
        to.field(2, kind::LIST);
        to.list(self.stories.len(), kind::STRUCT);
        self.stories.iter().for_each(|story| story.write(&mut to));
        to.field(3, kind::LIST);
        to.list(self.object_counts.len(), kind::I32);
        self.object_counts.iter().for_each(|count| to.integer((*count).into()));
        to.field(4, kind::BINARY);
        to.binary(self.metadata.as_bytes());
        to.end();
        to.into_bytes()
    }

    /// The reply that these bytes are; unknown fields are passed over.
    pub(crate) fn deserialise(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut from = Reader::new(bytes);
        let mut response = Self::default();
        from.begin();
        while let Some((id, kind)) = from.field()? {
            match (id, kind) {
                (1, kind::I64) => response.query_id = from.integer()?,
                (2, kind::LIST) => {
                    response.stories = read_list(&mut from, kind::STRUCT, Story::read)?;
                }
                (3, kind::LIST) => {
                    response.object_counts =
                        read_list(&mut from, kind::I32, |from| from.integer())?;
                }
                (4, kind::BINARY) => response.metadata = from.text()?,
                _ => from.skip(kind)?,
            }
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_as_long_as_it_says() {
        assert_eq!(TEXT.len(), 25);
    }

    #[test]
    fn a_reply_comes_back_as_it_was() {
        let mut response = Response::random(77, 40, 20, &mut Rng::new(1));
        response.rank(&[Ranked { node: 9, score: 0.5 }, Ranked { node: 4, score: 0.25 }]);
        let bytes = response.serialise(vec![1, 2, 3]);
        let read = Response::deserialise(&bytes).unwrap();
        assert_eq!(read, response);
        assert_eq!((read.stories[0].id, read.stories[0].weight), (9, 0.5));
        assert_eq!((read.stories[1].id, read.stories[1].weight), (4, 0.25));
        assert!(read.stories.iter().all(|story| story.objects.len() == 20));
        let object = &read.stories[2].objects[7];
        assert_eq!((object.numbers.len(), object.texts.len(), object.actions.len()), (5, 5, 5));
        for cut in (0..bytes.len()).step_by(997) {
            assert!(Response::deserialise(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn an_empty_reply_has_the_bytes_of_the_protocol() {
        let bytes = Response { query_id: -1, ..Response::default() }.serialise(Vec::new());
        // Field 1 i64 -1; field 2 a list of no structures, 3 of no i32; field 4 no text; stop.
        assert_eq!(bytes, [0x16, 1, 0x19, 0x0c, 0x19, 0x05, 0x18, 0, 0]);
    }

    #[test]
    fn a_list_of_the_wrong_type_is_refused() {
        // Field 2, a list of one i64.
        assert!(Response::deserialise(&[0x29, 0x16, 2, 0]).is_err());
    }

    #[test]
    fn the_same_seed_makes_the_same_reply() {
        let bytes = |seed| Response::random(1, 3, 2, &mut Rng::new(seed)).serialise(Vec::new());
        assert_eq!(bytes(5), bytes(5));
        assert_ne!(bytes(5), bytes(6));
    }
}
