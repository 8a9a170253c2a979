//! A list in a record, as a table and as a plot: each figure with its place in the record.

use super::Tone;
use super::cell::Cell;
use super::plot::{Line, Lines, Plot, PlotKind, Values, YAxis};
use super::table::{Row, Table};

/// Items of a list in a record.
#[derive(Clone, Debug)]
pub struct Listed<'a, T> {
    /// Steps of the JSON Pointer to the list, such as `["feed", "over_time"]`.
    pub at: &'a [&'a str],
    /// The items, all of them.
    pub items: &'a [T],
}

/// One figure of each item.
pub struct Field<'a, T> {
    label: String,
    path: String,
    cell: Box<dyn Fn(&T) -> Cell + 'a>,
    factor: f64,
    tone: &'static str,
    axis: usize,
    below: Option<String>,
    is_dots: bool,
}

impl<'a, T> Field<'a, T> {
    /// Returns a number with the steps from the item to it, such as `late_share/0`.
    #[must_use]
    pub fn new(label: &str, path: &str, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        Self {
            label: label.to_owned(),
            path: path.to_owned(),
            cell: Box::new(cell),
            factor: 1.0,
            tone: "neutral",
            axis: 0,
            below: None,
            is_dots: false,
        }
    }

    /// Returns a text.
    #[must_use]
    pub fn text(label: &str, text: impl Fn(&T) -> String + 'a) -> Self {
        Self::new(label, "", move |item| Cell::text(text(item)))
    }

    /// Gives the line a colour by its meaning.
    #[must_use]
    pub const fn toned(mut self, tone: &'static str) -> Self {
        self.tone = tone;
        self
    }

    /// Puts the line on another axis of the plot.
    #[must_use]
    pub const fn on(mut self, axis: usize) -> Self {
        self.axis = axis;
        self
    }

    /// Multiplies the values of the plot, such as by 100 for shares in percent. Tables keep the value of the record.
    #[must_use]
    pub const fn times(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Fills the space down to the line with this label.
    #[must_use]
    pub fn down_to(mut self, label: &str) -> Self {
        self.below = Some(label.to_owned());
        self
    }

    /// Draws points instead of a line.
    #[must_use]
    pub const fn dots(mut self) -> Self {
        self.is_dots = true;
        self
    }

    fn number(&self, item: &T) -> Option<f64> {
        match (self.cell)(item) {
            Cell::Number { value, .. } => Some(value * self.factor),
            _ => None,
        }
    }
}

impl<T> Listed<'_, T> {
    /// Returns a table of all items.
    #[must_use]
    pub fn table(&self, fields: &[Field<'_, T>], tone: impl Fn(&T) -> Tone) -> Table {
        self.rows(fields, 0..self.items.len(), tone).sortable()
    }

    /// Returns a table of at most `rows_max` items: the first one, the last one, and others at even distances.
    #[must_use]
    pub fn some(
        &self,
        fields: &[Field<'_, T>],
        rows_max: usize,
        tone: impl Fn(&T) -> Tone,
    ) -> Table {
        let all = self.items.len();
        let shown = all.min(rows_max);
        let place = |row: usize| if shown > 1 { row * (all - 1) / (shown - 1) } else { 0 };
        self.rows(fields, (0..shown).map(place), tone)
    }

    fn rows(
        &self,
        fields: &[Field<'_, T>],
        places: impl Iterator<Item = usize>,
        tone: impl Fn(&T) -> Tone,
    ) -> Table {
        let head = |field: &Field<'_, T>| match field.path.as_str() {
            "" => field.label.clone(),
            _ => format!("#{}", field.label),
        };
        let heads: Vec<String> = fields.iter().map(head).collect();
        let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        for index in places {
            let Some(item) = self.items.get(index) else { continue };
            let place = index.to_string();
            let cell = |field: &Field<'_, T>| {
                let own = field.path.split('/');
                let steps = self.at.iter().copied().chain([place.as_str()]).chain(own);
                (field.cell)(item).from(&steps.collect::<Vec<_>>())
            };
            let cells = fields.iter().map(cell).collect();
            table.rows.push(Row { cells, tone: tone(item) });
        }
        table
    }

    /// Returns a plot of lines over `x`, with its twin; `None` if there are no items. Lines without a known value are left out.
    #[must_use]
    pub fn plot(
        &self,
        (id, caption): (&str, &str),
        x: &Field<'_, T>,
        y: Vec<YAxis>,
        fields: Vec<Field<'_, T>>,
    ) -> Option<Plot> {
        let is_known = |field: &Field<'_, T>| {
            self.items.iter().any(|item| field.number(item).is_some_and(f64::is_finite))
        };
        let fields: Vec<Field<'_, T>> =
            fields.into_iter().filter(|field| is_known(field)).collect();
        if fields.is_empty() || !is_known(x) {
            return None;
        }
        let values = |field: &Field<'_, T>| {
            let name = format!("{id}-{}", field.label.to_ascii_lowercase().replace(' ', "-"));
            Values::new(&name, self.items.iter().map(|item| field.number(item)))
        };
        let line = |field: &Field<'_, T>| Line {
            below: field.below.clone(),
            is_dots: field.is_dots,
            ..Line::new(&field.label, field.tone, values(field)).on(field.axis)
        };
        let lines = Lines {
            x: Some(values(x)),
            x_label: x.label.clone(),
            y,
            lines: fields.iter().map(line).collect(),
            ..Lines::default()
        };
        let mut all = vec![Field::new(&x.label, &x.path, |item| (x.cell)(item))];
        all.extend(fields);
        Some(Plot {
            id: id.to_owned(),
            caption: caption.to_owned(),
            kind: PlotKind::Lines(lines),
            twin: self.some(&all, Plot::TWIN_ROWS_MAX, |_| Tone::Plain),
            is_pictured: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_plot_and_a_table_of_the_same_numbers() {
        let items: Vec<(f64, Option<f64>)> = (0..100)
            .map(|at| (f64::from(at), (at % 2 == 0).then(|| f64::from(at) / 200.0)))
            .collect();
        let list = Listed { at: &["job", "list"], items: &items };
        let x = Field::new("at s", "at_s", |item: &(f64, Option<f64>)| Cell::seconds(item.0));
        let late = || {
            Field::new("late", "late/0", |item: &(f64, Option<f64>)| {
                Cell::or_unknown(item.1, Cell::share)
            })
        };
        let none = Field::new("none", "none", |_: &(f64, Option<f64>)| Cell::Unknown);
        let fields = vec![late().times(100.0).toned("lag").dots(), none];
        let plot = list.plot(("p", "Plot"), &x, vec![YAxis::linear("%")], fields).expect("a plot");
        let PlotKind::Lines(lines) = &plot.kind else { panic!("no lines") };
        assert_eq!(lines.lines.len(), 1, "a figure that is unknown everywhere has no line");
        assert_eq!(lines.lines[0].y.numbers[..3], [Some(0.0), None, Some(1.0)]);
        assert_eq!(plot.twin.rows.len(), Plot::TWIN_ROWS_MAX);
        let last = &plot.twin.rows[39].cells;
        assert_eq!((last[0].shown(), last[1].shown()), ("99.0 s", "unknown"));
        let table = list.table(&[x, late()], |_| Tone::Plain);
        assert_eq!(table.rows.len(), 100);
        let Cell::Number { value, from, .. } = &table.rows[50].cells[1] else {
            panic!("no number")
        };
        assert_eq!((*value, from.as_str()), (0.25, "/job/list/50/late/0"));
        let empty = Listed { at: &["job"], items: &items[..0] };
        let x = Field::new("at s", "at_s", |item: &(f64, Option<f64>)| Cell::seconds(item.0));
        assert!(empty.plot(("p", "Plot"), &x, Vec::new(), vec![late()]).is_none());
    }
}
