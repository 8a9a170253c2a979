//! The contestants' names.

use thiserror::Error;

/// Contestants in the order of their numbers, which begin with 1.
pub const CONTESTANTS: [&str; 12] = [
    "Edwina Burnam",
    "Tabatha Gehling",
    "Kelly Clauss",
    "Jessie Alloway",
    "Alana Bregman",
    "Jessie Eichman",
    "Allie Rogalski",
    "Nita Coster",
    "Kurt Walser",
    "Ericka Dieter",
    "Loraine Nygren",
    "Tania Mattioli",
];

/// A number of contestants that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the number of contestants must be 1 to 12, not {0}")]
pub struct ContestantsError(pub u32);

/// Checks a number of contestants.
///
/// # Errors
/// None, or more than there are names for.
pub const fn check_contestants(count: u32) -> Result<u32, ContestantsError> {
    if count == 0 || count as usize > CONTESTANTS.len() {
        Err(ContestantsError(count))
    } else {
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_apart() {
        let different: std::collections::BTreeSet<&str> = CONTESTANTS.into();
        assert_eq!(different.len(), CONTESTANTS.len());
        assert_eq!(check_contestants(12), Ok(12));
        assert_eq!(
            check_contestants(13).unwrap_err().to_string(),
            "the number of contestants must be 1 to 12, not 13"
        );
        assert!(check_contestants(0).is_err());
    }
}
