use super::*;
use crate::page::FORMS;
use plimsoll_report::samples;
use plimsoll_report::sections::sheet as page_of;

fn run(rate: f64, ms: f64, held: bool) -> RankRun {
    RankRun {
        requested_qps: rate,
        achieved_qps: rate - 0.5,
        duration_secs: 5.0,
        p50_ms: ms,
        p95_ms: 2.0 * ms,
        p99_ms: 3.0 * ms,
        held,
        from_s: rate,
        ..RankRun::default()
    }
}

fn stage(stage: &str, wall_mean_ms: f64, cpu_mean_ms: f64) -> RankStage {
    RankStage {
        instance: 1,
        stage: stage.to_owned(),
        requests: 300,
        wall_mean_ms,
        wall_p95_ms: 2.0 * wall_mean_ms,
        cpu_mean_ms,
    }
}

#[test]
fn a_ranking_benchmark_has_its_runs_and_the_cpu_of_its_stages() {
    let instance =
        |p95_ms| RankInstance { achieved_per_s: 19.5, p95_ms, ..RankInstance::default() };
    let mut record = samples::good();
    record.job_results.put(RankResult {
        runs: vec![run(20.0, 21.0, true), run(40.0, 777.0, false)],
        stages: vec![
            stage("queue", 3.0, 0.0),
            stage("walk", 4.0, 3.5),
            stage("pagerank", 6.0, 9.5),
        ],
        instances: vec![instance(40.0), instance(90.0)],
        spread: 0.2,
        ..RankResult::default()
    });
    let page = page_of(&record, &Default::default(), &[FORMS]);
    let own = ["decide", "runs", "stages", "instances"];
    assert!(samples::check_places(&page, &record) > 30);
    assert_eq!(samples::derived(&page, &own), [""; 0]);
    insta::assert_snapshot!(samples::outline(&page, &[&own[..], &["bottleneck"]].concat()));
    assert!(page.section("curve").is_none(), "times of both rates together");
}

#[test]
fn servers_that_report_no_stages_have_none() {
    let mut record = samples::good();
    record
        .job_results
        .put(RankResult { runs: vec![run(20.0, 21.0, true)], ..RankResult::default() });
    let page = page_of(&record, &Default::default(), &[FORMS]);
    assert!(page.section("stages").is_none() && page.section("curve").is_some());
}
