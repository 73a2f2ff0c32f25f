//! What a node may ask at once. Whole conversations are tried from outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use super::{Poller, PollerTurn, Unasked};
use laboro_core::{Command, Query, WorkerId, WorkerRef};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_node_that_asks_too_much_is_refused_and_what_it_gives_up_is_heard_of() {
    let (poller, mut turns) = Poller::new(WorkerRef::Id(WorkerId(1)), 3);
    let ask = || poller.ask(Command::Query(Query::Groups));
    let mut first = Box::pin(ask());
    assert!(poll(first.as_mut()).is_pending());
    let Poll::Ready(refused) = poll(pin!(ask())) else { panic!("there is no room for another") };
    assert_eq!(refused.unwrap_err(), Unasked::Crowded);

    let Ok(PollerTurn::Ask { tag, .. }) = turns.try_recv() else {
        panic!("the first was not asked")
    };
    let mut second = Box::pin(ask());
    assert!(poll(second.as_mut()).is_pending(), "what was read makes room");
    drop(first);
    assert!(matches!(turns.try_recv(), Ok(PollerTurn::Ask { .. })));
    assert!(matches!(turns.try_recv(), Ok(PollerTurn::Withdraw(of)) if of == tag));
    drop(turns);
    let Poll::Ready(lost) = poll(pin!(ask())) else { panic!("nobody is there to answer") };
    assert_eq!(lost.unwrap_err(), Unasked::Lost);
}
