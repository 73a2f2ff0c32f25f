//! No item is given out beyond one whole, and none stays taken.

use super::*;
use proptest::prelude::*;

#[test]
fn amounts_are_said_as_people_write_them() {
    let said = |parts| Amount::of_parts(parts).to_string();
    let texts = [0, 1, 5_000, 10_000, 12_500, 30_000].map(said);
    assert_eq!(texts, ["0", "0.0001", "0.5", "1", "1.25", "3"]);
}

#[test]
fn fractions_fill_an_item_that_is_shared_before_they_take_another() {
    let (supply, mut used) = (Supply::of(2), Usage::default());
    let half = Request::Some(Amount::of_parts(5_000));
    let mut take = |request| {
        let portion = supply.portion(&used, request)?;
        used.add(&portion);
        Some(portion)
    };
    assert_eq!(take(half).unwrap().shared, Some((0, 5_000)));
    assert_eq!(take(half).unwrap().shared, Some((0, 5_000)));
    assert_eq!(take(Request::whole(1)).unwrap().items, 0b10);
    assert_eq!(take(Request::Some(Amount::of_parts(1))), None);
}

#[test]
fn all_of_it_is_for_a_worker_that_has_given_nothing() {
    let (supply, mut used) = (Supply::of(200), Usage::default());
    let everything = supply.portion(&used, Request::All).unwrap();
    assert_eq!(everything.amount, Amount::whole(200));
    used.add(&everything);
    assert_eq!(supply.portion(&used, Request::Some(Amount::of_parts(1))), None);
    used.remove(&everything);
    used.add(&supply.portion(&used, Request::whole(1)).unwrap());
    assert_eq!(supply.portion(&used, Request::All), None);
    assert!(!Supply::of(0).is_enough(Request::All));
}

proptest! {
    #[test]
    fn no_item_is_given_out_beyond_one_whole(
        count in prop_oneof![0u64..6, 120u64..140],
        steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), 0u64..40_000), 1..200),
    ) {
        let (supply, mut used) = (Supply::of(count), Usage::default());
        let mut held: Vec<Portion> = Vec::new();
        for (takes, which, parts) in steps {
            if takes || held.is_empty() {
                let request = if parts == 0 { Request::All } else { Request::Some(Amount::of_parts(parts)) };
                if let Some(portion) = supply.portion(&used, request) {
                    prop_assert!(supply.is_enough(request));
                    used.add(&portion);
                    held.push(portion);
                }
            } else {
                used.remove(&held.swap_remove(which.index(held.len())));
            }
            let mut items = [0u64; 128];
            let mut amount = 0;
            for portion in &held {
                for (item, parts) in items.iter_mut().enumerate() {
                    *parts += Amount::PARTS * (portion.items >> item & 1) as u64;
                }
                if let Some((item, parts)) = portion.shared {
                    items[usize::from(item)] += u64::from(parts);
                }
                amount += portion.amount.parts();
            }
            prop_assert!(items.iter().all(|&parts| parts <= Amount::PARTS));
            prop_assert!(items.iter().sum::<u64>() + amount <= count * Amount::PARTS);
            prop_assert_eq!(used.total().parts(), items.iter().sum::<u64>() + amount);
        }
        while let Some(portion) = held.pop() {
            used.remove(&portion);
        }
        prop_assert!(used.is_nothing());
    }
}
