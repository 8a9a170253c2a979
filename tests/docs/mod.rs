//! The book and README.md: every block of them is executed, generated or read by the program, and says which.

mod figures;
pub mod page;
pub mod session;
mod shape;
mod terms;

use crate::process::Place;
use page::{Kind, blocks, pages};
use session::Session;
use std::path::{Path, PathBuf};

/// Blocks that no test can execute. A block more needs a reason that convinces whoever reads the change.
const NOT_RUN: usize = 13;
/// Blocks that are neither commands, nor output, nor input: grammars and layouts.
const FORMS: usize = 13;
/// Samples that another test compares, which starts the same command anyway.
const SAMPLES: [&str; 2] = ["quickstart", "slow output"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

macro_rules! executed {
    ($($name:ident $page:literal)*) => {
        $(
            #[test]
            fn $name() {
                executes($page);
            }
        )*
        const EXECUTED: &[&str] = &[$($page),*];
    };
}

executed! {
    ab "docs/ab.md"
    change_points "docs/change-points.md"
    compare "docs/compare.md"
    corpora "docs/corpora.md"
    documents "docs/documents.md"
    elasticsearch "docs/elasticsearch.md"
    engines "docs/engines.md"
    fbench "docs/fbench.md"
    feed "docs/feed.md"
    fleet "docs/fleet.md"
    import "docs/import.md"
    install "docs/install.md"
    intervals "docs/intervals.md"
    jobs "docs/jobs.md"
    load "docs/load.md"
    outlets "docs/outlets.md"
    page_chapter "docs/page.md"
    performance "docs/performance.md"
    placement "docs/placement.md"
    query_files "docs/query-files.md"
    rank "docs/rank.md"
    readme "README.md"
    report "docs/report.md"
    run_record "docs/run-record.md"
    scan "docs/scan.md"
    scenarios "docs/scenarios.md"
    search "docs/search.md"
    search_target "docs/search-target.md"
    seek "docs/seek.md"
    sizing "docs/sizing.md"
    users "docs/users.md"
    verdicts "docs/verdicts.md"
    visit "docs/visit.md"
    voter "docs/voter.md"
    voter_target "docs/voter-target.md"
    watch "docs/watch.md"
}

fn executes(page: &str) {
    if page == "docs/placement.md" {
        crate::engines::install("nats");
    }
    // Pilots beside other tests are so unsteady that few pairs have room in the budgets of this page.
    let place = match page {
        "docs/ab.md" => Place::quiet_for_long(),
        "docs/sizing.md" => Place::quiet(),
        _ => Place::new(),
    };
    let mut session = Session::at(place);
    session.page(page);
    if figures::are_wanted() {
        figures::write(page, std::mem::take(&mut session.replaced));
        if page == "README.md" {
            let printed = session.printed("plimsoll run quickstart");
            expect_sample(page, "quickstart", &printed);
        }
    }
}

/// Compares what another test had printed with a sample of a page.
pub fn expect_sample(page: &str, name: &str, printed: &str) {
    let wanted = Kind::Sample(name.to_owned());
    let block = blocks(page).into_iter().find(|block| block.kind.as_ref() == Some(&wanted));
    let block = block.unwrap_or_else(|| panic!("{page} has no sample '{name}'"));
    let sample = shape::items(&block.lines.join("\n"));
    let lines = shape::matched(&sample, &shape::items(printed))
        .unwrap_or_else(|why| panic!("{}: {why}", block.at));
    if figures::are_wanted() {
        figures::write(page, vec![figures::Replaced::new(&block, 0, block.lines.len(), lines)]);
    }
}

#[test]
fn every_block_says_how_it_is_held() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let (mut not_run, mut forms) = (Vec::new(), Vec::new());
    for page in pages() {
        for block in blocks(&page) {
            match block.kind.as_ref() {
                None => {
                    panic!("{}: a block without a mark; tests/docs/page.rs has the kinds", block.at)
                }
                Some(Kind::NotRun(why)) => not_run.push(format!("{}: {why}", block.at)),
                Some(Kind::Form(what)) => forms.push(format!("{}: {what}", block.at)),
                Some(Kind::Made(by)) => {
                    let target = by.strip_prefix("make ").unwrap_or_else(|| panic!("{}", block.at));
                    assert!(makefile.contains(&format!("\n{target}:")), "{}: {by}", block.at);
                }
                Some(Kind::Sample(name)) => {
                    assert!(SAMPLES.contains(&name.as_str()), "{}", block.at)
                }
                Some(_) => {}
            }
            assert!(
                !block.has("figures") || block.below.starts_with("*Printed "),
                "{}: figures without a line below them that says when and where",
                block.at
            );
        }
    }
    assert_eq!(not_run.len(), NOT_RUN, "blocks that are not run:\n{}", not_run.join("\n"));
    assert_eq!(forms.len(), FORMS, "blocks that are forms:\n{}", forms.join("\n"));
}

#[test]
fn every_page_with_blocks_is_executed() {
    let with_blocks = pages().into_iter().filter(|page| !blocks(page).is_empty());
    let missing: Vec<_> = with_blocks.filter(|page| !EXECUTED.contains(&page.as_str())).collect();
    assert!(missing.is_empty(), "pages that no test executes: {missing:?}");
}
