//! Placement in containers: Kubernetes and Compose.

use super::{Placed, Placement};
use crate::fleet::quoting::{compose as compose_text, fill, shell, yaml};
use crate::fleet::values::{Cpu, Memory};

const KUBERNETES: &str = include_str!("../../../templates/kubernetes.yaml");
const COMPOSE: &str = include_str!("../../../templates/compose.yaml");

/// Processors and memory of an agent for which nothing is given.
const CPU: Cpu = Cpu { milli: 2000 };
const MEMORY: Memory = Memory { bytes: 1 << 30 };

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

const SECURITY: &str = "\
user: \"65532:65532\"
read_only: true
tmpfs: [\"/tmp:mode=1777\", \"/data:mode=1777\"]
cap_drop: [\"ALL\"]
security_opt: [\"no-new-privileges:true\"]";

/// Returns the manifest for Kubernetes.
pub fn kubernetes(placement: &Placement) -> Vec<Placed> {
    const FILE: &str = "fleet.yaml";
    let (base, secret) = (placement.base(), placement.secret());
    let namespace = placement.namespace.as_ref().map(ToString::to_string);
    let bus = format!("nats://{base}-bus:{}", placement.port);
    let away = away_from_target(placement);
    let mut values = placement.values("their own pods");
    values.extend([
        ("FILE", FILE.to_owned()),
        ("SECRET", secret.clone()),
        (
            "NAMESPACE",
            namespace
                .as_ref()
                .map_or_else(String::new, |name| format!("namespace: {}", yaml(name))),
        ),
        (
            "NAMESPACE_FLAG",
            namespace.map_or_else(String::new, |name| format!(" --namespace={name}")),
        ),
        ("IMAGE", yaml(&placement.image.to_string())),
        ("IMAGE_WORD", shell(&placement.image.to_string())),
        ("NATS_IMAGE", yaml(&placement.nats_image.to_string())),
        ("OVERRIDES", overrides(&format!("{base}-run"), &secret)),
        ("COORDINATOR", placement.coordinator(&bus)),
        ("LABELS", format!("app.kubernetes.io/name: plimsoll\napp.kubernetes.io/instance: {base}")),
        ("POD_SECURITY", POD_SECURITY.to_owned()),
        ("CONTAINER_SECURITY", CONTAINER_SECURITY.to_owned()),
        ("REQUIRED_AFFINITY", away.clone()),
        ("AWAY_FROM_TARGET", nested(&away)),
        ("CPU", placement.cpu.unwrap_or(CPU).to_string()),
        ("MEMORY", placement.memory.unwrap_or(MEMORY).to_string()),
        ("ALLOW", placement.allow(yaml, "- ", "\n")),
    ]);
    vec![(FILE, fill(KUBERNETES, &values))]
}

/// The rule that keeps a pod from the nodes on which the target is.
fn away_from_target(placement: &Placement) -> String {
    let Some(target) = &placement.target else { return String::new() };
    format!(
        "\
# Not on a node of the target, in whatever namespace: a generator beside it would measure itself.
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

/// The same rule as a whole affinity.
fn nested(rule: &str) -> String {
    if rule.is_empty() {
        return String::new();
    }
    let rule: Vec<String> = rule.lines().map(|line| format!("    {line}")).collect();
    format!("affinity:\n  podAntiAffinity:\n{}", rule.join("\n"))
}

/// The pod of a coordinator: the token from the secret, and the security that the other pods have.
fn overrides(name: &str, secret: &str) -> String {
    format!(
        concat!(
            r#"{{"spec":{{"securityContext":{{"runAsNonRoot":true,"seccompProfile":{{"type":"RuntimeDefault"}}}},"#,
            r#""containers":[{{"name":"{}","securityContext":{{"allowPrivilegeEscalation":false,"capabilities":{{"drop":["ALL"]}}}},"#,
            r#""env":[{{"name":"PLIMSOLL_BUS_TOKEN","valueFrom":{{"secretKeyRef":{{"name":"{}","key":"token"}}}}}}]}}]}}}}"#
        ),
        name, secret
    )
}

/// Returns the file for Compose.
pub fn compose(placement: &Placement) -> Vec<Placed> {
    const FILE: &str = "compose.yaml";
    let cpu = placement.cpu.unwrap_or(CPU).milli;
    let cpus = match cpu % 1000 {
        0 => (cpu / 1000).to_string(),
        part => format!("{}.{part:03}", cpu / 1000),
    };
    let mut values = placement.values("their own containers");
    values.extend([
        ("FILE", FILE.to_owned()),
        ("SECRET", placement.secret()),
        ("IMAGE", compose_text(&placement.image.to_string())),
        ("NATS_IMAGE", compose_text(&placement.nats_image.to_string())),
        ("COORDINATOR", placement.coordinator("nats://bus:4222")),
        ("CPUS", cpus),
        ("MEBIBYTES", placement.memory.unwrap_or(MEMORY).mebibytes().to_string()),
        ("SECURITY", SECURITY.to_owned()),
        ("ALLOW", placement.allow(compose_text, "- ", "\n")),
    ]);
    vec![(FILE, fill(COMPOSE, &values))]
}
