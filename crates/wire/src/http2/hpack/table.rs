//! The tables of header fields: the fixed one, and the one that each direction of a connection builds up.

use std::collections::VecDeque;

/// Size of an entry of a table besides its bytes (RFC 7541 4.1).
pub(super) const ENTRY_BYTES: usize = 32;

/// The fields of RFC 7541 appendix A; index 1 is the first.
pub(super) const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// A dynamic table. The bytes of all entries lie one behind the other, the oldest first; what has been evicted
/// in front of them is given up when there is no room behind. Holds at most twice its limit, and nothing
/// before the first entry.
#[derive(Debug)]
pub(super) struct Table {
    bytes: Vec<u8>,
    /// Number of bytes that were given up in front of `bytes` in all.
    gone: u64,
    entries: VecDeque<Entry>,
    size: usize,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Beginning, counted with the bytes that were given up.
    start: u64,
    /// A number that the owner of the table keeps with the entry.
    note: u64,
    name_len: u32,
    value_len: u32,
}

impl Entry {
    const fn size(&self) -> usize {
        (self.name_len + self.value_len) as usize + ENTRY_BYTES
    }
}

impl Table {
    pub(super) const fn new(limit: usize) -> Self {
        Table { bytes: Vec::new(), gone: 0, entries: VecDeque::new(), size: 0, limit }
    }

    /// The sum of all entries, as the RFC counts it.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.evict_to(limit);
    }

    /// The entry with this index, 0 for the newest: its note, its name and its value.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<(u64, &[u8], &[u8])> {
        let place = self.entries.len().checked_sub(index + 1)?;
        let entry = self.entries.get(place)?;
        let start = (entry.start - self.gone) as usize;
        let name_len = entry.name_len as usize;
        let bytes = &self.bytes[start..start + name_len + entry.value_len as usize];
        Some((entry.note, &bytes[..name_len], &bytes[name_len..]))
    }

    /// The index of the newest entry with this note that `matches`.
    #[inline]
    pub(super) fn find(&self, note: u64, matches: impl Fn(&[u8], &[u8]) -> bool) -> Option<usize> {
        let newest_first = self.entries.iter().rev().enumerate();
        let mut noted = newest_first.filter(|(_, entry)| entry.note == note);
        noted.find_map(|(index, _)| {
            let (_, name, value) = self.get(index)?;
            matches(name, value).then_some(index)
        })
    }

    /// The index of the newest entry with this name.
    pub(super) fn find_name(&self, name: &[u8]) -> Option<usize> {
        (0..self.entries.len()).find(|&index| self.get(index).is_some_and(|(_, n, _)| n == name))
    }

    /// Puts a field in front; one that is larger than the whole table empties it (RFC 7541 4.4).
    pub(super) fn insert(&mut self, note: u64, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_BYTES;
        self.evict_to(self.limit.saturating_sub(size));
        if size > self.limit {
            return;
        }
        let length = name.len() + value.len();
        if self.bytes.len() + length > 2 * self.limit {
            self.give_up_evicted();
        }
        let start = self.gone + self.bytes.len() as u64;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        let (name_len, value_len) = (name.len() as u32, value.len() as u32);
        self.entries.push_back(Entry { start, note, name_len, value_len });
        self.size += size;
    }

    fn evict_to(&mut self, size: usize) {
        while self.size > size
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.size();
        }
    }

    #[cold]
    fn give_up_evicted(&mut self) {
        let behind = self.gone + self.bytes.len() as u64;
        let first = self.entries.front().map_or(behind, |oldest| oldest.start);
        self.bytes.drain(..(first - self.gone) as usize);
        self.gone = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_the_bytes_stay_bounded() {
        let mut table = Table::new(200);
        for n in 0..10_000u32 {
            let value = n.to_string();
            table.insert(u64::from(n), b"name", value.as_bytes());
            assert!(table.size() <= 200 && table.bytes.len() <= 400);
            assert_eq!(table.get(0), Some((u64::from(n), &b"name"[..], value.as_bytes())));
            assert_eq!(table.find(u64::from(n), |_, v| v == value.as_bytes()), Some(0));
        }
        assert_eq!(table.get(4).map(|entry| entry.0), Some(9995));
        assert_eq!(table.get(5), None);
        table.set_limit(40);
        assert_eq!(table.size(), 40);
        table.insert(0, b"x", &[b'y'; 9]);
        assert_eq!((table.size(), table.get(0)), (0, None));
    }
}
