//! How the words of free text combine, over HTTP.

use super::{Client, TestServer, encode, start};

/// A server with four documents about an album and about silence.
fn albums(folder: &std::path::Path) -> (TestServer, Client) {
    let server = start(folder);
    let mut client = server.client();
    for (name, fields) in [
        ("album", r#"{"title":"Album","author":"Ann"}"#),
        ("silence", r#"{"body":"the long silence of the album that is lost"}"#),
        ("both", r#"{"title":"Album of silence","author":"Bob"}"#),
        ("other", r#"{"title":"Harbour"}"#),
    ] {
        assert_eq!(client.put(name, fields).status, 200);
    }
    client.refresh();
    (server, client)
}

/// Words that a document must have to match, for each combination.
#[test]
fn words_combine_as_in_vespa_8() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut client) = albums(folder.path());
    let words = "query=album+silence";
    let input = |annotations: &str| {
        format!(
            "yql={}",
            encode(&format!("select * from doc where {annotations}userInput('album silence')"))
        )
    };
    let user = format!("{words}&yql={}", encode("select * from doc where userQuery()"));
    let table: Vec<(String, &[&str])> = vec![
        (words.into(), &["album", "both", "silence"]),
        (format!("{words}&type=weakAnd"), &["album", "both", "silence"]),
        (format!("{words}&type=any"), &["album", "both", "silence"]),
        (format!("{words}&type=all"), &["both", "silence"]),
        (format!("{words}&model.type=all"), &["both", "silence"]),
        (format!("{words}&type=phrase"), &[]),
        ("query=album+of+silence&type=phrase".into(), &["both"]),
        (format!("{words}&type=near"), &["both"]),
        (format!("{words}&type=onear"), &["both"]),
        ("query=silence+album&type=near".into(), &["both"]),
        ("query=silence+album&type=onear".into(), &[]),
        (format!("{words}&model.type.composite=near"), &["both"]),
        (format!("{words}&default-index=title"), &["album", "both"]),
        (format!("{words}&model.defaultIndex=body"), &["silence"]),
        (user.clone(), &["album", "both", "silence"]),
        (format!("{user}&type=all"), &["both", "silence"]),
        (input(""), &["album", "both", "silence"]),
        // The type concerns the text of a statement only where it says so.
        (format!("{}&type=all", input("")), &["album", "both", "silence"]),
        (format!("{}&type=all&model.type.isYqlDefault=True", input("")), &["both", "silence"]),
        (input("{grammar: 'any'}"), &["album", "both", "silence"]),
        (input("{grammar: 'all'}"), &["both", "silence"]),
        (input("{grammar: 'phrase'}"), &[]),
        (input("{grammar: 'near', distance: 3}"), &["both", "silence"]),
        (input("{grammar: 'onear', distance: 1}"), &[]),
        (input("{grammar: 'all', defaultIndex: 'title'}"), &["both"]),
        (input("{grammar: 'raw'}"), &[]),
        (input("{grammar: 'segment'}"), &[]),
        (input("{targetHits: 1}"), &["album", "both", "silence"]),
        (format!("{user}+and+title+contains+'album'"), &["album", "both"]),
        ("query=-album&type=all".into(), &["other"]),
        ("query=author:bob+harbour".into(), &["both", "other"]),
        ("query=%2Balbum+silence".into(), &["album", "both", "silence"]),
        ("query=%2Balbum+-silence&type=any".into(), &["album"]),
    ];
    for (parameters, expected) in table {
        let reply = client.get(&format!("/search/?hits=20&{parameters}"));
        assert_eq!(reply.status, 200, "{parameters}: {}", reply.body);
        let mut names = reply.names();
        names.sort_unstable();
        assert_eq!(names, expected, "{parameters}");
        assert_eq!(reply.total(), expected.len() as u64, "{parameters}");
    }
}

#[test]
fn rank_and_ranked_say_what_counts_for_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut client) = albums(folder.path());
    // Both words are worth more than one.
    let first = |client: &mut Client, filter: &str| client.find(filter).names()[0].clone();
    assert_eq!(client.get("/search/?query=album+silence").names()[0], "both");
    let ranked = "rank(title contains 'album', author contains 'x', title contains 'silence')";
    assert_eq!(client.find(ranked).total(), 2);
    assert_eq!(first(&mut client, ranked), "both");
    assert_eq!(first(&mut client, "title contains 'album'"), "album");
    let unranked = "rank(title contains 'album', title contains ({ranked: false}'silence'))";
    assert_eq!(first(&mut client, unranked), "album");
    // A part that asks for nothing counts for nothing.
    let nothing = "{allowEmpty: true}userInput('...')";
    assert_eq!(client.find(&format!("{nothing} and title contains 'album'")).total(), 2);
    assert_eq!(client.find(&format!("{nothing} or title contains 'album'")).total(), 2);
}
