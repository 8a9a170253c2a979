//! Numbers as people read them: three significant digits, commas in what is counted, units that fit.

/// A count with commas: `1,234,567`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Three significant digits, but never fewer than the whole number has: `0.0213`, `1.23`, `12.3`, `12,346`.
#[must_use]
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() < 0.0005 {
        return "<0.001".to_owned();
    }
    // Rounding first tells the true magnitude: 9.999 is 10.0, not 10.00.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let decimals = 2 - rounded.abs().log10().floor() as i32;
    if decimals > 0 {
        return format!("{rounded:.*}", decimals as usize);
    }
    let whole = count(value.abs().round() as u64);
    if value < 0.0 { format!("-{whole}") } else { whole }
}

/// A time in milliseconds, three digits also above a thousand: a histogram knows no more.
#[must_use]
pub fn millis(ms: f64) -> String {
    let rounded: f64 = format!("{ms:.2e}").parse().unwrap_or(ms);
    significant(rounded)
}

/// A time in the unit that fits it: `870 us`, `1.23 ms`, `2.41 s`.
#[must_use]
pub fn time(ms: f64) -> String {
    match ms {
        ms if ms > 0.0 && ms < 0.9995 => format!("{} us", significant(ms * 1e3)),
        ms if ms < 9_999.5 => format!("{} ms", millis(ms)),
        ms => format!("{} s", significant(ms / 1e3)),
    }
}

/// A duration as people read it: `830 ms`, `8.7 s`, `1 min 30 s`, `2 h 5 min`.
#[must_use]
pub fn lasting(seconds: f64) -> String {
    if seconds < 0.995 {
        return time(seconds * 1e3);
    }
    if seconds < 99.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match whole / 60 {
        minutes if minutes < 60 => format!("{minutes} min {} s", whole % 60),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// A number of things: `1 shard`, `5 shards`.
#[must_use]
pub fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Bytes in decimal units: `12.3 MB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = value;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    if unit == 0 {
        format!("{value:.0} B")
    } else {
        format!("{} {}", significant(value), units[unit])
    }
}

/// A share in percent: `43 %`, `1.7 %`, `0.02 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.01 => "<0.01 %".to_owned(),
        p if p < 0.995 => format!("{p:.2} %"),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// A rate as tables of rates have it: three places below 10, fewer above.
#[must_use]
pub fn rate(per_s: f64) -> String {
    let places = match per_s {
        _ if per_s < 10.0 => 3,
        _ if per_s < 100.0 => 2,
        _ if per_s < 1000.0 => 1,
        _ => 0,
    };
    format!("{per_s:.places$}")
}

/// Number of samples from which a percentile says more than the maximum.
#[must_use]
pub fn samples_needed(percentile: &str) -> u64 {
    match percentile {
        "p50" => 2,
        "p90" => 10,
        "p95" | "p99" => 100,
        "p99.9" => 1_000,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_waits_for_is_in_seconds_minutes_and_hours() {
        let all = [0.0123, 8.7, 99.94, 99.96, 3599.6, 7500.0].map(lasting);
        assert_eq!(all, ["12.3 ms", "8.7 s", "99.9 s", "1 min 40 s", "1 h 0 min", "2 h 5 min"]);
        assert_eq!(
            (counted(1, "shard"), counted(2000, "user")),
            ("1 shard".into(), "2,000 users".into())
        );
    }

    #[test]
    fn three_digits_and_no_more() {
        let cases = [
            (0.0, "0"),
            (0.000_4, "<0.001"),
            (0.000_512, "0.000512"),
            (0.021_34, "0.0213"),
            (0.999_6, "1.00"),
            (1.234, "1.23"),
            (9.999, "10.0"),
            (99.96, "100"),
            (123.4, "123"),
            (999.6, "1,000"),
            (12_345.6, "12,346"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn units_fit_the_value() {
        assert_eq!(time(0.087), "87.0 us");
        assert_eq!(time(0.999_9), "1.00 ms");
        assert_eq!(time(2_410.0), "2,410 ms");
        assert_eq!(millis(5_004.0), "5,000");
        assert_eq!(millis(12_345.6), "12,300");
        assert_eq!(time(12_410.0), "12.4 s");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(12_345_678.0), "12.3 MB");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(percent(0.017), "1.7 %");
        assert_eq!(percent(0.000_05), "<0.01 %");
    }
}
