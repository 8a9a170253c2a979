//! The procedures that can be called, by name.

/// All of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Procedure {
    Vote,
    Insert,
    Select,
    Initialize,
    Results,
    GetStateHeatmap,
    ContestantWinningStates,
    AdHoc,
    Ping,
    Subscribe,
    Statistics,
    SystemCatalog,
    GetPartitionKeys,
    SystemInformation,
    Quiesce,
}

/// Place where a procedure runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the one partition of its first parameter.
    Partition,
    /// Over all partitions, which stand still meanwhile.
    Everywhere,
    /// On the thread that read the call: it touches no data.
    Network,
}

impl Procedure {
    /// Those of the application first.
    pub(crate) const ALL: [Self; 15] = [
        Self::Vote,
        Self::Insert,
        Self::Select,
        Self::Initialize,
        Self::Results,
        Self::GetStateHeatmap,
        Self::ContestantWinningStates,
        Self::AdHoc,
        Self::Ping,
        Self::Subscribe,
        Self::Statistics,
        Self::SystemCatalog,
        Self::GetPartitionKeys,
        Self::SystemInformation,
        Self::Quiesce,
    ];

    /// Names are case-sensitive, as VoltDB's are.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|procedure| procedure.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vote => "Vote",
            Self::Insert => "Insert",
            Self::Select => "Select",
            Self::Initialize => "Initialize",
            Self::Results => "Results",
            Self::GetStateHeatmap => "GetStateHeatmap",
            Self::ContestantWinningStates => "ContestantWinningStates",
            Self::AdHoc => "@AdHoc",
            Self::Ping => "@Ping",
            Self::Subscribe => "@Subscribe",
            Self::Statistics => "@Statistics",
            Self::SystemCatalog => "@SystemCatalog",
            Self::GetPartitionKeys => "@GetPartitionKeys",
            Self::SystemInformation => "@SystemInformation",
            Self::Quiesce => "@Quiesce",
        }
    }

    /// Returns true if it is the application's and not the system's.
    pub(crate) fn is_application(self) -> bool {
        !self.name().starts_with('@')
    }

    pub(crate) fn place(self) -> Place {
        match self {
            Self::Vote | Self::Insert | Self::Select => Place::Partition,
            Self::Initialize
            | Self::Results
            | Self::GetStateHeatmap
            | Self::ContestantWinningStates
            | Self::AdHoc
            | Self::Statistics
            | Self::Quiesce => Place::Everywhere,
            Self::Ping
            | Self::Subscribe
            | Self::SystemCatalog
            | Self::GetPartitionKeys
            | Self::SystemInformation => Place::Network,
        }
    }

    /// Returns true if it changes nothing.
    pub(crate) fn is_read_only(self) -> bool {
        !matches!(self, Self::Vote | Self::Insert | Self::Initialize | Self::AdHoc)
    }
}

#[cfg(test)]
mod tests {
    use super::Procedure;

    #[test]
    fn each_stands_at_its_place_and_is_found_by_its_name() {
        for (place, procedure) in Procedure::ALL.into_iter().enumerate() {
            assert_eq!(procedure as usize, place);
            assert_eq!(Procedure::find(procedure.name()), Some(procedure));
        }
        assert_eq!(Procedure::find("vote"), None);
    }
}
