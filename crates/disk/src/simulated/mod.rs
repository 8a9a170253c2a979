//! A disk in memory that loses what was not synced.
//!
//! Programs see the page cache. The disk itself has everything that was synced. After a power cut
//! ([`Simulated::after_power_cut`]) it has any part of the rest too: of the writes to a file since its last sync none, all, some, or
//! a part of one, in any order; and likewise of the names that were made, changed and removed in a folder since its last sync.
//! POSIX allows this; ext4 keeps more, the names in order.
//!
//! One operation can be made to fail ([`Plan`]): with EIO or ENOSPC, once or from then on, or by a power cut in the middle of it. A
//! sync that fails has dropped the data: a later one that succeeds does not bring them to the disk.

mod cut;
mod nodes;

use crate::{Contents, Disk, DiskFile, Kind, Lock, Mode};
use nodes::{Change, Entry, Node, Nodes};
use plimsoll_core::rng::Rng;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of operations after which a program is taken for one that does not end.
const OPERATIONS_MAX: u64 = 200_000;
/// Number of operations that are kept as text.
const LINES_MAX: usize = 400;
/// Numbers of the errors.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// A fault of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power is cut in the middle of the operation.
    PowerCut,
    /// The operation fails with EIO.
    Io,
    /// This and all later ones fail with EIO.
    IoFromThen,
    /// The operation fails with ENOSPC, if it needs room.
    Full,
    /// This and all later ones that need room fail with ENOSPC.
    FullFromThen,
}

/// The operation at which something happens, counted from 0, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of the operation.
    pub at: u64,
    /// The fault.
    pub fault: Fault,
}

/// The syncs that a disk forgets: it says that they are done, and they are not. A store that works on such a disk is one that
/// forgets them itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgets {
    /// Those of files.
    Files,
    /// Those of folders.
    Folders,
}

/// The kind of an operation, for the faults that it can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// It reads.
    Nothing,
    /// It removes or renames.
    Change,
    /// It needs room on the disk.
    Room,
}

/// The way an operation is carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Go,
    /// The power is cut in the middle.
    Last,
}

/// A simulated disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct Simulated(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    nodes: Nodes,
    plan: Option<Plan>,
    forgets: Option<Forgets>,
    rng: Rng,
    operations: u64,
    lines: Vec<String>,
    /// The power is off, or the program runs too long.
    is_off: bool,
    /// The planned fault has happened.
    has_struck: bool,
    locked: BTreeSet<PathBuf>,
}

impl Default for Simulated {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulated {
    /// An empty disk without faults.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Nodes::default(), Vec::new())
    }

    fn of(nodes: Nodes, lines: Vec<String>) -> Self {
        Self(Arc::new(Mutex::new(State {
            nodes,
            plan: None,
            forgets: None,
            rng: Rng::new(0),
            operations: 0,
            lines,
            is_off: false,
            has_struck: false,
            locked: BTreeSet::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a fault; `seed` decides how much of a write that fails is done. Operations count from here on.
    pub fn plan(&self, plan: Plan, seed: u64) {
        let mut state = self.state();
        (state.plan, state.rng) = (Some(plan), Rng::new(seed));
        (state.operations, state.has_struck) = (0, false);
    }

    /// Forgets syncs from here on, to plant a defect.
    pub fn forget(&self, forgets: Forgets) {
        self.state().forgets = Some(forgets);
    }

    /// Returns the number of operations so far, or since the plan was made.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Returns true if the planned fault has happened.
    #[must_use]
    pub fn has_struck(&self) -> bool {
        self.state().has_struck
    }

    /// Returns true if a program did more operations than one that ends.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.state().operations >= OPERATIONS_MAX
    }

    /// The last operations as text, those of the disks before it too.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.state().lines.clone()
    }

    /// Switches the power off: nothing works any more, and nothing changes any more.
    pub fn switch_off(&self) {
        self.state().is_off = true;
    }

    /// The disk as a machine finds it that starts after a power cut. `seed` draws what is left of everything that was not synced.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> Self {
        let state = self.state();
        let (nodes, left) = cut::survivors(&state.nodes, &mut Rng::new(seed));
        let mut lines = state.lines.clone();
        lines.push(format!("-- power cut, seed {seed}"));
        lines.extend(left);
        Self::of(nodes, lines)
    }

    /// The disk as a program finds it that starts after `kill -9` of the one before: with everything that was written, synced or not.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        let state = self.state();
        let mut lines = state.lines.clone();
        lines.push("-- kill -9".to_owned());
        Self::of(state.nodes.clone(), lines)
    }

    /// Writes what is seen now into a folder of the real disk.
    ///
    /// # Errors
    /// As the real disk has them.
    pub fn copy_to(&self, folder: &Path) -> io::Result<()> {
        self.state().nodes.copy_to(folder)
    }
}

fn off() -> io::Error {
    io::Error::other("the machine is switched off")
}

impl State {
    /// Counts an operation, and decides whether it takes place.
    fn begin(&mut self, need: Need, line: impl FnOnce() -> String) -> io::Result<Step> {
        if self.is_off {
            return Err(off());
        }
        let number = self.operations;
        self.operations += 1;
        if self.operations >= OPERATIONS_MAX {
            self.is_off = true;
            return Err(off());
        }
        let fault = self.plan.and_then(|plan| {
            let is_now = match plan.fault {
                Fault::PowerCut | Fault::Io => number == plan.at,
                Fault::Full => number == plan.at && need == Need::Room,
                Fault::IoFromThen => number >= plan.at,
                Fault::FullFromThen => number >= plan.at && need == Need::Room,
            };
            is_now.then_some(plan.fault)
        });
        let shown = match fault {
            None => "",
            Some(Fault::PowerCut) => "  <- the power is cut here",
            Some(Fault::Io | Fault::IoFromThen) => "  <- EIO",
            Some(Fault::Full | Fault::FullFromThen) => "  <- ENOSPC",
        };
        if self.lines.len() >= LINES_MAX {
            self.lines.drain(..LINES_MAX / 4);
        }
        self.lines.push(format!("{number:4} {}{shown}", line()));
        self.has_struck |= fault.is_some();
        match fault {
            None => Ok(Step::Go),
            Some(Fault::PowerCut) => Ok(Step::Last),
            Some(Fault::Io | Fault::IoFromThen) => Err(io::Error::from_raw_os_error(EIO)),
            Some(Fault::Full | Fault::FullFromThen) => Err(io::Error::from_raw_os_error(ENOSPC)),
        }
    }

    /// Ends an operation that has taken place.
    fn end(&mut self, step: Step) -> io::Result<()> {
        if step == Step::Last {
            self.is_off = true;
            return Err(off());
        }
        Ok(())
    }

    /// One that changes names: what it needs, what it does.
    fn change(
        &mut self,
        need: Need,
        line: impl FnOnce() -> String,
        change: impl FnOnce(&mut Nodes) -> io::Result<()>,
    ) -> io::Result<()> {
        let step = self.begin(need, line)?;
        change(&mut self.nodes)?;
        self.end(step)
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for Simulated {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        let known = state.nodes.find(path);
        let makes = known.is_none() && matches!(mode, Mode::Keep | Mode::Create);
        let need = if makes { Need::Room } else { Need::Nothing };
        let step = state.begin(need, || format!("open {} {mode:?}", path.display()))?;
        let node = match known {
            Some(node) if state.nodes.is_folder(node) => {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Some(node) => node,
            None if makes => state.nodes.make(path, Node::file())?,
            None => return Err(not_found()),
        };
        if mode == Mode::Create && !state.nodes.file(node)?.data.is_empty() {
            state.nodes.file(node)?.change(Change::Length(0));
        }
        state.end(step)?;
        drop(state);
        Ok(Box::new(OpenFile { disk: self.clone(), node, path: path.to_owned() }))
    }

    fn create_folder(&self, path: &Path, _permissions: u32) -> io::Result<()> {
        self.state().change(
            Need::Room,
            || format!("make folder {}", path.display()),
            |nodes| match nodes.find(path) {
                Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
                None => nodes.make(path, Node::folder()).map(|_| ()),
            },
        )
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let state = self.state();
        if state.is_off {
            return Err(off());
        }
        let node = state.nodes.find(path).ok_or_else(not_found)?;
        Ok(if state.nodes.is_folder(node) { Kind::Folder } else { Kind::File })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut state = self.state();
        let step = state.begin(Need::Nothing, || format!("list {}", folder.display()))?;
        let node = state.nodes.find(folder).ok_or_else(not_found)?;
        let names = state.nodes.folder(node)?.names.keys().map(|name| folder.join(name)).collect();
        state.end(step)?;
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if from.parent() != to.parent() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let line = || format!("rename {} to {}", from.display(), to.display());
        self.state().change(Need::Room, line, |nodes| {
            let node = nodes.find(from).ok_or_else(not_found)?;
            let (from, to) = (nodes::name(from)?, nodes::name(to)?);
            nodes.parent(&from.0)?.change(Entry::Move { from: from.1, to: to.1, node });
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let line = || format!("remove {}", path.display());
        self.state().change(Need::Change, line, |nodes| nodes.remove(path))
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        // As a program has to do it: one name after another, from the inside.
        for inner in self.list(path)? {
            match self.kind(&inner)? {
                Kind::Folder => self.remove_folder(&inner)?,
                Kind::File => self.remove_file(&inner)?,
            }
        }
        self.remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let line = || format!("sync folder {}", path.display());
        let step = state.begin(Need::Change, line)?;
        let node = state.nodes.find(path).ok_or_else(not_found)?;
        if step == Step::Go && state.forgets != Some(Forgets::Folders) {
            state.nodes.folder(node)?.sync();
        }
        state.end(step)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        drop(self.open(path, Mode::Keep)?);
        if !self.state().locked.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Lock::new(Locked { disk: self.clone(), path: path.to_owned() }))
    }

    fn is_real(&self) -> bool {
        false
    }
}

struct Locked {
    disk: Simulated,
    path: PathBuf,
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}

/// A file of a simulated disk. It can be used after its name was removed.
#[derive(Debug)]
struct OpenFile {
    disk: Simulated,
    node: u64,
    path: PathBuf,
}

impl OpenFile {
    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        // Room that was promised may be missing when the data are written out.
        let begun = state.begin(Need::Room, || format!("sync {}", self.path.display()));
        if begun.is_err() && !state.is_off {
            let mut rng = Rng::new(state.rng.next_u64());
            cut::failed_sync(state.nodes.file(self.node)?, &mut rng);
        }
        let step = begun?;
        if step == Step::Go && state.forgets != Some(Forgets::Files) {
            state.nodes.file(self.node)?.sync();
        }
        state.end(step)
    }
}

impl DiskFile for OpenFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let length = buffer.len();
        let line = || format!("read {} at {at}, {length} bytes", self.path.display());
        let step = state.begin(Need::Nothing, line)?;
        let data = &state.nodes.file(self.node)?.data;
        let from = data.len().min(usize::try_from(at).unwrap_or(usize::MAX));
        let count = buffer.len().min(data.len() - from);
        buffer[..count].copy_from_slice(&data[from..from + count]);
        state.end(step)?;
        Ok(count)
    }

    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let length = state.nodes.file(self.node)?.data.len() as u64;
        let grows = at + bytes.len() as u64 > length;
        let need = if grows { Need::Room } else { Need::Change };
        let line = || format!("write {} at {at}, {} bytes", self.path.display(), bytes.len());
        let begun = state.begin(need, line);
        let written = match &begun {
            Ok(_) => bytes,
            Err(_) if state.is_off => return begun.map(|_| ()),
            // The system may have taken a part.
            Err(_) => &bytes[..state.rng.below(bytes.len() as u64 + 1) as usize],
        };
        if !written.is_empty() {
            state.nodes.file(self.node)?.change(Change::Write { at, bytes: written.into() });
        }
        let step = begun?;
        state.end(step)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let grows = length > state.nodes.file(self.node)?.data.len() as u64;
        let need = if grows { Need::Room } else { Need::Change };
        let line = || format!("set length of {} to {length}", self.path.display());
        let step = state.begin(need, line)?;
        state.nodes.file(self.node)?.change(Change::Length(length));
        state.end(step)
    }

    fn length(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        if state.is_off {
            return Err(off());
        }
        Ok(state.nodes.file(self.node)?.data.len() as u64)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn contents(&self) -> io::Result<Contents> {
        let mut bytes = vec![0; self.length()? as usize];
        self.read_exact_at(&mut bytes, 0)?;
        Ok(Contents::Read(bytes))
    }
}
