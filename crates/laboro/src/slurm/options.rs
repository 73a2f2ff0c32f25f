//! How Slurm's commands are typed: `--name=value`, `--name value`, `-n4`, `-n 4`, unique beginnings of long names. Each
//! command has a table: what an option means is decided by the command, what may be ignored or must be refused here.

/// One option of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opt {
    pub(crate) long: &'static str,
    short: Option<char>,
    takes: Takes,
    honour: Honour,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Takes {
    Nothing,
    Value,
    /// Only as `--name=value`.
    Maybe,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Honour {
    Means,
    /// It cannot matter here.
    Ignored,
    /// For this reason.
    Refused(&'static str),
}

/// An option that means something.
pub(crate) const fn means(long: &'static str, short: Option<char>, takes: Takes) -> Opt {
    Opt { long, short, takes, honour: Honour::Means }
}

/// An option that is accepted and changes nothing.
pub(crate) const fn ignored(long: &'static str, short: Option<char>, takes: Takes) -> Opt {
    Opt { long, short, takes, honour: Honour::Ignored }
}

/// An option that is known and cannot be honoured.
pub(crate) const fn refused(
    long: &'static str,
    short: Option<char>,
    takes: Takes,
    why: &'static str,
) -> Opt {
    Opt { long, short, takes, honour: Honour::Refused(why) }
}

/// What was typed.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct TypedOptions {
    options: Vec<(&'static str, String)>,
    pub(crate) words: Vec<String>,
}

impl TypedOptions {
    /// The last one counts.
    pub(crate) fn value(&self, long: &str) -> Option<&str> {
        self.options.iter().rev().find(|(name, _)| *name == long).map(|(_, value)| &**value)
    }

    /// Each one counts; lists are separated by commas.
    pub(crate) fn list(&self, long: &str) -> Vec<&str> {
        let all = self.options.iter().filter(|(name, _)| *name == long);
        all.flat_map(|(_, value)| value.split(','))
            .map(str::trim)
            .filter(|v| !v.is_empty())
            .collect()
    }

    /// Each one counts, as it was typed.
    pub(crate) fn all(&self, long: &str) -> impl Iterator<Item = &str> {
        self.options.iter().filter(move |(name, _)| *name == long).map(|(_, value)| &**value)
    }

    pub(crate) fn has(&self, long: &str) -> bool {
        self.value(long).is_some()
    }

    /// Those of `first` count less.
    pub(crate) fn over(mut self, first: TypedOptions) -> TypedOptions {
        let mut options = first.options;
        options.append(&mut self.options);
        TypedOptions { options, words: self.words }
    }
}

/// Where the words begin that are not options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum WordsBegin {
    /// Behind the first word everything is a word: it is another program's.
    First,
    Anywhere,
}

pub(crate) fn parse(
    table: &[Opt],
    words: WordsBegin,
    args: impl IntoIterator<Item = String>,
) -> Result<TypedOptions, String> {
    let mut args = args.into_iter();
    let mut typed = TypedOptions::default();
    while let Some(arg) = args.next() {
        if arg == "--" {
            typed.words.extend(args);
            break;
        }
        if let Some(long) = arg.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = find_long(table, name)?;
            let value = match (option.takes, value) {
                (Takes::Nothing, Some(_)) => {
                    return Err(format!("option '--{}' doesn't allow an argument", option.long));
                }
                (Takes::Value, None) => args.next().ok_or_else(|| missing(option.long))?,
                (_, value) => value.unwrap_or_default(),
            };
            take(&mut typed, option, value)?;
        } else if arg.len() > 1 && arg.starts_with('-') {
            short(table, &arg[1..], &mut args, &mut typed)?;
        } else {
            typed.words.push(arg);
            if words == WordsBegin::First {
                typed.words.extend(args);
                break;
            }
        }
    }
    Ok(typed)
}

fn short(
    table: &[Opt],
    letters: &str,
    args: &mut impl Iterator<Item = String>,
    typed: &mut TypedOptions,
) -> Result<(), String> {
    for (at, letter) in letters.char_indices() {
        let option = table.iter().find(|option| option.short == Some(letter));
        let option = option.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        if option.takes == Takes::Value {
            let attached = &letters[at + letter.len_utf8()..];
            let value = match attached.strip_prefix('=').unwrap_or(attached) {
                "" => args.next().ok_or_else(|| missing(option.long))?,
                value => value.to_owned(),
            };
            return take(typed, option, value);
        }
        take(typed, option, String::new())?;
    }
    Ok(())
}

fn take(typed: &mut TypedOptions, option: &Opt, value: String) -> Result<(), String> {
    match option.honour {
        Honour::Means => typed.options.push((option.long, value)),
        Honour::Ignored => {}
        Honour::Refused(why) => return Err(format!("--{} cannot be honoured: {why}", option.long)),
    }
    Ok(())
}

fn find_long<'a>(table: &'a [Opt], name: &str) -> Result<&'a Opt, String> {
    if let Some(option) = table.iter().find(|option| option.long == name) {
        return Ok(option);
    }
    let mut like = table.iter().filter(|option| !name.is_empty() && option.long.starts_with(name));
    match (like.next(), like.next()) {
        (Some(option), None) => Ok(option),
        (Some(one), Some(other)) => Err(format!(
            "option '--{name}' is ambiguous; possibilities: '--{}' '--{}'",
            one.long, other.long
        )),
        (None, _) => Err(format!("unrecognized option '--{name}'")),
    }
}

fn missing(long: &str) -> String {
    format!("option '--{long}' requires an argument")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [Opt; 5] = [
        means("array", Some('a'), Takes::Value),
        means("hold", Some('H'), Takes::Nothing),
        means("exclusive", None, Takes::Maybe),
        ignored("account", Some('A'), Takes::Value),
        refused("begin", Some('b'), Takes::Value, "there is no clock for it"),
    ];

    fn typed(words: WordsBegin, line: &str) -> Result<TypedOptions, String> {
        parse(&TABLE, words, line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_taken_in_every_form() {
        for line in ["--array=1-3 -H x", "-a1-3 --hold x", "-Ha 1-3 x", "--arr 1-3 -A me -H x"] {
            let typed = typed(WordsBegin::First, line).unwrap();
            assert_eq!(typed.value("array"), Some("1-3"), "{line}");
            assert!(typed.has("hold"), "{line}");
            assert_eq!(typed.words, ["x"], "{line}");
        }
        let typed = typed(WordsBegin::First, "--exclusive script --hold -a 3").unwrap();
        assert_eq!(typed.value("exclusive"), Some(""));
        assert_eq!(typed.words, ["script", "--hold", "-a", "3"]);
    }

    #[test]
    fn what_is_not_known_or_cannot_be_done_is_refused_by_name() {
        for (line, words) in [
            ("--colour=1", "unrecognized option '--colour'"),
            ("--a=1", "ambiguous"),
            ("-Z", "invalid option -- 'Z'"),
            ("-a", "option '--array' requires an argument"),
            ("--hold=1", "doesn't allow an argument"),
            ("-b now", "--begin cannot be honoured: there is no clock for it"),
        ] {
            let told = typed(WordsBegin::Anywhere, line).unwrap_err();
            assert!(told.contains(words), "{line}: {told}");
        }
    }
}
