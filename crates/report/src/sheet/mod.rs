//! The page of a run as data: what stands on it, in which order, and where each number comes from.
//!
//! A [`Sheet`] is rendered by `plimsoll-html`. The sections of all jobs are made
//! here; a job adds or replaces sections in its [`Forms::sheet`](crate::forms::Forms::sheet). Texts are kept as they came
//! from the run, so that whoever renders them must escape them.

mod bars;
mod cell;
mod listed;
mod of_runs;
mod plot;
mod table;

pub use bars::{BARS_MAX, Bar, Bars};
pub use cell::Cell;
pub use listed::{Field, Listed};
pub use of_runs::OfRuns;
pub use plot::{Band, Grid, Heat, Level, Line, Lines, Mark, Plot, PlotKind, Values, YAxis};
pub use table::{Column, Row, Table};

/// Judgement of a line of a page, shown by colour and always said in words too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As the rest of the page.
    #[default]
    Plain,
    /// A limit that held.
    Good,
    /// A remark to read before the figures are used.
    Warn,
    /// A failure.
    Bad,
}

/// Page of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Headline: the job and its target.
    pub title: String,
    /// When, how long, and with which seed it ran.
    pub when: String,
    /// Word of the verdict, such as `valid`.
    pub verdict: String,
    /// Judgement of the run.
    pub tone: Tone,
    /// The verdict in words.
    pub outcome: String,
    /// Sections, in the order in which they are read.
    pub sections: Vec<Section>,
    /// Program that made the record, and other remarks at the end of the page.
    pub footer: Vec<String>,
}

/// Section of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Name of the section in links: lower-case letters, digits and hyphens.
    pub id: String,
    /// Headline.
    pub title: String,
    /// Meaning of the section's words, and its units.
    pub note: String,
    /// Content, from top to bottom.
    pub parts: Vec<Part>,
}

/// Part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Paragraph.
    Text(Tone, String),
    /// Names and values, one pair a line.
    Facts(Vec<(String, Cell)>),
    /// Table.
    Table(Table),
    /// Plot with its table.
    Plot(Box<Plot>),
    /// Command line, quoted for a shell.
    Command(String),
    /// Failures with what was asked and answered.
    Samples(Vec<Sample>),
    /// Quantities that divide from left to right.
    Flow(Vec<Stage>),
    /// Quantities side by side.
    Bars(Box<Bars>),
}

/// Failed request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Kind of failure, class and time, in a line.
    pub title: String,
    /// Reason why it is a failure.
    pub reason: String,
    /// Beginning of the request's text.
    pub request: String,
    /// Beginning of the reply; empty if there was none.
    pub reply: String,
}

/// One step of a flow: a quantity and the parts into which it divides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Name of the whole.
    pub name: String,
    /// Number of requests in it.
    pub count: u64,
    /// Name, number and judgement of each part; the next stage divides the first one.
    pub parts: Vec<(String, u64, Tone)>,
}

impl Section {
    /// Returns a section without content.
    #[must_use]
    pub fn new(id: &str, title: &str, note: &str) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            note: note.to_owned(),
            parts: Vec::new(),
        }
    }

    /// Adds a part.
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Adds a part if there is one.
    #[must_use]
    pub fn with_some(mut self, part: Option<Part>) -> Self {
        self.parts.extend(part);
        self
    }
}

impl Sheet {
    /// Returns the section with this id.
    #[must_use]
    pub fn section(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }

    /// Returns the section with this id, to add to it.
    pub fn section_mut(&mut self, id: &str) -> Option<&mut Section> {
        self.sections.iter_mut().find(|section| section.id == id)
    }

    /// Puts a section behind the one with the id `after`, or at the end if there is none. A section with the same id is replaced.
    pub fn put_after(&mut self, after: &str, section: Section) {
        self.remove(&section.id);
        let at = self.sections.iter().position(|one| one.id == after);
        self.sections.insert(at.map_or(self.sections.len(), |at| at + 1), section);
    }

    /// Puts a section in the place of the one with the same id, or at the end.
    pub fn put(&mut self, section: Section) {
        match self.section_mut(&section.id) {
            Some(own) => *own = section,
            None => self.sections.push(section),
        }
    }

    /// Removes the section with this id, such as one that means little for a job.
    pub fn remove(&mut self, id: &str) {
        self.sections.retain(|section| section.id != id);
    }

    /// All plots, in the order of the page.
    pub fn plots(&self) -> impl Iterator<Item = &Plot> {
        self.sections.iter().flat_map(|section| &section.parts).filter_map(|part| match part {
            Part::Plot(plot) => Some(&**plot),
            _ => None,
        })
    }
}
