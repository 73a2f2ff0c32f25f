//! The columns of a list as `--format` has them: `%.18i|%T`. What the letters stand for is each command's own.

use super::Fault;
use super::table::fit;

/// One column, with what stands before and behind it.
pub(super) struct FormatColumn<T> {
    pub(super) before: String,
    pub(super) what: T,
    /// 0: as wide as it is.
    pub(super) width: usize,
    pub(super) right: bool,
    pub(super) after: String,
}

/// `by_letter` knows the columns of the command.
pub(super) fn by_letters<T>(
    format: &str,
    by_letter: impl Fn(char) -> Option<T>,
) -> Result<Vec<FormatColumn<T>>, Fault> {
    let mut columns: Vec<FormatColumn<T>> = Vec::new();
    let (mut before, mut letters) = (String::new(), format.chars().peekable());
    while let Some(letter) = letters.next() {
        if letter != '%' {
            before.push(letter);
            continue;
        }
        let right = letters.next_if_eq(&'.').is_some();
        let mut digits = String::new();
        while let Some(digit) = letters.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let Some(letter) = letters.next() else { break };
        let what = by_letter(letter)
            .ok_or_else(|| Fault::from(format!("there is no column %{letter} here")))?;
        let (width, before) = (digits.parse().unwrap_or(0), std::mem::take(&mut before));
        columns.push(FormatColumn { before, what, width, right, after: String::new() });
    }
    if let Some(last) = columns.last_mut() {
        last.after = before;
    }
    Ok(columns)
}

pub(super) fn line<T>(columns: &[FormatColumn<T>], content: impl Fn(&T) -> String) -> String {
    let mut line = String::new();
    for column in columns {
        line.push_str(&column.before);
        line.push_str(&fit(&content(&column.what), column.width, column.right));
        line.push_str(&column.after);
    }
    format!("{}\n", line.trim_end_matches(' '))
}
