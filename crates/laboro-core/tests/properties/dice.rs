//! Where choices come from: a seed for long runs, or a list of draws that proptest can shorten.

#[derive(Debug)]
pub enum Dice {
    Seeded(u64),
    /// Runs dry: then the workload ends.
    Listed(std::vec::IntoIter<u32>),
}

impl Dice {
    pub fn listed(draws: Vec<u32>) -> Dice {
        Dice::Listed(draws.into_iter())
    }

    pub fn is_dry(&self) -> bool {
        matches!(self, Dice::Listed(draws) if draws.len() == 0)
    }

    fn draw(&mut self) -> u32 {
        match self {
            // SplitMix64: a few lines, and every seed is a good one.
            Dice::Seeded(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (z >> 32) as u32
            }
            Dice::Listed(draws) => draws.next().unwrap_or(0),
        }
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        self.draw() as usize % end.max(1)
    }

    pub fn between(&mut self, first: u32, last: u32) -> u32 {
        first + self.below((last - first) as usize + 1) as u32
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.below(items.len())) }
    }

    /// Of a list that is never empty.
    pub fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}
