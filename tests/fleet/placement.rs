//! Fleets as `plimsoll fleet render` places them, with agents that watch, TLS and keys: each text is carried out here, with a real
//! nats-server and the command lines that are in it.

use super::accounts::Accounts;
use super::pods::{complaints, documents, kubernetes_faults, of_kind, render, schema};
use super::record;
use crate::bus::Server;
use crate::certificates::Authority;
use crate::process::{PATIENCE, Place, Running, Target, until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// The pair of the documentation of NATS.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

/// Writes a file for its owner alone.
fn secret(place: &Place, name: &str, text: &str) {
    std::fs::create_dir_all(place.path().join(name).parent().unwrap()).unwrap();
    let path = place.file(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// The files of a bus and its clients below two folders, for the names of this machine.
pub fn secrets(place: &Place, bus: &str, client: &str) -> Accounts {
    let authority = Authority::new("bus");
    let (server, own) = (authority.server(&["127.0.0.1", "localhost"]), authority.client());
    let accounts = Accounts::new();
    for (folder, signed) in [(bus, &server), (client, &own)] {
        secret(place, &format!("{folder}/ca.crt"), authority.pem());
        secret(place, &format!("{folder}/tls.crt"), &signed.certificate);
        secret(place, &format!("{folder}/tls.key"), &signed.key);
    }
    secret(place, &format!("{bus}/accounts.conf"), &accounts.config);
    secret(place, &format!("{client}/nkey"), &format!("{SEED}\n"));
    secret(place, &format!("{client}/creds"), &accounts.creds);
    accounts
}

/// Flags for each way to protect a bus.
const GUARDS: [&[&str]; 4] = [
    &[],
    &["--tls"],
    &["--tls", "--client-certs", "--nkey", PUBLIC],
    &["--tls", "--client-certs", "--creds"],
];

/// A thing to watch in all tests: the target's program.
const WATCH: &str = "target=plimsoll";

/// A fleet that a text has placed: its bus and its agents, as processes of this machine.
struct Placed {
    place: Place,
    target: Target,
    /// Ended first.
    agents: Vec<Running>,
    _bus: Running,
    /// Address of the bus for its clients.
    url: String,
}

/// A token that a parser of numbers would accept in part.
const TOKEN: &str = "12e4b";

impl Placed {
    /// Starts a bus by its command, and waits until it listens.
    fn new(place: Place, url: String, port: &str, bus: Command) -> Self {
        let target = place.serve(&["null"]);
        let mut bus = Running::start(bus, b"");
        until("the bus listens", SOON, || {
            std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok() || !bus.is_running()
        });
        assert!(bus.is_running(), "{} in {}", bus.stderr_so_far(), place.path().display());
        Self { place, target, agents: Vec::new(), _bus: bus, url }
    }

    /// A command of plimsoll with the token in its environment, if it is there in the placement.
    fn plimsoll(&self, words: &[String], has_token: bool) -> Command {
        let mut command = self.place.plimsoll(words);
        if has_token {
            command.env("PLIMSOLL_BUS_TOKEN", TOKEN);
        }
        command
    }

    fn agent(&mut self, words: &[String], has_token: bool) {
        let agent = Running::start(self.plimsoll(words, has_token), b"");
        super::wait_until_idle(&agent, 1);
        self.agents.push(agent);
    }

    /// Runs a load with the coordinator's words of the text, and checks that all agents took part.
    fn expect_run(&self, words: &[String], has_token: bool, loading: usize) {
        let own = ["--requests", "600", "--clients", "6", "--json", "-", "--quiet"];
        let words: Vec<String> = words.iter().cloned().chain(own.map(str::to_owned)).collect();
        let words: Vec<String> = words
            .into_iter()
            .map(|word| if word == "URL" { self.target.url.clone() } else { word })
            .collect();
        let ended = Running::start(self.plimsoll(&words, has_token), b"").wait(PATIENCE);
        let whole = record(&ended);
        assert_eq!(whole["ledger"]["ok"], 600, "{ended:?}");
        let roles = whole["fleet"]["agents"].as_array().unwrap().iter();
        let roles: Vec<&str> = roles.map(|agent| agent["role"].as_str().unwrap()).collect();
        let expected = [vec!["load"; loading], vec!["watch"]].concat();
        assert_eq!(roles, expected, "{words:?}");
        let watched = &whole["resources"]["watchers"][0]["watched"];
        assert_eq!(
            watched[0]["name"].as_str().unwrap().rsplit(' ').next(),
            Some("target"),
            "{watched}"
        );
        // Without what the text has given, there is no way in.
        let bare = ["load", &self.target.url, "--agents", "1", "--bus", &self.url];
        let refused = self.place.run(bare).expect(4);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        // No secret is on a command line.
        for agent in &self.agents {
            let line = std::fs::read(format!("/proc/{}/cmdline", agent.id())).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            assert!(!line.contains(TOKEN) && !line.contains(SEED), "{line}");
        }
    }
}

fn words_of(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// Words with parts of them put in the place of others.
fn with(words: &[String], replaced: &[(&str, &str)]) -> Vec<String> {
    let one = |word: &String| {
        replaced.iter().fold(word.clone(), |word, (from, to)| word.replace(from, to))
    };
    words.iter().map(one).collect()
}

/// The words of the coordinator in the text's remark, from `load` to the end of the line or what follows.
fn coordinator(text: &str) -> Vec<String> {
    let line =
        text.lines().find(|line| line.starts_with('#') && line.contains("load URL ")).unwrap();
    let words = line.split("load URL").nth(1).unwrap();
    let words = words.split(" --json").next().unwrap();
    ["load", "URL"].into_iter().chain(words.split_whitespace()).map(str::to_owned).collect()
}

/// The configuration of a bus on ports of the test.
fn config(place: &Place, text: &str, port: &str) -> std::path::PathBuf {
    let text = text.replace("port: 4222", &format!("host: 127.0.0.1\nport: {port}"));
    let text = text.replace("http_port: 8222", "").replace("http: 127.0.0.1:8222", "");
    place.file("nats/bus.conf", text)
}

fn place_with_folders() -> Place {
    let place = Place::busy();
    std::fs::create_dir(place.path().join("nats")).unwrap();
    place
}

/// The folder of a place, as a text.
fn below(place: &Place, name: &str) -> String {
    place.path().join(name).display().to_string()
}

#[test]
fn a_fleet_of_kubernetes_runs_with_every_way_to_protect_its_bus() {
    for guard in GUARDS {
        let form = ["--k8s", "--agents", "2", "--target-label", "app=t", "--watch", WATCH];
        let place = place_with_folders();
        let text = render(&place, &[&form, guard].concat());
        assert_eq!(kubernetes_faults(&text), Vec::<String>::new(), "{text}");
        let all = documents(&text);
        secrets(&place, "bus", "client");
        let port = crate::server::closed_port();
        let data =
            of_kind(&all, "ConfigMap", "plimsoll-bus")["data"]["nats.conf"].as_str().unwrap();
        let data = data.replace("/etc/nats-tls", &below(&place, "bus"));
        let data = data.replace("../nats-accounts", "../bus");
        let path = config(&place, &data, &port);
        let pod = &of_kind(&all, "Deployment", "plimsoll-bus")["spec"]["template"]["spec"];
        let mut bus = place.program(Server::program(), ["-c".as_ref(), path.as_os_str()]);
        let env = pod["containers"][0]["env"].as_array();
        if let Some(env) = env {
            bus.env("BUS_TOKEN", env[1]["value"].as_str().unwrap().replace("$(SECRET)", TOKEN));
        }
        let scheme = if guard.is_empty() { "nats" } else { "tls" };
        let url = format!("{scheme}://127.0.0.1:{port}");
        let mut fleet = Placed::new(place, url.clone(), &port, bus);
        let client = below(&fleet.place, "client");
        let data = below(&fleet.place, "data");
        let replaced = |index: &str| {
            [
                (format!("{scheme}://plimsoll-bus:4222"), url.clone()),
                ("/etc/plimsoll/login".to_owned(), client.clone()),
                ("/etc/plimsoll/tls".to_owned(), client.clone()),
                ("/data".to_owned(), format!("{data}-{index}")),
                ("$(JOB_COMPLETION_INDEX)".to_owned(), index.to_owned()),
            ]
        };
        let put = |words: &[String], index: &str| {
            let replaced = replaced(index);
            let pairs: Vec<(&str, &str)> =
                replaced.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
            with(words, &pairs)
        };
        for (job, indices) in [("agents", &["0", "1"][..]), ("watchers", &["0"])] {
            let pod = &of_kind(&all, "Job", &format!("plimsoll-{job}"))["spec"]["template"]["spec"];
            let container = &pod["containers"][0];
            let has_token = container["env"].is_array();
            assert_eq!(has_token, env.is_some());
            for index in indices {
                let words = put(&words_of(&container["args"]), index);
                assert_eq!(plimsoll::check_words(&words), Ok(()));
                fleet.agent(&words, has_token);
            }
            // Each file that a flag names is mounted from a secret, and only those are.
            let args = words_of(&container["args"]);
            let named = args.iter().filter(|word| word.contains("=/etc/plimsoll/")).count();
            let volumes = pod["volumes"].as_array().unwrap().iter();
            let items = volumes.filter_map(|volume| volume["secret"]["items"].as_array());
            assert_eq!(items.map(Vec::len).sum::<usize>(), named, "{pod}");
        }
        fleet.expect_run(&put(&coordinator(&text), "0"), env.is_some(), 2);
    }
}

#[test]
fn agents_that_watch_are_beside_the_pods_of_the_target_and_see_their_processes() {
    let place = Place::new();
    let form = ["--k8s", "--target-label", "app=search", "--watch", "proton", "--watchers", "3"];
    let all = documents(&render(&place, &form));
    let job = &of_kind(&all, "Job", "plimsoll-watchers")["spec"];
    assert_eq!((&job["completions"], &job["parallelism"]), (&json!(3), &json!(3)));
    let pod = &job["template"]["spec"];
    assert_eq!(pod["hostPID"], true);
    let affinity = &pod["affinity"];
    let beside = &affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(beside["labelSelector"]["matchLabels"], json!({"app": "search"}));
    assert_eq!(beside["topologyKey"], "kubernetes.io/hostname");
    let apart = &affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    let labels = &job["template"]["metadata"]["labels"];
    assert_eq!(&apart["labelSelector"]["matchLabels"], labels);
    assert!(words_of(&pod["containers"][0]["args"]).contains(&"--watch=proton".to_owned()));
    // The agents with the load keep away from the same nodes.
    let agents = &of_kind(&all, "Job", "plimsoll-agents")["spec"]["template"]["spec"];
    let away =
        &agents["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(away["labelSelector"], beside["labelSelector"]);
    // The bus lets them in.
    let policy = &of_kind(&all, "NetworkPolicy", "plimsoll-bus")["spec"]["ingress"][0]["from"][0];
    let instance = "app.kubernetes.io/instance";
    assert_eq!(policy["podSelector"]["matchLabels"][instance], labels[instance]);
}

#[test]
fn a_fleet_of_compose_runs_with_every_way_to_protect_its_bus() {
    let compose = schema("compose.json");
    for guard in GUARDS {
        let form = ["--compose", "--agents", "2", "--watch", WATCH];
        let place = place_with_folders();
        let text = render(&place, &[&form, guard].concat());
        let found = documents(&text).remove(0);
        assert_eq!(complaints(&compose, &found), Vec::<String>::new(), "{text}");
        let services = &found["services"];
        assert_eq!(services["watcher"]["pid"], "host");
        secrets(&place, "secrets/bus", "secrets/client");
        let port = crate::server::closed_port();
        let plain = |text: &Value| text.as_str().unwrap().replace("$$", "$");
        let data = plain(&found["configs"]["bus"]["content"]);
        // The secrets of a container, as Compose binds them to its files.
        let bound = |service: &str| -> Vec<(String, String)> {
            let granted = services[service]["secrets"].as_array().cloned().unwrap_or_default();
            let one = |one: &Value| {
                let file = &found["secrets"][one["source"].as_str().unwrap()]["file"];
                let file = file.as_str().unwrap().trim_start_matches("./");
                (format!("/run/secrets/{}", one["target"].as_str().unwrap()), below(&place, file))
            };
            granted.iter().map(one).collect()
        };
        let put = |text: &str, bound: &[(String, String)]| {
            bound.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
        };
        let of_bus = bound("bus");
        let data = put(&data.replace("../../run/secrets", "../secrets/bus"), &of_bus);
        let path = config(&place, &data, &port);
        let entry = words_of(&services["bus"]["entrypoint"]);
        let server = Server::program().display().to_string();
        let entry = with(
            &entry,
            &[
                ("/etc/nats/bus.conf", path.to_str().unwrap()),
                ("nats-server", server.as_str()),
                ("$$", "$"),
            ],
        );
        let mut bus = place.program(&entry[0], &entry[1..]);
        let has_token = services["bus"]["env_file"].is_string();
        if has_token {
            bus.env("PLIMSOLL_BUS_TOKEN", TOKEN);
        }
        let scheme = if guard.is_empty() { "nats" } else { "tls" };
        let url = format!("{scheme}://127.0.0.1:{port}");
        let bounds: Vec<_> = ["agent", "watcher", "coordinator"].map(bound).to_vec();
        let mut fleet = Placed::new(place, url.clone(), &port, bus);
        let here = |words: &[String], bound: &[(String, String)], index: usize| {
            let data = below(&fleet.place, &format!("data-{index}"));
            let words: Vec<String> = words.iter().map(|word| put(word, bound)).collect();
            let bus = format!("{scheme}://bus:4222");
            with(&words, &[(bus.as_str(), url.as_str()), ("/data", data.as_str())])
        };
        let mut all = Vec::new();
        for (index, service) in [(0, "agent"), (1, "agent"), (2, "watcher")] {
            assert_eq!(services[service]["env_file"].is_string(), has_token);
            let bound = &bounds[usize::from(service == "watcher")];
            all.push(here(&words_of(&services[service]["command"]), bound, index));
        }
        let words = here(&coordinator(&text), &bounds[2], 3);
        for words in all {
            assert_eq!(plimsoll::check_words(&words), Ok(()));
            fleet.agent(&words, has_token);
        }
        fleet.expect_run(&words, has_token, 2);
    }
}

/// The command of a unit as systemd starts it for an instance, with its files in the folders of a place.
fn exec(place: &Place, unit: &str, instance: &str) -> Vec<String> {
    let joined = unit.replace("\\\n", " ");
    let line = joined.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let state = below(place, "state");
    let specified = |word: &str| {
        let word = word.replace("%i", instance).replace("%l", "here").replace("%S", &state);
        let Some((front, name)) = word.split_once("%d/") else { return word };
        // LoadCredential=NAME:FILE is the file of the name.
        let own = unit.lines().filter_map(|line| line.strip_prefix("LoadCredential="));
        let (_, file) =
            own.filter_map(|own| own.split_once(':')).find(|(own, _)| *own == name).unwrap();
        front.to_owned() + &file.replace("/etc/plimsoll", &below(place, "etc"))
    };
    line.split_whitespace().map(specified).collect()
}

#[test]
fn units_of_systemd_run_with_every_way_to_protect_their_bus() {
    crate::engines::install("nats");
    for guard in &GUARDS[..3] {
        let place = Place::busy();
        let port = crate::server::closed_port();
        let form =
            ["--systemd", "--agents", "2", "--port", &port, "--watch", WATCH, "--out", "units"];
        place.run([&["fleet", "render"][..], &form, *guard].concat()).expect(0);
        let verify =
            ["plimsoll-bus.service", "plimsoll-agent@1.service", "plimsoll-watcher.service"];
        for unit in verify {
            let name = unit.replace("@1", "@");
            let text = place.read(&format!("units/{name}"));
            place.file(
                &format!("units/{name}"),
                text.replace(
                    "ExecStart=plimsoll ",
                    &format!("ExecStart={} ", env!("CARGO_BIN_EXE_plimsoll")),
                ),
            );
        }
        let mut analyze = Command::new(crate::process::find_program("systemd-analyze"));
        analyze.args(["verify", "--man=no"]).args(verify.map(|unit| format!("./{unit}")));
        analyze.current_dir(place.path().join("units")).env("NO_COLOR", "1");
        let ended = Running::start(analyze, b"").wait(SOON).expect(0);
        assert_eq!(ended.stderr, "", "{guard:?}");
        secrets(&place, "etc/bus", "etc/client");
        secret(&place, "etc/plimsoll-token", &format!("{TOKEN}\n"));
        secret(&place, "etc/plimsoll-nkey", &format!("{SEED}\n"));
        let unit = |name: &str| place.read(&format!("units/plimsoll-{name}.service"));
        let bus = exec(&place, &unit("bus"), "");
        let agents = [("agent@", "1"), ("agent@", "2"), ("watcher", "")];
        let agents = agents.map(|(name, instance)| exec(&place, &unit(name), instance));
        let words = with(
            &coordinator(&unit("agent@")),
            &[("/etc/plimsoll", below(&place, "etc").as_str())],
        );
        let scheme = if guard.is_empty() { "nats" } else { "tls" };
        let command = place.plimsoll(&bus[1..]);
        let mut fleet = Placed::new(place, format!("{scheme}://127.0.0.1:{port}"), &port, command);
        for words in agents {
            assert_eq!(plimsoll::check_words(&words[1..]), Ok(()));
            fleet.agent(&words[1..], false);
        }
        fleet.expect_run(&words, false, 2);
    }
}

#[test]
fn a_local_fleet_watches_and_protects_its_bus() {
    crate::engines::install("nats");
    for guard in [&[][..], &["--tls"], &["--tls", "--nkey"]] {
        let place = Place::busy();
        secrets(&place, "bus", "client");
        let mut words = vec!["fleet", "up", "--local", "2", "--watch", WATCH, "--data", "fleet"];
        if guard.contains(&"--tls") {
            words.extend([
                "--tls-cert",
                "bus/tls.crt",
                "--tls-key",
                "bus/tls.key",
                "--tls-ca",
                "bus/ca.crt",
            ]);
            words.extend(["--bus-cacert", "client/ca.crt"]);
            words.extend(["--bus-cert", "client/tls.crt", "--bus-key", "client/tls.key"]);
        }
        if guard.contains(&"--nkey") {
            words.extend(["--nkey", PUBLIC, "--bus-nkey", "client/nkey"]);
        }
        // It is to be watched, and must be there.
        let target = place.serve(&["null"]);
        let fleet = place.start(words);
        let text = fleet.wait_for("\n", SOON);
        let url = text.trim_end().strip_prefix("ready fleet ").unwrap().to_owned();
        assert_eq!(url.starts_with("tls://"), !guard.is_empty(), "{url}");
        until("the command is printed", SOON, || fleet.stderr_so_far().contains("to use it: "));
        let said = fleet.stderr_so_far();
        let line = said.split("to use it: plimsoll ").nth(1).unwrap().lines().next().unwrap();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert!(words.contains(&"--watchers".to_owned()), "{line}");
        let placed = Placed { place, target, agents: Vec::new(), _bus: fleet, url };
        placed.expect_run(&words, false, 2);
    }
    // What is to be watched must be there, and the files of the bus belong together.
    let place = Place::new();
    for (flags, part) in [
        (&["--watch", "no-such-program"][..], "no-such-program"),
        (&["--tls-cert", "a", "--tls-key", "b"], "--bus-cacert"),
        (&["--nkey", PUBLIC], "--bus-nkey"),
        (&["--nkey", SEED, "--bus-nkey", "x"], "not its seed"),
    ] {
        let ended = place.run([&["fleet", "up", "--local", "1"], flags].concat()).expect(64);
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert!(!ended.stderr.contains(SEED), "{}", ended.stderr);
    }
}
