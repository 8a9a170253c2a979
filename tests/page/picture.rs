//! Screenshots: compared with those that were looked at, with a tolerance for the way in which a machine draws letters.

use std::path::PathBuf;

/// Edge of the squares whose mean colours are compared, pixels.
const SQUARE: usize = 8;
/// Largest difference of a mean channel between two squares that look the same.
const CHANNEL_TOLERANCE: i32 = 20;
/// Largest share of squares that may look different.
const SHARE_MAX: f64 = 0.02;

struct Picture {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

fn decoded(png: &[u8]) -> Picture {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let channels = info.color_type.samples();
    assert!(channels >= 3, "{:?}", info.color_type);
    let rgb = bytes[..info.buffer_size()]
        .chunks(channels)
        .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect();
    Picture { width: info.width as usize, height: info.height as usize, rgb }
}

/// The mean colours of the squares of a picture.
fn squares(picture: &Picture) -> Vec<[i32; 3]> {
    let mut means = Vec::new();
    for top in (0..picture.height).step_by(SQUARE) {
        for left in (0..picture.width).step_by(SQUARE) {
            let (bottom, right) =
                ((top + SQUARE).min(picture.height), (left + SQUARE).min(picture.width));
            let mut sums = [0i32; 3];
            for y in top..bottom {
                for x in left..right {
                    let at = (y * picture.width + x) * 3;
                    for (sum, channel) in sums.iter_mut().zip(&picture.rgb[at..at + 3]) {
                        *sum += i32::from(*channel);
                    }
                }
            }
            let count = ((bottom - top) * (right - left)) as i32;
            means.push(sums.map(|sum| sum / count));
        }
    }
    means
}

/// The share of squares that look different; 1 if the sizes differ.
pub fn difference(a: &[u8], b: &[u8]) -> f64 {
    let (a, b) = (decoded(a), decoded(b));
    if (a.width, a.height) != (b.width, b.height) {
        return 1.0;
    }
    let (a, b) = (squares(&a), squares(&b));
    let is_other = |(a, b): &(&[i32; 3], &[i32; 3])| {
        a.iter().zip(*b).any(|(a, b)| (a - b).abs() > CHANNEL_TOLERANCE)
    };
    a.iter().zip(&b).filter(is_other).count() as f64 / a.len() as f64
}

/// Compares a screenshot with the one that is kept under a name. `make golden` keeps the new one.
pub fn assert_golden(name: &str, shot: &[u8]) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("tests/page/golden").join(format!("{name}.png"));
    if std::env::var("INSTA_UPDATE").is_ok_and(|mode| mode == "always") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, shot).unwrap();
    }
    let kept = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run make golden", path.display()));
    let share = difference(&kept, shot);
    let new = root.join("target").join(format!("page-{name}.png"));
    if share > SHARE_MAX {
        std::fs::write(&new, shot).unwrap();
    }
    assert!(
        share <= SHARE_MAX,
        "{:.1} % of the page look different from {}; look at {} and run make golden if it is right",
        share * 100.0,
        path.display(),
        new.display()
    );
}
