//! The HTTP JSON API.

use super::{NAMES, TestServer};
use crate::VoterConfig;
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::net::TcpStream;

/// One request over a connection of its own: the status and the body.
fn exchange(server: &TestServer, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server.http.unwrap()).unwrap();
    stream.set_read_timeout(Some(super::LIMIT)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn get(server: &TestServer, query: &str) -> (u16, Json) {
    let (status, body) = exchange(server, &format!("GET /api/1.0/?{query}"), "");
    (status, serde_json::from_str(&body).unwrap())
}

#[test]
fn procedures_by_get_and_by_form() {
    let server = TestServer::with_http(VoterConfig { partitions: 2, ..VoterConfig::default() });
    let names = NAMES.replace(' ', "%20");
    let (status, made) =
        get(&server, &format!("Procedure=Initialize&Parameters=[6,%22{names}%22]"));
    assert_eq!(status, 200);
    assert_eq!(
        made,
        json!({
            "status": 1, "appstatus": -128, "statusstring": null, "appstatusstring": null,
            "results": [{"status": -128, "schema": [{"name": "", "type": 6}], "data": [[6]]}],
        })
    );
    let form = "Procedure=Vote&Parameters=%5B2125550001%2C+1%2C+%222%22%5D";
    let (status, voted) = exchange(&server, "POST /api/1.0/", form);
    let voted: Json = serde_json::from_str(&voted).unwrap();
    assert_eq!((status, &voted["results"][0]["data"]), (200, &json!([[0]])));
    let (_, results) = get(&server, "Procedure=Results&admin=false");
    assert_eq!(results["results"][0]["data"], json!([["Edwina Burnam", 1, 1]]));
    let (_, count) =
        get(&server, "Procedure=@AdHoc&Parameters=%22select%20count(*)%20from%20votes%22");
    assert_eq!(count["results"][0]["data"], json!([[1]]));
    let (_, few) = get(&server, "Procedure=Vote&Parameters=[2125550001]");
    assert_eq!((&few["status"], &few["results"]), (&json!(-2), &json!([])));
    let (_, wrapped) = exchange(&server, "GET /api/1.0/?Procedure=@Ping&jsonp=show", "");
    assert!(wrapped.starts_with("show( {\"status\":1,") && wrapped.ends_with(" )"), "{wrapped}");
}

#[test]
fn what_is_wrong_is_said() {
    let server = TestServer::with_http(VoterConfig { partitions: 1, ..VoterConfig::default() });
    for (query, part) in [
        ("", "Procedure parameter is missing"),
        ("Procedure=Vote&Parameters=[1,", "no JSON array"),
        ("Procedure=Vote&Parameters=[[1]]", "an array or an object"),
        ("Procedure=@Ping&jsonp=alert(1)", "name of a function"),
        ("Procedure=@Ping&Hashedpassword=12", "hexadecimal digits"),
        ("Procedure=NoSuch", "Procedure NoSuch was not found"),
    ] {
        let (status, told) = get(&server, query);
        assert_eq!((status, &told["status"]), (200, &json!(-3)), "{query}: {told}");
        assert!(told["statusstring"].as_str().unwrap().contains(part), "{query}: {told}");
    }
    assert_eq!(exchange(&server, "GET /wines", "").0, 404);
    assert_eq!(exchange(&server, "DELETE /api/1.0/", "").0, 405);
}

#[test]
fn users_are_asked_for_their_passwords() {
    let user = ("ann".to_owned(), "secret".to_owned());
    let config = VoterConfig { partitions: 1, users: vec![user], ..VoterConfig::default() };
    let server = TestServer::with_http(config);
    let ping = |login: &str| get(&server, &format!("Procedure=@Ping{login}"));
    assert_eq!(ping("&User=ann&Password=secret").1["status"], 1);
    // SHA-1 and SHA-256 of the password.
    for hash in [
        "e5e9fa1ba31ecd1ae84f75caaa474f3a663f05f4",
        "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",
    ] {
        assert_eq!(ping(&format!("&User=ann&Hashedpassword={hash}")).1["status"], 1);
    }
    for login in ["", "&User=ann&Password=no", "&User=eve&Password=secret"] {
        let (status, told) = ping(login);
        assert_eq!((status, &told["status"]), (401, &json!(-3)), "{login}: {told}");
    }
}
