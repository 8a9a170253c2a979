use super::*;
use crate::sim::closed_plan;
use crate::windows::WindowLimit;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::seek::plant::Window;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

type Handed = Rc<RefCell<Vec<Interval>>>;

/// Books of a run of two clients that starts at 10 s, with what they hand out.
fn books(change: impl FnOnce(&mut ShardPlan)) -> (Books, Handed) {
    let mut plan = closed_plan(2, 5 * SECOND_NS);
    change(&mut plan);
    let handed = Handed::default();
    let seconds = handed.clone();
    let outbox = move |message| {
        if let Message::Second(second) = message {
            seconds.borrow_mut().push(*second);
        }
        Some(Box::new(Interval::new(1)))
    };
    let mut course = Course::new(&plan, Arc::new(AtomicBool::new(false)));
    course.begin(10 * SECOND_NS);
    let mut books = Books::new(&plan, 2, 1, Box::new(outbox));
    books.begin(&plan, &course);
    (books, handed)
}

fn due(at_ms: u64) -> Due {
    Due { intended_ns: 10 * SECOND_NS + at_ms * MILLISECOND_NS, client: 0 }
}

fn send(books: &mut Books, due: Due, lag_ns: u64) -> Times {
    let now_ns = due.intended_ns + lag_ns;
    books.sent(&Sent {
        due,
        class: 0,
        measured: books.is_measured(due.intended_ns, due.client),
        now_ns,
        could_ask_ns: due.intended_ns,
        could_start_ns: due.intended_ns,
        waited_ns: 0,
        in_flight: 1,
    });
    Times { intended_ns: due.intended_ns, sent_ns: now_ns, done_ns: now_ns + MILLISECOND_NS }
}

fn end(books: &mut Books, due: Due, times: Times, outcome: Outcome) {
    books.ended(&End {
        client: due.client,
        what: Submission::default(),
        times,
        judgement: Judgement { outcome, status: 200, hits: None, body_bytes: 7 },
        measured: books.is_measured(due.intended_ns, due.client),
        on_kept_connection: true,
        in_time: true,
    });
}

#[test]
fn each_request_is_in_one_place_of_the_ledger() {
    let (mut books, _) = books(|_| ());
    let times = [1, 2, 3].map(|at_ms| send(&mut books, due(at_ms), 0));
    assert_eq!(books.check(3), 3);
    end(&mut books, due(1), times[0], Outcome::Ok);
    end(&mut books, due(2), times[1], Outcome::Failed(Failure::Reset));
    books.refused_queue_full(due(4), false);
    books.refused_queue_timeout(due(5), true, due(9).intended_ns);
    books.unsent(due(6), due(9).intended_ns);
    books.unsent_many(10, due(7).intended_ns, due(9).intended_ns);
    assert_eq!(books.check(1), 16);
    books.unfinished(0, due(3).intended_ns, true, due(9).intended_ns);
    let (rest, warmup, slowest) = books.close(9 * MILLISECOND_NS);
    assert_eq!(rest.ledger.balance(), Ok(()));
    assert_eq!((rest.ledger.unsent.stopped, rest.ledger.unfinished), (11, 1));
    assert_eq!((rest.unserved.count(), rest.counters.refused_late), (14, 1));
    // A reset before any answer says nothing for the connection.
    assert_eq!((rest.counters.reused, rest.counters.ended_in_time), (1, 2));
    assert!(warmup.is_none() && slowest.is_empty());
}

#[test]
#[should_panic(expected = "requests in flight")]
fn a_request_that_was_counted_twice_is_found() {
    let (mut books, _) = books(|_| ());
    let times = send(&mut books, due(1), 0);
    end(&mut books, due(1), times, Outcome::Ok);
    end(&mut books, due(1), times, Outcome::Ok);
    books.check(0);
}

#[test]
#[should_panic(expected = "ends after it was sent")]
fn a_request_does_not_end_before_it_was_sent() {
    let (mut books, _) = books(|_| ());
    let times = send(&mut books, due(1), 0);
    end(&mut books, due(1), Times { done_ns: times.sent_ns - 1, ..times }, Outcome::Ok);
}

#[test]
fn a_second_is_handed_out_once_and_the_books_still_balance() {
    let (mut books, handed) = books(|_| ());
    for second in 0..3 {
        let asked = due(1000 * second + 500);
        let times = send(&mut books, asked, 0);
        end(&mut books, asked, times, Outcome::Ok);
        let over_ns = due(1000 * (second + 1)).intended_ns;
        assert!(!books.tick(over_ns - 1, 0) && books.tick(over_ns, 0));
        assert!(!books.tick(over_ns + 1, 0));
        assert_eq!(books.check(0), second + 1);
    }
    let ends: Vec<u64> = handed.borrow().iter().map(|i| i.to_ns / SECOND_NS).collect();
    assert_eq!(ends, [1, 2, 3]);
    assert!(handed.borrow().iter().all(|interval| interval.ledger.ok == 1));
    assert!(books.close(0).0.ledger == Ledger::default());
}

#[test]
fn the_warmup_is_counted_apart_and_what_ends_after_it_is_in_the_rate() {
    let (mut books, _) = books(|plan| plan.warmup_ns = SECOND_NS);
    let early = due(998);
    let times = send(&mut books, early, 0);
    assert!(
        !books.is_measured(early.intended_ns, 0) && books.is_measured(due(1000).intended_ns, 0)
    );
    end(&mut books, early, times, Outcome::Ok);
    let last = due(999);
    let times = send(&mut books, last, 0);
    end(&mut books, last, times, Outcome::Ok);
    assert_eq!(books.check(0), 2);
    let (rest, warmup, _) = books.close(0);
    assert_eq!((rest.ledger.scheduled, warmup.unwrap().ledger.ok), (0, 2));
    assert_eq!(rest.counters.ok_in_time, 1, "one ended when the warm-up was over");
}

#[test]
fn windows_count_what_was_due_in_them_whatever_became_of_it() {
    let limits = [WindowLimit::of_all(MILLISECOND_NS)];
    let counts = Arc::new(WindowCounts::new(SECOND_NS, 2, &limits));
    let (mut books, _) = books(|plan| plan.part.windows.push(counts.clone()));
    assert!(!books.may_count_many());
    let times = send(&mut books, due(1), 0);
    end(&mut books, due(1), times, Outcome::Ok);
    books.refused_queue_full(due(2), false);
    books.unsent(due(1500), due(1700).intended_ns);
    let mut windows = [Window::default(); 2];
    counts.add_to(&mut windows);
    assert_eq!((windows[0].scheduled, windows[0].late[0], windows[0].completed), (2, 1, 1));
    assert_eq!((windows[1].scheduled, windows[1].late[0]), (1, 1));
    assert!((windows[1].response_sum_s - 0.2).abs() < 1e-9);
}

#[test]
fn a_gauge_shows_what_the_books_say() {
    let gauge = Arc::new(Gauge::default());
    let (mut books, _) = books(|plan| plan.part.gauges.push(gauge.clone()));
    let times = send(&mut books, due(1), 0);
    books.left_queue(40);
    books.left_queue(30);
    books.show(1, 5);
    let shown = gauge.look();
    assert_eq!((shown.sent, shown.under_way, shown.queued), (1, 1, 5));
    assert_eq!((shown.longest_wait_ns, shown.completed()), (40, 0));
    end(&mut books, due(1), times, Outcome::Failed(Failure::Timeout));
    books.show(0, 0);
    assert_eq!((gauge.look().failed, gauge.look().longest_wait_ns), (1, 0));
    assert_eq!(books.last_success(), (10 * SECOND_NS, 1), "none since the run began");
}

#[test]
fn requests_that_leave_late_meet_a_target_that_was_disturbed() {
    let (mut books, _) = books(|_| ());
    let first = send(&mut books, due(1), STALL_NS);
    end(&mut books, due(1), first, Outcome::Ok);
    send(&mut books, due(5), STALL_NS);
    let (rest, ..) = books.close(0);
    assert_eq!(rest.delays.disturbed, 1, "clients at full speed all begin at once");
}
