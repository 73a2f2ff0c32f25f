//! What a client needs to reach a hub: its addresses, its certificate and a token, in one small file that can be copied
//! to another machine. Anyone who has the file may do what its token allows.

mod secret;

pub use secret::{Hash, Secret, hash_of, id_of};

use laboro_net::hex::hex;
use laboro_net::{SecurityError, secret_file, trust};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What a token allows. Every role may also watch.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Watch,
    /// Also submits and controls jobs.
    Submit,
    /// Takes tasks, at the native door only.
    Work,
    /// Everything.
    Admin,
}

impl Role {
    /// From the least to the most.
    pub const ALL: [Role; 4] = [Role::Watch, Role::Submit, Role::Work, Role::Admin];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Role::Watch => "watch",
            Role::Submit => "submit",
            Role::Work => "work",
            Role::Admin => "admin",
        }
    }

    /// Whether it may take tasks.
    pub fn may_work(self) -> bool {
        matches!(self, Role::Work | Role::Admin)
    }
}

/// What a client needs to reach a hub, as it stands in an access file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Access {
    /// The path of a unix socket, for its user on the hub's own machine. Tried before `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The machine of the hub: all addresses are this one's. `None`: they are of hubs of which one leads, or an older hub
    /// wrote the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The file was made before the hub's first start, which writes the addresses into it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub prepared: bool,
    /// Host and port; several with commas between them, of one hub or of hubs of which one leads. `None`: the hub has
    /// no such door.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Where workers connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// What the token allows.
    pub role: Role,
    /// The group that the token is bound to, if to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The token.
    pub token: Secret,
    /// In PEM. Exactly this certificate is trusted, whatever names and dates stand in it.
    pub certificate: String,
}

impl Access {
    /// Where a hub puts the access file of its own machine.
    pub fn path_in(dir: &Path) -> PathBuf {
        dir.join("access.toml")
    }

    /// Reads an access file.
    pub fn read(path: &Path) -> Result<Access, SecurityError> {
        let file = File::open(path).map_err(SecurityError::io(path, "open it"))?;
        let text = secret_file::read_text(file, path)?;
        Access::parse(&text).map_err(|error| match error {
            SecurityError::BadAccess { reason } => SecurityError::malformed(path, reason),
            other => other,
        })
    }

    /// The hub's own, which nobody else may read. `None`: there is none, or it makes no sense any more.
    pub fn read_own(path: &Path) -> Result<Option<Access>, SecurityError> {
        Ok(secret_file::read(path)?.and_then(|text| Access::parse(&text).ok()))
    }

    /// Keys that this program does not know are left alone: a newer hub may have written them.
    pub fn parse(text: &str) -> Result<Access, SecurityError> {
        let refuse = |reason: String| SecurityError::BadAccess { reason };
        let access: Access = toml::from_str(text).map_err(|error| refuse(in_line(text, &error)))?;
        access.pinned()?;
        Ok(access)
    }

    /// Each of the addresses in `http` or `native`, as they are written.
    pub fn each(addresses: &str) -> impl Iterator<Item = &str> {
        addresses.split(',').map(str::trim).filter(|address| !address.is_empty())
    }

    /// The same in the order in which a client on this machine tries them: at the hub's own machine its loopback address,
    /// which every firewall lets through, and elsewhere that one last, where a tunnel may end.
    pub fn in_order<'a>(&self, addresses: &'a str, here: &str) -> Vec<&'a str> {
        let mut all: Vec<&str> = Access::each(addresses).collect();
        if let Some(host) = &self.host {
            let is_here = host == here;
            all.sort_by_key(|address| is_loopback(address) != is_here);
        }
        all
    }

    /// Whether nobody on another machine can reach the hub at these addresses.
    pub fn is_local(addresses: &str) -> bool {
        Access::each(addresses).all(is_loopback)
    }

    /// The socket, if it is there and of a hub with this certificate: a copy of the file may lie on a machine where another
    /// hub has a directory of the same name.
    pub fn local_socket(&self) -> Option<&Path> {
        let path = Path::new(self.socket.as_deref()?);
        let name = socket_name(&self.pinned().ok()?);
        let is_meant = path.is_absolute() && path.file_name()? == name.as_str();
        (is_meant && path.exists()).then_some(path)
    }

    /// In the form of a file.
    pub fn text(&self) -> String {
        let body = toml::to_string(self).expect("a table of strings has a TOML form");
        format!(
            "# Access to a Laboro hub. Keep it secret: anyone who has it may do what the role says.\n\n{body}"
        )
    }

    /// Only its owner can read the file.
    pub fn write(&self, path: &Path) -> Result<(), SecurityError> {
        secret_file::replace(path, &self.text())
    }

    fn pinned(&self) -> Result<CertificateDer<'static>, SecurityError> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(|_| SecurityError::BadAccess { reason: "its certificate is damaged".into() })
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_loopback(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok_and(|at| at.ip().is_loopback())
        || address.rsplit_once(':').is_some_and(|(host, _)| host == "localhost")
}

/// What this machine calls itself.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Says which hub it is of.
pub fn socket_name(certificate: &CertificateDer<'_>) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    format!("laboro-{}.sock", hex(&digest.as_ref()[..8]))
}

/// For connections to the hub of this access file, and to no other.
pub fn client_config(access: &Access) -> Result<ClientConfig, SecurityError> {
    trust::only(access.pinned()?)
}

/// In one line: where, then what.
pub fn in_line(text: &str, error: &toml::de::Error) -> String {
    let words = error.message().trim_end().replace('\n', ", ");
    match error.span() {
        None => words,
        Some(span) => {
            let before = &text.as_bytes()[..span.start.min(text.len())];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            format!("line {line}: {words}")
        }
    }
}

#[cfg(test)]
mod tests;
