//! Pages under test: the same numbers every time, as a run of a second, a minute or two hours would have them.

use plimsoll_report::sheet::{
    Band, Cell, Grid, Heat, Level, Line, Lines, Mark, Part, Plot, PlotKind, Sample, Section, Sheet,
    Stage, Table, Tone, Values, YAxis,
};

/// Edges of a heat map: 15 for each power of ten, from 0.5 ms to 5 s.
fn edges() -> Vec<f64> {
    (0..=60).map(|step| 0.5 * 10f64.powf(f64::from(step) / 15.0)).collect()
}

/// Numbers from 0 to 1 that look like chance.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A run of so many columns of a second, with a name that may be hostile.
pub fn run(columns: usize, name: &str) -> Sheet {
    let mut dice = Dice(7);
    let end = columns as f64;
    let times: Vec<f64> = (0..columns).map(|at| at as f64).collect();
    let t = Values::of("t", times.iter().copied());
    let load: Vec<f64> =
        times.iter().map(|at| if *at < end * 0.55 { 500.0 } else { 750.0 }).collect();
    let is_over = |at: &f64| *at > end * 0.8;
    let failed: Vec<f64> =
        times.iter().map(|at| if is_over(at) { 90.0 + 20.0 * dice.next() } else { 0.0 }).collect();
    let achieved: Vec<Option<f64>> = times
        .iter()
        .zip(&load)
        .map(|(at, rate)| {
            // A stretch without an interval, as after a suspended machine.
            let is_gap = columns > 30 && *at >= end * 0.4 && *at < end * 0.43;
            (!is_gap).then_some(rate - 8.0 * dice.next())
        })
        .collect();
    let base: Vec<f64> = times
        .iter()
        .map(|at| {
            let queue = if is_over(at) { (at / end - 0.8) * 60.0 } else { 0.0 };
            3.0 * (1.0 + 0.15 * dice.next() + queue) * if *at < end * 0.55 { 1.0 } else { 1.8 }
        })
        .collect();
    let own = Run { t, end, load, failed, achieved, base, name: name.to_owned() };
    let mut sheet = own.sheet();
    sheet.sections.extend([
        own.throughput(),
        own.latency(&mut dice),
        own.health(&mut dice),
        matrix(),
        own.rest(),
    ]);
    sheet
}

/// One plot of four lines that have so many points together.
pub fn points(number: usize) -> Sheet {
    let mut dice = Dice(7);
    let columns = number / 4;
    let names = ["offered", "achieved", "ok", "failed"];
    let lines = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let numbers: Vec<f64> =
                (0..columns).map(|_| 100.0 * (at as f64 + dice.next())).collect();
            Line::new(name, name, Values::of(name, numbers))
        })
        .collect();
    let lines = Lines {
        x: Some(Values::of("t", (0..columns).map(|at| at as f64))),
        x_label: "s".to_owned(),
        is_time: true,
        y: vec![YAxis::linear("/s")],
        lines,
        ..Lines::default()
    };
    let section = Section::new("throughput", "Throughput", "").with(plot(
        "throughput",
        "Many points",
        PlotKind::Lines(lines),
        Table::new(&["none"]),
    ));
    Sheet { title: "points".to_owned(), sections: vec![section], ..Sheet::default() }
}

struct Run {
    t: Values,
    end: f64,
    load: Vec<f64>,
    failed: Vec<f64>,
    achieved: Vec<Option<f64>>,
    base: Vec<f64>,
    name: String,
}

fn plot(id: &str, caption: &str, kind: PlotKind, twin: Table) -> Part {
    let is_pictured = ["throughput", "latency", "curve"].contains(&id);
    Part::Plot(Box::new(Plot {
        id: id.to_owned(),
        caption: caption.to_owned(),
        kind,
        twin,
        is_pictured,
    }))
}

impl Run {
    fn sheet(&self) -> Sheet {
        let mut table = Table::new(&["Figure", "#Value", "Limit", "Held?"]);
        let mut row = |tone, figure: &str, value: Cell, limit: &str, held: &str| {
            table.row(tone, vec![Cell::text(figure), value, Cell::text(limit), Cell::text(held)]);
        };
        row(Tone::Good, "Throughput", Cell::per_s(648.2), "≥ 600/s", "held");
        row(Tone::Bad, "Response time p99", Cell::ms(131.4), "p99 ≤ 100 ms", "not held");
        row(Tone::Plain, "Response time p50", Cell::ms(3.21), "none", "no limit");
        row(Tone::Warn, "Failures", Cell::share(0.012), "none", "timeouts from 48 s on");
        row(Tone::Plain, "Lag p99", Cell::Unknown, "none", "no limit");
        let decide =
            Section::new("decide", "Decide", "The measured phase, and the limits of the command.")
                .with(Part::Table(table));
        Sheet {
            title: format!("load http://127.0.0.1:8080/search{}", self.name),
            when: "2026-11-25 09:58:12 UTC, 60 s, seed 7".to_owned(),
            verdict: "valid".to_owned(),
            tone: Tone::Warn,
            outcome: "valid: one limit did not hold, p99 131 ms, limit 100 ms".to_owned(),
            sections: vec![decide],
            footer: vec!["plimsoll 0.1.0".to_owned()],
        }
    }

    fn over_time(&self, y: Vec<YAxis>, lines: Vec<Line>) -> Lines {
        Lines {
            x: Some(self.t.clone()),
            x_label: "s".to_owned(),
            is_time: true,
            y,
            lines,
            ..Lines::default()
        }
    }

    /// At most 10 rows of the first numbers.
    fn twin(&self) -> Table {
        let mut table = Table::new(&["#s", "#offered", "#failed"]);
        for at in 0..self.load.len().min(10) {
            let cells = [at as f64, self.load[at], self.failed[at]];
            table.row(
                Tone::Plain,
                cells.map(|value| Cell::number(value, value.to_string())).to_vec(),
            );
        }
        table
    }

    fn throughput(&self) -> Section {
        let lines = vec![
            Line::new("offered", "offered", Values::of("offered", self.load.iter().copied())),
            Line::new(
                "achieved",
                "achieved",
                Values::new("achieved", self.achieved.iter().copied()),
            ),
            Line::new("failed", "failed", Values::of("failed", self.failed.iter().copied())),
        ];
        let mut lines = self.over_time(vec![YAxis::linear("/s")], lines);
        let band = |from: f64, to: f64, label: &str| Band {
            from: from * self.end,
            to: to * self.end,
            label: label.to_owned(),
        };
        lines.bands = vec![
            band(0.0, 0.15, "warm-up"),
            band(0.15, 0.55, "steady"),
            band(0.55, 1.0, &format!("double{}", self.name)),
        ];
        let mark =
            |x: f64, label: &str| Mark { x: x * self.end, label: label.to_owned(), tone: "bad" };
        lines.marks =
            vec![mark(0.8, "queue full"), mark(0.81, &format!("first timeout{}", self.name))];
        Section::new("throughput", "Throughput", "Requests per second.").with(plot(
            "throughput",
            "Offered, achieved and failed",
            PlotKind::Lines(lines),
            self.twin(),
        ))
    }

    fn latency(&self, dice: &mut Dice) -> Section {
        let line = |name: &'static str, factor: f64| {
            let numbers = self.base.iter().map(|base| base * factor);
            Line::new(name, name, Values::of(name, numbers))
        };
        let percentiles = vec![
            line("p50", 1.0),
            line("p90", 1.9).down_to("p50"),
            line("p99", 4.2).down_to("p90"),
            line("max", 22.0),
        ];
        let limit = Level { y: 100.0, label: "p99 ≤ 100 ms".to_owned(), axis: 0 };
        let mut over_time = self.over_time(vec![YAxis::log("ms")], percentiles);
        over_time.levels = vec![limit.clone()];
        let places: Vec<f64> = (0..60).map(|step| 10f64.powf(f64::from(step) * 0.07)).collect();
        let curve = |name: &str, tone: &'static str, slope: f64| {
            let q = Values::of(&format!("{name}-q"), places.iter().copied());
            let ms = Values::of(
                &format!("{name}-ms"),
                places.iter().map(|at| 3.0 + slope * at.ln() + at.sqrt() * slope / 3.0),
            );
            Line::new(name, tone, ms).over(q)
        };
        let curves = Lines {
            x_label: "percentile".to_owned(),
            y: vec![YAxis::log("ms")],
            lines: vec![curve("response", "response", 2.0), curve("service", "service", 1.2)],
            levels: vec![limit],
            ..Lines::default()
        };
        let rates = Lines {
            x: Some(Values::new("achieved", self.achieved.iter().copied())),
            x_label: "achieved, requests/s".to_owned(),
            y: vec![YAxis::log("ms")],
            lines: vec![line("p99", 4.2)],
            ..Lines::default()
        };
        Section::new("latency", "Latency", "Response time counts from the intended start.")
            .with(plot(
                "latency",
                "Response time over time",
                PlotKind::Lines(over_time),
                self.twin(),
            ))
            .with(plot("heat", "Requests by response time", self.heat(dice), self.twin()))
            .with(plot("curve", "Percentiles", PlotKind::Curve(curves), self.twin()))
            .with(plot(
                "latency-rate",
                "Latency against rate",
                PlotKind::Scatter(rates),
                self.twin(),
            ))
    }

    fn heat(&self, dice: &mut Dice) -> PlotKind {
        let edges = edges();
        let column = |base: &f64| {
            let mut rows = [0u64; 60];
            for _ in 0..150 {
                let time = base * (dice.next() + dice.next() + dice.next() - 0.9).exp();
                let row = (15.0 * (time / 0.5).log10()).clamp(0.0, 59.0) as usize;
                rows[row] += 4;
            }
            (0..60).filter(|row| rows[*row] > 0).map(|row| (row, rows[row])).collect()
        };
        let columns = self.base.iter().map(column).collect();
        PlotKind::Heat(Heat { x: self.t.clone(), unit: "ms".to_owned(), edges, columns })
    }

    fn health(&self, dice: &mut Dice) -> Section {
        let mut some = |name: &str, low: f64, high: f64| {
            Values::of(
                name,
                self.load.iter().map(|_| low + (high - low) * dice.next()).collect::<Vec<_>>(),
            )
        };
        let generator = vec![
            Line::new("generator CPU", "cpu", some("generator-cpu", 20.0, 26.0)),
            Line::new("lag p99", "lag", some("lag", 0.02, 0.07)).on(1),
        ];
        let traffic = vec![
            Line::new("received", "network", some("received", 2e6, 2.6e6)),
            Line::new("memory", "memory", some("memory", 5.1e8, 5.2e8)).on(1),
        ];
        let cores: Vec<Line> = (1..=8)
            .map(|core| {
                Line::new(
                    &format!("core {core}"),
                    CORE_TONES[core - 1],
                    some(&format!("core-{core}"), 30.0, 90.0),
                )
            })
            .collect();
        let generator = self.over_time(vec![YAxis::linear("%"), YAxis::log("ms")], generator);
        let traffic = self.over_time(vec![YAxis::linear("B/s"), YAxis::linear("B")], traffic);
        let cores = self.over_time(vec![YAxis::linear("%")], cores);
        Section::new("health", "Generator and target", "")
            .with(plot("generator", "Generator", PlotKind::Lines(generator), self.twin()))
            .with(plot("cores", "Target: CPU", PlotKind::Lines(cores), self.twin()))
            .with(plot(
                "traffic",
                "Target: network and memory",
                PlotKind::Lines(traffic),
                self.twin(),
            ))
    }

    fn rest(&self) -> Section {
        let mut classes = Table::new(&["Class", "#Requests", "#p99, ms"]).sortable();
        for (at, (name, p99)) in [
            ("search", Some(12.5)),
            ("browse", Some(9.25)),
            ("item 10", None),
            ("item 9", Some(31.0)),
        ]
        .iter()
        .enumerate()
        {
            let requests = [4_000, 25_000, 1_200, 1_200][at];
            classes.row(
                Tone::Plain,
                vec![
                    Cell::text(format!("{name}{}", self.name)),
                    Cell::count(requests),
                    Cell::or_unknown(*p99, Cell::ms),
                ],
            );
        }
        let sample = Sample {
            title: "timeout in search at 48.2 s".to_owned(),
            reason: format!("no reply within 1 s{}", self.name),
            request: format!("GET /search{} HTTP/1.1", self.name),
            reply: self.name.clone(),
        };
        let stage = Stage {
            name: "sent".to_owned(),
            count: 36_000,
            parts: vec![
                ("ok".to_owned(), 35_568, Tone::Good),
                ("failed".to_owned(), 432, Tone::Bad),
            ],
        };
        Section::new("classes", "Classes", "The heaviest first.")
            .with(Part::Table(classes))
            .with(Part::Samples(vec![sample]))
            .with(Part::Flow(vec![stage]))
            .with(Part::Facts(vec![(
                "CPU".to_owned(),
                Cell::text(format!("2 cores{}", self.name)),
            )]))
            .with(Part::Command(format!(
                "plimsoll load http://127.0.0.1:8080/search --rate 500 --seed 7{}",
                self.name
            )))
    }
}

const CORE_TONES: [&str; 8] = [
    "series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7", "series-8",
];

fn matrix() -> Section {
    let values = [[9_000.0, 30_000.0, 61_000.0], [800.0, 2_900.0, 5_100.0], [80.0, 300.0, 610.0]];
    let mut cells: Vec<Vec<Option<(f64, String)>>> = values
        .iter()
        .map(|row| row.iter().map(|value| Some((*value, format!("{value}/s")))).collect())
        .collect();
    cells[2][1] = None;
    let names = |all: [&str; 3]| all.map(str::to_owned).to_vec();
    let grid = Grid {
        columns: names(["1 user", "4 users", "16 users"]),
        rows: names(["exact", "fuzzy", "prefix"]),
        unit: "/s".to_owned(),
        cells,
    };
    Section::new("matrix", "Matrix", "").with(plot(
        "matrix",
        "Queries per second",
        PlotKind::Grid(grid),
        Table::new(&["Kind"]),
    ))
}

/// Text that would run, end the page, or turn it around, if it were taken for markup.
pub const HOSTILE: &str = "</script></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>\
                           \u{202e}\0&amp;{{7*7}}${alert(4)}ﷺ%3Cb%3E averyveryveryveryveryveryveryveryveryveryverylongword";
