//! Values of an attribute, at most twenty of them: every value is a series of its own at the receiver, for good.

/// Most values of one attribute, [`OTHER`] included.
pub const VALUES_MAX: usize = 20;
/// The value of all that come after the first ones.
pub const OTHER: &str = "other";
/// Longest value, characters.
const VALUE_CHARS_MAX: usize = 200;

/// The values of one attribute in the order of their series.
#[derive(Clone, Debug)]
pub struct Names {
    most: usize,
    shown: Vec<String>,
    /// The place of each index of the run; indices beyond it are named when they come.
    places: Vec<usize>,
}

impl Names {
    /// The values of an attribute whose names are known: all of them if they are not more than `most`, otherwise the first
    /// ones and [`OTHER`].
    #[must_use]
    pub fn of(known: &[String], most: usize) -> Self {
        let mut names = Self { most, shown: Vec::new(), places: Vec::new() };
        let room = if known.len() > most { most - 1 } else { most };
        for name in known {
            let place = names.place_of(name, room);
            names.places.push(place);
        }
        names
    }

    /// The place of the value with this index; `name` is asked for an index that was not known before.
    pub fn place(&mut self, index: usize, name: impl Fn(usize) -> String) -> usize {
        while self.places.len() <= index {
            if self.places.len() >= 10 * VALUES_MAX {
                // By now all names are in use.
                return self.place_of(OTHER, self.most);
            }
            let place = self.place_of(&name(self.places.len()), self.most - 1);
            self.places.push(place);
        }
        self.places[index]
    }

    /// The place of [`OTHER`], which is made if it is not there.
    pub fn other(&mut self) -> usize {
        self.place_of(OTHER, self.most)
    }

    /// The values by their places.
    #[must_use]
    pub fn shown(&self) -> &[String] {
        &self.shown
    }

    fn place_of(&mut self, name: &str, room: usize) -> usize {
        let name: String = name.chars().take(VALUE_CHARS_MAX).collect();
        if let Some(place) = self.shown.iter().position(|shown| *shown == name) {
            return place;
        }
        if self.shown.len() < room {
            self.shown.push(name);
            return self.shown.len() - 1;
        }
        match self.shown.iter().position(|shown| shown == OTHER) {
            Some(place) => place,
            None if self.shown.len() < self.most => {
                self.shown.push(OTHER.to_owned());
                self.shown.len() - 1
            }
            // Every place has its own value, and a further one joins the last.
            None => self.shown.len() - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("class-{number}")).collect()
    }

    #[test]
    fn as_many_as_there_may_be_keep_their_names() {
        let mut names = Names::of(&known(VALUES_MAX), VALUES_MAX);
        assert_eq!(names.shown(), known(VALUES_MAX));
        assert_eq!(names.place(19, |_| unreachable!()), 19);
    }

    #[test]
    fn one_more_is_other() {
        let mut names = Names::of(&known(VALUES_MAX + 5), VALUES_MAX);
        assert_eq!(names.shown().len(), VALUES_MAX);
        assert_eq!(names.shown()[VALUES_MAX - 1], OTHER);
        assert_eq!(
            (names.place(18, |_| unreachable!()), names.place(24, |_| unreachable!())),
            (18, 19)
        );
    }

    #[test]
    fn a_class_of_that_name_takes_the_others_in() {
        let mut all = known(VALUES_MAX + 5);
        all[3] = OTHER.to_owned();
        let mut names = Names::of(&all, VALUES_MAX);
        assert_eq!(names.place(24, |_| unreachable!()), 3);
        assert_eq!(names.shown().iter().filter(|shown| *shown == OTHER).count(), 1);
    }

    #[test]
    fn phases_are_named_as_they_come() {
        let mut names = Names::of(&["steady".to_owned()], VALUES_MAX);
        let name = |index: usize| format!("phase {index}");
        assert_eq!((names.place(0, name), names.place(2, name)), (0, 2));
        assert_eq!(names.shown(), ["steady", "phase 1", "phase 2"]);
        assert_eq!(names.place(1_000_000, name), VALUES_MAX - 1);
        assert_eq!(
            (names.shown().len(), names.shown()[VALUES_MAX - 1].as_str()),
            (VALUES_MAX, OTHER)
        );
    }
}
