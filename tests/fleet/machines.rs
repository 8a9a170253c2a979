//! `plimsoll fleet render` for machines without containers: units as systemd reads them, and scripts that are executed with stand-ins
//! for `srun`, `scontrol` and `ssh`, which start the agents here.

use super::record;
use crate::engines::install;
use crate::process::{Place, Running, expect_gone, find_program, until};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// A command that must have no complaint; returns what it says.
fn complaint(mut command: Command) -> String {
    command.env("NO_COLOR", "1");
    let ended = Running::start(command, b"").wait(SOON);
    let said = ended.stdout + &ended.stderr;
    if ended.code == Some(0) { said } else { format!("exit {:?}: {said}", ended.code) }
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_plimsoll")
}

#[test]
fn units_have_no_complaint_of_systemd() {
    let place = Place::new();
    let words = ["--agents", "3", "--fleet", "Night_1", "--allow-target=*.test", "--cpu", "1.5"];
    let place_words = ["--bus-host", "bus.internal", "--program", program(), "--out", "units"];
    place
        .run(["fleet", "render", "--systemd"].into_iter().chain(words).chain(place_words))
        .expect(0);
    let verify = || {
        let mut command = Command::new(find_program("systemd-analyze"));
        command.args([
            "verify",
            "--man=no",
            "./plimsoll-bus.service",
            "./plimsoll-agent@1.service",
        ]);
        command.current_dir(place.path().join("units"));
        complaint(command)
    };
    assert_eq!(verify(), "");
    let agent = place.read("units/plimsoll-agent@.service");
    for (from, to) in [
        ("ProtectSystem=strict", "ProtectSystems=strict"),
        ("Restart=on-failure", "Restart=maybe"),
        ("[Install]", "[Instal]"),
        (program(), "/no/such/plimsoll"),
    ] {
        assert!(agent.contains(from), "{from}");
        place.file("units/plimsoll-agent@.service", agent.replace(from, to));
        assert_ne!(verify(), "", "{from} -> {to} is not noticed");
    }
    for line in [
        "DynamicUser=yes",
        "ProtectSystem=strict",
        "StateDirectory=plimsoll-agent-%i",
        "LoadCredential=bus-token:/etc/plimsoll/plimsoll-Night_1-token",
        "Restart=on-failure",
        "StartLimitIntervalSec=0",
        "CPUQuota=150%",
    ] {
        assert!(agent.lines().any(|own| own == line), "{line}\n{agent}");
    }
}

/// Runs what follows the options as often as there are tasks; passes a signal on.
const SRUN: &str = r#"#!/bin/bash
echo "$*" >>words.log
stat -c %a plimsoll-7/bus.token >>modes.log
n=1
while [[ "$1" == --* ]]; do
    case "$1" in --ntasks=*) n="${1#*=}" ;; esac
    shift
done
trap 'kill $(jobs -p)' TERM
for ((i = 0; i < n; i++)); do SLURM_PROCID=$i "$@" & done
while [ -n "$(jobs -pr)" ]; do wait; done
"#;
const SCONTROL: &str = "#!/bin/sh\nprintf 'localhost\\nnode2\\nnode3\\n'\n";
/// Runs the last word, as the host would.
const SSH: &str = r#"#!/bin/sh
echo "$*" >>words.log
while [ "$#" -gt 2 ]; do shift; done
exec sh -c "$2"
"#;

/// A script, and stand-ins for the programs that it calls.
fn script(form: &[&str]) -> Place {
    install("nats");
    let place = Place::busy();
    std::fs::create_dir(place.path().join("bin")).unwrap();
    place.script("bin/srun", SRUN);
    place.script("bin/scontrol", SCONTROL);
    place.script("bin/ssh", SSH);
    let words = ["--port", "0", "--program", program(), "--fleet", "Night_1"];
    let text = place.run(["fleet", "render"].iter().chain(form).chain(&words)).expect(0).stdout;
    // Tests use loopback only.
    place.file("fleet", text.replace("--host 0.0.0.0", "--host 127.0.0.1"));
    place
}

/// The script as it is called, with a command that agents carry out.
fn call(place: &Place, shell: &str, words: &[&str]) -> Command {
    let mut command = place.program(shell, [&["fleet"], words].concat());
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.path().join("bin").display()));
    command.env("SLURM_SUBMIT_DIR", place.path()).env("SLURM_JOB_ID", "7");
    command.env("SLURM_JOB_NODELIST", "node[1-4]").env("TMPDIR", place.path());
    command
}

/// The folder of the token, wherever it is.
fn tokens(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tokens(&path));
        } else if path.ends_with("bus.token") {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Runs a load by the script, and stops another one. The agents have their roles.
fn expect_runs(place: &Place, shell: &str, agents: &[&str]) -> serde_json::Value {
    let target = place.serve(&["null"]);
    let load = ["load", &target.url, "--requests", "900", "--clients", "9"];
    let words = [&load[..], &["--json", "-", "--quiet"]].concat();
    let ended = Running::start(call(place, shell, &words), b"").wait(SOON);
    let whole = record(&ended);
    assert_eq!(whole["ledger"]["ok"], 900, "{ended:?}");
    let names = whole["fleet"]["agents"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, agents, "{ended:?}");
    assert_eq!(tokens(place.path()), Vec::<String>::new());
    // 64 hexadecimal digits are a token, which is on no command line.
    let token = regex::Regex::new("[0-9a-f]{64}").unwrap();
    let said = place.read("words.log") + &ended.stderr;
    assert!(!token.is_match(&said), "{said}");

    let began = || target.stats()["requests"].as_u64().unwrap();
    let before = began();
    let _ = std::fs::remove_dir_all(place.path().join("plimsoll-7"));
    let words = ["load", &target.url, "--rate", "100", "--duration", "60s", "--quiet"];
    let running = Running::start(call(place, shell, &words), b"");
    until("load comes", SOON, || began() > before + 10);
    let all = running.descendants();
    assert!(all.len() > agents.len(), "{all:?}");
    running.signal(Signal::TERM);
    let ended = running.wait(SOON).expect(3);
    assert!(ended.stderr.contains("stopped before its end"), "{ended:?}");
    expect_gone(&all);
    assert_eq!(tokens(place.path()), Vec::<String>::new());
    whole
}

fn shellcheck(place: &Place) -> String {
    complaint(place.program(find_program("shellcheck"), ["fleet"]))
}

#[test]
fn the_script_for_slurm_runs_an_agent_for_each_task() {
    let place = script(&["--slurm", "--agents", "3", "--cpu", "2"]);
    assert_eq!(complaint(place.program("bash", ["-n", "fleet"])), "");
    assert_eq!(shellcheck(&place), "");
    expect_runs(&place, "bash", &["agent-0", "agent-1", "agent-2"]);
    assert_eq!(place.read("modes.log"), "600\n600\n");
    let text = place.read("fleet");
    for line in ["#SBATCH --nodes=4", "#SBATCH --exclusive", "#SBATCH --cpus-per-task=2"] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
    let words = place.read("words.log");
    assert!(words.contains("--relative=1 --nodes=3 --ntasks=3 --ntasks-per-node=1"), "{words}");
    place.file("fleet", text.replace("\"$token\"", "$token"));
    assert!(shellcheck(&place).contains("SC2086"));
}

#[test]
fn the_script_for_ssh_runs_an_agent_on_each_host() {
    let place = script(&["--ssh", "load1,me@load2,load3"]);
    assert_eq!(complaint(place.program("sh", ["-n", "fleet"])), "");
    assert_eq!(shellcheck(&place), "");
    expect_runs(&place, "sh", &["load1", "load3", "me@load2"]);
    let words = place.read("words.log");
    assert!(words.contains("-o BatchMode=yes") && words.contains(" me@load2 IFS="), "{words}");
}

/// Both scripts start agents that watch by ssh, and the one of Slurm has TLS with certificates on both sides.
#[test]
fn scripts_place_agents_that_watch_on_the_hosts_of_the_target() {
    let watch = ["--watch", "target=plimsoll", "--watch-host", "db1,me@db2"];
    for (form, shell, agents) in [
        (
            &["--slurm", "--agents", "2", "--tls", "--client-certs"][..],
            "bash",
            &["agent-0", "agent-1", "watcher-db1", "watcher-me@db2"],
        ),
        (&["--ssh", "load1,load2"], "sh", &["load1", "load2", "watcher-db1", "watcher-me@db2"]),
    ] {
        let place = script(&[form, &watch].concat());
        super::placement::secrets(&place, "tls/bus", "tls/client");
        assert_eq!(shellcheck(&place), "");
        let whole = expect_runs(&place, shell, agents);
        let watched = whole["resources"]["watchers"].as_array().unwrap();
        assert_eq!(watched.len(), 2, "{}", whole["resources"]);
        let words = place.read("words.log");
        for host in [" db1 IFS=", " me@db2 IFS="] {
            assert!(words.contains(host), "{words}");
        }
        let text = place.read("fleet");
        assert_eq!(text.contains("tls://$host"), shell == "bash");
    }
}

#[test]
fn a_script_without_a_command_says_how_it_is_called() {
    for (form, shell) in [(&["--slurm"][..], "bash"), (&["--ssh", "a"], "sh")] {
        let place = script(form);
        let ended = Running::start(call(&place, shell, &["load"]), b"").wait(SOON).expect(64);
        assert!(ended.stderr.starts_with("usage: "), "{ended:?}");
    }
}

/// A wrong command ends with everything that was started for it.
#[test]
fn a_script_ends_when_its_command_is_wrong() {
    for (form, shell) in [(&["--slurm"][..], "bash"), (&["--ssh", "a,b"], "sh")] {
        let place = script(form);
        let words = ["load", "http://127.0.0.1:1/", "--no-such-flag"];
        let ended = Running::start(call(&place, shell, &words), b"").wait(SOON).expect(64);
        assert!(ended.stderr.contains("--no-such-flag"), "{ended:?}");
        assert_eq!(tokens(place.path()), Vec::<String>::new());
    }
}
