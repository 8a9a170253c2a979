//! The leader of each partition, from `@Statistics TOPO`.

use super::kind::DecodeError;
use super::request::Request;
use super::response::Response;
use super::ring::Ring;
use super::value::Value;

/// The partition whose leader runs what concerns all partitions.
pub const MULTI_PARTITION: i32 = 16_383;

/// The partitions of a cluster, their leaders, and the ring that deals out keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Partition and host of its leader, in the order of partitions.
    leaders: Vec<(i32, i32)>,
    /// Partition that a key belongs to.
    pub ring: Ring,
}

impl Topology {
    /// Makes `request` the call whose response [`Topology::read`] reads.
    pub fn ask(request: &mut Request) {
        // 0 asks for the ring as bytes; 1 would bring it as compressed JSON.
        request.call("@Statistics", &[Value::String("TOPO"), Value::Integer(0)]);
    }

    /// Reads the two tables of the response.
    ///
    /// # Errors
    /// [`DecodeError::Table`] when the call failed, a column is missing, or the ring is not one of bytes.
    pub fn read(response: &Response<'_>) -> Result<Self, DecodeError> {
        let missing = DecodeError::Table;
        let (Some(sites), Some(hashes)) = (response.table(0), response.table(1)) else {
            return Err(missing);
        };
        let partition = sites.column("Partition").ok_or(missing)?;
        let leader = sites.column("Leader").ok_or(missing)?;
        let mut leaders = Vec::new();
        for row in sites.rows() {
            let row = row?;
            let partition = row.long(partition).and_then(|number| i32::try_from(number).ok());
            // `host:site`; a partition without a leader for the moment is left out.
            let host = row.text(leader).and_then(|leader| leader.split(':').next()?.parse().ok());
            if let (Some(partition), Some(host)) = (partition, host) {
                leaders.push((partition, host));
            }
        }
        leaders.sort_unstable();
        let kind = hashes.column("HASHTYPE").ok_or(missing)?;
        let config = hashes.column("HASHCONFIG").ok_or(missing)?;
        let row = hashes.rows().next().ok_or(missing)??;
        if row.text(kind) != Some("ELASTIC") {
            return Err(missing);
        }
        let ring = Ring::read(row.bytes(config).ok_or(missing)?)?;
        Ok(Self { leaders, ring })
    }

    /// The host that leads this partition.
    #[must_use]
    pub fn leader_of(&self, partition: i32) -> Option<i32> {
        let at = self.leaders.binary_search_by_key(&partition, |&(partition, _)| partition).ok()?;
        Some(self.leaders[at].1)
    }

    /// The host that leads the partition of this key.
    #[must_use]
    pub fn leader_of_long(&self, key: i64) -> Option<i32> {
        self.leader_of(self.ring.partition_of_long(key))
    }

    /// Partitions and the hosts of their leaders, in the order of partitions; [`MULTI_PARTITION`] is among them.
    #[must_use]
    pub fn leaders(&self) -> &[(i32, i32)] {
        &self.leaders
    }
}
