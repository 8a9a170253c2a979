//! Thrift's compact protocol: writing and reading, as far as the stories need it.
//!
//! Field headers carry the distance to the field before, integers are zigzag varints, lists up to
//! 14 long have their length in the header. Doubles are big-endian, as in fbthrift, which the
//! original uses; Apache Thrift has them little-endian.

use thiserror::Error;

/// Types as they stand in field, list and map headers.
pub(crate) mod kind {
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const BYTE: u8 = 3;
    pub(crate) const I16: u8 = 4;
    pub(crate) const I32: u8 = 5;
    pub(crate) const I64: u8 = 6;
    pub(crate) const DOUBLE: u8 = 7;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const SET: u8 = 10;
    pub(crate) const MAP: u8 = 11;
    pub(crate) const STRUCT: u8 = 12;
}

/// Deepest nesting of skipped structures.
const DEPTH_MAX: u32 = 32;

/// Bytes that are no value of the compact protocol, or none of the expected type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not what Thrift's compact protocol writes: {0}")]
pub(crate) struct Malformed(&'static str);

impl Malformed {
    /// The elements of a list or map have another type than the field says.
    pub(crate) fn element() -> Self {
        Self("an element of the wrong type")
    }
}

/// Appends values.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// The last field written in each structure that is open.
    fields: Vec<i16>,
}

impl Writer {
    /// A writer that uses a buffer again.
    pub(crate) fn reusing(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes, fields: Vec::with_capacity(8) }
    }

    /// Returns the bytes written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Begins a structure.
    pub(crate) fn begin(&mut self) {
        self.fields.push(0);
    }

    /// Ends a structure.
    pub(crate) fn end(&mut self) {
        self.fields.pop();
        self.bytes.push(0);
    }

    /// Announces a field of the structure that is open.
    pub(crate) fn field(&mut self, id: i16, kind: u8) {
        let last = self.fields.last_mut().map_or(0, |last| std::mem::replace(last, id));
        match id.checked_sub(last) {
            Some(distance @ 1..=15) => self.bytes.push((distance as u8) << 4 | kind),
            _ => {
                self.bytes.push(kind);
                self.integer(id.into());
            }
        }
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// An integer of 16, 32 or 64 bits.
    pub(crate) fn integer(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    /// A number of 64 bits.
    pub(crate) fn double(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_bits().to_be_bytes());
    }

    /// A text or bytes.
    pub(crate) fn binary(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// Writes the header of a list of this many elements, which follow.
    pub(crate) fn list(&mut self, elements: usize, kind: u8) {
        if elements < 15 {
            self.bytes.push((elements as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.varint(elements as u64);
        }
    }

    /// Writes the header of a map of this many entries, which follow, each key before its value.
    pub(crate) fn map(&mut self, entries: usize, key: u8, value: u8) {
        self.varint(entries as u64);
        if entries > 0 {
            self.bytes.push(key << 4 | value);
        }
    }
}

/// Takes values from the front of bytes.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    fields: Vec<i16>,
}

impl<'a> Reader<'a> {
    /// A reader at the start.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, fields: Vec::with_capacity(8) }
    }

    /// Bytes not read yet.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Enters a structure.
    pub(crate) fn begin(&mut self) {
        self.fields.push(0);
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(Malformed("it is cut"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("an integer of more than ten bytes"))
    }

    /// The next field of the structure entered last: its id and type; nothing at its end.
    pub(crate) fn field(&mut self) -> Result<Option<(i16, u8)>, Malformed> {
        let header = self.byte()?;
        if header == 0 {
            self.fields.pop();
            return Ok(None);
        }
        let last = self.fields.last().copied().unwrap_or(0);
        let id = match header >> 4 {
            0 => self.integer()?,
            distance => last.wrapping_add(distance.into()),
        };
        if let Some(last) = self.fields.last_mut() {
            *last = id;
        }
        Ok(Some((id, header & 15)))
    }

    /// An integer, if it fits.
    pub(crate) fn integer<T: TryFrom<i64>>(&mut self) -> Result<T, Malformed> {
        let raw = self.varint()?;
        let value = (raw >> 1) as i64 ^ -((raw & 1) as i64);
        T::try_from(value).map_err(|_| Malformed("an integer that does not fit its type"))
    }

    /// A number of 64 bits.
    pub(crate) fn double(&mut self) -> Result<f64, Malformed> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(f64::from_bits(u64::from_be_bytes(bytes)))
    }

    /// A text.
    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let length = self.count()?;
        let text = std::str::from_utf8(self.take(length)?);
        Ok(text.map_err(|_| Malformed("a text that is not UTF-8"))?.to_owned())
    }

    /// A count of things that take at least a byte each: no more than there are bytes left.
    fn count(&mut self) -> Result<usize, Malformed> {
        match usize::try_from(self.varint()?) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(Malformed("a length beyond the end")),
        }
    }

    /// The header of a list: how many elements follow, and their type.
    pub(crate) fn list(&mut self) -> Result<(usize, u8), Malformed> {
        let header = self.byte()?;
        let elements = match header >> 4 {
            15 => self.count()?,
            few => usize::from(few),
        };
        Ok((elements, header & 15))
    }

    /// The header of a map: how many entries follow, and the types of key and value.
    pub(crate) fn map(&mut self) -> Result<(usize, u8, u8), Malformed> {
        match self.count()? {
            0 => Ok((0, 0, 0)),
            entries => {
                let kinds = self.byte()?;
                Ok((entries, kinds >> 4, kinds & 15))
            }
        }
    }

    /// Passes over the value of a field whose id is not known.
    pub(crate) fn skip(&mut self, kind: u8) -> Result<(), Malformed> {
        self.skip_within(kind, DEPTH_MAX)
    }

    fn skip_within(&mut self, kind: u8, depth: u32) -> Result<(), Malformed> {
        let deeper = depth.checked_sub(1).ok_or(Malformed("it is nested too deep"))?;
        match kind {
            kind::TRUE | kind::FALSE => {}
            kind::BYTE => drop(self.byte()?),
            kind::I16 | kind::I32 | kind::I64 => drop(self.varint()?),
            kind::DOUBLE => drop(self.take(8)?),
            kind::BINARY => {
                let length = self.count()?;
                self.take(length)?;
            }
            kind::LIST | kind::SET => {
                let (elements, kind) = self.list()?;
                for _ in 0..elements {
                    self.skip_element(kind, deeper)?;
                }
            }
            kind::MAP => {
                let (entries, key, value) = self.map()?;
                for _ in 0..entries {
                    self.skip_element(key, deeper)?;
                    self.skip_element(value, deeper)?;
                }
            }
            kind::STRUCT => {
                self.begin();
                while let Some((_, kind)) = self.field()? {
                    self.skip_within(kind, deeper)?;
                }
            }
            _ => return Err(Malformed("an unknown type")),
        }
        Ok(())
    }

    /// Elements have a byte for a truth value, which fields have in their header.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), Malformed> {
        match kind {
            kind::TRUE | kind::FALSE => self.byte().map(drop),
            kind => self.skip_within(kind, depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::default();
        write(&mut writer);
        writer.into_bytes()
    }

    #[test]
    fn integers_have_the_bytes_of_the_specification() {
        // 50399 is the specification's own example of a varint; zigzag maps 0, -1, 1, -2 to 0 to 3.
        assert_eq!(written(|w| w.varint(50_399)), [0xdf, 0x89, 0x03]);
        for (value, bytes) in [(0, 0u8), (-1, 1), (1, 2), (-2, 3), (63, 126), (-64, 127)] {
            assert_eq!(written(|w| w.integer(value)), [bytes]);
        }
        assert_eq!(written(|w| w.integer(64)), [0x80, 0x01]);
        let least = written(|w| w.integer(i64::MIN));
        assert_eq!(least, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }

    #[test]
    fn a_structure_has_the_bytes_of_the_specification() {
        let bytes = written(|w| {
            w.begin();
            w.field(1, kind::I16);
            w.integer(-3);
            w.field(4, kind::BINARY);
            w.binary(b"hi");
            w.field(20, kind::LIST);
            w.list(2, kind::I64);
            w.integer(1);
            w.integer(300);
            w.field(21, kind::MAP);
            w.map(1, kind::I16, kind::BINARY);
            w.integer(2);
            w.binary(b"");
            w.field(22, kind::MAP);
            w.map(0, kind::I16, kind::I64);
            w.field(23, kind::DOUBLE);
            w.double(1.0);
            w.field(2, kind::STRUCT);
            w.begin();
            w.end();
            w.end();
        });
        let expected = [
            0x14, 0x05, // field 1, i16, -3
            0x38, 0x02, b'h', b'i', // field 1 + 3, binary
            0x09, 0x28, 0x26, 0x02, 0xd8, 0x04, // field 20 in long form, list of two i64
            0x1b, 0x01, 0x48, 0x04, 0x00, // a map of one i16 to binary
            0x1b, 0x00, // an empty map has no types
            0x17, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, // a double, big-endian
            0x0c, 0x04, 0x00, // field 2 in long form, an empty structure
            0x00,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_long_list_has_its_length_behind_the_header() {
        assert_eq!(written(|w| w.list(14, kind::STRUCT)), [0xec]);
        assert_eq!(written(|w| w.list(15, kind::STRUCT)), [0xfc, 15]);
        assert_eq!(written(|w| w.list(200, kind::I32)), [0xf5, 0xc8, 0x01]);
    }

    #[test]
    fn what_is_cut_or_lies_about_lengths_is_refused() {
        assert!(Reader::new(&[0x80]).integer::<i64>().is_err());
        assert!(Reader::new(&[0xff; 11]).integer::<i64>().is_err());
        assert!(Reader::new(&[0x80, 0x80, 0x08]).integer::<i16>().is_err());
        assert!(Reader::new(&[0xf6, 0xff, 0xff, 0x7f]).list().is_err());
        assert!(Reader::new(&[5, b'a']).text().is_err());
        let nested = [0x1c; 100];
        let mut reader = Reader::new(&nested);
        assert_eq!(reader.skip(kind::STRUCT), Err(Malformed("it is nested too deep")));
    }

    proptest! {
        #[test]
        fn integers_come_back(value: i64) {
            let bytes = written(|w| w.integer(value));
            prop_assert_eq!(Reader::new(&bytes).integer(), Ok(value));
        }

        #[test]
        fn nothing_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&bytes);
            let _ = reader.skip(kind::STRUCT);
            prop_assert!(reader.left() <= bytes.len());
        }
    }
}
