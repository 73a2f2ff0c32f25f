//! What a task is called where people read it: its name, the words of its values, or both.

/// Longer labels are cut: they stand in tables and at the beginning of lines.
const CHARS_MAX: usize = 60;

/// `words` are those of an element's values, `number` its place from 1.
pub fn label(name: &str, number: u32, words: Option<&str>) -> String {
    let words = words.filter(|words| !words.is_empty() && *words != number.to_string());
    let whole = match (name, words) {
        ("", None) => number.to_string(),
        ("", Some(words)) => words.to_owned(),
        (name, None) => name.to_owned(),
        (name, Some(words)) => format!("{name} {words}"),
    };
    cut(&whole)
}

fn cut(text: &str) -> String {
    // A label is one line.
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(CHARS_MAX) {
        None => line,
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
    }
}

/// The words of a value as it travels, each after its name if it has one: several are told apart by a byte of their own.
pub(crate) fn words_of(value: &[u8], names: &[Box<[u8]>]) -> String {
    let mut names = names.iter().map(|name| String::from_utf8_lossy(name));
    let mut name = || match names.next() {
        Some(name) if !name.is_empty() => format!("{name}="),
        _ => String::new(),
    };
    let mut words = name();
    let mut bytes = Vec::new();
    let mut is_escaped = false;
    for &byte in value {
        match byte {
            0x1e if !is_escaped => is_escaped = true,
            0x1f if !is_escaped => {
                words.push_str(&String::from_utf8_lossy(&bytes));
                words.push(' ');
                words.push_str(&name());
                bytes.clear();
            }
            byte => {
                is_escaped = false;
                bytes.push(byte);
            }
        }
    }
    words.push_str(&String::from_utf8_lossy(&bytes));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_which_one_it_is() {
        assert_eq!(label("", 17, Some("reads/s17.fq")), "reads/s17.fq");
        assert_eq!(label("fit.3", 3, Some("model=small seed=3")), "fit.3 model=small seed=3");
        assert_eq!(label("sim.3", 3, Some("3")), "sim.3", "which it says already");
        assert_eq!(label("", 3, None), "3");
        assert_eq!(label("join", 1, None), "join");
        assert_eq!(label("", 1, Some("two\nlines")), "two lines");
        assert_eq!(label("", 1, Some(&"é".repeat(100))).chars().count(), CHARS_MAX + 1);
        assert_eq!(words_of(b"small\x1f3", &[]), "small 3");
        assert_eq!(words_of(b"a\x1e\x1fb", &[]), "a\x1fb");
        let names = [&b"model"[..], b"", b"seed"].map(Box::from);
        assert_eq!(words_of(b"small\x1fx\x1f3", &names), "model=small x seed=3");
    }
}
