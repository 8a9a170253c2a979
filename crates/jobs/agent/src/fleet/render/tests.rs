use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    render: RenderArgs,
}

const FORMS: [&[&str]; 5] =
    [&["--k8s"], &["--compose"], &["--systemd"], &["--slurm"], &["--ssh", "load1,me@load2"]];

fn rendered(words: &[&str]) -> Result<String, String> {
    let line = Line::try_parse_from([&["render"], words].concat());
    let files = line.map_err(|error| error.to_string())?.render.files();
    files.map(|files| joined(&files)).map_err(|error| error.to_string())
}

#[test]
fn every_place_of_every_template_is_filled() {
    let place = |text: &str| {
        let mut words = text.split('@').skip(1);
        words
            .find(|word| {
                word.chars().all(|sign| sign.is_ascii_uppercase() || sign == '_') && word.len() > 2
            })
            .map(str::to_owned)
    };
    assert_eq!(place("a @NAME@ b").as_deref(), Some("NAME"));
    let watching: [&[&str]; 5] = [
        &["--watch", "x", "--target-label", "a=b"],
        &["--watch", "x"],
        &["--watch", "x"],
        &["--watch", "x", "--watch-host", "h"],
        &["--watch", "x", "--watch-host", "h"],
    ];
    let secured: &[&str] = &["--tls", "--client-certs"];
    for (form, watching) in FORMS.into_iter().zip(watching) {
        let secured = if form[0] == "--ssh" { &[] } else { secured };
        for words in [form.to_vec(), [form, watching, secured].concat()] {
            let text = rendered(&words).unwrap();
            assert_eq!(place(&text), None, "{words:?}\n{text}");
            assert!(text.lines().all(|line| line.trim_end() == line), "{words:?}");
            assert_eq!(text.contains("--watch=x"), words.len() > form.len(), "{words:?}\n{text}");
        }
    }
}

/// A thing to watch stays one word in every language.
#[test]
fn things_to_watch_are_quoted() {
    let hostile = "--watch=a=$(id) '\"; %h";
    for (words, quoted) in [
        (&["--k8s", "--target-label", "a=b"][..], r#"- "--watch=a=$$(id) '\"; %h""#),
        (&["--compose"], r#"- "--watch=a=$$(id) '\"; %h""#),
        (&["--systemd"], r#"--role watch "--watch=a=$$(id) '\"; %%h" --bus"#),
        (&["--slurm", "--watch-host", "h"], r#"--role watch '--watch=a=$(id) '\''"; %h' --bus"#),
        (&["--ssh", "l", "--watch-host", "h"], r#"--role watch '--watch=a=$(id) '\''"; %h' --bus"#),
    ] {
        let text = rendered(&[words, &[hostile]].concat()).unwrap();
        assert!(text.contains(quoted), "{words:?}\n{text}");
    }
}

#[test]
fn agents_without_allowed_targets_are_pointed_out() {
    for form in FORMS {
        let hint = "--allow-target TARGET";
        assert!(rendered(form).unwrap().contains(hint), "{form:?}");
        let allowed = rendered(
            &[form, &["--allow-target", "search.test", "--allow-target", "10.0.0.0/8"]].concat(),
        );
        let allowed = allowed.unwrap();
        assert!(!allowed.contains(hint), "{form:?}");
        for target in ["--allow-target=search.test", "--allow-target=10.0.0.0/8"] {
            assert!(allowed.contains(target), "{form:?}\n{allowed}");
        }
        // A shell would read the star as a pattern.
        let below = rendered(&[form, &["--allow-target=*.test"]].concat()).unwrap();
        let is_quoted =
            ["'--allow-target=*.test'", "\"--allow-target=*.test\"", " --allow-target=*.test\n"];
        assert!(is_quoted.iter().any(|quoted| below.contains(quoted)), "{form:?}\n{below}");
    }
}

#[test]
fn flags_of_another_form_are_rejected() {
    for words in [
        &["--ssh", "a", "--agents", "2"][..],
        &["--ssh", "a", "--cpu", "2"],
        &["--ssh", "a", "--image", "x"],
        &["--slurm", "--token-secret", "x"],
        &["--compose", "--namespace", "x"],
        &["--compose", "--target-label", "a=b"],
        &["--k8s", "--program", "/p"],
        &["--slurm", "--bus-host", "h"],
        &["--ssh", "a", "--tls"],
        &["--compose", "--client-certs"],
        &["--slurm", "--creds"],
        &["--systemd", "--creds"],
        &["--compose", "--watch", "x", "--watch-host", "h"],
        &["--slurm", "--watch", "x", "--watchers", "2"],
        &["--k8s", "--watchers", "2"],
        &["--k8s", "--slurm"],
        &[],
    ] {
        assert!(rendered(words).is_err(), "{words:?}");
    }
}

#[test]
fn values_that_fit_no_form_are_rejected_with_the_flag() {
    for (words, flag) in [
        (&["--k8s", "--fleet", "My_Fleet"][..], "--fleet"),
        (&["--compose", "--fleet", &"a".repeat(FLEET_MAX + 1)], "--fleet"),
        (&["--k8s", "--fleet", "a b"], "--fleet"),
        (&["--k8s", "--port", "0"], "--port"),
        (&["--k8s", "--namespace", "a: b"], "--namespace"),
        (&["--k8s", "--image", "a\"\nb: c"], "--image"),
        (&["--k8s", "--token-secret", "x\n"], "--token-secret"),
        (&["--k8s", "--target-label", "a=b\"}"], "--target-label"),
        (&["--k8s", "--agents", "0"], "--agents"),
        (&["--systemd", "--bus-host", "h -x"], "--bus-host"),
        (&["--slurm", "--program", "/p;id"], "--program"),
        (&["--slurm", "--allow-target", "$(id)"], "--allow-target"),
        (&["--ssh", "a,-oProxyCommand=id"], "--ssh"),
        (&["--ssh", "a,b,a"], "--ssh"),
        (&["--k8s", "--watch", "mysqld"], "--target-label"),
        (&["--slurm", "--watch", "mysqld"], "--watch-host"),
        (&["--ssh", "a,b", "--watch", "x", "--watch-host", "b"], "--watch-host b"),
        (&["--ssh", "a", "--watch", "x", "--watch-host=-oProxyCommand=id"], "--watch-host"),
        (&["--compose", "--watch", "a.service"], "control groups"),
        (&["--compose", "--watch", "a.scope"], "control groups"),
        (&["--compose", "--watch", "user.slice"], "control groups"),
        (&["--systemd", "--watch", "12"], "--watch"),
        (&["--k8s", "--nkey", "SUA"], "--nkey"),
    ] {
        let error = rendered(words).unwrap_err();
        assert!(error.contains(flag), "{words:?}: {error}");
    }
    assert!(rendered(&["--slurm", "--fleet", "My_Fleet"]).unwrap().contains("fleet=My_Fleet\n"));
    assert!(rendered(&["--ssh", "a", "--port", "0"]).is_ok());
}

#[test]
fn resources_are_in_the_words_of_the_form() {
    let of = |form: &str| rendered(&[form, "--cpu", "1500m", "--memory", "1500Mi"]).unwrap();
    assert_eq!(of("--k8s").matches("{ cpu: \"1500m\", memory: \"1500Mi\" }").count(), 2);
    assert_eq!(of("--compose").matches("{ cpus: \"1.500\", memory: 1500m }").count(), 2);
    assert!(of("--systemd").contains("CPUQuota=150%\nMemoryMax=1572864000\n"));
    assert!(of("--slurm").contains("#SBATCH --cpus-per-task=2\n#SBATCH --mem=1500M\n"));
    assert!(!rendered(&["--systemd"]).unwrap().contains("CPUQuota"));
}

#[test]
fn files_that_are_there_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("a", "1\n".to_owned()), ("b", "2\n".to_owned())];
    write(&folder.path().join("new"), &files).unwrap();
    let error = write(&folder.path().join("new"), &files).unwrap_err().to_string();
    assert!(error.contains("--out") && error.contains("file exists"), "{error}");
    assert_eq!(std::fs::read_to_string(folder.path().join("new/b")).unwrap(), "2\n");
}

/// The image of the bus has the version that `plimsoll install nats` builds; tests/fleet/pods.rs compares it with the pin.
#[test]
fn the_image_of_the_bus_is_pinned() {
    assert!(rendered(&["--k8s"]).unwrap().contains(&format!("image: \"{NATS_IMAGE}\"")));
}
