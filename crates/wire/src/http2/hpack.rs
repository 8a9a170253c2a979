//! Header compression (RFC 7541).

mod decode;
mod encode;
mod huffman;
mod integer;
mod table;

pub(super) use decode::{Decoder, Meaning};
pub(super) use encode::Encoder;

/// The size of both dynamic tables, in the RFC's bytes: the default, which no SETTINGS need announce. More is
/// not used even where a peer offers it, for the fields that repeat in a load run fit well.
pub(super) const TABLE_BYTES: usize = 4096;

/// Reason why a header block cannot be read. The dynamic tables have parted ways, so that the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadBlock(pub(super) &'static str);

/// The bare building blocks, for tests that hold them against the RFC's own examples and against bytes
/// from anywhere. Allocates freely; no part of the ordinary walk.
pub mod vectors {
    use super::{Decoder, Encoder};

    /// A decoder with the table of one direction of a connection.
    #[derive(Default)]
    pub struct Reader(Decoder);

    impl Reader {
        /// A reader whose table may be resized up to `limit_bytes`, and begins with that size.
        #[must_use]
        pub fn with_limit(limit_bytes: usize) -> Self {
            Reader(Decoder::with_limit(limit_bytes))
        }

        /// The fields of one header block, in their order.
        ///
        /// # Errors
        /// The error of the block, in words.
        #[expect(clippy::type_complexity, reason = "pairs of names and values")]
        pub fn read(&mut self, block: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>, &'static str> {
            let mut fields = Vec::new();
            let take = |_, name: &[u8], value: &[u8]| fields.push((name.to_vec(), value.to_vec()));
            self.0.decode(block, take).map_err(|bad| bad.0)?;
            Ok(fields)
        }

        /// The size of the dynamic table, as RFC 7541 counts it.
        #[must_use]
        pub fn table_bytes(&self) -> usize {
            self.0.table_bytes()
        }
    }

    /// An encoder with the table of one direction of a connection.
    #[derive(Default)]
    pub struct Writer(Encoder);

    impl Writer {
        /// One header block of these fields.
        pub fn write<N: AsRef<[u8]>, V: AsRef<[u8]>>(&mut self, fields: &[(N, V)]) -> Vec<u8> {
            let mut block = Vec::new();
            self.0.begin(&mut block);
            for (name, value) in fields {
                self.0.field(name.as_ref(), value.as_ref(), &mut block);
            }
            block
        }

        /// The peer has announced another `SETTINGS_HEADER_TABLE_SIZE`, in bytes.
        pub fn peer_limit(&mut self, bytes: u32) {
            self.0.peer_limit(bytes);
        }

        /// The size of the dynamic table, as RFC 7541 counts it.
        #[must_use]
        pub fn table_bytes(&self) -> usize {
            self.0.table_bytes()
        }
    }

    /// `text` in Huffman code.
    #[must_use]
    pub fn huffman(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        super::huffman::encode(text, &mut out);
        out
    }

    /// `number` with a prefix of `bits` bits (1 to 8).
    #[must_use]
    pub fn integer(number: u32, prefix_bits: u8) -> Vec<u8> {
        let mut out = Vec::new();
        super::integer::put(number, prefix_bits, 0, &mut out);
        out
    }
}
