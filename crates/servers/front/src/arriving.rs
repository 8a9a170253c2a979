//! The bytes of a body while they arrive.

use hyper::body::Bytes;
use memmap2::MmapMut;
use std::io;

/// Bodies of this length and longer have a mapping of their own.
const MAPPED_BYTES: usize = 128 << 10;

/// A body as far as it has arrived.
///
/// A large one is put into a mapping of its own, which has no memory beyond the bytes that have come and goes back to the system as
/// a whole. One that grows on the heap is copied there again and again, and leaves gaps behind that others do not fill: under a
/// flood of bodies of 2 MB they took two and a half times their length, and more with time.
pub enum Arriving {
    /// The only piece, as it is: most bodies come in one.
    Piece(Bytes),
    /// Several pieces.
    Joined(Vec<u8>),
    /// Several pieces of a body whose length was announced.
    Mapped(Mapped),
}

/// The first bytes of a mapping.
pub struct Mapped {
    map: MmapMut,
    count: usize,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map[..self.count]
    }
}

impl Mapped {
    /// A body of at most `length` bytes, of which none has come.
    fn empty(length: usize) -> io::Result<Self> {
        Ok(Self { map: MmapMut::map_anon(length)?, count: 0 })
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// When the body is longer than announced.
    fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        let end = self.count + piece.len();
        let place = self.map.get_mut(self.count..end);
        let place = place.ok_or_else(|| io::Error::other("it is longer than announced"))?;
        place.copy_from_slice(piece);
        self.count = end;
        Ok(())
    }
}

impl Default for Arriving {
    fn default() -> Self {
        Self::Piece(Bytes::new())
    }
}

impl Arriving {
    /// Bytes that have come.
    pub fn len(&self) -> usize {
        match self {
            Self::Piece(piece) => piece.len(),
            Self::Joined(all) => all.len(),
            Self::Mapped(mapped) => mapped.count,
        }
    }

    /// Adds a piece of a body whose length was announced, or was not.
    ///
    /// # Errors
    /// When the system has no memory, or the body is longer than announced.
    pub fn add(&mut self, piece: Bytes, announced: Option<usize>) -> io::Result<()> {
        match self {
            Self::Piece(first) if first.is_empty() => *first = piece,
            Self::Piece(first) => {
                let first = std::mem::take(first);
                if let Some(length) = announced.filter(|length| *length >= MAPPED_BYTES) {
                    let mut mapped = Mapped::empty(length)?;
                    mapped.add(&first)?;
                    mapped.add(&piece)?;
                    *self = Self::Mapped(mapped);
                } else {
                    *self = Self::Joined([first, piece].concat());
                }
            }
            Self::Joined(all) => all.extend_from_slice(&piece),
            Self::Mapped(mapped) => mapped.add(&piece)?,
        }
        Ok(())
    }

    /// The whole body.
    pub fn whole(self) -> Bytes {
        match self {
            Self::Piece(piece) => piece,
            Self::Joined(all) => all.into(),
            Self::Mapped(mapped) => Bytes::from_owner(mapped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_whatever_holds_it() {
        let body: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        for (length, announced) in [(300_000, true), (300_000, false), (100_000, true), (7, true)] {
            for piece_bytes in [1_000_000, 65_536, 4_000] {
                let mut arriving = Arriving::default();
                for piece in body[..length].chunks(piece_bytes) {
                    let piece = Bytes::copy_from_slice(piece);
                    arriving.add(piece, announced.then_some(length)).unwrap();
                }
                assert_eq!(arriving.len(), length);
                let is_mapped = matches!(arriving, Arriving::Mapped(_));
                assert_eq!(is_mapped, announced && length > 200_000 && piece_bytes < length);
                assert_eq!(arriving.whole(), body[..length]);
            }
        }
        assert!(Arriving::default().whole().is_empty());
    }

    #[test]
    fn a_body_that_is_longer_than_announced_is_an_error() {
        let piece = || Bytes::from(vec![1; 100_000]);
        let mut arriving = Arriving::default();
        (0..2).for_each(|_| arriving.add(piece(), Some(200_000)).unwrap());
        let error = arriving.add(piece(), Some(200_000)).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than announced");
        assert_eq!(arriving.len(), 200_000);
    }
}
