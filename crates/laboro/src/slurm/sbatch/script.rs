//! What a script says of itself in lines such as `#SBATCH`.

/// The words of all lines with this `mark` before the first line that is neither a comment nor empty.
pub(crate) fn directives(body: &[u8], mark: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(body).lines() {
        if let Some(rest) = line.strip_prefix(mark) {
            if rest.starts_with(|c: char| c.is_whitespace()) {
                found.extend(words(rest).map_err(|why| format!("{why} in `{line}`"))?);
            }
        } else if !line.trim_start().starts_with('#') && !line.trim().is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Words of a line, with quotes, up to a comment.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(end), letter) if letter == end => quote = None,
            (Some('"') | None, '\\') => {
                word.get_or_insert_default().extend(letters.next());
            }
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::super::OPTIONS;
    use super::*;
    use crate::slurm::options::{WordsBegin, parse};

    #[test]
    fn lines_of_a_script_are_options_until_its_first_command() {
        let body = b"#!/bin/bash\n#SBATCH --job-name=\"my job\" -c 2  # two\n\n# more\n#SBATCH --mem 4G\n#SBATCHED\n\
                     echo\n#SBATCH -n 9\n";
        let typed =
            parse(&OPTIONS, WordsBegin::Anywhere, directives(body, "#SBATCH").unwrap()).unwrap();
        assert_eq!(typed.value("job-name"), Some("my job"));
        assert_eq!((typed.value("cpus-per-task"), typed.value("mem")), (Some("2"), Some("4G")));
        assert_eq!(typed.value("ntasks"), None);
        assert!(directives(b"#!/bin/sh\n#SBATCH --job-name='x\n", "#SBATCH").is_err());
    }
}
