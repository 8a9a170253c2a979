//! Control groups of version 2: their counts, and the limits that they set for the processes in them.

use crate::process_files::number_after;
use crate::reading::Buffer;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Most groups below a watched one whose processes are counted, and that are searched for a unit.
const GROUPS_MAX: usize = 4096;

/// Counts of a group at one moment; one whose controller is not switched on is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// CPU time in user mode, us.
    pub user_us: Option<u64>,
    /// CPU time in the kernel, us.
    pub system_us: Option<u64>,
    /// Time for which a quota held it back, us.
    pub throttled_us: Option<u64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// All page faults.
    pub faults: Option<u64>,
    /// Page faults that read from disk.
    pub major_faults: Option<u64>,
    /// Bytes read from disk.
    pub read_bytes: Option<u64>,
    /// Bytes written to disk.
    pub written_bytes: Option<u64>,
    /// Tasks: threads.
    pub tasks: Option<u64>,
    /// Processes, those of the groups below it too.
    pub processes: Option<u64>,
}

/// The tree of control groups.
#[derive(Debug)]
pub struct Groups {
    root: PathBuf,
    buffer: Buffer,
}

impl Groups {
    /// The tree of this machine; `None` without control groups of version 2.
    #[must_use]
    pub fn of_machine() -> Option<Self> {
        let mut buffer = Buffer::default();
        let mounts = buffer.read_table(Path::new("/proc/self/mountinfo")).ok()?;
        let root = mount_of(mounts)?;
        Some(Self::at(&root))
    }

    /// The tree below a folder.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), buffer: Buffer::default() }
    }

    /// The group that a user names: a path, below the mount or from the root of the machine, or the name of a unit such as
    /// `nginx.service`. Returns its path below the mount, beginning with `/`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<String> {
        let is_group = |path: &Path| path.join("cgroup.procs").exists();
        if name.contains('/') {
            let path = Path::new(name);
            let below = path.strip_prefix(&self.root).map_or_else(
                |_| name.trim_start_matches('/').to_owned(),
                |below| below.to_string_lossy().into_owned(),
            );
            let below = below.trim_end_matches('/');
            return is_group(&self.root.join(below)).then(|| format!("/{below}"));
        }
        let is_unit = [".service", ".scope", ".slice"].iter().any(|end| name.ends_with(end));
        if !is_unit {
            return None;
        }
        let found = self.below("/").into_iter().find(|path| path.ends_with(name))?;
        let below = found.strip_prefix(&self.root).ok()?;
        is_group(&found).then(|| format!("/{}", below.display()))
    }

    /// Folders of a group and of all groups below it, the nearest first.
    fn below(&self, group: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut waiting = VecDeque::from([self.folder(group)]);
        while let Some(folder) = waiting.pop_front() {
            if found.len() == GROUPS_MAX {
                break;
            }
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let is_folder =
                |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            waiting.extend(entries.filter(is_folder).map(|entry| entry.path()));
            found.push(folder);
        }
        found
    }

    fn folder(&self, group: &str) -> PathBuf {
        self.root.join(group.trim_start_matches('/'))
    }

    /// True if the group exists.
    #[must_use]
    pub fn exists(&self, group: &str) -> bool {
        self.folder(group).join("cgroup.procs").exists()
    }

    /// Reads the counts of a group.
    #[must_use]
    pub fn counts(&mut self, group: &str) -> GroupCounts {
        let folder = self.folder(group);
        let mut counts = GroupCounts::default();
        if let Ok(text) = self.buffer.read(&folder.join("cpu.stat")) {
            counts.user_us = field(text, "user_usec");
            counts.system_us = field(text, "system_usec");
            counts.throttled_us = field(text, "throttled_usec");
        }
        if let Ok(text) = self.buffer.read(&folder.join("memory.stat")) {
            counts.faults = field(text, "pgfault");
            counts.major_faults = field(text, "pgmajfault");
        }
        if let Ok(text) = self.buffer.read(&folder.join("io.stat")) {
            counts.read_bytes = Some(sum(text, "rbytes="));
            counts.written_bytes = Some(sum(text, "wbytes="));
        }
        let mut number = |name: &str| {
            self.buffer.read(&folder.join(name)).ok().and_then(|text| text.trim().parse().ok())
        };
        counts.memory_bytes = number("memory.current");
        counts.tasks = number("pids.current");
        counts.processes = self.processes(group);
        counts
    }

    fn processes(&mut self, group: &str) -> Option<u64> {
        let mut count = 0;
        for folder in self.below(group) {
            match self.buffer.read_table(&folder.join("cgroup.procs")) {
                Ok(text) => count += text.lines().count() as u64,
                // A group of threads has no list of processes; those of its parent are in that.
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOENT) => {}
                Err(_) => return None,
            }
        }
        Some(count)
    }

    /// Processes that the group itself or a group below it has, at most `most`.
    #[must_use]
    pub fn members(&mut self, group: &str, most: usize) -> Vec<u32> {
        let mut found = Vec::new();
        for folder in self.below(group) {
            let text = self.buffer.read_table(&folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            if found.len() >= most {
                break;
            }
        }
        found.truncate(most);
        found
    }

    /// Processors that a quota of the group, or of one above it, leaves it; `None` without one.
    #[must_use]
    pub fn processors(&mut self, group: &str) -> Option<f64> {
        let own = self.up(group).filter_map(|folder| {
            let text = std::fs::read_to_string(folder.join("cpu.max")).ok()?;
            let (quota_us, period_us) = text.trim().split_once(' ')?;
            Some(quota_us.parse::<f64>().ok()? / period_us.parse::<f64>().ok()?)
        });
        own.min_by(f64::total_cmp)
    }

    /// Memory that the group, or one above it, may use, bytes; `None` without a limit.
    #[must_use]
    pub fn memory(&mut self, group: &str) -> Option<u64> {
        let own = self.up(group).filter_map(|folder| {
            let text = std::fs::read_to_string(folder.join("memory.max")).ok()?;
            text.trim().parse().ok()
        });
        own.min()
    }

    /// Folders of the group and of those above it.
    fn up(&self, group: &str) -> impl Iterator<Item = PathBuf> {
        let (folder, root) = (self.folder(group), self.root.clone());
        let folders: Vec<PathBuf> = folder
            .ancestors()
            .take_while(|folder| folder.starts_with(&root))
            .map(Path::to_owned)
            .collect();
        folders.into_iter()
    }
}

/// The number of a line `NAME NUMBER`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The sum of all `NAMENUMBER`, one a disk.
fn sum(text: &str, name: &str) -> u64 {
    text.lines().filter_map(|line| number_after(line, name)).sum()
}

/// The mount point of control groups of version 2 in a text of `mountinfo`.
fn mount_of(mounts: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    /// A tree with `a.slice/web.service/worker`, with the files that a kernel makes.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let service = dir.path().join("a.slice/web.service");
        create_dir_all(service.join("worker")).unwrap();
        for folder in [dir.path(), &dir.path().join("a.slice"), &service, &service.join("worker")] {
            write(folder.join("cgroup.procs"), "").unwrap();
        }
        for (name, text) in [
            ("cgroup.procs", "11\n12\n"),
            ("worker/cgroup.procs", "13\n"),
            ("cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\nthrottled_usec 5\n"),
            ("memory.current", "4096\n"),
            ("memory.stat", "anon 1\npgfault 70\npgmajfault 7\n"),
            ("io.stat", "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2 rios=1\n"),
            ("pids.current", "9\n"),
        ] {
            write(service.join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn the_counts_of_a_group_are_those_of_its_files() {
        let dir = tree();
        let mut groups = Groups::at(dir.path());
        let counts = GroupCounts {
            user_us: Some(20),
            system_us: Some(10),
            throttled_us: Some(5),
            memory_bytes: Some(4096),
            faults: Some(70),
            major_faults: Some(7),
            read_bytes: Some(11),
            written_bytes: Some(22),
            tasks: Some(9),
            processes: Some(3),
        };
        assert_eq!(groups.counts("/a.slice/web.service"), counts);
        assert_eq!(groups.members("/a.slice/web.service", 2), [11, 12]);
        // Where no controller is switched on there is only the list of processes.
        let bare = GroupCounts { processes: Some(3), ..GroupCounts::default() };
        assert_eq!(groups.counts("/a.slice"), bare);
    }

    #[test]
    fn a_group_is_found_by_its_path_and_by_its_unit() {
        let dir = tree();
        let groups = Groups::at(dir.path());
        let whole = dir.path().join("a.slice/web.service");
        let own = Some("/a.slice/web.service".to_owned());
        for name in [whole.to_str().unwrap(), "/a.slice/web.service", "a.slice/web.service/"] {
            assert_eq!(groups.find(name), own, "{name}");
        }
        assert_eq!(groups.find("web.service"), own);
        for name in ["/a.slice/other", "other.service", "web", "worker"] {
            assert_eq!(groups.find(name), None, "{name}");
        }
    }

    #[test]
    fn limits_are_the_narrowest_of_the_group_and_those_above_it() {
        let dir = tree();
        let mut groups = Groups::at(dir.path());
        assert_eq!((groups.processors("/a.slice"), groups.memory("/a.slice")), (None, None));
        write(dir.path().join("a.slice/cpu.max"), "150000 100000\n").unwrap();
        write(dir.path().join("a.slice/web.service/cpu.max"), "max 100000\n").unwrap();
        write(dir.path().join("a.slice/memory.max"), "max\n").unwrap();
        write(dir.path().join("a.slice/web.service/memory.max"), "1000\n").unwrap();
        let group = "/a.slice/web.service";
        assert_eq!((groups.processors(group), groups.memory(group)), (Some(1.5), Some(1000)));
    }

    #[test]
    fn the_mount_of_version_2_is_found_beside_those_of_version_1() {
        let mounts = "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_of(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount_of("31 24 0:27 / / rw - ext4 /dev/vda rw\n"), None);
    }
}
