//! Connections under names that outlive them.

/// Names a connection; it is never reused for another within 2^32 connections of one place.
pub type Ticket = u64;

/// A table of connections under tickets that carry a generation, so that an event or a late
/// answer for a closed connection never reaches the next one in its place.
#[derive(Debug)]
pub struct Table<C> {
    places: Vec<Place<C>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<C> {
    generation: u32,
    connection: Option<C>,
}

impl<C> Default for Table<C> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<C> Table<C> {
    /// Takes a connection in and names it.
    pub fn insert(&mut self, connection: C) -> Ticket {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, connection: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.connection = Some(connection);
        u64::from(place.generation) << 32 | u64::from(index)
    }

    /// The connection of this name, unless it is gone.
    #[inline]
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut C> {
        let place = self.places.get_mut((ticket & 0xffff_ffff) as usize)?;
        if place.generation != (ticket >> 32) as u32 {
            return None;
        }
        place.connection.as_mut()
    }

    /// Takes the connection of this name out.
    pub fn remove(&mut self, ticket: Ticket) -> Option<C> {
        let index = (ticket & 0xffff_ffff) as u32;
        let place = self.places.get_mut(index as usize)?;
        if place.generation != (ticket >> 32) as u32 {
            return None;
        }
        let connection = place.connection.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn an_old_ticket_does_not_reach_the_next_connection_in_its_place() {
        let mut table = Table::default();
        let first = table.insert("first");
        assert!(table.remove(first).is_some());
        let second = table.insert("second");
        assert_eq!(first & 0xffff_ffff, second & 0xffff_ffff);
        assert!(table.get_mut(first).is_none() && table.remove(first).is_none());
        assert!(table.get_mut(second).is_some());
    }
}
