//! Placement in pods of Kubernetes.

use super::guard::{CA, CERTIFICATE, KEY, Login};
use super::pods::{CPU, MEMORY};
use super::{Placed, Placement};
use crate::fleet::quoting::{fill, shell, yaml};
use serde_json::{Value, json};

const KUBERNETES: &str = include_str!("../../../templates/kubernetes.yaml");
const WATCHERS: &str = include_str!("../../../templates/kubernetes-watchers.yaml");

const POD_SECURITY: &str = "\
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault";

const CONTAINER_SECURITY: &str = "\
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [\"ALL\"]";

/// The bus in quotes: nats-server would read a token that begins with a digit as a number.
const QUOTED_TOKEN: &str = "\
# In quotes, so that nats-server does not read a token that begins with a digit as a number.
- name: BUS_TOKEN
  value: '\"$(SECRET)\"'";

/// Folders in a pod with the secrets of a client, and with those of the bus.
const LOGIN_FOLDER: &str = "/etc/plimsoll/login";
const TLS_FOLDER: &str = "/etc/plimsoll/tls";
const BUS_TLS_FOLDER: &str = "/etc/nats-tls";
const ACCOUNTS_FOLDER: &str = "/etc/nats-accounts";
/// The file with the accounts, as the configuration in `/etc/nats` includes it.
const ACCOUNTS: &str = "../nats-accounts/accounts.conf";

/// A secret as a folder of a pod.
struct Mount {
    name: &'static str,
    secret: String,
    folder: &'static str,
    /// Keys of the secret that are files there.
    keys: Vec<&'static str>,
}

impl Mount {
    fn mount(&self) -> String {
        format!("- name: {}\n  mountPath: {}\n  readOnly: true", self.name, self.folder)
    }

    /// The files are those of the pod's group alone (0440 with its fsGroup).
    fn volume(&self) -> String {
        let item = |key: &&str| format!("      - {{ key: {key}, path: {key} }}");
        let items: Vec<String> = self.keys.iter().map(item).collect();
        format!(
            "- name: {}\n  secret:\n    secretName: {}\n    defaultMode: 288\n    items:\n{}",
            self.name,
            self.secret,
            items.join("\n")
        )
    }

    /// The same for the pod of the coordinator.
    fn as_json(&self) -> (Value, Value) {
        let items: Vec<Value> =
            self.keys.iter().map(|key| json!({"key": key, "path": key})).collect();
        (
            json!({"name": self.name, "mountPath": self.folder, "readOnly": true}),
            json!({"name": self.name, "secret": {"secretName": self.secret, "defaultMode": 0o440, "items": items}}),
        )
    }
}

/// Quotes an argument of a container, in which `$(NAME)` is a variable.
fn argument(text: &str) -> String {
    yaml(&text.replace("$(", "$$("))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("\n")
}

/// Returns the manifest for Kubernetes.
pub fn kubernetes(placement: &Placement) -> Vec<Placed> {
    const FILE: &str = "fleet.yaml";
    let base = placement.base();
    let flag = placement.namespace.as_ref().map(|name| format!(" --namespace={name}"));
    let flag = flag.unwrap_or_default();
    let own =
        placement.namespace.as_ref().map(|name| format!("namespace: {}", yaml(&name.to_string())));
    let (bus, client) = (bus_mounts(placement), client_mounts(placement));
    let args = client_args(placement);
    let at = format!("{}://{base}-bus:{}", placement.guard.scheme(), placement.port);
    let words = args.iter().map(|word| format!(" {word}")).collect::<String>();
    let away = beside_target(placement, NOT_BESIDE);
    let jobs = if placement.watching.is_on() {
        format!("{base}-agents {base}-watchers")
    } else {
        format!("{base}-agents")
    };
    let mut values = placement.values("their own pods");
    values.extend([
        ("FILE", FILE.to_owned()),
        ("SECRET_STEPS", secret_steps(placement, &flag)),
        ("JOBS", jobs),
        ("NAMESPACE", own.unwrap_or_default()),
        ("NAMESPACE_FLAG", flag),
        ("IMAGE", yaml(&placement.image.to_string())),
        ("IMAGE_WORD", shell(&placement.image.to_string())),
        ("NATS_IMAGE", yaml(&placement.nats_image.to_string())),
        ("OVERRIDES", overrides(placement, &client).to_string()),
        ("COORDINATOR", placement.coordinator(&at) + &words),
        ("PROTECTION", placement.guard.server_lines("$BUS_TOKEN", ACCOUNTS, BUS_TLS_FOLDER)),
        ("LABELS", format!("app.kubernetes.io/name: plimsoll\napp.kubernetes.io/instance: {base}")),
        ("POD_SECURITY", POD_SECURITY.to_owned()),
        ("CONTAINER_SECURITY", CONTAINER_SECURITY.to_owned()),
        ("BUS_GROUP", if bus.is_empty() { String::new() } else { "fsGroup: 65532".to_owned() }),
        ("BUS_ENV", env(placement, "SECRET", QUOTED_TOKEN)),
        ("BUS_MOUNTS", joined(bus.iter().map(Mount::mount))),
        ("BUS_VOLUMES", joined(bus.iter().map(Mount::volume))),
        ("CLIENT_ENV", env(placement, "PLIMSOLL_BUS_TOKEN", "")),
        ("CLIENT_ARGS", joined(args.iter().map(|word| format!("- {word}")))),
        ("CLIENT_MOUNTS", joined(client.iter().map(Mount::mount))),
        ("CLIENT_VOLUMES", joined(client.iter().map(Mount::volume))),
        ("REQUIRED_AFFINITY", away.clone()),
        ("AWAY_FROM_TARGET", nested(&away)),
        ("BESIDE_TARGET", beside_target(placement, BESIDE)),
        ("CPU", placement.cpu.unwrap_or(CPU).to_string()),
        ("MEMORY", placement.memory.unwrap_or(MEMORY).to_string()),
        ("ALLOW", placement.allow(yaml, "- ", "\n")),
        ("WATCHERS", placement.watching.agents.to_string()),
        ("WATCH", placement.watch(argument, "- ", "\n")),
    ]);
    let mut text = fill(KUBERNETES, &values);
    if placement.watching.is_on() {
        text += &fill(WATCHERS, &values);
    }
    vec![(FILE, text)]
}

const NOT_BESIDE: &str = "# Not on a node of the target, in whatever namespace: a generator beside it would measure itself.";
const BESIDE: &str = "# On a node of the target, in whatever namespace.";

/// A rule about the nodes on which the target is.
fn beside_target(placement: &Placement, remark: &str) -> String {
    let Some(target) = &placement.target else { return String::new() };
    format!(
        "\
{remark}
requiredDuringSchedulingIgnoredDuringExecution:
  - topologyKey: kubernetes.io/hostname
    namespaceSelector: {{}}
    labelSelector:
      matchLabels:
        {}: {}",
        yaml(&target.key),
        yaml(&target.value)
    )
}

/// The rule as a whole affinity.
fn nested(rule: &str) -> String {
    if rule.is_empty() {
        return String::new();
    }
    let rule: Vec<String> = rule.lines().map(|line| format!("    {line}")).collect();
    format!("affinity:\n  podAntiAffinity:\n{}", rule.join("\n"))
}

/// Secrets with the certificates of the bus, with those of clients, and with its accounts.
fn of_tls(placement: &Placement, part: &str) -> String {
    format!("{}-{part}-tls", placement.base())
}

fn of_accounts(placement: &Placement) -> String {
    format!("{}-accounts", placement.base())
}

/// Secrets that the bus reads as files.
fn bus_mounts(placement: &Placement) -> Vec<Mount> {
    let mut mounts = Vec::new();
    if placement.guard.login == Login::Creds {
        mounts.push(Mount {
            name: "accounts",
            secret: of_accounts(placement),
            folder: ACCOUNTS_FOLDER,
            keys: vec!["accounts.conf"],
        });
    }
    if placement.guard.has_tls() {
        let mut keys = vec![CERTIFICATE, KEY];
        if placement.guard.wants_certificates() {
            keys.push(CA);
        }
        let secret = of_tls(placement, "bus");
        mounts.push(Mount { name: "tls", secret, folder: BUS_TLS_FOLDER, keys });
    }
    mounts
}

/// Secrets that a client reads as files. Without certificates of its own, it gets the authority of the bus and not its key.
fn client_mounts(placement: &Placement) -> Vec<Mount> {
    let guard = &placement.guard;
    let mut mounts = Vec::new();
    if !guard.has_token() {
        let keys = vec![guard.credential()];
        mounts.push(Mount {
            name: "login",
            secret: placement.secret(),
            folder: LOGIN_FOLDER,
            keys,
        });
    }
    if guard.has_tls() {
        let part = if guard.wants_certificates() { "client" } else { "bus" };
        let keys = guard.client_files().iter().map(|(_, file)| *file).collect();
        mounts.push(Mount {
            name: "tls",
            secret: of_tls(placement, part),
            folder: TLS_FOLDER,
            keys,
        });
    }
    mounts
}

/// Flags with which a client of the bus reads its files.
fn client_args(placement: &Placement) -> Vec<String> {
    let guard = &placement.guard;
    let mut args = Vec::new();
    if !guard.has_token() {
        args.push(format!("{}={LOGIN_FOLDER}/{}", guard.credential_flag(), guard.credential()));
    }
    let of_tls = guard.client_files().into_iter();
    args.extend(of_tls.map(|(flag, file)| format!("{flag}={TLS_FOLDER}/{file}")));
    args
}

/// The token as a variable of a container; nothing without one.
fn env(placement: &Placement, variable: &str, more: &str) -> String {
    if !placement.guard.has_token() {
        return String::new();
    }
    let own = format!(
        "- name: {variable}\n  valueFrom:\n    secretKeyRef:\n      name: {}\n      key: token",
        placement.secret()
    );
    let lines = own.lines().chain(more.lines()).map(|line| format!("  {line}"));
    format!("env:\n{}", joined(lines))
}

/// The commands that make the secrets, as a remark.
fn secret_steps(placement: &Placement, flag: &str) -> String {
    let secret = placement.secret();
    let mut steps = match placement.guard.login {
        Login::Token => format!(
            "\
# 1. Once: the token of the bus, on no command line and in no file.
#      od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' |
#        kubectl create secret generic {secret} --from-file=token=/dev/stdin{flag}"
        ),
        Login::Nkey(_) => format!(
            "\
# 1. Once: the NKey seed of the fleet. The bus has its public part.
#      kubectl create secret generic {secret} --from-file=nkey=user.nk{flag}"
        ),
        Login::Creds => format!(
            "\
# 1. Once: the credentials of a user of the fleet, and the accounts that the bus knows.
#      nsc generate config --mem-resolver --config-file accounts.conf
#      kubectl create secret generic {} --from-file=accounts.conf{flag}
#      kubectl create secret generic {secret} --from-file=creds=user.creds{flag}",
            of_accounts(placement)
        ),
    };
    let files = "--from-file=ca.crt --from-file=tls.crt --from-file=tls.key";
    if placement.guard.has_tls() {
        steps += &format!(
            "\n#    The certificate of the bus for the name {}-bus, its key, and the authority.\n#      kubectl create secret generic {} {files}{flag}",
            placement.base(),
            of_tls(placement, "bus")
        );
    }
    if placement.guard.wants_certificates() {
        steps += &format!(
            "\n#    The certificate of the agents and the coordinator, by the same authority, in files with the same names.\n#      kubectl create secret generic {} {files}{flag}",
            of_tls(placement, "client")
        );
    }
    steps
}

/// The pod of a coordinator: the secrets, and the security that the other pods have.
fn overrides(placement: &Placement, mounts: &[Mount]) -> Value {
    let mut container = json!({
        "name": format!("{}-run", placement.base()),
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    });
    let mut spec = json!({
        "automountServiceAccountToken": false,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
    });
    if placement.guard.has_token() {
        let key = json!({"name": placement.secret(), "key": "token"});
        container["env"] =
            json!([{"name": "PLIMSOLL_BUS_TOKEN", "valueFrom": {"secretKeyRef": key}}]);
    }
    if !mounts.is_empty() {
        let (mounts, volumes): (Vec<Value>, Vec<Value>) = mounts.iter().map(Mount::as_json).unzip();
        container["volumeMounts"] = Value::Array(mounts);
        spec["volumes"] = Value::Array(volumes);
        spec["securityContext"]["fsGroup"] = json!(65532);
    }
    spec["containers"] = json!([container]);
    json!({ "spec": spec })
}
