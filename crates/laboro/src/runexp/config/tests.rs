//! What people write into `~/.runexp`.

use super::*;

#[test]
fn a_port_may_be_written_in_several_ways() {
    let other = "qmanager = a:1\nport=\"7001\"\n";
    for text in ["port = 7001", "port: 7001", "port 7001 # mine", "Port=7001", other] {
        assert_eq!(parse(text).unwrap().port, Some(7001), "{text}");
    }
    assert_eq!(parse("# nothing\n\n  # at all\n"), Ok(Config::default()));
}

#[test]
fn the_manager_is_a_host_and_a_port_however_they_are_written() {
    let manager = |text| parse(text).unwrap().manager();
    assert_eq!(manager("qmanager = hub:7001\nport = 1\n").as_deref(), Some("hub:7001"));
    assert_eq!(manager("port 7001\nqmanager hub\n").as_deref(), Some("hub:7001"));
    assert_eq!(manager("qmanager hub\n"), None, "on which port?");
    assert_eq!(manager("port = 7001\n"), None);
    assert_eq!(parse("hostname: node-1\n").unwrap().hostname.as_deref(), Some("node-1"));
    assert_eq!(manager("PORT 7001\nQManager Hub\n").as_deref(), Some("Hub:7001"));
    assert_eq!(parse("HostName = N1\n").unwrap().hostname.as_deref(), Some("N1"));
}

#[test]
fn what_makes_no_sense_is_named_with_its_line() {
    for (text, why) in [
        ("\nport = many", "line 2: `many` is not a port"),
        ("port=7001\nnonsense\n", "line 2: `nonsense` is not a setting: write NAME=VALUE"),
        ("port=", "line 1: `port=` is not a setting: write NAME=VALUE"),
        ("shoe=43", "line 1: there is no setting `shoe`; there are port, qmanager and hostname"),
    ] {
        assert_eq!(parse(text), Err(why.into()));
    }
}
