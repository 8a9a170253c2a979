//! Placement in containers of Compose.

use super::guard::{CA, CERTIFICATE, KEY, Login};
use super::{Placed, Placement};
use crate::fleet::quoting::{compose as compose_text, fill};
use crate::fleet::values::{Cpu, Memory};

const COMPOSE: &str = include_str!("../../../templates/compose.yaml");
const WATCHER: &str = include_str!("../../../templates/compose-watcher.yaml");

/// Folder of secrets in a container, and the file with accounts as the configuration in `/etc/nats` includes it.
const SECRETS: &str = "/run/secrets";
const ACCOUNTS: &str = "../../run/secrets/accounts.conf";

/// The bus with a token. In quotes, so that nats-server does not read a token that begins with a digit as a number.
const WITH_TOKEN: &str = r#"# In quotes, so that nats-server does not read a token that begins with a digit as a number.
entrypoint: ["/bin/sh", "-c", "BUS_TOKEN=\"\\\"$$PLIMSOLL_BUS_TOKEN\\\"\" exec nats-server -c /etc/nats/bus.conf"]"#;
const WITHOUT_TOKEN: &str = r#"entrypoint: ["nats-server", "-c", "/etc/nats/bus.conf"]"#;

/// Processors and memory of an agent for which nothing is given.
pub const CPU: Cpu = Cpu { milli: 2000 };
pub const MEMORY: Memory = Memory { bytes: 1 << 30 };

const SECURITY: &str = "\
user: \"65532:65532\"
read_only: true
tmpfs: [\"/tmp:mode=1777\", \"/data:mode=1777\"]
cap_drop: [\"ALL\"]
security_opt: [\"no-new-privileges:true\"]";

/// Returns the file for Compose.
pub fn compose(placement: &Placement) -> Vec<Placed> {
    const FILE: &str = "compose.yaml";
    let cpu = placement.cpu.unwrap_or(CPU).milli;
    let cpus = match cpu % 1000 {
        0 => (cpu / 1000).to_string(),
        part => format!("{}.{part:03}", cpu / 1000),
    };
    let (guard, bus, client) = (&placement.guard, bus_files(placement), client_files(placement));
    let args = client_args(placement);
    let words = args.iter().map(|word| format!(" {word}")).collect::<String>();
    let at = format!("{}://bus:4222", guard.scheme());
    let env_file = match guard.has_token() {
        true => format!("env_file: {}.env", placement.secret()),
        false => String::new(),
    };
    let mut values = placement.values("their own containers");
    values.extend([
        ("FILE", FILE.to_owned()),
        ("SECRET_STEPS", secret_steps(placement)),
        (
            "STARTED",
            if placement.watching.is_on() { "bus agent watcher" } else { "bus agent" }.to_owned(),
        ),
        ("SECRETS", secrets(bus.iter().chain(&client))),
        ("PROTECTION", guard.server_lines("$$BUS_TOKEN", ACCOUNTS, SECRETS)),
        ("ENTRYPOINT", if guard.has_token() { WITH_TOKEN } else { WITHOUT_TOKEN }.to_owned()),
        ("ENV_FILE", env_file),
        ("BUS_SECRETS", granted(&bus)),
        ("CLIENT_SECRETS", granted(&client)),
        ("CLIENT_ARGS", args.iter().map(|word| format!("- {word}")).collect::<Vec<_>>().join("\n")),
        ("IMAGE", compose_text(&placement.image.to_string())),
        ("NATS_IMAGE", compose_text(&placement.nats_image.to_string())),
        ("COORDINATOR", placement.coordinator(&at) + &words),
        ("CPUS", cpus),
        ("MEBIBYTES", placement.memory.unwrap_or(MEMORY).mebibytes().to_string()),
        ("SECURITY", SECURITY.to_owned()),
        ("ALLOW", placement.allow(compose_text, "- ", "\n")),
        ("WATCH", placement.watch(compose_text, "- ", "\n")),
    ]);
    let mut text = fill(COMPOSE, &values);
    if placement.watching.is_on() {
        text += &fill(WATCHER, &values);
    }
    vec![(FILE, text)]
}

/// A file of this machine that a container reads below the folder of secrets.
struct Secret {
    name: String,
    file: String,
    target: &'static str,
}

impl Secret {
    fn of(part: &str, target: &'static str) -> Self {
        Self {
            name: format!("{part}-{target}"),
            file: format!("./secrets/{part}/{target}"),
            target,
        }
    }
}

/// Files that the bus reads.
fn bus_files(placement: &Placement) -> Vec<Secret> {
    let guard = &placement.guard;
    let mut files = Vec::new();
    if guard.login == Login::Creds {
        files.push("accounts.conf");
    }
    if guard.has_tls() {
        files.extend([CERTIFICATE, KEY]);
    }
    if guard.wants_certificates() {
        files.push(CA);
    }
    files.into_iter().map(|file| Secret::of("bus", file)).collect()
}

/// Files that a client of the bus reads.
fn client_files(placement: &Placement) -> Vec<Secret> {
    let guard = &placement.guard;
    let login = (!guard.has_token()).then(|| guard.credential());
    let of_tls = guard.client_files().into_iter().map(|(_, file)| file);
    login.into_iter().chain(of_tls).map(|file| Secret::of("client", file)).collect()
}

/// Flags with which a client reads them.
fn client_args(placement: &Placement) -> Vec<String> {
    let guard = &placement.guard;
    let login = (!guard.has_token()).then(|| (guard.credential_flag(), guard.credential()));
    let all = login.into_iter().chain(guard.client_files());
    all.map(|(flag, file)| format!("{flag}={SECRETS}/{file}")).collect()
}

/// The secrets of the file; nothing without any.
fn secrets<'a>(all: impl Iterator<Item = &'a Secret>) -> String {
    let lines: Vec<String> =
        all.map(|one| format!("  {}:\n    file: {}", one.name, one.file)).collect();
    if lines.is_empty() { String::new() } else { format!("secrets:\n{}\n\n", lines.join("\n")) }
}

/// The secrets of a service.
fn granted(all: &[Secret]) -> String {
    let lines: Vec<String> = all
        .iter()
        .map(|one| format!("  - source: {}\n    target: {}", one.name, one.target))
        .collect();
    if lines.is_empty() { String::new() } else { format!("secrets:\n{}", lines.join("\n")) }
}

/// The commands that make the secrets, as a remark.
fn secret_steps(placement: &Placement) -> String {
    let (guard, secret) = (&placement.guard, placement.secret());
    let token = format!(
        "\
# 1. Once: the token of the bus, in a file for its owner alone.
#      (umask 077; echo \"PLIMSOLL_BUS_TOKEN=$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n')\" >{secret}.env)"
    );
    let files: Vec<Secret> =
        bus_files(placement).into_iter().chain(client_files(placement)).collect();
    if files.is_empty() {
        return token;
    }
    let mut steps = match guard.has_token() {
        true => token + "\n#    And the files of TLS:",
        false => "# 1. Once: the files that bus and clients read:".to_owned(),
    };
    for one in &files {
        steps += &format!("\n#      {} ({})", one.file, about(one));
    }
    steps
        + "\n#    They belong to the user of the containers, and no one else reads them.\n\
           #      sudo chown -R 65532:65532 secrets && sudo chmod -R u=rwX,go= secrets"
}

/// Content of a file.
fn about(secret: &Secret) -> &'static str {
    let is_of_bus = secret.name.starts_with("bus-");
    match secret.target {
        "nkey" => "the NKey seed of the fleet; the bus has its public part",
        "creds" => "the credentials of a user of the fleet, by nsc",
        "accounts.conf" => "nsc generate config --mem-resolver --config-file accounts.conf",
        CA if is_of_bus => "the authority of the clients' certificates",
        CA => "the authority of the certificate of the bus",
        CERTIFICATE if is_of_bus => "the certificate of the bus, for the name bus",
        CERTIFICATE => "the certificate of agents and coordinator",
        _ => "its key",
    }
}
