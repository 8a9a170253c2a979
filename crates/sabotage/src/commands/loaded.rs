//! `loaded`: runs on a loaded machine, each judged by an observer of its arrivals.

use super::arguments::Arguments;
use super::heading;
use plimsoll_sabotage::judging::Finding;
use plimsoll_sabotage::judging::table::Table;
use plimsoll_sabotage::sockets::loaded;
use plimsoll_sabotage::sockets::stage::Stage;
use plimsoll_zoo::page::refresh;
use std::process::ExitCode;

/// All runs. The exit code is 2 if a verdict says more than its run can know.
pub fn run(arguments: &Arguments, show: impl Fn(&str, &Finding)) -> Result<ExitCode, String> {
    let stage = Stage::here()?;
    let fastest = stage.rate_of(&loaded::fastest())?;
    let mut text = heading("loaded");
    text += &format!("\nClients at full speed: {fastest:.0} requests/s.\n");
    let (mut table, mut left_out) = (Table::default(), Vec::new());
    for case in loaded::all(fastest).iter().filter(|case| case.kind.contains(&arguments.only)) {
        match stage.run(case, arguments.even_if_busy) {
            Ok(finding) => {
                if arguments.shows(&finding) {
                    show(&format!("{}, {}", case.kind, case.words), &finding);
                }
                table.add(case.kind, &finding, case.healthy);
            }
            Err(reason) => {
                eprintln!("{}, {}: not carried out: {reason}", case.kind, case.words);
                left_out.push(format!("{} ({reason})", case.kind));
            }
        }
    }
    text += &format!("\n{}", table.markdown());
    if !left_out.is_empty() {
        text += &format!("\nNot carried out on this machine: {}.\n", left_out.join(", "));
    }
    println!("{text}");
    arguments.page.as_ref().map_or(Ok(()), |page| refresh(page, "loaded", &text))?;
    let total = table.total();
    let is_well = total.wrong == 0 && total.defects == 0 && total.false_alarms == 0;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(2) })
}
