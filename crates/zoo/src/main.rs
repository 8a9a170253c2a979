//! Prints the table.
#![allow(clippy::print_stdout)]
use plimsoll_core::seek::search::{Goal, seek};
use plimsoll_zoo::draw::Draw;
use plimsoll_zoo::plant::{Arrivals, Queue, QueuePlant, Quirk};

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(40);
    let q = |servers, service, delay_s| Queue {
        servers,
        service,
        delay_s,
        arrivals: Arrivals::Poisson,
        quirk: Quirk::None,
    };
    let models = [
        ("M/M/1", q(1, Draw::Exponential(0.02), 0.0), 0.5, 44.01),
        ("M/M/4", q(4, Draw::Exponential(0.02), 0.0), 0.1, 163.04),
        ("M/M/16 100", q(16, Draw::Exponential(0.1), 0.0), 0.5, 151.87),
        ("M/M/16 5", q(16, Draw::Exponential(0.005), 0.0), 0.02, 2952.0),
        ("feed", q(24, Draw::Gamma { mean_s: 0.09, cv: 0.3 }, 0.2), 0.5, 259.4),
        ("M/H2/8", q(8, Draw::Hyper { mean_s: 0.02, cv2: 5.0 }, 0.0), 0.2, 350.5),
    ];
    for (name, queue, limit_s, truth) in models {
        if std::env::args().nth(3).is_some_and(|n| !name.starts_with(&n)) {
            continue;
        }
        let mut est = Vec::new();
        let mut cert = Vec::new();
        let mut time = Vec::new();
        let mut covered = 0;
        let mut half = Vec::new();
        let mut br = Vec::new();
        for seed in 0..seeds {
            let mut plant = QueuePlant::new(queue, &[limit_s], 1000 + seed);
            let goal = Goal {
                allowed: vec![0.05],
                limit_s,
                budget_s: 300.0,
                width: 0.03,
                confidence: 0.95,
                seed,
                start_per_s: 8.0,
                most_per_s: 1e6,
            };
            let f = seek(&mut plant, &goal);
            let fit = f.fit.unwrap();
            est.push(fit.estimate_per_s / truth - 1.0);
            cert.push(f.certified_per_s / truth - 1.0);
            time.push(f.elapsed_s);
            half.push(fit.half_width());
            covered += u32::from(fit.interval_per_s.0 <= truth && truth <= fit.interval_per_s.1);
            if std::env::args().nth(2).is_some_and(|n| name.starts_with(&n)) {
                println!(
                    "{seed} est {:+.1}% half {:.1}% slope {:.0} disp {:.0} cert {:+.1}% time {:.0}",
                    (fit.estimate_per_s / truth - 1.0) * 100.0,
                    fit.half_width() * 100.0,
                    fit.slope,
                    fit.dispersion,
                    (f.certified_per_s / truth - 1.0) * 100.0,
                    f.elapsed_s
                );
            }
            br.push((f.bracket.0 * f.bracket.1).sqrt() / truth - 1.0);
        }
        let p = |v: &mut Vec<f64>, x: f64| {
            v.sort_by(f64::total_cmp);
            v[((v.len() - 1) as f64 * x).round() as usize]
        };
        let within = |v: &[f64], w: f64| {
            v.iter().filter(|e| e.abs() <= w).count() as f64 / v.len() as f64 * 100.0
        };
        let mut line = |n: &str, v: &mut Vec<f64>| {
            format!(
                "{n} {:+.1}/{:+.1}/{:+.1} {:.0}/{:.0}",
                p(v, 0.05) * 100.0,
                p(v, 0.5) * 100.0,
                p(v, 0.95) * 100.0,
                within(v, 0.03),
                within(v, 0.05)
            )
        };
        println!(
            "{name:11} {} | {} | {} | cover {:.0} half {:.3} time {:.0} max {:.0}",
            line("bracket", &mut br),
            line("est", &mut est),
            line("cert", &mut cert),
            f64::from(covered) / seeds as f64 * 100.0,
            p(&mut half, 0.5),
            p(&mut time, 0.5),
            p(&mut time, 1.0)
        );
    }
}
