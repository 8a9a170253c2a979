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

#[cfg(test)]
mod tests {
    use super::*;

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
