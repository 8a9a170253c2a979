//! Files of HdrHistogram, written by its own Java library of three versions.

use super::{bytes, import, import_bytes, near, near_cell};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_import::{Options, read};

/// Three seconds of 100 times each: 1 to 100 ms, 2 to 200 ms, 3 to 300 ms.
#[test]
fn logs_of_all_encodings_have_the_same_times() {
    for version in ["2.2.2", "2.1.4", "2.0.3"] {
        let log = import(&format!("hdr-{version}.hlog"), "hlog");
        assert_eq!(log.service.count, Some(300), "{version}");
        near_cell(log.service.min, 1.0);
        near_cell(log.service.max, 300.0);
        near_cell(log.service.mean, 101.0);
        assert_eq!(log.started_us, Some(1_795_600_800_000_000));
        assert_eq!(log.duration_s, Some(3.0));
        // Whether requests succeeded, a histogram does not say.
        assert_eq!((log.counts.ok, log.counts.failed, log.ok_per_s), (None, None, None));
        let mut largest = Vec::new();
        let seconds = log.seconds.unwrap();
        seconds
            .each(|second| {
                largest.push(second.classes[0].service.max_ns() as f64 / 1e6);
                Ok(())
            })
            .unwrap();
        assert_eq!(largest.len(), 3);
        for (found, expected) in largest.into_iter().zip([100.0, 200.0, 300.0]) {
            near_cell(Some(found), expected);
        }
    }
}

#[test]
fn tags_are_classes() {
    let log = import("hdr-tags.hlog", "hlog");
    let classes: Vec<(&str, Option<u64>)> =
        log.classes.iter().map(|class| (class.name.as_str(), class.service.count)).collect();
    assert_eq!(classes, [("read", Some(300)), ("write", Some(300))]);
    near_cell(log.classes[1].service.max, 600.0);
    assert_eq!(log.started_us, Some(1_795_600_800_000_000), "the starts count from the base");
}

#[test]
fn the_unit_of_a_log_can_be_named() {
    let options = Options { unit_ns: Some(1e3) };
    let file = bytes("hdr-2.2.2.hlog");
    let (_, log) = read(&mut file.as_slice(), None, &options).unwrap();
    near_cell(log.service.max, 300_000.0);
    assert!(log.warnings.is_empty(), "{:?}", log.warnings);
}

/// A histogram of three digits with one value in each cell from 1 to 2^63, in version 2.
fn of_every_cell() -> String {
    // The zigzag form of 1.
    let counts = vec![2u8; 54 * 1024];
    let mut bytes = 0x1c84_9313u32.to_be_bytes().to_vec();
    for number in [counts.len() as u32, 0, 3] {
        bytes.extend(number.to_be_bytes());
    }
    for number in [1, 1 << 62, 1f64.to_bits()] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(counts);
    STANDARD.encode(bytes)
}

#[test]
fn a_log_with_too_many_different_times_in_one_interval_is_rejected() {
    let histogram = of_every_cell();
    let tags = |tags: u32| {
        let line = |tag| format!("Tag={tag},0,1,0,{histogram}\n");
        let log = "#[Histogram log format version 1.3]\n".to_owned();
        import_bytes((log + &(0..tags).map(line).collect::<String>()).as_bytes())
    };
    let (_, few) = tags(2).unwrap();
    assert_eq!(few.service.count, Some(2 * 54 * 1024));
    // 37 of them have more than 2,000,000 cells; the first is in line 2.
    let error = tags(60).unwrap_err().to_string();
    assert!(error.starts_with("line 38: an interval has more than 2,000,000"), "{error}");
}

/// 1 to 1000 ms, printed by HdrHistogram in milliseconds.
#[test]
fn a_distribution_has_the_values_of_its_lines() {
    let times = import("hdr.hgrm", "hgrm").service;
    assert_eq!(times.count, Some(1000));
    near(times.mean, 500.5);
    near(times.p50, 500.0);
    near(times.p90, 900.0);
    near(times.p95, 950.0);
    near(times.max, 1000.342);
    let vegeta = import("vegeta-hdrplot.txt", "hgrm");
    assert_eq!((vegeta.tool.as_str(), vegeta.service.count), ("vegeta", Some(60)));
    near(vegeta.service.p50, 0.387_668);
    near(vegeta.service.p95, 2.122_262);
    near(vegeta.service.max, 5.546_217);
}

/// A log that plimsoll writes beside its record says which time it has.
#[test]
fn a_log_of_plimsoll_is_what_it_says() {
    let log = |kind: &str| {
        let file = String::from_utf8(bytes("hdr-2.2.2.hlog")).unwrap();
        let head = format!("#plimsoll run 1a2b3c4d: {kind} times in nanoseconds\n");
        super::import_bytes((head + &file).as_bytes())
    };
    let response = log("response").unwrap().1;
    assert!(response.service.is_unknown() && response.warnings.is_empty());
    near_cell(response.response.max, 300.0);
    let mut times = 0;
    response
        .seconds
        .unwrap()
        .each(|second| {
            times += second.classes[0].response.count();
            Ok(())
        })
        .unwrap();
    assert_eq!(times, 300);
    assert!(log("service").unwrap().1.response.is_unknown());
    assert!(log("lag").unwrap_err().to_string().contains("a log of lag times"));
}
