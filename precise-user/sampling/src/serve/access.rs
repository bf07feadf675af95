//! Who may ask: everyone on this machine, or everyone who has the token.
//!
//! An address that other machines can reach needs TLS and a token: pages name processes and
//! functions of all users of the machine.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{HeaderMap, header::AUTHORIZATION};

use super::tls::Tls;
use crate::error::{ErrorClass, Remedy, SamplingError};

/// The shortest token in bytes. 16 random letters cannot be guessed.
const SHORTEST: usize = 16;
/// The longest token in bytes.
const LONGEST: usize = 1024;

/// What a server asks of its clients. The default asks nothing, which only a loopback address
/// allows.
#[derive(Debug, Default)]
pub struct AccessPolicy {
    /// The certificate of the server; `None`: no TLS.
    pub tls: Option<Tls>,
    /// The token that a request must have; `None`: none.
    pub token: Option<Token>,
}

impl AccessPolicy {
    /// Checks that these conditions suffice for an address.
    ///
    /// # Errors
    ///
    /// Returns an error if other machines can reach the address, and TLS or the token is missing.
    pub fn allows(&self, address: SocketAddr) -> Result<(), SamplingError> {
        let here = address.ip().to_canonical().is_loopback();
        let missing = match (&self.tls, &self.token) {
            (Some(_), Some(_)) => return Ok(()),
            _ if here => return Ok(()),
            (None, None) => "TLS and a token",
            (None, Some(_)) => "TLS",
            (Some(_), None) => "a token",
        };
        let what = format!("other machines can reach {address}, so it needs {missing}");
        Err(SamplingError::new(ErrorClass::Invalid, what).remedy(Remedy::SecureAddress))
    }
}

/// A secret that clients and server share.
#[derive(Clone)]
pub struct Token(Box<[u8]>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Reads the token from a file that only its owner may read. Spaces and newlines around it do
    /// not belong to it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, if others may read it, or if its content cannot
    /// be a token.
    pub fn read(path: &Path) -> Result<Self, SamplingError> {
        let shown = path.display();
        let failed =
            |error: io::Error| SamplingError::failed(format!("cannot read the token in {shown}"), error);
        let invalid = |what: String| Err(SamplingError::new(ErrorClass::Invalid, what));
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return invalid(format!(
                "other users may read the token in {shown} (mode {mode:o}): set the mode to 600"
            ));
        }
        let mut bytes = Vec::new();
        file.take(2 * LONGEST as u64).read_to_end(&mut bytes).map_err(failed)?;
        let token = bytes.trim_ascii();
        if !(SHORTEST..=LONGEST).contains(&token.len()) || !token.iter().all(u8::is_ascii_graphic) {
            return invalid(format!(
                "the token in {shown} must have {SHORTEST} to {LONGEST} letters, digits and signs, without spaces"
            ));
        }
        Ok(Self(token.into()))
    }

    /// Returns the field Authorization of a request that has the token.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", String::from_utf8_lossy(&self.0))
    }

    /// Returns whether a request has the token: `Authorization: Bearer TOKEN`, or as the password
    /// of `Basic`, which browsers ask their users for.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let Some(field) = headers.get(AUTHORIZATION).and_then(|field| field.to_str().ok()) else {
            return false;
        };
        let Some((scheme, given)) = field.split_once(' ') else { return false };
        match scheme.to_ascii_lowercase().as_str() {
            "bearer" => self.is(given.trim().as_bytes()),
            "basic" => STANDARD.decode(given.trim()).is_ok_and(|given| {
                let colon = given.iter().position(|byte| *byte == b':');
                colon.and_then(|colon| given.get(colon + 1..)).is_some_and(|password| self.is(password))
            }),
            _ => false,
        }
    }

    /// Compares in a time that does not depend on how much of `given` is right.
    fn is(&self, given: &[u8]) -> bool {
        let other = |(at, byte): (usize, &u8)| byte ^ given.get(at).copied().unwrap_or(0);
        let differs = self.0.iter().enumerate().map(other).fold(0, |sum, differs| black_box(sum | differs));
        // Only the length can end the comparison early, and the client knows what it sent.
        black_box(differs) == 0 && given.len() == self.0.len()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const SECRET: &str = "correct-horse-battery";

    pub fn token(text: &str, mode: u32) -> Result<Token, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Token::read(&path).map_err(|error| error.with_causes())
    }

    #[test]
    fn a_token_is_its_owners_secret() {
        assert!(token(&format!("{SECRET}\n"), 0o600).unwrap().is(SECRET.as_bytes()));
        assert!(token(SECRET, 0o400).is_ok());
        for (text, mode, says) in [
            (SECRET, 0o640, "(mode 640): set the mode to 600"),
            (SECRET, 0o604, "other users may read the token"),
            ("short", 0o600, "must have 16 to 1024"),
            ("correct horse battery", 0o600, "without spaces"),
            ("", 0o600, "must have 16 to 1024"),
            (&"x".repeat(5000), 0o600, "must have 16 to 1024"),
        ] {
            let said = token(text, mode).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
        assert!(
            Token::read(Path::new("/no/such/token")).unwrap_err().with_causes().contains("/no/such/token")
        );
        assert_eq!(format!("{:?}", token(SECRET, 0o600).unwrap()), "Token(…)");
    }

    #[test]
    fn a_request_has_it_in_one_of_two_ways() {
        let token = token(SECRET, 0o600).unwrap();
        let is_in = |field: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, field.parse().unwrap());
            token.is_in(&headers)
        };
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for right in [format!("Bearer {SECRET}"), format!("bearer  {SECRET}"), basic(&format!("me:{SECRET}"))]
        {
            assert!(is_in(&right), "{right}");
        }
        for wrong in [
            SECRET.to_owned(),
            "Bearer ".to_owned(),
            format!("Bearer {SECRET}x"),
            format!("Bearer {}", &SECRET[1..]),
            format!("Digest {SECRET}"),
            basic(SECRET),
            basic(&format!("{SECRET}:")),
            "Basic !!".to_owned(),
        ] {
            assert!(!is_in(&wrong), "{wrong}");
        }
        assert!(!token.is_in(&HeaderMap::new()));
    }

    #[test]
    fn other_machines_need_more_than_this_one() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let open = AccessPolicy::default();
        for here in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "127.9.9.9:1"] {
            assert!(open.allows(address(here)).is_ok(), "{here}");
        }
        for there in ["0.0.0.0:7732", "10.0.0.7:7732", "[::]:1"] {
            let refused = open.allows(address(there)).unwrap_err();
            assert!(refused.with_causes().ends_with("so it needs TLS and a token"), "{refused:?}");
            assert_eq!(refused.way_out(), Some(Remedy::SecureAddress));
        }
        let half = AccessPolicy { token: token(SECRET, 0o600).ok(), tls: None };
        assert!(half.allows(address("0.0.0.0:1")).unwrap_err().with_causes().ends_with("needs TLS"));
    }
}
