//! Common parts of a client and a server of Vespa's `/document/v1`: document ids and their place
//! in the bucket space, the tokens of visits, and the paths.
//!
//! All of it is pure. The exact forms were compared with the real handler, and the tests hold what
//! was seen there. The way from an id to its place on the disk:
//!
//! ```
//! use plimsoll_wire::vespa::{Bucket, DocumentId, key};
//!
//! let id = DocumentId::parse("id:shop:music::gz")?;
//! // The location is the first eight bytes of the MD5 of the name; buckets are visited in the order
//! // of its reversed bits, which is the order of keys.
//! let bucket = Bucket::of_location(id.location(), 8);
//! assert_eq!(bucket.position(), 147);
//! assert!(bucket.keys().contains(&key(id.location())));
//! # Ok::<(), plimsoll_wire::vespa::IdError>(())
//! ```

mod bucket;
mod document_id;
mod path;
mod progress;

pub use bucket::{Bucket, LOCATION_BITS, MAX_BUCKET_BITS, hash_location, key};
pub use document_id::{DocumentId, IdError, IdProblem, MAX_ID_BYTES, Scope};
pub use path::{DocumentPath, PathError, ROOT_PATH, push_document_path};
pub use progress::{MAX_PENDING, MAX_TOKEN_BYTES, ProgressError, ProgressToken, Step};
