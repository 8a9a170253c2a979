//! Calls: as clients of VoltDB were seen to write them, and as they are refused.

use plimsoll_wire::volt::{
    Call, CallError, DecodeError, FRAME_HEAD_BYTES, Form, FrameError, Kind, MESSAGE_BYTES_MAX,
    Request, Value, frame_length,
};
use proptest::prelude::*;

use crate::made;
use crate::session::hex;

const VOTE: &str = r#"0000002b 02 00000004 "Vote" 0000000000000002 00 0003
    06 000000011e472f14 05 00000004 06 0000000000000002"#;

fn vote() -> [Value<'static>; 3] {
    [Value::BigInt(0x1_1e47_2f14), Value::Integer(4), Value::BigInt(2)]
}

#[test]
fn a_vote_is_as_the_java_client_writes_it() {
    let mut request = Request::default();
    request.call("Vote", &vote());
    let mut bytes = Vec::new();
    request.put(2, &mut bytes);
    assert_eq!(bytes, hex(VOTE));
    // A second use leaves nothing of the first.
    request.partition(7);
    request.call("Vote", &vote());
    assert_eq!(request.partition_key(), None);
    let mut other = Request::default();
    other.call("a longer name", &[Value::String("text")]);
    other.partition(9);
    request.copy_from(&other);
    assert_eq!((&request, request.partition_key()), (&other, Some(9)));
}

#[test]
fn whole_numbers_are_replaced_in_their_places() {
    let mut request = Request::default();
    request.call("Vote", &[]);
    let phone = request.next_place();
    request.param(&Value::BigInt(i64::MAX));
    let contestant = request.next_place();
    request.param(&Value::Integer(-1)).param(&Value::BigInt(2));
    request.replace(phone, &vote()[0]);
    request.replace(contestant, &vote()[1]);
    let mut bytes = Vec::new();
    request.put(2, &mut bytes);
    assert_eq!(bytes, hex(VOTE));
}

#[test]
fn a_vote_is_read_in_every_version() {
    let versions = [
        (0, VOTE[9..].replacen("02", "00", 1).replacen("02 00 0003", "02 0003", 1), None),
        (1, VOTE[9..].replacen("02", "01 ff", 1).replacen("02 00 0003", "02 0003", 1), None),
        (
            1,
            VOTE[9..].replacen("02", "01 01 00000bb8", 1).replacen("02 00 0003", "02 0003", 1),
            Some(3000),
        ),
        (2, VOTE[9..].to_owned(), None),
    ];
    for (version, text, timeout_ms) in versions {
        let body = hex(&text);
        let call = Call::read(&body).unwrap();
        assert_eq!((call.version, call.procedure, call.handle), (version, "Vote", 2), "{text}");
        assert_eq!(call.timeout_ms, timeout_ms, "{text}");
        let params: Vec<_> = call.params().map(Result::unwrap).collect();
        assert_eq!(params.iter().map(|(_, value)| *value).collect::<Vec<_>>(), vote());
        let kinds: Vec<_> = params.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [Kind::BigInt, Kind::Integer, Kind::BigInt]);
        // And is written so.
        let form = Form { version: version as u8, timeout_ms, ..Form::default() };
        let mut request = Request::default();
        request.begin("Vote", &form);
        vote().iter().for_each(|value| {
            request.param(value);
        });
        let mut bytes = Vec::new();
        request.put(2, &mut bytes);
        assert_eq!(bytes[FRAME_HEAD_BYTES..], body, "version {version}");
    }
}

#[test]
fn extensions_are_read_and_unknown_ones_passed_over() {
    let body = hex(
        r#"02 00000001 "P" 0000000000000005 08 01 03 00000064 02 00 03 03 00000007 04 00 05 01 03
        06 03 000003e8 63 05 00112233445566778899aabbccddeeff 64 00 0000"#,
    );
    let call = Call::read(&body).unwrap();
    assert_eq!((call.timeout_ms, call.partition), (Some(100), Some(7)));
    assert!(call.all_partitions && call.is_batch);
    assert_eq!((call.priority, call.request_timeout_us), (Some(3), Some(1000)));
    assert!(call.params().is_empty());
}

#[test]
fn what_is_no_call_is_told() {
    let unknown = hex(r#"63 00000004 "Vote" 0000000000000002 0000"#);
    let error = Call::read(&unknown).unwrap_err();
    assert_eq!(error, CallError::Version(99));
    assert_eq!(error.to_string(), "Unknown ProcedureInvocationType 99");
    for (text, error) in [
        ("", DecodeError::Cut),
        ("00 ffffffff 0000000000000001 0000", DecodeError::NoText),
        ("00 fffffffe 0000000000000001 0000", DecodeError::Length(-2)),
        ("00 00000002 c328 0000000000000001 0000", DecodeError::Utf8),
        ("00 00000001 50 0000000000000001 ffff", DecodeError::Length(-1)),
        ("00 7fffffff 50 0000000000000001 0000", DecodeError::Cut),
        ("02 00000001 50 0000000000000001 01 01 01 00 0000", DecodeError::Extension(1)),
        ("02 00000001 50 0000000000000001 01 63 1f 00 0000", DecodeError::Length(31)),
        ("02 00000001 50 0000000000000001 01 63 1e 00 0000", DecodeError::Cut),
    ] {
        assert_eq!(Call::read(&hex(text)), Err(error.into()), "{text}");
    }
    // A parameter that cannot be read is told of, and is the last.
    let body = hex("00 00000001 50 0000000000000001 0003 05 00000001 0a 05 00000001");
    let params: Vec<_> = Call::read(&body).unwrap().params().collect();
    assert_eq!(params, [Ok((Kind::Integer, Value::Integer(1))), Err(DecodeError::Kind(10))]);
}

#[test]
fn frames_have_lengths_that_are_possible() {
    let bytes = hex(VOTE);
    for end in 0..bytes.len() {
        assert_eq!(frame_length(&bytes[..end]), Ok(None));
    }
    assert_eq!(frame_length(&bytes), Ok(Some(47)));
    assert_eq!(frame_length(&[&bytes[..], &bytes[..9]].concat()), Ok(Some(47)));
    for (length, is_possible) in [
        (0, false),
        (-1, false),
        (i32::MIN, false),
        (1, true),
        (MESSAGE_BYTES_MAX as i32, true),
        (MESSAGE_BYTES_MAX as i32 + 1, false),
    ] {
        let found = frame_length(&length.to_be_bytes());
        assert_eq!(found, if is_possible { Ok(None) } else { Err(FrameError(length)) });
    }
}

proptest! {
    #[test]
    fn calls_come_back_as_they_went_out(
        procedure in ".{0,20}",
        form in made::form(),
        params in prop::collection::vec(made::param(), 0..6),
        handle: i64,
    ) {
        let bytes = made::call(&procedure, &form, &params, handle);
        prop_assert_eq!(frame_length(&bytes), Ok(Some(bytes.len())));
        let call = Call::read(&bytes[FRAME_HEAD_BYTES..]).unwrap();
        prop_assert_eq!((call.version as u8, call.procedure, call.handle), (form.version, &procedure[..], handle));
        let read = Form {
            version: call.version as u8,
            timeout_ms: call.timeout_ms,
            all_partitions: call.all_partitions,
            partition: call.partition,
            is_batch: call.is_batch,
            priority: call.priority,
            request_timeout_us: call.request_timeout_us,
        };
        prop_assert_eq!(read, form);
        prop_assert_eq!(call.params().len(), params.len());
        for (read, (kind, value)) in call.params().zip(&params) {
            prop_assert_eq!(read, Ok((*kind, value.value())));
        }
        prop_assert_eq!(call.params().count(), params.len());
    }

    /// However it is cut, a call says so, or one of its parameters does.
    #[test]
    fn a_cut_call_is_noticed(
        form in made::form(),
        params in prop::collection::vec(made::param(), 0..4),
        cut: prop::sample::Index,
    ) {
        let bytes = made::call("Vote", &form, &params, 1);
        let body = &bytes[FRAME_HEAD_BYTES..];
        let end = cut.index(body.len());
        let is_noticed = match Call::read(&body[..end]) {
            Ok(call) => call.params().any(|param| param.is_err()),
            Err(_) => true,
        };
        prop_assert!(is_noticed, "{} of {}", end, body.len());
    }
}
