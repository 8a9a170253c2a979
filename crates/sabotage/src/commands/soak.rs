//! `soak`, `slow` and `serve`.

use super::arguments::Arguments;
use super::heading;
use plimsoll_sabotage::sabotages::interposer::Interposed;
use plimsoll_sabotage::soak::measure::{self, Plan, Server, Soaked};
use plimsoll_sabotage::soak::slow::{SUBJECTS, Slow, markdown, measure as beside};
use plimsoll_sabotage::soak::target;
use plimsoll_sabotage::sockets::process::Process;
use plimsoll_sabotage::sockets::stage::Stage;
use plimsoll_zoo::page::refresh;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Serves until it is ended.
pub fn serve(arguments: &Arguments) -> Result<ExitCode, String> {
    let (_server, ready) = target::start(target::leak(&arguments.planted)?)?;
    println!("{ready}");
    loop {
        std::thread::park();
    }
}

/// One soak. The exit code is 1 if something grows.
pub fn soak(arguments: &Arguments) -> Result<ExitCode, String> {
    let stage = Stage::here()?;
    // Said before the run, and not after two hours.
    target::leak(&arguments.planted)?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.arg("serve").args(&arguments.planted);
    let (process, url) = Process::serve(command, stage.targets_core)?;
    let plan = Plan {
        rate_per_s: arguments.rate,
        length: Duration::from_secs_f64(arguments.minutes * 60.0),
        interposed: Interposed::default(),
    };
    let servers = [Server { name: "target".to_owned(), pid: process.pid() }];
    let soaked = measure::run(&stage, &plan, &url, &servers)?;
    let text = text(arguments, &soaked);
    println!("{text}");
    arguments.page.as_ref().map_or(Ok(()), |page| refresh(page, "soak", &text))?;
    Ok(if soaked.grows() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn text(arguments: &Arguments, soaked: &Soaked) -> String {
    format!(
        "{}\n{} min at {} requests/s over TLS. {}\n\n{}",
        heading(&format!("soak MINUTES={} RATE={}", arguments.minutes, arguments.rate)),
        arguments.minutes,
        arguments.rate,
        soaked.words(),
        soaked.markdown()
    )
}

/// Slow clients against each server. The exit code is 1 if a server suffers from them.
pub fn slow(arguments: &Arguments) -> Result<ExitCode, String> {
    let stage = Stage::here()?;
    let slow = Slow {
        count: arguments.clients,
        every: Duration::from_secs(3),
        alone: Duration::from_secs(3),
        healthy: Duration::from_secs(10),
    };
    let (mut rows, mut defects) = (Vec::new(), Vec::new());
    for subject in SUBJECTS.iter().filter(|one| one.name.contains(&arguments.only)) {
        let row = beside(&stage, subject, slow)?;
        defects.extend(row.defects());
        rows.push(row);
    }
    let mut text = format!("{}\n{}", heading("slow-clients"), markdown(&rows));
    if !defects.is_empty() {
        text += &format!("\nNot as it must be: {}.\n", defects.join("; "));
    }
    println!("{text}");
    arguments.page.as_ref().map_or(Ok(()), |page| refresh(page, "slow-clients", &text))?;
    Ok(if defects.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
