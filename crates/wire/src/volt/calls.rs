//! The calls in flight on a connection, found by their handles at once.

/// Largest number of abandoned calls that a connection waits for. A server with this many unanswered ones is stuck.
const GIVEN_UP_MAX: u32 = 1 << 16;

/// Calls in flight. A handle is the place of a call, in its lower half, and how often that place was taken.
#[derive(Debug, Default)]
pub(super) struct Calls {
    places: Vec<Place>,
    /// Places that no call has, the last one is taken first.
    free: Vec<u32>,
    given_up: u32,
}

#[derive(Debug)]
struct Place {
    /// Number of times that it was taken, from 1: so no handle is 0, which servers name calls by that they could not read.
    turn: u32,
    tag: u32,
    is_taken: bool,
    /// Earlier calls of this place that were given up and not answered.
    given_up: u32,
}

/// Owner of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The call with this tag.
    By(u32),
    /// One that was given up.
    GivenUp,
    /// None that was ever asked, or one that was answered before.
    Never,
}

impl Calls {
    /// Number of calls in flight, without those that were given up.
    #[inline]
    pub fn len(&self) -> u32 {
        (self.places.len() - self.free.len()) as u32
    }

    /// Begins a call and returns its handle.
    #[inline]
    pub fn begin(&mut self, tag: u32) -> i64 {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.places.push(Place { turn: 0, tag, is_taken: false, given_up: 0 });
                (self.places.len() - 1) as u32
            }
        };
        let place = &mut self.places[index as usize];
        // 31 bits: handles are positive, as VoltDB keeps the negative ones for its own clients' calls.
        place.turn = if place.turn == i32::MAX as u32 { 1 } else { place.turn + 1 };
        place.tag = tag;
        place.is_taken = true;
        i64::from(place.turn) << 32 | i64::from(index)
    }

    /// Ends the call with this handle, because its answer has come. Returns the owner of the answer.
    #[inline]
    pub fn end(&mut self, handle: i64) -> Asked {
        let (turn, index) = ((handle >> 32) as u32, handle as u32);
        let Some(place) = self.places.get_mut(index as usize) else { return Asked::Never };
        if place.is_taken && place.turn == turn {
            place.is_taken = false;
            self.free.push(index);
            return Asked::By(place.tag);
        }
        if place.given_up > 0 {
            place.given_up -= 1;
            self.given_up -= 1;
            return Asked::GivenUp;
        }
        Asked::Never
    }

    /// Gives up a call, whose answer will be dropped. Returns whether the connection can go on.
    pub fn give_up(&mut self, tag: u32) -> bool {
        let is_it = |place: &Place| place.is_taken && place.tag == tag;
        if let Some(index) = self.places.iter().position(is_it) {
            let place = &mut self.places[index];
            place.is_taken = false;
            place.given_up += 1;
            self.given_up += 1;
            self.free.push(index as u32);
        }
        self.given_up <= GIVEN_UP_MAX
    }
}
