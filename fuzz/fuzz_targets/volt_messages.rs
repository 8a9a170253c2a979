//! What either side of VoltDB's protocol sends: a message read as everything that it may be, and a server's bytes, in
//! pieces, to a login and to calls that are under way. The first byte says how long the pieces are, and whether the
//! login is answered before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::volt::{
    Call, FRAME_HEAD_BYTES, LoginCall, LoginReply, Request, Response, Ring, TableView, Topology,
    Value, Volt, Welcome, frame_length,
};
use plimsoll_wire::{Event, Protocol};

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
    let Ok(call) = Call::read(body) else { return };
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
    let Ok(response) = Response::read(body) else { return };
    response.tables.map_while(Result::ok).for_each(look_at_table);
    let _ = (response.long(), Topology::read(&response));
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let _ = frame_length(bytes);
    read_call(bytes);
    read_response(bytes);
    let _ = LoginCall::read(bytes).map(|call| call.is_digest_whole());
    let _ = LoginReply::read(bytes);
    let _ = TableView::read(bytes).map(look_at_table);
    let _ = Ring::read(bytes).map(|ring| ring.partition_of_long(7));

    let codec = Volt::new(Default::default()).with_depth(3);
    let (mut out, mut welcome) = (Vec::new(), Vec::new());
    let mut conn = codec.open(&mut out);
    let mut request = Request::default();
    request.call("Vote", &[Value::BigInt(2_125_550_001)]);
    for tag in 0..3 {
        codec.submit(&mut conn, &request, tag, &mut out);
    }
    codec.cancel(&mut conn, 1, &mut out);
    if size & 1 == 0 {
        let said = Welcome {
            host_id: 0,
            connection_id: 1,
            cluster_start_ms: 1,
            leader_address: [127, 0, 0, 1],
            build: "",
        };
        LoginReply::Welcome(said).put(&mut welcome);
    }
    for piece in welcome.chunks(64).chain(bytes.chunks(usize::from(*size).max(1))) {
        let mut rest = piece;
        loop {
            let consumed = match codec.receive(&mut conn, rest, &mut out) {
                Ok(Event::More) => break,
                Ok(Event::Reply { consumed, reply, .. }) => {
                    reply.tables.map_while(Result::ok).for_each(look_at_table);
                    consumed
                }
                Ok(
                    Event::Progress { consumed }
                    | Event::Part { consumed, .. }
                    | Event::GivenUp { consumed, .. },
                ) => consumed,
                Err(_) => return,
            };
            rest = &rest[consumed..];
        }
    }
    let _ = codec.end(&mut conn);
});
