//! The budget for bodies: who has to wait, who gives way, and that room comes back.

use super::*;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// What it comes to without waiting. `None`: it waits.
fn now<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

macro_rules! now {
    ($future:expr) => {
        now(std::pin::pin!($future))
    };
}

#[test]
fn who_has_most_gives_way_to_who_has_little() {
    let budget = Budget::new(100);
    let [first, second, innocent] = ["a", "a", "b"].map(|token| budget.room(token));
    assert!(now!(first.grow(60)).unwrap().is_ok());
    assert!(now!(second.grow(40)).unwrap().is_ok());
    let mut wanted = std::pin::pin!(innocent.grow(10));
    assert!(now(wanted.as_mut()).is_none(), "it waits until there is room");
    assert!(now!(first.must_go()).is_none(), "the older one stays");
    assert!(now!(second.must_go()).is_some());
    assert!(now!(second.grow(1)).unwrap().is_err());
    drop(second);
    assert!(now(wanted.as_mut()).unwrap().is_ok());
}

#[test]
fn the_youngest_of_one_token_waits_and_the_oldest_comes_through() {
    let budget = Budget::new(100);
    let [old, young] = ["a", "a"].map(|token| budget.room(token));
    assert!(now!(old.grow(50)).unwrap().is_ok());
    assert!(now!(young.grow(50)).unwrap().is_ok());
    let mut more = std::pin::pin!(young.grow(10));
    assert!(now(more.as_mut()).is_none());
    assert!(now!(old.must_go()).is_none());
    assert!(now!(old.grow(10)).is_none());
    assert!(now(more.as_mut()).unwrap().is_err(), "it gave way to the older one");
}

#[test]
fn what_is_here_is_not_told_to_go_and_gives_its_room_back() {
    let budget = Budget::new(100);
    let [here, other] = ["a", "b"].map(|token| budget.room(token));
    assert!(now!(here.grow(90)).unwrap().is_ok());
    here.complete().unwrap();
    let mut more = std::pin::pin!(other.grow(20));
    assert!(now(more.as_mut()).is_none());
    assert!(now!(here.must_go()).is_none());
    here.shrink_to(10);
    assert!(now(more.as_mut()).unwrap().is_ok());
    drop(here);
    assert_eq!(budget.books().used, 20);
    assert_eq!(budget.books().shares.len(), 1);
}
