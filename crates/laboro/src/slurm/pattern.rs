//! Names of files with `%A_%a` and the like in them.

/// What the letters stand for.
#[derive(Debug, Default, Clone)]
pub(super) struct PatternFacts {
    /// `%j`: of an array's element, a number of its own.
    pub(super) job: String,
    /// `%A`
    pub(super) array_job: String,
    /// `%a`
    pub(super) index: Option<u32>,
    /// `%x`
    pub(super) name: String,
    /// `%u`
    pub(super) user: String,
    /// `%N`
    pub(super) host: String,
    /// `%s`
    pub(super) step: String,
    /// `%t`
    pub(super) task: u32,
}

/// As Slurm has it where no task has an index.
const NO_INDEX: u32 = 4_294_967_294;

impl PatternFacts {
    /// A number after `%` is how many digits there are at least, and `%%` is one `%`. A name with `\` is taken as it is.
    pub(super) fn fill(&self, pattern: &str) -> String {
        if pattern.contains('\\') {
            return pattern.replace('\\', "");
        }
        let mut filled = String::new();
        let mut rest = pattern.chars().peekable();
        while let Some(letter) = rest.next() {
            if letter != '%' {
                filled.push(letter);
                continue;
            }
            let mut digits = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let width: usize = digits.parse().unwrap_or(0).min(10);
            let number = |text: &str| format!("{text:0>width$}");
            match rest.next() {
                Some('%') => filled.push('%'),
                Some('j') => filled.push_str(&number(&self.job)),
                Some('J') => filled.push_str(&format!("{}.{}", self.job, self.step)),
                Some('A') => filled.push_str(&number(&self.array_job)),
                Some('a') => {
                    filled.push_str(&number(&self.index.unwrap_or(NO_INDEX).to_string()));
                }
                Some('x') => filled.push_str(&self.name.replace('/', "_")),
                Some('u') => filled.push_str(&self.user),
                Some('N') => filled.push_str(&self.host),
                Some('n') => filled.push_str(&number("0")),
                Some('s') => filled.push_str(&self.step),
                Some('t') => filled.push_str(&number(&self.task.to_string())),
                Some('b') => {
                    filled.push_str(&number(&(self.index.unwrap_or(0) % 10).to_string()));
                }
                Some(other) => {
                    filled.push('%');
                    filled.push_str(&digits);
                    filled.push(other);
                }
                None => filled.push('%'),
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_filled_in() {
        let facts = PatternFacts {
            job: "1203".into(),
            array_job: "12".into(),
            index: Some(3),
            name: "a/fit".into(),
            user: "me".into(),
            host: "n1".into(),
            step: "batch".into(),
            task: 2,
        };
        for (pattern, filled) in [
            ("slurm-%A_%a.out", "slurm-12_3.out"),
            ("%x-%j.%N.%u", "a_fit-1203.n1.me"),
            ("%4a/%t%%", "0003/2%"),
            ("100\\%", "100%"),
            ("%z%", "%z%"),
        ] {
            assert_eq!(facts.fill(pattern), filled, "{pattern}");
        }
    }
}
