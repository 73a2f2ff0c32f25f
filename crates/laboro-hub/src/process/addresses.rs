//! By which addresses a hub that listens is reached: the name of its machine, each address of it, and the loopback address.
//! They are read from the kernel's tables; whether a firewall is in front of one is not known here.

use crate::security::host_name;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A machine of a cluster has an address for each network, and containers add more.
const ADDRESSES_MAX: usize = 8;

/// Where clients find what is bound there, the best first, as it stands in access files.
pub(super) fn of(bound: SocketAddr, advertised: Option<&str>) -> String {
    let port = bound.port();
    let mut places: Vec<String> =
        advertised.map(|host| with_port(host, port)).into_iter().collect();
    let loopback = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        // What listens at one address is reached there.
        one => {
            places.push(SocketAddr::new(one, port).to_string());
            return joined(places);
        }
    };
    let name = host_name();
    if !name.is_empty() && name != "localhost" {
        places.push(with_port(&name, port));
    }
    let own = this_machine().into_iter().filter(|ip| bound.is_ipv6() || ip.is_ipv4());
    places.extend(own.map(|ip| SocketAddr::new(ip, port).to_string()));
    places.truncate(ADDRESSES_MAX - 1);
    places.push(SocketAddr::new(loopback, port).to_string());
    joined(places)
}

/// A name or an address, which may be one with colons.
pub(super) fn with_port(host: &str, port: u16) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

fn joined(places: Vec<String>) -> String {
    let mut each: Vec<String> = Vec::new();
    for place in places {
        if !each.contains(&place) {
            each.push(place);
        }
    }
    each.join(",")
}

fn this_machine() -> Vec<IpAddr> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = v4_in(&read("/proc/net/fib_trie"));
    found.extend(v6_in(&read("/proc/net/if_inet6")));
    found
}

/// Of the table of routes those that lead to this very machine, each once.
fn v4_in(table: &str) -> Vec<IpAddr> {
    let mut last = None;
    let mut found = Vec::new();
    for line in table.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("|-- ") {
            last = text.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL"
            && let Some(ip) = last.filter(|ip| !ip.is_loopback() && !ip.is_link_local())
            && !found.contains(&IpAddr::V4(ip))
        {
            found.push(IpAddr::V4(ip));
        }
    }
    found
}

/// Those that other networks know: 32 hex digits, then the interface, the prefix and the scope, which is 00 for them.
fn v6_in(table: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let digits = words.next().filter(|digits| digits.len() == 32)?;
        let scope = words.nth(2)?;
        let bits = u128::from_str_radix(digits, 16).ok()?;
        (scope == "00").then_some(IpAddr::V6(Ipv6Addr::from_bits(bits)))
    };
    table.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    use super::*;

    const TRIE: &str = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.1.0.0/16 2 0 2
        |-- 10.1.0.0
           /16 link UNICAST
        |-- 10.1.0.7
           /32 host LOCAL
        |-- 10.1.255.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
Local:
        |-- 10.1.0.7
           /32 host LOCAL
        |-- 169.254.3.4
           /32 host LOCAL
        |-- 192.168.5.1
           /32 host LOCAL
";

    const INET6: &str = "\
00000000000000000000000000000001 01 80 10 80       lo
fe800000000000000242acfffe110002 05 40 20 80     eth0
20010db8000000000000000000000007 05 40 00 80     eth0
rubbish
";

    #[test]
    fn the_kernels_tables_tell_the_addresses_of_this_machine() {
        let v4: Vec<String> = v4_in(TRIE).iter().map(IpAddr::to_string).collect();
        assert_eq!(v4, ["10.1.0.7", "192.168.5.1"]);
        assert_eq!(v6_in(INET6), ["2001:db8::7".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn a_hub_that_listens_everywhere_is_reached_by_name_and_one_at_an_address_there() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(of(at("127.0.0.1:7911"), None), "127.0.0.1:7911");
        assert_eq!(of(at("10.0.0.9:7911"), Some("login1")), "login1:7911,10.0.0.9:7911");
        let every = of(at("0.0.0.0:7911"), Some("2001:db8::1"));
        assert!(every.starts_with("[2001:db8::1]:7911,"), "{every}");
        assert!(every.ends_with(",127.0.0.1:7911"), "{every}");
    }
}
