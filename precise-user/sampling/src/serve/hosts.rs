//! The names by which clients may address the server.
//!
//! A web page can make a browser on this machine send requests to the server, but the browser shows
//! the page no answers of another host. DNS rebinding circumvents that: the author of the page lets
//! the page's own name point to this machine. The request then has that name in its `Host` field,
//! so the server refuses names that it does not know. A request to an IP address is safe: the
//! author of a page cannot let an address point elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::{HeaderMap, StatusCode, Uri, Version, header::HOST, http::uri::Authority};

/// The names by which clients may address the server, besides IP addresses and `localhost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    names: Vec<String>,
}

/// A text is not the name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a host: write it without scheme, port and path, as in metrics.example")]
pub struct InvalidHost(String);

impl Hosts {
    /// Parses names of hosts, such as `node1.example`. Upper and lower case are the same.
    ///
    /// # Errors
    ///
    /// Returns an error for the first text that is not the name of a host.
    pub fn parse(texts: &[String]) -> Result<Self, InvalidHost> {
        let parse = |text: &String| {
            let name = lower(text);
            let is_name = !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
            if is_name { Ok(name) } else { Err(InvalidHost(text.clone())) }
        };
        Ok(Self { names: texts.iter().map(parse).collect::<Result<_, _>>()? })
    }

    /// Returns the rule of a server that listens on this address. Without names, a server that
    /// other machines can reach accepts every name, because the names that they use for it are not
    /// known.
    pub(super) fn rule(self, listening: IpAddr) -> HostRule {
        if self.names.is_empty() && !listening.to_canonical().is_loopback() {
            HostRule::Any
        } else {
            HostRule::Known(self)
        }
    }

    fn knows(&self, host: &str) -> bool {
        let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if inside.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok()) || host.parse::<Ipv4Addr>().is_ok() {
            return true;
        }
        let host = lower(host);
        host == "localhost" || host.ends_with(".localhost") || self.names.contains(&host)
    }
}

/// Returns the name in lower case, without the dot of the root.
fn lower(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Which hosts a request may be addressed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostRule {
    Any,
    /// IP addresses, `localhost`, and these names.
    Known(Hosts),
}

impl HostRule {
    /// Returns the status with which a request is refused; `None` if it is accepted. Clients of
    /// HTTP/1.0, which no browser is, may leave out the host.
    pub fn refuses(&self, version: Version, target: &Uri, headers: &HeaderMap) -> Option<StatusCode> {
        let mut fields = headers.get_all(HOST).iter();
        let field = match (fields.next(), fields.next()) {
            (None, _) if version < Version::HTTP_11 => None,
            (Some(field), None) => Some(field),
            // RFC 9112, section 3.2.
            _ => return Some(StatusCode::BAD_REQUEST),
        };
        let field = field.map(|field| field.to_str().ok().and_then(|text| text.parse::<Authority>().ok()));
        let Ok(field) = field.map(|authority| authority.ok_or(())).transpose() else {
            return Some(StatusCode::BAD_REQUEST);
        };
        for authority in field.iter().chain(target.authority()) {
            // The parser also accepts user names, and text between an IPv6 address and the port.
            let host = authority.host();
            let port =
                authority.as_str().strip_prefix(host).map(|rest| rest.strip_prefix(':').unwrap_or(rest));
            if port.is_none_or(|port| !port.bytes().all(|byte| byte.is_ascii_digit())) {
                return Some(StatusCode::BAD_REQUEST);
            }
            match self {
                Self::Any => {}
                Self::Known(hosts) if hosts.knows(host) => {}
                Self::Known(_) => return Some(StatusCode::MISDIRECTED_REQUEST),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const ANYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    fn hosts(names: &[&str]) -> Hosts {
        Hosts::parse(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn refused(rule: &HostRule, fields: &[&str], target: &str) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(HOST, field.parse().unwrap());
        }
        rule.refuses(Version::HTTP_11, &target.parse().unwrap(), &headers).map(|status| status.as_u16())
    }

    #[test]
    fn a_name_must_be_known_where_only_this_machine_may_ask() {
        let rule = hosts(&["Node1.Example", "metrics"]).rule(HERE);
        for host in [
            "127.0.0.1:7732",
            "127.0.0.1",
            "10.0.0.7:80",
            "[::1]:7732",
            "localhost:9999",
            "LocalHost.",
            "precise.localhost",
            "node1.example:7732",
            "NODE1.example.",
            "metrics",
        ] {
            assert_eq!(refused(&rule, &[host], "/metrics"), None, "{host}");
        }
        for host in [
            "attacker.example:7732",
            "localhost.attacker.example",
            "127.0.0.1.attacker.example",
            "xlocalhost",
            "0x7f.1",
            "2130706433",
            "node1.example.attacker.example",
            "[::1].attacker.example",
        ] {
            let refused = refused(&rule, &[host], "/metrics");
            assert!(matches!(refused, Some(421 | 400)), "{host}: {refused:?}");
        }
    }

    #[test]
    fn a_server_for_other_machines_accepts_every_name_unless_some_are_given() {
        for address in [ANYWHERE, [10, 0, 0, 7].into(), Ipv6Addr::UNSPECIFIED.into()] {
            let any = hosts(&[]).rule(address);
            assert_eq!(refused(&any, &["pod-7.shop.svc.cluster.local:7732"], "/metrics"), None);
            let named = hosts(&["node1"]).rule(address);
            assert_eq!(refused(&named, &["node1:7732"], "/metrics"), None);
            assert_eq!(refused(&named, &["10.0.0.7:7732"], "/metrics"), None);
            assert_eq!(refused(&named, &["node2:7732"], "/metrics"), Some(421));
        }
        for address in [HERE, Ipv6Addr::LOCALHOST.into(), "::ffff:127.0.0.1".parse().unwrap()] {
            assert_eq!(refused(&hosts(&[]).rule(address), &["node1:7732"], "/metrics"), Some(421));
        }
    }

    #[test]
    fn a_request_has_one_host() {
        let rule = hosts(&[]).rule(HERE);
        for fields in [&[][..], &["localhost", "localhost"], &["localhost", "attacker.example"]] {
            assert_eq!(refused(&rule, fields, "/metrics"), Some(400), "{fields:?}");
        }
        for field in ["", "user@localhost", "localhost/x", "local host", "http://localhost"] {
            assert_eq!(refused(&rule, &[field], "/metrics"), Some(400), "{field}");
        }
        // The target of a request can also name the host.
        assert_eq!(refused(&rule, &["localhost"], "http://localhost:7732/metrics"), None);
        assert_eq!(refused(&rule, &["localhost"], "http://attacker.example/metrics"), Some(421));
        let old = rule.refuses(Version::HTTP_10, &"/metrics".parse().unwrap(), &HeaderMap::new());
        assert_eq!(old, None);
    }

    #[test]
    fn mistakes_are_said() {
        for text in ["", ".", "http://node1", "node1:7732", "node1/metrics", "a b", "*"] {
            let error = Hosts::parse(&[text.to_owned()]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{text}` is not the name")), "{error}");
        }
    }
}
