//! The inputs of a target in one file: a line with the length of each, then its bytes and a line end.

use std::fmt;
use std::path::PathBuf;

/// The first line of a file.
const HEAD: &[u8] = b"plimsoll-inputs 1\n";
/// Most bytes of the inputs of one target: all of them together stay below 3 MB.
pub const TARGET_BYTES_MAX: usize = 64 << 10;

/// A file of inputs that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The byte where it is wrong.
    pub at: usize,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not a file of inputs, at byte {}; make it again with `make fuzz-corpus`",
            self.at
        )
    }
}

/// The file of a target in the repository.
#[must_use]
pub fn path(target: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    PathBuf::from(folder).join(format!("{target}.inputs"))
}

/// Reads a file of inputs.
///
/// # Errors
/// The place where it is wrong.
pub fn unpack(file: &[u8]) -> Result<Vec<Vec<u8>>, Damaged> {
    let mut rest = file.strip_prefix(HEAD).ok_or(Damaged { at: 0 })?;
    let mut inputs = Vec::new();
    while !rest.is_empty() {
        let damaged = Damaged { at: file.len() - rest.len() };
        let one = || {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let length: usize = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
            let (input, behind) = rest[end + 1..].split_at_checked(length)?;
            Some((input.to_vec(), behind.strip_prefix(b"\n")?))
        };
        let (input, behind) = one().ok_or(damaged)?;
        inputs.push(input);
        rest = behind;
    }
    Ok(inputs)
}

/// Writes a file of inputs: the shortest first, as many as fit.
#[must_use]
pub fn pack(mut inputs: Vec<Vec<u8>>) -> Vec<u8> {
    inputs.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    inputs.dedup();
    let mut file = HEAD.to_vec();
    for input in inputs {
        let line = format!("{}\n", input.len());
        if file.len() + line.len() + input.len() + 1 > TARGET_BYTES_MAX {
            break;
        }
        file.extend_from_slice(line.as_bytes());
        file.extend_from_slice(&input);
        file.push(b'\n');
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_come_back_without_those_that_come_twice() {
        let inputs = [&b"a\n3\nb"[..], b"", b"\0\xff", b"", b"a\n3\nb"].map(<[u8]>::to_vec);
        let file = pack(inputs.to_vec());
        assert_eq!(unpack(&file), Ok(vec![vec![], vec![0, 0xff], b"a\n3\nb".to_vec()]));
    }

    #[test]
    fn a_file_that_is_cut_or_lies_about_a_length_is_damaged() {
        let file = pack(vec![b"abc".to_vec(), b"defg".to_vec()]);
        assert_eq!(unpack(&file[..file.len() - 1]), Err(Damaged { at: HEAD.len() + 6 }));
        assert_eq!(unpack(b"x"), Err(Damaged { at: 0 }));
        assert!(unpack(&[HEAD, b"99999999999999999999\na\n"].concat()).is_err());
    }

    #[test]
    fn no_more_is_kept_than_fits() {
        let inputs: Vec<_> = (0..100u8).map(|byte| vec![byte; 2000]).collect();
        let file = pack(inputs);
        assert!(file.len() <= TARGET_BYTES_MAX);
        assert_eq!(unpack(&file).unwrap().len(), 32);
    }
}
