use super::series::{Noise, Series};
use super::table::{Arguments, is_found, ours, share, tables};

/// Few series: bounds are so far from the measured shares that chance alone does not reach them.
const FEW: Arguments = Arguments { series: 300, seed: 50_000 };

#[test]
fn noise_shows_a_change_in_at_most_one_series_of_twenty() {
    let noise = Series::of_noise(100, Noise::Normal(0.02));
    assert!(share(&FEW, &noise, &ours, |found| !found.is_empty()) <= 0.05);
}

#[test]
fn a_step_of_five_percent_is_found_five_runs_after_it() {
    for before in [50, 95] {
        let series = Series {
            step: Some((before, 1.05)),
            ..Series::of_noise(before + 5, Noise::Normal(0.02))
        };
        assert!(share(&FEW, &series, &ours, |found| is_found(found, before)) >= 0.9, "{before}");
    }
}

#[test]
fn a_spike_is_no_more_of_a_change_than_noise() {
    for factor in [0.1, 1.2, 10.0] {
        let spiked = Series { spike: Some(factor), ..Series::of_noise(100, Noise::Normal(0.02)) };
        assert!(share(&FEW, &spiked, &ours, |found| !found.is_empty()) <= 0.05, "{factor}");
    }
}

#[test]
fn correlated_noise_has_the_variance_and_the_correlation_that_it_is_said_to_have() {
    let series = Series::of_noise(20_000, Noise::Correlated { sd: 0.02, correlation: 0.3 });
    let logs: Vec<f64> = series.draw(1).iter().map(|value| (value / 100.0).ln()).collect();
    let variance = logs.iter().map(|log| log * log).sum::<f64>() / logs.len() as f64;
    let neighbours = logs.windows(2).map(|two| two[0] * two[1]).sum::<f64>() / logs.len() as f64;
    assert!((variance.sqrt() / 0.02 - 1.0).abs() < 0.05, "{variance}");
    assert!((neighbours / variance - 0.3).abs() < 0.03, "{neighbours}");
}

#[test]
fn the_tables_have_all_methods_and_rows() {
    let text = tables(&Arguments { series: 4, seed: 1 });
    assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 2 + 8 + 8, "{text}");
    assert!(
        text.lines()
            .filter(|line| line.starts_with('|'))
            .all(|line| line.matches('|').count() == 5)
    );
}
