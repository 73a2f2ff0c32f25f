//! Files for the input and output of a task at a worker. A hub knows commands and not files, so the command
//! opens them itself: by a shell that is replaced by the program. Paths may hold placeholders.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) stdout: Option<Vec<u8>>,
    pub(crate) stderr: Option<Vec<u8>>,
    /// How many values an element has; none if it is no array.
    pub(crate) columns: usize,
}

impl Redirect {
    pub(crate) fn is_empty(&self) -> bool {
        self.stdin.is_none() && self.stdout.is_none() && self.stderr.is_none()
    }

    /// Before a shell line, in the same shell.
    pub(crate) fn line(&self, line: Vec<u8>) -> Vec<u8> {
        if self.is_empty() {
            return line;
        }
        let mut text = b"exec".to_vec();
        for (operator, path) in self.steps() {
            text.extend_from_slice(operator.as_bytes());
            quote(path, &mut text);
        }
        text.push(b'\n');
        text.extend_from_slice(&line);
        text
    }

    /// Before a program: the paths are arguments, so that no shell reads them.
    pub(crate) fn words(&self, words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        if self.is_empty() {
            return words;
        }
        let mut script = String::new();
        let mut paths = Vec::new();
        for (operator, path) in self.steps() {
            script.push_str(&format!("exec{operator}\"$1\"; shift; "));
            paths.push(one_argument(path, self.columns));
        }
        script.push_str("exec \"$@\"");
        let shell = ["/bin/sh", "-c", &script, "sh"].map(|word| word.as_bytes().to_vec());
        shell.into_iter().chain(paths).chain(words).collect()
    }

    fn steps(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let all = [(" <", &self.stdin), (" >", &self.stdout), (" 2>", &self.stderr)];
        all.into_iter().filter_map(|(operator, path)| Some((operator, path.as_deref()?)))
    }
}

/// In single quotes a placeholder is filled for where it stands.
fn quote(path: &[u8], text: &mut Vec<u8>) {
    text.push(b'\'');
    for byte in path {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            byte => text.push(*byte),
        }
    }
    text.push(b'\'');
}

/// `{}` as a whole argument is several of an element with several values, and a path is one.
fn one_argument(path: &[u8], columns: usize) -> Vec<u8> {
    const ALL: [(&[u8], &str); 6] = [
        (b"{}", ""),
        (b"{/}", "/"),
        (b"{//}", "//"),
        (b"{.}", "."),
        (b"{/.}", "/."),
        (b"{ext}", ":ext"),
    ];
    match ALL.iter().find(|(all, _)| columns > 1 && *all == path) {
        Some((_, shape)) => {
            let each: Vec<String> = (1..=columns).map(|n| format!("{{{n}{shape}}}")).collect();
            each.join(" ").into_bytes()
        }
        None => path.to_vec(),
    }
}

#[cfg(test)]
mod tests;
