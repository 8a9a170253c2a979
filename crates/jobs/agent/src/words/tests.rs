use super::*;
use clap::Args;

#[derive(Args)]
struct Flags {
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    #[arg(long, value_name = "LINE|@FILE")]
    header: Vec<String>,
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[arg(long)]
    rate: Option<u32>,
    #[arg(short = 'k')]
    keep: bool,
    #[arg(short = 'n')]
    clients: Option<u32>,
    #[arg(long, value_name = "N/M")]
    part: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    fleet: FleetFlags,
    urls: Vec<String>,
}

fn packed(words: &[&str]) -> Result<Packed> {
    let command = Flags::augment_args(clap::Command::new("load"));
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    pack(&command, &words, To::Agents)
}

#[test]
fn flags_of_the_coordinator_stay_with_it() {
    let words = [
        "load",
        "http://h/",
        "--rate",
        "5",
        "--json",
        "-",
        "--quiet",
        "--agents=3",
        "--bus",
        "nats://h",
        "-kn7",
        "--runs",
        "here",
        "--label",
        "a=b",
        "--",
        "--rate",
    ];
    let packed = packed(&words).unwrap();
    assert_eq!(packed.words, ["load", "--rate=5", "-k", "-n", "7", "http://h/", "--", "--rate"]);
}

#[test]
fn files_are_named_by_their_place_on_the_agent() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["q000.txt", "q001.txt", "qx.txt", "other"] {
        std::fs::write(dir.path().join(name), name).unwrap();
    }
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (pattern, header) = (path("q%03d.txt"), format!("@{}", path("other")));
    let done = packed(&["load", "--queries", &pattern, "--header", &header]).unwrap();
    assert_eq!(done.words, ["load", "--queries={files}/0/q%03d.txt", "--header=@{files}/1/other"]);
    let entries = done.files.entries();
    let files: Vec<(u32, &str)> =
        entries.iter().map(|entry| (entry.folder, entry.name.as_str())).collect();
    assert_eq!(files, [(0, "q000.txt"), (0, "q001.txt"), (1, "other")]);
    // PATH is set everywhere.
    let done = packed(&["load", "--header", "A: ${PATH}", "--header", "B: plain"]).unwrap();
    assert_eq!(done.words, ["load", "--header=@{files}/0/header", "--header=B: plain"]);
    assert!(done.files.entries()[0].is_secret);
    let missing = path("none.txt");
    for (words, part) in [
        (vec!["load", "--queries", &missing], "no such file"),
        (vec!["load", "--queries", dir.path().to_str().unwrap()], "not a regular file"),
        (vec!["load", "--out", "x"], "leave it out with --agents"),
        (vec!["load", "--part", "0/2"], "exclude each other"),
        (vec!["load", "--header", "A: ${NO_SUCH_VARIABLE_OF_MINE}"], "NO_SUCH_VARIABLE_OF_MINE"),
    ] {
        let error = packed(&words).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// A coordinator that is not one of plimsoll may send any words.
#[test]
fn words_from_the_bus_lead_to_no_other_file_and_to_no_variable() {
    let command = Flags::augment_args(clap::Command::new("load"));
    let is_good = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        check(&command, &words, To::Agents).is_ok()
    };
    assert!(is_good(&[
        "load",
        "http://h/",
        "--queries={files}/0/q",
        "--header",
        "@{files}/12/h",
        "--header",
        "A: b"
    ]));
    for wrong in [
        &["load", "--queries", "/etc/passwd"][..],
        &["load", "--queries={files}/0/../../etc/passwd"],
        &["load", "--queries={files}/../x"],
        &["load", "--queries={files}/0/.."],
        &["load", "--header", "@/etc/passwd"],
        &["load", "--header", "A: ${HOME}"],
        &["load", "--json", "x"],
        &["load", "--runs=/tmp"],
        &["load", "--agents=3"],
        &["load", "--out", "x"],
        &["load", "--part=0/2"],
    ] {
        assert!(!is_good(wrong), "{wrong:?}");
    }
}

#[derive(Args)]
struct FeedFlags {
    #[arg(long, value_name = "FILE")]
    failed: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    vespa_statistics: Option<PathBuf>,
    sources: Vec<String>,
}

/// Files without a flag go to the agents, and each agent writes a file of its own.
#[test]
fn operations_are_sent_and_rejected_ones_stay_on_the_agent() {
    let command = FeedFlags::augment_args(clap::Command::new("feed"));
    let feed = |words: &[&str], task| {
        let mut packer = Packer::new(&command, task, To::Agents);
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        packer.all(&words).map(|()| packer.packed).map_err(|error| error.to_string())
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("one.json"), "[]").unwrap();
    let file = dir.path().join("one.json").display().to_string();
    let words = [
        "feed",
        "http://h/",
        &file,
        "--failed",
        "rest.json",
        "--vespa-statistics",
        "/tmp/x",
        "--",
        &file,
    ];
    let packed = feed(&words, Task::Pack).unwrap();
    let sent = [
        "feed",
        "--failed=rest.json",
        "http://h/",
        "{files}/0/one.json",
        "--",
        "{files}/1/one.json",
    ];
    assert_eq!(packed.words, sent);
    assert_eq!(packed.files.entries().len(), 2);
    assert!(feed(&sent, Task::Check).is_ok());
    for (words, part) in [
        (["feed", "http://h/", "-"], "stdin"),
        (["feed", "http://h/", "none.json"], "no such file"),
        (["feed", "http://h/", "--failed=/etc/x"], "without a folder"),
        (["feed", "http://h/", "--failed=.."], "without a folder"),
    ] {
        let error = feed(&words, Task::Pack).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
    for wrong in ["/etc/passwd", "-", "{files}/0/../x", "--failed=../x", "--vespa-statistics=x"] {
        assert!(feed(&["feed", "http://h/", wrong], Task::Check).is_err(), "{wrong}");
    }
    assert!(feed(&["feed", "--failed=/dev/null"], Task::Check).is_ok());
}

/// Processes of this machine read the user's files where they are, and write beside each other.
#[test]
fn processes_get_the_paths_of_this_machine() {
    let command = FeedFlags::augment_args(clap::Command::new("feed"));
    let feed = |words: &[&str], task| {
        let mut packer = Packer::new(&command, task, To::Processes);
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        packer.all(&words).map(|()| packer.packed).map_err(|error| error.to_string())
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("one.json"), "[]").unwrap();
    let file = dir.path().join("one.json").display().to_string();
    let here = std::env::current_dir().unwrap().join("rest.json").display().to_string();
    let packed = feed(&["feed", "--failed", "rest.json", "http://h/", &file], Task::Pack).unwrap();
    assert_eq!(packed.words, ["feed", &format!("--failed={here}"), "http://h/", &file]);
    assert!(packed.files.entries().is_empty(), "nothing is sent");
    let words: Vec<&str> = packed.words.iter().map(String::as_str).collect();
    assert!(feed(&words, Task::Check).is_ok());
    for (words, part) in [
        (["feed", "http://h/", "-"], "stdin"),
        (["feed", "http://h/", "none.json"], "none.json: no such file"),
        (["feed", "http://h/", "/dev/null"], "not a regular file; --processes needs one"),
        (["feed", "http://h/", "--failed=-"], "with --processes, write a file name"),
    ] {
        let error = feed(&words, Task::Pack).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
    for wrong in ["one.json", "../x", "--failed=x", "--processes=2"] {
        assert!(feed(&["feed", "http://h/", wrong], Task::Check).is_err(), "{wrong}");
    }
    let header = |words: &[&str]| {
        let command = Flags::augment_args(clap::Command::new("load"));
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        pack(&command, &words, To::Processes).unwrap()
    };
    // PATH is set everywhere; its value is on no command line and in no file of the user.
    let packed = header(&["load", "--header", "A: ${PATH}"]);
    assert_eq!(packed.words, ["load", "--header=@{files}/0/header"]);
    assert!(packed.files.entries()[0].is_secret);
}

#[derive(Args)]
struct MatrixFlags {
    file: Option<PathBuf>,
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
}

#[test]
fn the_file_of_a_matrix_goes_to_agents_and_its_folders_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.toml").display().to_string();
    std::fs::write(&path, "engines = []").unwrap();
    let command = MatrixFlags::augment_args(clap::Command::new("search"));
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let words = owned(&["search", &path, "--data", "x", "--resume=y"]);
    let packed = pack(&command, &words, To::Agents).unwrap();
    assert_eq!(packed.words, ["search", "{files}/0/m.toml"]);
    assert!(packed.files.entries()[0].is_secret, "it may hold passwords of engines");
    let checked = |words: &[&str]| check(&command, &owned(words), To::Agents);
    checked(&["search", "{files}/0/m.toml"]).unwrap();
    assert!(checked(&["search", "/etc/passwd"]).is_err());
    assert!(checked(&["search", "{files}/0/m.toml", "--data=/etc"]).is_err());
}
