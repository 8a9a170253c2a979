//! `plimsoll fleet render --k8s` and `--compose`: against the published schemas, and the bus of each as it would run.

use crate::bus::Server;
use crate::process::{Place, Running, until};
use plimsoll_bus::{Credentials, Nats, NatsOptions};
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::{Map, Value, json};
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
/// A token that a parser of numbers would accept in part.
const TOKEN: &str = "12e4b";

fn value(node: &Yaml<'_>) -> Value {
    if let Some(mapping) = node.as_mapping() {
        let pair = |(key, own): (&Yaml<'_>, &Yaml<'_>)| {
            (key.as_str().unwrap_or_else(|| panic!("{key:?}")).to_owned(), value(own))
        };
        return Value::Object(mapping.iter().map(pair).collect());
    }
    if let Some(all) = node.as_sequence() {
        return Value::Array(all.iter().map(value).collect());
    }
    let number = node.as_integer().map(Value::from);
    let number = number.or_else(|| node.as_floating_point().map(Value::from));
    let plain = number.or_else(|| node.as_bool().map(Value::from));
    plain.or_else(|| node.as_str().map(Value::from)).unwrap_or(Value::Null)
}

pub fn documents(text: &str) -> Vec<Value> {
    let all = Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    all.iter().map(value).collect()
}

pub fn schema(name: &str) -> Value {
    let path = format!("{}/../../tests/fleet/schemas/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The published definitions of Kubernetes, which are made strict, as its server is: a field that they do not have is a mistake.
fn kubernetes_definitions() -> Value {
    let mut schema = schema("kubernetes.json");
    for definition in schema["definitions"].as_object_mut().unwrap().values_mut() {
        if definition["format"] == "int-or-string" {
            *definition = json!({"type": ["integer", "string"]});
        } else if definition.get("properties").is_some() {
            definition["additionalProperties"] = json!(false);
        }
    }
    schema["definitions"].take()
}

pub fn complaints(schema: &Value, document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{error}"));
    let shown =
        |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    validator.iter_errors(document).map(shown).collect()
}

/// The mistakes in a manifest.
pub fn kubernetes_faults(text: &str) -> Vec<String> {
    let definitions = kubernetes_definitions();
    let mut faults = Vec::new();
    for document in documents(text) {
        let kind = document["kind"].as_str().unwrap_or_default();
        let of_version = match document["apiVersion"].as_str().unwrap_or_default() {
            "v1" => "core.v1".to_owned(),
            version => {
                version.trim_end_matches(".k8s.io/v1").trim_end_matches("/v1").to_owned() + ".v1"
            }
        };
        let name = format!("io.k8s.api.{of_version}.{kind}");
        if definitions.get(&name).is_none() {
            faults.push(format!("unknown kind {name}"));
            continue;
        }
        let schema = json!({"$ref": format!("#/definitions/{name}"), "definitions": definitions});
        faults.extend(complaints(&schema, &document).iter().map(|fault| format!("{kind}{fault}")));
    }
    faults
}

#[track_caller]
pub fn render(place: &Place, words: &[&str]) -> String {
    place.run([&["fleet", "render"], words].concat()).expect(0).stdout
}

/// All flags of the form, so that every part of the text is there.
const KUBERNETES: &[&str] = &[
    "--k8s",
    "--agents",
    "5",
    "--fleet",
    "night-1",
    "--namespace",
    "123",
    "--target-label",
    "example.org/app=true",
    "--allow-target",
    "*.prod.test",
    "--cpu",
    "1500m",
    "--token-secret",
    "bus",
];

pub fn of_kind<'a>(all: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = all.iter().find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

#[test]
fn manifests_follow_the_published_schema_of_kubernetes() {
    let place = Place::new();
    for words in [&["--k8s"][..], KUBERNETES] {
        let text = render(&place, words);
        assert_eq!(kubernetes_faults(&text), Vec::<String>::new(), "{text}");
        assert_eq!(documents(&text).len(), 7);
    }
    let text = render(&place, KUBERNETES);
    for (from, to) in [
        ("backoffLimit: 0", "backofLimit: 0"),
        ("completions: 5", "completions: five"),
        ("kind: Job", "kind: Jobs"),
        ("- name: agent\n", "- nam: agent\n"),
        ("topologyKey: kubernetes.io/hostname", "topology: hostname"),
        ("emptyDir: {}", "emptyDir: []"),
        ("namespace: \"123\"", "namespace: 123"),
        ("cpu: \"1500m\"", "cpu: [1500m]"),
        ("readOnlyRootFilesystem", "readonlyRootFilesystem"),
    ] {
        assert!(text.contains(from), "{from}");
        let faults = kubernetes_faults(&text.replace(from, to));
        assert!(!faults.is_empty(), "{from} -> {to} is not noticed");
    }
}

#[test]
fn the_job_is_indexed_guaranteed_and_away_from_the_target() {
    let place = Place::new();
    let all = documents(&render(&place, KUBERNETES));
    for one in &all {
        assert_eq!(one["metadata"]["namespace"], "123", "{one}");
    }
    let job = &of_kind(&all, "Job", "plimsoll-night-1-agents")["spec"];
    assert_eq!((&job["completions"], &job["parallelism"]), (&json!(5), &json!(5)));
    assert_eq!((&job["completionMode"], &job["backoffLimit"]), (&json!("Indexed"), &json!(0)));
    let pod = &job["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    let affinity = &pod["affinity"]["podAntiAffinity"];
    let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(required["labelSelector"]["matchLabels"], json!({"example.org/app": "true"}));
    assert_eq!(required["namespaceSelector"], json!({}));
    let preferred = &affinity["preferredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(preferred["podAffinityTerm"]["topologyKey"], "kubernetes.io/hostname");
    let agent = &pod["containers"][0];
    assert_eq!(agent["resources"]["requests"], agent["resources"]["limits"]);
    assert_eq!(agent["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(agent["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        agent["env"][0]["valueFrom"]["secretKeyRef"],
        json!({"name": "bus", "key": "token"})
    );
    // The words are those of an agent, and this program understands them.
    let words = agent["args"].as_array().unwrap();
    let words: Vec<String> = words.iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    assert_eq!(plimsoll::check_words(&words), Ok(()));
    for word in ["--name=agent-$(JOB_COMPLETION_INDEX)", "--once", "--allow-target=*.prod.test"] {
        assert!(words.contains(&word.to_owned()), "{word}: {words:?}");
    }
    assert!(words.contains(&"--bus=nats://plimsoll-night-1-bus:4222".to_owned()), "{words:?}");
    // Services find their pods, and the headless one gives the agents their names.
    let agents = &of_kind(&all, "Service", "plimsoll-night-1-agents")["spec"];
    assert_eq!(
        (&agents["clusterIP"], &pod["subdomain"]),
        (&json!("None"), &json!("plimsoll-night-1-agents"))
    );
    let bus = &of_kind(&all, "Deployment", "plimsoll-night-1-bus")["spec"];
    for (service, pod) in [("agents", &job["template"]), ("bus", &bus["template"])] {
        let selector =
            &of_kind(&all, "Service", &format!("plimsoll-night-1-{service}"))["spec"]["selector"];
        assert!(is_part(selector, &pod["metadata"]["labels"]), "{service}");
        let policy =
            &of_kind(&all, "NetworkPolicy", &format!("plimsoll-night-1-{service}"))["spec"];
        assert!(
            is_part(&policy["podSelector"]["matchLabels"], &pod["metadata"]["labels"]),
            "{service}"
        );
    }
    // The pod of the coordinator in the comment is JSON.
    let text = render(&place, KUBERNETES);
    let overrides = text.split("--overrides='").nth(1).unwrap().split('\'').next().unwrap();
    let overrides: Value = serde_json::from_str(overrides).unwrap();
    assert_eq!(overrides["spec"]["containers"][0]["env"], agent["env"]);
    // It needs nothing of the API, as no pod of a fleet does.
    assert_eq!(overrides["spec"]["automountServiceAccountToken"], false);
}

fn is_part(part: &Value, whole: &Value) -> bool {
    let empty = Map::new();
    let part = part.as_object().unwrap_or(&empty);
    !part.is_empty() && part.iter().all(|(key, value)| whole[key] == *value)
}

/// Starts a bus as a form starts it, and checks that it lets in who has the token and no other.
#[track_caller]
fn expect_token(place: &Place, command: impl Fn(&str, &str) -> Command) {
    let (port, monitor) = (crate::server::closed_port(), crate::server::closed_port());
    let mut bus = Running::start(command(&port, &monitor), b"");
    let connect = |token: Option<&str>| {
        let mut options =
            NatsOptions::new(format!("nats://127.0.0.1:{port}").parse().unwrap(), "plimsoll test");
        options.credentials =
            token.map_or(Credentials::None, |token| Credentials::Token(token.to_owned()));
        Nats::connect(&options)
    };
    until("the bus accepts the token", SOON, || connect(Some(TOKEN)).is_ok() || !bus.is_running());
    assert!(bus.is_running(), "{} in {}", bus.stderr_so_far(), place.path().display());
    assert!(connect(None).is_err() && connect(Some("12")).is_err());
    let health = format!("http://127.0.0.1:{monitor}/healthz");
    assert_eq!(crate::process::curl(&[&health]).0, 200);
}

/// The configuration of a bus as a file, on other ports.
fn config(place: &Place, text: &str, port: &str, monitor: &str) -> std::path::PathBuf {
    let here = text.replace("port: 4222", &format!("host: 127.0.0.1\nport: {port}"));
    let here = here.replace("127.0.0.1:8222", "8222").replace("http: 8222", "http_port: 8222");
    place.file("bus.conf", here.replace("http_port: 8222", &format!("http: 127.0.0.1:{monitor}")))
}

#[test]
fn the_bus_of_a_manifest_requires_the_token() {
    let place = Place::new();
    let all = documents(&render(&place, &["--k8s"]));
    let text = of_kind(&all, "ConfigMap", "plimsoll-bus")["data"]["nats.conf"].as_str().unwrap();
    let bus =
        &of_kind(&all, "Deployment", "plimsoll-bus")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(bus["command"], json!(["nats-server", "-c", "/etc/nats/nats.conf"]));
    assert_eq!(bus["env"][0]["name"], "SECRET");
    // As Kubernetes puts in a variable that was defined before.
    let quoted = bus["env"][1]["value"].as_str().unwrap().replace("$(SECRET)", TOKEN);
    expect_token(&place, |port, monitor| {
        let config = config(&place, text, port, monitor);
        let mut command = place.program(Server::program(), ["-c".as_ref(), config.as_os_str()]);
        command.env(bus["env"][1]["name"].as_str().unwrap(), &quoted);
        command
    });
}

const COMPOSE: &[&str] = &["--compose", "--agents", "4", "--allow-target=*.test", "--cpu", "0.5"];

#[test]
fn files_for_compose_follow_the_published_schema() {
    let place = Place::new();
    let schema = schema("compose.json");
    for words in [&["--compose"][..], COMPOSE] {
        let text = render(&place, words);
        let found = documents(&text);
        assert_eq!(found.len(), 1);
        assert_eq!(complaints(&schema, &found[0]), Vec::<String>::new(), "{text}");
    }
    let text = render(&place, COMPOSE);
    for (from, to) in [
        ("replicas: 4", "replica: 4"),
        ("replicas: 4", "replicas: [4]"),
        ("healthcheck:", "healthchecks:"),
        ("condition: service_healthy", "condition: healthy"),
        ("profiles: [\"coordinator\"]", "profiles: {}"),
        ("services:", "service:"),
    ] {
        assert!(text.contains(from), "{from}");
        let faults = complaints(&schema, &documents(&text.replace(from, to))[0]);
        assert!(!faults.is_empty(), "{from} -> {to} is not noticed");
    }
    let agent = &documents(&text)[0]["services"]["agent"];
    let words = agent["command"].as_array().unwrap();
    let words: Vec<String> = words.iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    assert_eq!(plimsoll::check_words(&words), Ok(()));
    assert!(words.contains(&"--allow-target=*.test".to_owned()), "{words:?}");
    assert_eq!(agent["deploy"]["resources"]["limits"]["cpus"], "0.500");
}

#[test]
fn the_bus_of_a_file_for_compose_requires_the_token() {
    let place = Place::new();
    let found = documents(&render(&place, &["--compose"])).remove(0);
    // Compose reads two of these signs as one.
    let plain = |text: &Value| text.as_str().unwrap().replace("$$", "$");
    let text = plain(&found["configs"]["bus"]["content"]);
    let entry = &found["services"]["bus"]["entrypoint"];
    assert_eq!((&entry[0], &entry[1]), (&json!("/bin/sh"), &json!("-c")));
    expect_token(&place, |port, monitor| {
        let config = config(&place, &text, port, monitor);
        let script = plain(&entry[2]).replace("/etc/nats/bus.conf", &config.display().to_string());
        let script = script.replace("nats-server", &Server::program().display().to_string());
        let mut command = place.program("/bin/sh", ["-c", &script]);
        command.env("PLIMSOLL_BUS_TOKEN", TOKEN);
        command
    });
}

/// Another version in the image would be a bus that no test here has seen.
#[test]
fn the_image_of_the_bus_has_the_pinned_version() {
    let pin = include_str!("../../crates/catalogue/engines/nats.pin");
    let version = pin.split(' ').next().unwrap().trim_start_matches('v');
    for form in ["--k8s", "--compose"] {
        let text = render(&Place::new(), &[form]);
        assert!(text.contains(&format!("image: \"nats:{version}-alpine\"")), "{text}");
    }
}

#[test]
fn no_text_has_a_token_in_it() {
    let place = Place::new();
    for words in [&["--k8s"][..], &["--compose"], &["--systemd"], &["--slurm"], &["--ssh", "a,b"]] {
        let mut command = place.plimsoll([&["fleet", "render"], words].concat());
        command.env("PLIMSOLL_BUS_TOKEN", "hidden-word");
        let ended = Running::start(command, b"").wait(SOON).expect(0);
        assert!(!ended.stdout.contains("hidden-word"), "{words:?}");
    }
}
