use super::*;
use crate::spec::file::wrong_in;
use std::path::Path;

const LIST: &str = "[[query]]\nname = \"all\"\nkind = \"all\"";

fn resolved(text: &str) -> Result<MatrixSpec, SearchError> {
    read(text, Path::new("m.toml"))?.0.resolve(LIST)
}

#[test]
fn a_file_says_what_flags_say() {
    let spec = resolved(
        "engines = [\"index\", \"far=http://10.0.0.5:9200/,opensearch\"]\nsizes = [\"10MB\", \"1MB\"]\n\
         groups = [\"2x5\", \"4x1\"]\nusers = [1, 20]\norder = \"block\"\nduration = \"5s\"\n\
         [[engine]]\nname = \"v\"\nurl = \"http://h:8080\"\ndialect = \"vespa\"\n\
         [[engine]]\nname = \"slow\"\nserve = [\"search\", \"--fuzzy\", \"scan\"]\ndialect = \"elasticsearch\"",
    )
    .unwrap();
    assert_eq!(spec.sizes, [1_000_000, 10_000_000], "tables go from small to large");
    assert_eq!(spec.groups[1], Group { distance: 4, shards: 1 });
    let names: Vec<_> = spec.engines.iter().map(|engine| engine.name.as_str()).collect();
    assert_eq!(names, ["index", "far", "v", "slow"]);
    assert_eq!(spec.engines[1].place, Place::Address("http://10.0.0.5:9200".to_owned()));
    assert_eq!(spec.engines[2].dialect, Dialect::Vespa);
    assert_eq!((spec.order, spec.duration), (Order::Block, Span::seconds(5)));
    assert_eq!((spec.timeout, spec.repeat), (Span::seconds(60), 1));
    assert_eq!(spec.shards(), [5, 1]);
}

#[test]
fn a_profile_has_the_cells_number_of_users() {
    let spec = resolved(
        "engines = [\"index\"]\nusers = [2, 9]\nprofile = \"ramp {users} during 10s\"\n\
         think = \"exponential 2s\"\npace = \"5s\"\nchecks = [\"hits>=1\"]\n\
         assertions = [\"global p95 < 500ms\"]\n[rows]\nfile = \"a.csv\"\nper = \"user\"",
    )
    .unwrap();
    let users = |n| spec.profile_of(n).unwrap().unwrap().users();
    assert_eq!((users(2), users(9)), (2, 9));
    assert_eq!(resolved("engines = [\"index\"]").unwrap().profile_of(3).unwrap(), None);
}

#[test]
fn lists_multiply() {
    let spec = resolved("engines = [\"index\"]\ndistances = [2, 4]\nshards = [5, 1]").unwrap();
    let groups: Vec<_> = spec.groups.iter().map(|g| (g.distance, g.shards)).collect();
    assert_eq!(groups, [(2, 5), (2, 1), (4, 5), (4, 1)]);
    assert_eq!(spec.users, [1, 5, 10, 20]);
    let on_parts = [2, 5, 20, 21].map(super::usual_users);
    assert_eq!(on_parts, [vec![5, 10, 20], vec![5, 10, 20], vec![20], vec![21]]);
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    for (text, part) in [
        ("", "no engine"),
        ("engines = [\"lucene\"]", "engine 'lucene': unknown engine; write index"),
        ("engines = [\"http://h:1\"]", "give it a name"),
        ("engines = [\"a=http://h:1,mysql\"]", "unknown dialect 'mysql'"),
        ("engines = [\"index\", \"index\"]", "the same name"),
        ("engines = [\"index\"]\nsizes = [\"1MB\", \"1MB\"]", "the same size twice"),
        ("engines = [\"index\"]\nsizes = [\"1GB\", \"1.0004GB\"]", "the same name"),
        ("engines = [\"index\"]\nsizes = [\"big\"]", "'big'"),
        ("engines = [\"index\"]\ngroups = [\"2-5\"]", "DISTANCExSHARDS"),
        ("engines = [\"index\"]\ngroups = [\"2x5\"]\nshards = [1]", "leave out one"),
        ("engines = [\"index\"]\nusers = [0]", "users"),
        ("engines = [\"index\"]\nshards = [0]", "shards"),
        ("engines = [\"index\"]\ndistances = [9]", "distance"),
        ("engines = [\"index\"]\nduration = \"0s\"", "more than 0"),
        ("engines = [\"index\"]\nrepeat = 0", "repeat"),
        ("engines = [\"index\"]\npasses = 0", "passes"),
        ("[[engine]]\nname = \"x\"", "one of url, kind and serve"),
        ("[[engine]]\nname = \"x\"\nserve = [\"null\"]", "needs a dialect"),
        (
            "engines = [\"index\"]\nprofile = \"ramp 10 during 1s\"",
            "write {users} where the number",
        ),
        (
            "engines = [\"index\"]\nprofile = \"ramp {users} in 1s\"",
            "profile 'ramp 1 in 1s': column",
        ),
        ("engines = [\"index\"]\nchecks = [\"hits>>1\"]", "'hits>>1'"),
        (
            "engines = [\"index\"]\nassertions = [\"class nothing p95 < 1s\"]",
            "unknown query 'nothing'; write one of all",
        ),
        ("engines = [\"index\"]\nassertions = [\"p95 small\"]", "is not an assertion"),
        ("engines = [\"index\"]\nthink = \"long\"", "is not a think time"),
        ("engines = [\"postgresql\"]\nchecks = [\"/a=1\"]", "PostgreSQL has none"),
        ("engines = [\"postgresql\"]\nheaders = [\"A: b\"]", "headers: no engine of this matrix"),
        ("users = 5", "m.toml:1"),
        ("engines = [\"index\"]\nuser = [5]", "m.toml:2"),
    ] {
        let error = resolved(text).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn a_changed_matrix_says_what_changed() {
    let before = resolved("engines = [\"index\"]").unwrap();
    assert!(before.differences(&before.clone()).is_empty());
    let text = serde_json::to_string(&before).unwrap();
    let back: MatrixSpec = serde_json::from_str(&text).unwrap();
    assert!(back.differences(&before).is_empty(), "also after it was written down");
    let now = resolved("engines = [\"index\"]\nusers = [3]\nseed = 2").unwrap();
    let differences = now.differences(&before);
    assert_eq!(differences, ["users was [1,5,10,20] and is [3]", "seed was 1 and is 2"]);
    let other =
        MatrixSpec { queries: "[[query]]\nname=\"b\"\nkind=\"all\"".to_owned(), ..before.clone() };
    assert_eq!(other.differences(&before), ["the queries differ"]);
}

#[test]
fn a_file_has_the_words_of_the_flags_and_old_ones_with_a_hint() {
    let of = |text: &str| {
        let text = format!("engines = [\"index\"]\nusers = [2]\n{text}");
        read(&text, Path::new("in/m.toml")).unwrap()
    };
    let (file, hints) = of("profile = \"at once 2\"\nhits = 7");
    let expected = [
        "in/m.toml:3: field `profile` is now `users_profile`",
        "in/m.toml:4: field `hits` is now `query_hits`",
    ];
    assert_eq!(hints, expected);
    let (now, none) = of("users-profile = \"at once 2\"\nquery_hits = 7");
    assert!(none.is_empty() && now == file, "{none:?}");
    let (flags, _) = of(
        "header = [\"A: b\"]\ncheck = [\"hits>=1\"]\nassert = [\"global p95 < 1s\"]\n\
                         distance = [4]\nskip_refused = true\nrows = \"t.csv\"\nrows_per = \"user\"",
    );
    let (own, _) = of(
        "headers = [\"A: b\"]\nchecks = [\"hits>=1\"]\nassertions = [\"global p95 < 1s\"]\n\
                       distances = [4]\nrefused = \"skip\"\n[rows]\nfile = \"t.csv\"\nper = \"user\"",
    );
    assert_eq!(flags.resolve(LIST).unwrap(), own.resolve(LIST).unwrap());
}

#[test]
fn paths_begin_at_the_folder_of_the_file() {
    let text = "engines = [\"index\"]\ncorpus = \"ndjson:t.ndjson\"\nqueries = \"q.toml\"\n\
                rows = \"r.csv\"\nheaders = [\"@h\", \"A: @b\"]";
    let (file, _) = read(text, Path::new("in/m.toml")).unwrap();
    assert_eq!(file.queries.as_deref(), Some("in/q.toml"));
    let spec = file.resolve(LIST).unwrap();
    assert_eq!(spec.corpus, "ndjson:in/t.ndjson");
    assert_eq!(spec.headers, ["@in/h", "A: @b"]);
    assert_eq!(spec.rows.unwrap().file, Path::new("in/r.csv"));
}

#[test]
fn a_wrong_value_is_told_with_file_line_and_field() {
    for (text, expected) in [
        (
            "sizes = [\"1MB\", \"1MB\"]",
            "m.toml:2: field `sizes`: the same size twice; write it once",
        ),
        (
            "groups = [\"2by5\"]",
            "m.toml:2: field `groups`: '2by5' is not a distance and a number of shards; write \
             DISTANCExSHARDS, such as 2x5",
        ),
        (
            "timeout = \"0s\"",
            "m.toml:2: field `timeout`: must be more than 0; every wait has a limit",
        ),
        ("distance = [9]", "m.toml:2: field `distance`: use numbers from 0 to 8"),
    ] {
        let text = format!("engines = [\"index\"]\n{text}");
        let (file, _) = read(&text, Path::new("m.toml")).unwrap();
        let error = file.resolve(LIST).unwrap_err();
        assert_eq!(wrong_in(&text, Path::new("m.toml"), &error), expected);
    }
    let (file, _) = read("", Path::new("m.toml")).unwrap();
    let message = wrong_in("", Path::new("m.toml"), &file.resolve(LIST).unwrap_err());
    assert!(message.starts_with("m.toml: no engine"), "{message}");
}

#[test]
fn a_matrix_that_came_from_another_machine_names_no_file_of_this_one() {
    let text = "engines = [\"index\"]\nqueries = \"/etc/passwd\"\nrows = \"/etc/shadow\"\nrows_order = \"queue\"\n\
                headers = [\"@/etc/hosts\", \"A: ${PATH}\"]\nusers = [7]\nchecks = [\"body~${PATH}\"]";
    let (file, _) = read(text, Path::new("m.toml")).unwrap();
    assert!(file.queries.is_some() && file.rows.is_some() && file.headers.len() == 2);
    let file = read_foreign(text, Path::new("m.toml")).unwrap();
    assert_eq!((&file.queries, &file.rows, file.rows_order), (&None, &None, None));
    assert_eq!(file.checks, ["body~${PATH}"], "of the environment of the other machine, if at all");
    let spec = file.resolve(LIST).unwrap();
    assert!(spec.rows.is_none() && spec.headers.is_empty());
    assert_eq!(spec.users, [7], "whatever else it says counts");
}
