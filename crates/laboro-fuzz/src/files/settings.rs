//! `hub.toml` and access files.

use laboro_api::access::Access;
use laboro_hub::config::Settings;

/// What is in force can be printed, and what is printed can be read again.
pub(crate) fn hub(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(settings) = toml::from_str::<Settings>(text) {
        let again: Settings = toml::from_str(&settings.text()).expect("what is printed is read");
        assert_eq!(again, settings);
    }
}

pub(crate) fn access(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(access) = Access::parse(text) {
        let again = Access::parse(&access.text()).expect("what is written is read");
        assert_eq!(again, access);
        // Any other field may hold the letters of the token.
        let alone =
            Access { http: None, native: None, group: None, certificate: String::new(), ..access };
        let token = alone.token.expose();
        assert!(!format!("{alone:?}").contains(token) || token.len() < 8);
    }
}
