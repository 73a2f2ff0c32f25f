//! What a machine has beside slots and memory, what a task asks of it, and what a lease was given. Few items are told
//! apart, so that a task knows which ones are its own; of more than that only the number counts.

use crate::id::Name;
use std::fmt;

/// An amount of a resource, in ten-thousandths of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

impl Amount {
    /// How many parts one has.
    pub const PARTS: u64 = 10_000;
    /// All of one.
    pub const ONE: Amount = Amount(Amount::PARTS);

    /// So many whole ones.
    pub fn whole(count: u64) -> Amount {
        Amount(count.saturating_mul(Amount::PARTS))
    }

    /// So many ten-thousandths.
    pub fn of_parts(parts: u64) -> Amount {
        Amount(parts)
    }

    /// In ten-thousandths.
    pub fn parts(self) -> u64 {
        self.0
    }

    /// The whole ones in it.
    pub fn wholes(self) -> u64 {
        self.0 / Amount::PARTS
    }

    /// What is left beside those, in ten-thousandths.
    pub fn fraction(self) -> u16 {
        (self.0 % Amount::PARTS) as u16
    }

    fn plus(self, other: Amount) -> Amount {
        Amount(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fraction() {
            0 => write!(f, "{}", self.wholes()),
            fraction => {
                let digits = format!("{fraction:04}");
                write!(f, "{}.{}", self.wholes(), digits.trim_end_matches('0'))
            }
        }
    }
}

/// What a task wants of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// Whole ones, and a fraction of one more.
    Some(Amount),
    /// Whatever the worker has, at least one.
    All,
}

impl Request {
    /// So many whole ones.
    pub fn whole(count: u64) -> Request {
        Request::Some(Amount::whole(count))
    }

    pub(crate) fn and(self, other: Request) -> Request {
        match (self, other) {
            (Request::Some(one), Request::Some(other)) => Request::Some(one.plus(other)),
            (Request::All, _) | (_, Request::All) => Request::All,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Some(amount) => amount.fmt(f),
            Request::All => f.write_str("all"),
        }
    }
}

/// How much of one resource a worker has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// How many there are.
    pub count: u64,
    /// What they are called, for people. Empty: they are numbered from 0.
    pub items: Vec<Name>,
}

impl Supply {
    /// Items beyond this number are not told apart.
    pub const ITEMS_MAX: u64 = 128;

    /// So many without names.
    pub fn of(count: u64) -> Supply {
        Supply { count, items: Vec::new() }
    }

    fn total(&self) -> Amount {
        Amount::whole(self.count)
    }

    /// A bit for each item, where they are told apart.
    fn bits(&self) -> Option<u128> {
        match self.count {
            Supply::ITEMS_MAX => Some(u128::MAX),
            count if count < Supply::ITEMS_MAX => Some((1 << count) - 1),
            _ => None,
        }
    }

    /// Could a worker that has nothing else to do give this?
    pub(crate) fn is_enough(&self, request: Request) -> bool {
        match request {
            Request::Some(amount) => amount <= self.total(),
            Request::All => self.count > 0,
        }
    }

    /// What a task gets beside what others have: the lowest items that are free, and for a fraction the fullest one that
    /// others share and that still has room.
    pub(crate) fn portion(&self, used: &Usage, request: Request) -> Option<Portion> {
        let wanted = match request {
            Request::Some(amount) => amount,
            Request::All if self.count > 0 && used.is_nothing() => self.total(),
            Request::All => return None,
        };
        if used.total().plus(wanted) > self.total() {
            return None;
        }
        let Some(all) = self.bits() else {
            return Some(Portion { amount: wanted, ..Portion::default() });
        };
        let mut free = all & !used.items & !used.shared_bits();
        if u64::from(free.count_ones()) < wanted.wholes() {
            return None;
        }
        let mut items = 0u128;
        for _ in 0..wanted.wholes() {
            let lowest = free & free.wrapping_neg();
            items |= lowest;
            free &= !lowest;
        }
        let shared = match wanted.fraction() {
            0 => None,
            part => {
                let fits = |&&(item, has): &&(u8, u16)| {
                    all >> item & 1 == 1 && u64::from(has) + u64::from(part) <= Amount::PARTS
                };
                // The lowest of the fullest.
                let fullest = used.shared.iter().rev().filter(fits).max_by_key(|(_, has)| *has);
                let item = match fullest {
                    Some(&(item, _)) => item,
                    None if free != 0 => free.trailing_zeros() as u8,
                    None => return None,
                };
                Some((item, part))
            }
        };
        Some(Portion { items, shared, amount: Amount::default() })
    }
}

/// What a lease has of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Portion {
    /// A bit for each item that is its own.
    pub items: u128,
    /// An item of which it has so many ten-thousandths.
    pub shared: Option<(u8, u16)>,
    /// Where items are not told apart.
    pub amount: Amount,
}

impl Portion {
    /// These items and nothing else.
    pub fn of_items(items: u128) -> Portion {
        Portion { items, ..Portion::default() }
    }

    /// A bit for each item that it may use, alone or with others.
    pub fn visible(&self) -> u128 {
        self.items | self.shared.map_or(0, |(item, _)| 1u128.checked_shl(item.into()).unwrap_or(0))
    }
}

/// What all leases of a worker have of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Usage {
    pub(crate) items: u128,
    /// Items that are shared, ascending, with what is taken of each.
    pub(crate) shared: Vec<(u8, u16)>,
    pub(crate) amount: Amount,
}

/// Where nothing was given.
pub(crate) static NOTHING_USED: Usage = Usage { items: 0, shared: Vec::new(), amount: Amount(0) };

impl Usage {
    pub(crate) fn is_nothing(&self) -> bool {
        self.items == 0 && self.shared.is_empty() && self.amount == Amount(0)
    }

    pub(crate) fn total(&self) -> Amount {
        let shared: u64 = self.shared.iter().map(|(_, parts)| u64::from(*parts)).sum();
        Amount::whole(self.items.count_ones().into()).plus(Amount(shared)).plus(self.amount)
    }

    fn shared_bits(&self) -> u128 {
        self.shared.iter().fold(0, |bits, (item, _)| bits | 1u128 << item)
    }

    pub(crate) fn add(&mut self, portion: &Portion) {
        self.items |= portion.items;
        self.amount = self.amount.plus(portion.amount);
        if let Some((item, parts)) = portion.shared {
            match self.shared.binary_search_by_key(&item, |(item, _)| *item) {
                Ok(at) => self.shared[at].1 = self.shared[at].1.saturating_add(parts),
                Err(at) => self.shared.insert(at, (item, parts)),
            }
        }
    }

    pub(crate) fn remove(&mut self, portion: &Portion) {
        self.items &= !portion.items;
        self.amount.0 = self.amount.0.saturating_sub(portion.amount.0);
        if let Some((item, parts)) = portion.shared {
            let at = self.shared.binary_search_by_key(&item, |(item, _)| *item);
            let at = at.expect("what is given back was taken");
            self.shared[at].1 = self.shared[at].1.saturating_sub(parts);
            if self.shared[at].1 == 0 {
                self.shared.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
