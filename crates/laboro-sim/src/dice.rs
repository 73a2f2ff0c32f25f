//! Where all chance comes from: one seed, and streams that are split off it so that one part of the world
//! drawing more does not change what another part draws.

#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed);
        // Neighbouring seeds would otherwise begin alike.
        dice.draw();
        Dice(dice.draw() ^ seed)
    }

    /// Another stream, for another part of the world.
    pub fn split(&mut self) -> Dice {
        Dice::new(self.draw())
    }

    /// The same, and what is drawn here stays as it was: seeds that are known for something keep their worlds.
    pub fn aside(&self) -> Dice {
        Dice::new(!self.0)
    }

    /// SplitMix64: a few lines, and every seed is a good one.
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which counts as 1 where it is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    pub fn small(&mut self, first: u32, last: u32) -> u32 {
        self.between(u64::from(first), u64::from(last)) as u32
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.index(items.len())) }
    }

    /// Mostly short, now and then up to `most`: how long things take in the world.
    pub fn mostly_short(&mut self, most: u64) -> u64 {
        match self.below(10) {
            0 => self.between(0, most),
            1..=3 => self.between(0, most / 5),
            _ => self.between(0, most / 40),
        }
    }
}
