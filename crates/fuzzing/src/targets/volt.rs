//! VoltDB: messages of both sides.

use crate::conversation::{Conversation, Differing, split_alike};
use crate::holds::{choice, one_line};
use crate::memory::{Allowed, within};
use plimsoll_wire::Protocol as _;
use plimsoll_wire::volt::{
    Call, Conn, FRAME_HEAD_BYTES, LoginCall, LoginReply, Request, Response, Ring, TableView,
    Topology, Value, Volt, Welcome, frame_length,
};

fn look_at_table(table: TableView<'_>) {
    assert_eq!(table.columns().count(), table.column_count());
    let rows = table.rows().map_while(Result::ok).flat_map(|row| row.values());
    rows.map_while(Result::ok).for_each(look_at);
}

fn look_at(value: Value<'_>) {
    match value {
        Value::Table(table) => look_at_table(table),
        Value::Array(array) => array.iter().map_while(Result::ok).for_each(look_at),
        _ => {}
    }
}

/// A call that can be read is written so that it is read again as the same.
fn read_call(body: &[u8]) {
    let call = match Call::read(body) {
        Ok(call) => call,
        Err(error) => return one_line(&error),
    };
    let params: Result<Vec<_>, _> = call.params().collect();
    let Ok(params) = params else { return };
    params.iter().for_each(|(_, value)| look_at(*value));
    let mut request = Request::default();
    request.call(call.procedure, &[]);
    for (kind, value) in &params {
        match value {
            Value::Null => request.null(*kind),
            value => request.param(value),
        };
    }
    let mut bytes = Vec::new();
    request.put(call.handle, &mut bytes);
    assert_eq!(frame_length(&bytes), Ok(Some(bytes.len())));
    let Ok(again) = Call::read(&bytes[FRAME_HEAD_BYTES..]) else { panic!("{params:?}") };
    assert_eq!((again.procedure, again.handle), (call.procedure, call.handle));
    // Numbers that are none differ from themselves: their texts are compared.
    let read: Result<Vec<_>, _> = again.params().collect();
    assert_eq!(format!("{read:?}"), format!("{:?}", Ok::<_, ()>(params)));
}

fn read_response(body: &[u8]) {
    match Response::read(body) {
        Ok(response) => {
            response.tables.map_while(Result::ok).for_each(look_at_table);
            let _ = (response.long(), Topology::read(&response));
        }
        Err(error) => one_line(&error),
    }
}

/// A message, read as everything that it may be, by the client and by the embedded server.
///
/// # Panics
/// When a property does not hold.
pub fn messages(bytes: &[u8]) {
    let allowed = Allowed { base: 200_000, each: 200 };
    within(bytes.len(), allowed, || {
        let _ = frame_length(bytes);
        read_call(bytes);
        read_response(bytes);
        let _ = LoginCall::read(bytes).map(|call| call.is_digest_whole());
        let _ = LoginReply::read(bytes);
        let _ = TableView::read(bytes).map(look_at_table);
        let _ = Ring::read(bytes).map(|ring| ring.partition_of_long(7));
        plimsoll_voterdb::fuzz::call(bytes);
        let _ = plimsoll_voterdb::fuzz::json_response(bytes);
    });
}

fn nothing(_: &Volt, _: &mut Conn, _: &mut Vec<u8>) {}

fn shown(reply: &Response<'_>) -> String {
    format!("{reply:?}")
}

/// Bytes of a server of VoltDB to a login and to calls in flight. The first byte is the length of the pieces; if it is even,
/// the login is answered before.
///
/// # Panics
/// When a property does not hold.
pub fn stream(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    let codec = Volt::new(plimsoll_wire::volt::Login::default()).with_depth(3);
    let mut all = Vec::new();
    if size & 1 == 0 {
        let said = Welcome {
            host_id: 0,
            connection_id: 1,
            cluster_start_ms: 1,
            leader_address: [127, 0, 0, 1],
            build: "",
        };
        LoginReply::Welcome(said).put(&mut all);
    }
    all.extend_from_slice(bytes);
    let mut request = Request::default();
    request.call("Vote", &[Value::BigInt(2_125_550_001)]);
    let make = || {
        let mut out = Vec::new();
        let mut conn = codec.open(&mut out);
        for tag in 0..3 {
            codec.submit(&mut conn, &request, tag, &mut out);
        }
        codec.cancel(&mut conn, 1, &mut out);
        Conversation::<Volt> { codec: &codec, conn, shown, next: nothing }
    };
    let allowed = Allowed { base: 400_000, each: 60 };
    within(all.len(), allowed, || split_alike(make, &all, size.into(), Differing::Nothing));
}
