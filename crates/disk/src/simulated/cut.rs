//! Files and folders after a power cut.

use super::nodes::{Change, FileNode, FolderNode, Node, Nodes};
use plimsoll_core::rng::Rng;

/// Bytes that a disk writes together.
const SECTOR_BYTES: u64 = 512;

/// The way in which changes that were not synced are left.
#[derive(Clone, Copy)]
enum Luck {
    None,
    All,
    /// The first ones, and a part of the next.
    First(usize),
    /// Some, in any order.
    Some,
}

impl Luck {
    fn draw(count: usize, rng: &mut Rng) -> Self {
        match rng.below(4) {
            0 => Self::None,
            1 => Self::All,
            2 => Self::First(rng.below(count as u64 + 1) as usize),
            _ => Self::Some,
        }
    }

    fn keeps(self, index: usize, rng: &mut Rng) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::First(count) => index < count,
            Self::Some => rng.below(2) == 0,
        }
    }

    fn tears(self, index: usize, rng: &mut Rng) -> bool {
        match self {
            Self::None | Self::All => false,
            Self::First(count) => index == count,
            Self::Some => rng.below(4) == 0,
        }
    }
}

/// The files and folders that are left, and a line for each of which something is lost or could be.
pub(super) fn survivors(nodes: &Nodes, rng: &mut Rng) -> (Nodes, Vec<String>) {
    let (mut left, mut lines) = (nodes.clone(), Vec::new());
    for (number, node) in &mut left.all {
        match node {
            Node::File(file) => {
                if !file.pending.is_empty() {
                    let pending = file.pending.len();
                    keep_writes(file, rng);
                    let (length, seen) = (file.durable.len(), file.data.len());
                    let is_same = file.durable == file.data;
                    lines.push(format!(
                        "   file {number}: {pending} changes were not synced; {length} of {seen} bytes, {}",
                        if is_same { "nothing lost" } else { "not as it was" }
                    ));
                }
                file.data.clone_from(&file.durable);
            }
            Node::Folder(folder) => {
                if !folder.pending.is_empty() {
                    keep_names(folder, rng);
                    let names: Vec<&String> = folder.durable.keys().collect();
                    lines.push(format!("   folder {number}: it has {names:?} after the cut"));
                }
                folder.names.clone_from(&folder.durable);
            }
        }
    }
    (left, lines)
}

/// A sync that fails: some of the data are on the disk, and no later sync brings the rest there.
pub(super) fn failed_sync(file: &mut FileNode, rng: &mut Rng) {
    keep_writes(file, rng);
}

fn keep_writes(file: &mut FileNode, rng: &mut Rng) {
    let pending = std::mem::take(&mut file.pending);
    let luck = Luck::draw(pending.len(), rng);
    // The length can be on the disk without the data.
    if rng.below(4) == 0 && file.data.len() > file.durable.len() {
        file.durable.resize(file.data.len(), 0);
    }
    for (index, change) in pending.iter().enumerate() {
        if luck.tears(index, rng) {
            tear(change, rng).iter().for_each(|part| part.apply(&mut file.durable));
        } else if luck.keeps(index, rng) {
            change.apply(&mut file.durable);
        }
    }
}

/// Parts of a write: its beginning up to any byte, or some of its sectors.
fn tear(change: &Change, rng: &mut Rng) -> Vec<Change> {
    let Change::Write { at, bytes } = change else { return Vec::new() };
    if rng.below(2) == 0 {
        let count = rng.below(bytes.len() as u64) as usize;
        return vec![Change::Write { at: *at, bytes: bytes[..count].into() }];
    }
    let (mut parts, mut from) = (Vec::new(), *at);
    let end = at + bytes.len() as u64;
    while from < end {
        let to = ((from / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
        if rng.below(2) == 0 {
            let bytes = &bytes[(from - at) as usize..(to - at) as usize];
            parts.push(Change::Write { at: from, bytes: bytes.into() });
        }
        from = to;
    }
    parts
}

fn keep_names(folder: &mut FolderNode, rng: &mut Rng) {
    let pending = std::mem::take(&mut folder.pending);
    let luck = Luck::draw(pending.len(), rng);
    for (index, entry) in pending.iter().enumerate() {
        if luck.keeps(index, rng) {
            entry.apply(&mut folder.durable);
        }
    }
}
