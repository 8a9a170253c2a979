//! Files and folders: as programs see them, and as they are on the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The number of the topmost folder.
const ROOT: u64 = 0;

/// A change of a file that is not on the disk yet.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { at: u64, bytes: Arc<[u8]> },
    Length(u64),
}

impl Change {
    pub(super) fn apply(&self, data: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let (from, to) = (*at as usize, *at as usize + bytes.len());
                if data.len() < to {
                    data.resize(to, 0);
                }
                data[from..to].copy_from_slice(bytes);
            }
            Self::Length(length) => data.resize(*length as usize, 0),
        }
    }
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileNode {
    /// The content that programs see.
    pub(super) data: Vec<u8>,
    /// The content that is on the disk.
    pub(super) durable: Vec<u8>,
    /// The changes since the last sync, in order.
    pub(super) pending: Vec<Change>,
}

impl FileNode {
    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.data);
        self.pending.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }
}

/// A change of a folder that is not on the disk yet.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Put { name: String, node: u64 },
    Take { name: String, node: u64 },
    Move { from: String, to: String, node: u64 },
}

impl Entry {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Put { name, node } => {
                names.insert(name.clone(), *node);
            }
            Self::Take { name, node } => {
                if names.get(name) == Some(node) {
                    names.remove(name);
                }
            }
            Self::Move { from, to, node } => {
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// A folder.
#[derive(Clone, Debug, Default)]
pub(super) struct FolderNode {
    /// The names that programs see.
    pub(super) names: BTreeMap<String, u64>,
    /// The names that are on the disk.
    pub(super) durable: BTreeMap<String, u64>,
    /// The changes since the last sync, in order.
    pub(super) pending: Vec<Entry>,
}

impl FolderNode {
    pub(super) fn change(&mut self, entry: Entry) {
        entry.apply(&mut self.names);
        self.pending.push(entry);
    }

    pub(super) fn sync(&mut self) {
        self.durable = self.names.clone();
        self.pending.clear();
    }
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(FileNode),
    Folder(FolderNode),
}

impl Node {
    pub(super) fn file() -> Self {
        Self::File(FileNode::default())
    }

    pub(super) fn folder() -> Self {
        Self::Folder(FolderNode::default())
    }
}

/// All files and folders, by number.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    pub(super) all: BTreeMap<u64, Node>,
    next: u64,
}

impl Default for Nodes {
    fn default() -> Self {
        Self { all: BTreeMap::from([(ROOT, Node::folder())]), next: ROOT + 1 }
    }
}

/// The folder of a path, and the name in it.
pub(super) fn name(path: &Path) -> io::Result<(PathBuf, String)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(parent), Some(name)) = (path.parent(), name) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Ok((parent.to_owned(), name.to_owned()))
}

fn parts(path: &Path) -> impl Iterator<Item = &str> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    })
}

impl Nodes {
    /// The number of what a path stands for.
    pub(super) fn find(&self, path: &Path) -> Option<u64> {
        parts(path).try_fold(ROOT, |node, name| match self.all.get(&node) {
            Some(Node::Folder(folder)) => folder.names.get(name).copied(),
            _ => None,
        })
    }

    pub(super) fn is_folder(&self, node: u64) -> bool {
        matches!(self.all.get(&node), Some(Node::Folder(_)))
    }

    pub(super) fn file(&mut self, node: u64) -> io::Result<&mut FileNode> {
        match self.all.get_mut(&node) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn folder(&mut self, node: u64) -> io::Result<&mut FolderNode> {
        match self.all.get_mut(&node) {
            Some(Node::Folder(folder)) => Ok(folder),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn parent(&mut self, path: &Path) -> io::Result<&mut FolderNode> {
        let node = self.find(path).ok_or(io::ErrorKind::NotFound)?;
        self.folder(node)
    }

    /// Makes something that has this path.
    pub(super) fn make(&mut self, path: &Path, node: Node) -> io::Result<u64> {
        let (parent, name) = name(path)?;
        let number = self.next;
        self.parent(&parent)?.change(Entry::Put { name, node: number });
        self.all.insert(number, node);
        self.next += 1;
        Ok(number)
    }

    /// Takes a name away: of a file, or of an empty folder.
    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let node = self.find(path).ok_or(io::ErrorKind::NotFound)?;
        if self.folder(node).is_ok_and(|folder| !folder.names.is_empty()) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (parent, name) = name(path)?;
        self.parent(&parent)?.change(Entry::Take { name, node });
        Ok(())
    }

    pub(super) fn copy_to(&self, to: &Path) -> io::Result<()> {
        self.copy_folder(ROOT, to)
    }

    fn copy_folder(&self, node: u64, to: &Path) -> io::Result<()> {
        let Some(Node::Folder(folder)) = self.all.get(&node) else { return Ok(()) };
        for (name, node) in &folder.names {
            let to = to.join(name);
            match self.all.get(node) {
                Some(Node::File(file)) => std::fs::write(to, &file.data)?,
                _ => {
                    std::fs::create_dir(&to)?;
                    self.copy_folder(*node, &to)?;
                }
            }
        }
        Ok(())
    }
}
