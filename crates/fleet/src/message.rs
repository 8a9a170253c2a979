//! Messages between coordinator and agents.

mod frame;

use crate::end::EndLine;
use crate::figures::Figures;
pub use frame::FrameError;
use plimsoll_core::interval::Compact;
use plimsoll_core::record::{FailureSample, Machine};
use plimsoll_core::schedule::Slice;
use plimsoll_core::seek::plant::Window;
use plimsoll_core::verdict::Verdict;
use plimsoll_record::Tool;
pub use plimsoll_record::fleet::{Members, Role};
use plimsoll_record::resources::{ResourceLine, ResourcesResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A program, compared before a run: different programs may ask different requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// Version, commit, target, features.
    pub tool: Tool,
    /// SHA-256 of the program's file, hexadecimal.
    pub program_sha256: String,
}

impl Build {
    /// Returns true if both programs ask the same requests: the same file, or for another processor the same unmodified commit.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        if self.tool.target == other.tool.target {
            return self.program_sha256 == other.program_sha256;
        }
        let is_clean = |tool: &Tool| !tool.commit.is_empty() && tool.modified == Some(false);
        is_clean(&self.tool)
            && is_clean(&other.tool)
            && self.tool.commit == other.tool.commit
            && self.tool.lock_sha256 == other.tool.lock_sha256
    }

    /// The build in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        let short = |text: &str| text.chars().take(12).collect::<String>();
        let Tool { version, commit, modified, target, .. } = &self.tool;
        let modified = if *modified == Some(true) { ", modified" } else { "" };
        let commit = if commit.is_empty() { "unknown" } else { commit };
        let program = short(&self.program_sha256);
        format!("{version} (commit {}{modified}, {target}, program {program})", short(commit))
    }
}

/// A coordinator that looks for agents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Number of the coordinator's process.
    pub coordinator: u64,
}

/// An agent that answers a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Here {
    /// Number of the coordinator that is answered.
    pub coordinator: u64,
    /// Number of the agent's process.
    pub agent: u64,
    /// Name of the agent, unique in its fleet.
    pub name: String,
    /// Name of its machine.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// Work that it takes.
    pub role: Role,
    /// Program.
    pub build: Build,
    /// True while it carries out another run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_busy: bool,
}

/// A file that a run reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Number of the folder that it belongs to: files of one folder lie together on the agent too.
    pub folder: u32,
    /// Name without a folder.
    pub name: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// Length, bytes.
    pub bytes: u64,
    /// True if agents must not keep it after the run.
    pub is_secret: bool,
}

/// An agent's part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the run.
    pub run: String,
    /// Words of the command; `{files}` in a word stands for the agent's folder of files.
    pub words: Vec<String>,
    /// Files that the words name.
    pub files: Vec<FileEntry>,
    /// Part of the run.
    pub slice: Slice,
}

/// An agent's message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Up {
    /// It needs a piece of a file.
    Wants {
        /// SHA-256 of the file.
        sha256: String,
        /// First byte of the piece.
        offset: u64,
    },
    /// Its connections are open, and it waits for the start of a phase.
    Ready(Ready),
    /// It knows the time of the start.
    Armed {
        /// The phase.
        phase: u32,
    },
    /// It has started.
    Started {
        /// The phase.
        phase: u32,
        /// Time by which it was late, ns.
        late_ns: u64,
    },
    /// A second of its measurements; not in the form of text.
    #[serde(skip)]
    Second(Compact),
    /// A request that failed.
    Failure(Box<FailureSample>),
    /// Requests by due time, in windows whose verdicts are known; each window once, in order.
    Windows {
        /// The phase.
        phase: u32,
        /// The windows that follow those that were sent before.
        windows: Vec<Window>,
    },
    /// The end of its part of a phase, with the sums of all that it sent before.
    Ended(Box<Ended>),
    /// Results of the job itself, for the coordinator's job to put together.
    Part(Value),
    /// It watches its machine; sent again at its end.
    Watches(Box<Watches>),
    /// Resources of its machine in a second, on the clock of the run.
    Used(Box<ResourceLine>),
    /// It has kept its record, and judged its own part.
    Finished {
        /// Its judgement.
        verdict: Verdict,
        /// Figures of all of its phases; none of an agent that sends no load.
        figures: Option<Box<Figures>>,
    },
    /// It cannot go on.
    Failed {
        /// One line.
        why: String,
        /// Its exit code.
        code: u8,
    },
}

/// An agent that waits for the start of a phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The phase, from 0.
    pub phase: u32,
    /// Everything on which the requests of the phase depend; the same for all agents.
    pub key: String,
    /// Its clock ahead of the coordinator's, ns, and the shortest round trip, ns.
    pub clock: (i64, u64),
    /// Its machine.
    pub machine: Machine,
}

/// An agent that watches its machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watches {
    /// Its clock ahead of the coordinator's, ns, and the shortest round trip, ns.
    pub clock: (i64, u64),
    /// Its machine.
    pub machine: Machine,
    /// The things that it watches: names, processes, limits and remarks. The figures are made from its lines.
    pub things: ResourcesResult,
}

/// The end of an agent's part of a phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The phase.
    pub phase: u32,
    /// Number of seconds that it sent.
    pub seconds: u64,
    /// Its measurements, and the sums of its seconds; none if it failed.
    pub end: Result<EndLine, String>,
    /// Requests by due time, of a phase that is a part of a search.
    pub windows: Vec<Window>,
}

/// The coordinator's message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Down {
    /// The agent's part of the run.
    Plan(Box<Plan>),
    /// A piece of a file; empty at its end.
    Piece {
        /// SHA-256 of the file.
        sha256: String,
        /// First byte of the piece.
        offset: u64,
        /// Bytes, base64.
        data: String,
    },
    /// Time of the start of a phase, ns on the coordinator's clock.
    Arm {
        /// The phase.
        phase: u32,
        /// Time.
        at_ns: u64,
    },
    /// To watch, for an agent that does so: it uses what it was started with, and reads no other names.
    Watch {
        /// Name of the run.
        run: String,
    },
    /// Start of the measured stretch, ns on the coordinator's clock, for agents that watch.
    MeasuredFrom {
        /// Time.
        at_ns: u64,
    },
    /// A finding of the coordinator's job, for all agents.
    Shared(Value),
    /// The schedule of a phase ends before its time, because it is decided or because another part of the run has come to its end.
    /// The measurements are whole all the same.
    EndEarly {
        /// The phase.
        phase: u32,
    },
    /// The load shuts down cleanly: requests in flight are waited for, and the rest is reported.
    Stop,
    /// The load ends at once, and the run with it.
    Abort {
        /// Reason.
        why: String,
    },
    /// All has been received.
    Bye,
}
