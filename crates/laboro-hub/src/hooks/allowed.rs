//! Who may have the hub call what. A command would run as the hub's user, and a URL is called from the hub's machine, which
//! may reach what the submitter cannot.

use super::TARGETS_MAX;
use super::target::Target;
use crate::config::HookSettings;
use hyper::Uri;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requester {
    /// The user who runs the hub, or root, by the kernel's word: may run commands as that user anyway.
    OwnUser,
    /// An admin who is not bound to a group.
    Admin,
    Submitter,
}

/// Why a job with these targets is not taken; `None`: it may have them.
pub(crate) fn refusal(
    settings: &HookSettings,
    asker: Requester,
    targets: &[String],
) -> Option<Refusal> {
    if targets.len() > TARGETS_MAX {
        let why = format!("a job has at most {TARGETS_MAX} targets of on_end");
        return Some(Refusal { is_malformed: true, why, hint: None });
    }
    targets.iter().find_map(|text| match Target::parse(text) {
        Err(why) => Some(Refusal { is_malformed: true, why: format!("on_end: {why}"), hint: None }),
        Ok(target) => not_allowed(settings, asker, &target),
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The target itself is malformed; no token could use it.
    pub(crate) is_malformed: bool,
    pub(crate) why: String,
    pub(crate) hint: Option<&'static str>,
}

fn not_allowed(settings: &HookSettings, asker: Requester, target: &Target) -> Option<Refusal> {
    let refuse = |why: String, hint| Some(Refusal { is_malformed: false, why, hint: Some(hint) });
    match (target, asker) {
        (_, Requester::OwnUser) | (Target::Url(_) | Target::Mail(_), Requester::Admin) => None,
        (Target::Command(_), _) => refuse(
            "a command of on_end would run as the hub's user: only that user may give one, on the hub's machine".into(),
            "run it as a task of a job that comes after this one, or give a URL",
        ),
        (Target::Url(uri), Requester::Submitter) => {
            let place = uri.authority().map_or("", |place| place.as_str());
            match settings.allow_urls.iter().any(|prefix| is_below(uri, prefix)) {
                true => None,
                false => refuse(
                    format!("on_end: the hub does not call {place} for a token with the role submit"),
                    "an admin can allow it: hooks.allow_urls in hub.toml",
                ),
            }
        }
        (Target::Mail(address), Requester::Submitter) => {
            let fits = |allowed: &String| match allowed.strip_prefix('@') {
                Some(host) => address.rsplit_once('@').is_some_and(|(_, own)| own == host),
                None => allowed == address,
            };
            match settings.allow_mail.iter().any(fits) {
                true => None,
                false => refuse(
                    format!("on_end: the hub does not mail {address} for a token with the role submit"),
                    "an admin can allow it: hooks.allow_mail in hub.toml",
                ),
            }
        }
    }
}

/// Same scheme, host and port, and a path that begins with all of the prefix's parts.
fn is_below(uri: &Uri, prefix: &str) -> bool {
    let Ok(Target::Url(prefix)) = Target::parse(prefix) else { return false };
    let place = |uri: &Uri| {
        let host = uri.host().map(str::to_ascii_lowercase);
        (uri.scheme_str().map(str::to_ascii_lowercase), host, super::send::port(uri))
    };
    // Dots in a path mean another one at most servers.
    let is_plain = !uri.path().split('/').any(|part| part == ".." || part.contains('%'));
    let within = prefix.path().trim_end_matches('/');
    let rest = uri.path().strip_prefix(within);
    place(uri) == place(&prefix)
        && (within.is_empty() || is_plain)
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
