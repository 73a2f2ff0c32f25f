//! Which numbers of a changed plan are which of an earlier one.

use super::*;

fn numbers(first: u64, step: u64, count: u64) -> Elements<'static> {
    Elements::Numbers { first, step, count }
}

fn hashes(text: &str) -> Elements<'static> {
    Elements::Hashes(text.bytes().map(u128::from).collect())
}

fn paired(mine: &Elements<'static>, theirs: Elements<'static>) -> Vec<Pair> {
    let key = Fingerprint::from_bytes([0; 32]);
    let elements = KnownElements::Alike(theirs);
    pairs(&[(1, mine)], &[Known { first: 1, name: String::new(), key, elements }])
}

#[test]
fn ranges_are_compared_as_ranges() {
    let old = || numbers(1, 1, 10_000_000);
    assert_eq!(paired(&numbers(1, 1, 10_000_001), old()), [((1, 10_000_000), 1)]);
    assert_eq!(paired(&numbers(3, 1, 4), old()), [((1, 4), 3)]);
    assert_eq!(paired(&numbers(0, 1, 3), old()), [((2, 3), 1)]);
    assert_eq!(paired(&numbers(10_000_001, 1, 4), old()), []);
    assert_eq!(paired(&numbers(1, 2, 2), numbers(1, 1, 3)), [((1, 1), 1), ((2, 2), 3)]);
}

#[test]
fn the_nth_with_a_value_is_the_nth_with_it() {
    assert_eq!(paired(&hashes("abXc"), hashes("abc")), [((1, 2), 1), ((4, 4), 3)]);
    assert_eq!(paired(&hashes("ba"), hashes("ab")), [((1, 1), 2), ((2, 2), 1)]);
    assert_eq!(paired(&hashes("aaa"), hashes("aa")), [((1, 2), 1)]);
    assert_eq!(paired(&hashes("c"), hashes("ab")), []);
    assert_eq!(paired(&hashes("acb"), hashes("bac")), [((1, 2), 2), ((3, 3), 1)]);
}

#[test]
fn a_long_list_is_found_wherever_it_was_changed() {
    let list = |numbers: &mut dyn Iterator<Item = u128>| Elements::Hashes(numbers.collect());
    let old = || list(&mut (0..10_000));
    let first = list(&mut std::iter::once(20_000).chain(0..10_000));
    assert_eq!(paired(&first, old()), [((2, 10_001), 1)]);
    let middle = list(&mut (0..5000).chain([20_000]).chain(5000..10_000));
    assert_eq!(paired(&middle, old()), [((1, 5000), 1), ((5002, 10_001), 5001)]);
    let halves = list(&mut (5000..10_000).chain(0..5000));
    assert_eq!(paired(&halves, old()), [((1, 5000), 5001), ((5001, 10_000), 1)]);
    let fewer = list(&mut (0..10_000).filter(|number| number % 5000 != 7));
    assert_eq!(paired(&fewer, old()), [((1, 7), 1), ((8, 5006), 9), ((5007, 9998), 5009)]);
    let reversed = list(&mut (0..10_000).rev());
    assert_eq!(paired(&reversed, old()).len(), 10_000);
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut plan = Plan::new("test");
    let key = |byte| Fingerprint::from_bytes([byte; 32]);
    let contents = [
        PartContent { key: key(1), elements: hashes("xyz") },
        PartContent { key: key(2), elements: numbers(5, 5, 7) },
        PartContent { key: key(3), elements: Elements::One },
    ];
    plan.parts = laboro_plan::parse_flow(
        "flow.toml",
        "[[task]]\nname = \"one\"\ncommand = \"a\"\n[[task]]\nname = \"two words\"\ncommand = \"b\"\n\
         [[task]]\nname = \"three\"\ncommand = \"c\"\n",
        Path::new("."),
    )
    .unwrap()
    .parts;
    let one = Carried { first: 2, last: 3, run: "abc".to_owned(), from: 7 };
    write(dir.path(), &plan, &contents, &[1, 4, 11], std::slice::from_ref(&one)).unwrap();
    let known = read(dir.path()).unwrap();
    assert_eq!(known.iter().map(|part| part.first).collect::<Vec<_>>(), [1, 4, 11]);
    assert_eq!(known[1].name, "two words");
    for (known, content) in known.iter().zip(&contents) {
        assert_eq!(known.key, content.key);
        assert!(known.elements.hashes().eq(content.elements.hashes()));
    }
    assert_eq!(carried(dir.path()), std::slice::from_ref(&one));
    assert_eq!(origin(&[one], "own", 3), ("abc", 8));
    // Cut short, it is as if it were not there.
    std::fs::write(dir.path().join(HASHES), [0; 40]).unwrap();
    assert!(read(dir.path()).is_none());
}

#[test]
fn a_range_is_split_where_its_origin_changes() {
    let by = |first, last, run: &str, from| Carried { first, last, run: run.to_owned(), from };
    let before = [by(3, 4, "old", 1), by(8, 9, "older", 5)];
    let mut found = Vec::new();
    push_parts(&mut found, (101, 110), 1, "new", &before);
    let parts = [
        by(101, 102, "new", 1),
        by(103, 104, "old", 1),
        by(105, 107, "new", 5),
        by(108, 109, "older", 5),
        by(110, 110, "new", 10),
    ];
    assert_eq!(found, parts);
    push_parts(&mut found, (111, 112), 11, "new", &before);
    assert_eq!(found.last(), Some(&by(110, 112, "new", 10)));
}

#[test]
fn what_is_found_is_not_found_again() {
    let by = |first, last| Carried { first, last, run: String::new(), from: first };
    let found = [by(3, 4), by(7, 7), by(20, u32::MAX)];
    assert_eq!(without(&found, (1, 10)), [(1, 2), (5, 6), (8, 10)]);
    assert_eq!(without(&found, (4, 7)), [(5, 6)]);
    assert_eq!(without(&found, (20, u32::MAX)), []);
    assert_eq!(without(&[], (1, u32::MAX)), [(1, u32::MAX)]);
}
