//! From a query string to a call, and from a response to JSON.

use percent_encoding::percent_decode_str;
use plimsoll_wire::volt::{FRAME_HEAD_BYTES, Kind, Login, Request, Response, TableView, Value};
use serde_json::{Map, Number, Value as Json, json};

/// One in a DECIMAL.
const DECIMAL_ONE: i128 = 1_000_000_000_000;

/// The fields of a request.
pub(super) struct Asked {
    pub(super) request: Request,
    /// The message to log in with.
    pub(super) login: Vec<u8>,
    /// The function that the answer is wrapped in (JSONP).
    pub(super) callback: Option<String>,
}

impl Asked {
    /// Reads `Procedure=Vote&Parameters=[...]&User=...`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut procedure, mut parameters, mut callback) = (None, None, None);
        let (mut user, mut password, mut hashed) = (String::new(), String::new(), None);
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = value.replace('+', " ");
            let value = percent_decode_str(&value).decode_utf8();
            let value = value.map_err(|_| format!("{name} is no UTF-8"))?.into_owned();
            match name {
                "Procedure" => procedure = Some(value),
                "Parameters" => parameters = Some(value),
                "User" => user = value,
                "Password" => password = value,
                "Hashedpassword" => hashed = Some(value),
                "jsonp" => callback = Some(value),
                // Others, such as admin=true, mean nothing here.
                _ => {}
            }
        }
        let procedure = procedure.ok_or("Procedure parameter is missing")?;
        if let Some(callback) = &callback
            && !callback.chars().all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c))
        {
            return Err("jsonp takes the name of a function".to_owned());
        }
        let login = match hashed {
            Some(hashed) => hashed_login(&user, &hashed)?,
            None => Login::new(&user, &password).message().to_vec(),
        };
        let parameters = parameters.as_deref().unwrap_or("[]");
        let request = request(&procedure, parameters)?;
        Ok(Self { request, login, callback })
    }
}

/// The call. Parameters are an array, or one value.
fn request(procedure: &str, parameters: &str) -> Result<Request, String> {
    let parameters = serde_json::from_str(parameters)
        .map_err(|error| format!("Parameters are no JSON array: {error}"))?;
    let parameters = match parameters {
        Json::Array(all) => all,
        one => vec![one],
    };
    let mut request = Request::default();
    request.begin(procedure, &plimsoll_wire::volt::Form::default());
    for parameter in &parameters {
        match parameter {
            Json::Null => request.null(Kind::Null),
            Json::Bool(is_true) => request.param(&Value::Boolean(*is_true)),
            Json::String(text) => request.param(&Value::String(text)),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => request.param(&Value::BigInt(number)),
                (None, Some(number)) => request.param(&Value::Float(number)),
                (None, None) => return Err(format!("{number} is out of range")),
            },
            Json::Array(_) | Json::Object(_) => {
                return Err("a parameter is an array or an object; no procedure takes those".into());
            }
        };
    }
    Ok(request)
}

/// A login with the hash of a password in hexadecimal digits: 40 of SHA-1 or 64 of SHA-256.
fn hashed_login(user: &str, hashed: &str) -> Result<Vec<u8>, String> {
    let scheme = match hashed.len() {
        40 => 0,
        64 => 1,
        _ => return Err("Hashedpassword takes 40 or 64 hexadecimal digits".to_owned()),
    };
    let digit = |digit: u8| (digit as char).to_digit(16).map(|digit| digit as u8);
    let digest: Option<Vec<u8>> = hashed
        .as_bytes()
        .chunks(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect();
    let digest = digest.ok_or("Hashedpassword takes 40 or 64 hexadecimal digits")?;
    let mut message = vec![0; FRAME_HEAD_BYTES];
    message.extend([1, scheme]);
    for text in ["database", user] {
        message.extend((text.len() as u32).to_be_bytes());
        message.extend(text.as_bytes());
    }
    message.extend(digest);
    let length = (message.len() - FRAME_HEAD_BYTES) as u32;
    message[..FRAME_HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(message)
}

/// A response of the API to a call that never went out.
pub(super) fn failure(status: i8, text: &str) -> String {
    json!({
        "status": status,
        "appstatus": i8::MIN,
        "statusstring": text,
        "appstatusstring": null,
        "results": [],
    })
    .to_string()
}

/// A response as JSON.
pub(super) fn response(message: &[u8]) -> Result<String, String> {
    let unreadable = |error| format!("the answer cannot be read: {error}");
    let response = Response::read(message).map_err(unreadable)?;
    let mut results = Vec::new();
    for one in response.tables {
        results.push(table(&one.map_err(unreadable)?).map_err(unreadable)?);
    }
    Ok(json!({
        "status": response.status,
        "appstatus": response.app_status,
        "statusstring": response.status_text,
        "appstatusstring": response.app_text,
        "results": results,
    })
    .to_string())
}

fn table(table: &TableView<'_>) -> Result<Json, plimsoll_wire::volt::DecodeError> {
    let schema: Vec<Json> = table
        .columns()
        .map(|column| json!({ "name": column.name, "type": column.kind.code() }))
        .collect();
    let mut data = Vec::new();
    for row in table.rows() {
        let cells = row?.values().map(|cell| cell.map(|cell| value(&cell)));
        data.push(Json::Array(cells.collect::<Result<_, _>>()?));
    }
    let mut shown = Map::new();
    shown.insert("status".to_owned(), json!(table.status()));
    shown.insert("schema".to_owned(), Json::Array(schema));
    shown.insert("data".to_owned(), Json::Array(data));
    Ok(Json::Object(shown))
}

fn value(value: &Value<'_>) -> Json {
    match value {
        Value::String(text) => json!(text),
        Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Boolean(is_true) => json!(is_true),
        Value::Decimal(scaled) => {
            let sign = if *scaled < 0 { "-" } else { "" };
            let (whole, rest) = (
                scaled.unsigned_abs() / DECIMAL_ONE as u128,
                scaled.unsigned_abs() % DECIMAL_ONE as u128,
            );
            json!(format!("{sign}{whole}.{rest:012}"))
        }
        Value::VarBinary(bytes) => {
            json!(bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>())
        }
        other => other.long().map_or(Json::Null, |number| json!(number)),
    }
}
