//! The client's side of the CURVE handshake. It knows the server's public key beforehand and talks only to a server
//! that has the secret key.

use super::super::command::{self, Metadata};
use super::super::handshake::{Met, fits};
use super::super::{ZmtpError, frame, key::KeyBytes};
use super::*;
use crypto_box::{PublicKey, SecretKey};

pub(in super::super) struct CurveClient {
    server: PublicKey,
    secret: SecretKey,
    public: KeyBytes,
    /// Of this connection only.
    short: SecretKey,
    numbers: Nonces,
    /// Ours and the server's, of this connection only: from WELCOME on.
    key: Option<SalsaBox>,
}

impl CurveClient {
    /// Says HELLO.
    pub fn begin(
        server_public: KeyBytes,
        secret: KeyBytes,
        public: KeyBytes,
        say: &mut BytesMut,
    ) -> CurveClient {
        let mut client = CurveClient {
            server: PublicKey::from(server_public),
            secret: SecretKey::from(secret),
            public,
            short: SecretKey::from(random::<32>()),
            numbers: Nonces::default(),
            key: None,
        };
        let number = client.numbers.next();
        let key = SalsaBox::new(&client.server, &client.short);
        frame::write_header(frame::COMMAND, HELLO_BYTES, say);
        say.put_slice(b"\x05HELLO\x01\x00");
        // HELLO is longer than WELCOME, so that nobody uses a server to send much for little.
        say.put_bytes(0, 72);
        say.put_slice(client.short.public_key().as_bytes());
        say.put_u64(number);
        seal(&key, counted(b"CurveZMQHELLO---", number), say, |say| say.put_bytes(0, 64));
        client
    }

    pub fn receive(
        &mut self,
        body: &mut [u8],
        own: &Metadata,
        say: &mut BytesMut,
    ) -> Result<Option<Met>, ZmtpError> {
        let wanted = if self.key.is_none() { "WELCOME" } else { "READY" };
        match command::split(body)? {
            (b"ERROR", rest) => return Err(command::read_error(rest)),
            (name, _) if name == wanted.as_bytes() => {}
            (name, _) => return Err(command::other(name, wanted)),
        }
        match self.key.take() {
            None => {
                self.key = Some(self.initiate(body, own, say)?);
                Ok(None)
            }
            Some(key) => self.meet(key, body, own, say).map(Some),
        }
    }

    /// WELCOME brings the server's key for this connection; INITIATE says who we are, sealed with it.
    fn initiate(
        &mut self,
        body: &mut [u8],
        own: &Metadata,
        say: &mut BytesMut,
    ) -> Result<SalsaBox, ZmtpError> {
        let malformed = |why| ZmtpError::Malformed { command: "WELCOME", why };
        let welcome: &mut [u8; WELCOME_BYTES] =
            body.try_into().map_err(|_| malformed("it has not 168 bytes"))?;
        let tail = *welcome[8..].first_chunk().expect("a welcome has 168 bytes");
        let key = SalsaBox::new(&self.server, &self.short);
        let plain = open(&key, random_nonce(b"WELCOME-", &tail), &mut welcome[24..], "WELCOME")?;
        let (server_short, cookie) =
            plain.split_first_chunk::<32>().expect("a welcome has a key and a cookie");

        let server_short = PublicKey::from(*server_short);
        let key = SalsaBox::new(&server_short, &self.short);
        let number = self.numbers.next();
        let sealed_bytes = TAG_BYTES + 32 + VOUCH_BYTES + own.bytes();
        frame::write_header(frame::COMMAND, 9 + COOKIE_BYTES + 8 + sealed_bytes, say);
        say.put_slice(b"\x08INITIATE");
        say.put_slice(cookie);
        say.put_u64(number);
        seal(&key, counted(b"CurveZMQINITIATE", number), say, |say| {
            say.put_slice(&self.public);
            self.vouch(&server_short, say);
            own.write(say);
        });
        Ok(key)
    }

    /// Our key speaks for the key of this connection, to this server.
    fn vouch(&self, server_short: &PublicKey, say: &mut BytesMut) {
        let tail = random();
        let key = SalsaBox::new(server_short, &self.secret);
        say.put_slice(&tail);
        seal(&key, random_nonce(b"VOUCH---", &tail), say, |say| {
            say.put_slice(self.short.public_key().as_bytes());
            say.put_slice(self.server.as_bytes());
        });
    }

    fn meet(
        &mut self,
        key: SalsaBox,
        body: &mut [u8],
        own: &Metadata,
        say: &mut BytesMut,
    ) -> Result<Met, ZmtpError> {
        let cut_off = ZmtpError::Malformed { command: "READY", why: "it is cut off" };
        let (number, sealed) = body[6..].split_first_chunk_mut().ok_or(cut_off)?;
        let number = u64::from_be_bytes(*number);
        let plain = open(&key, counted(b"CurveZMQREADY---", number), sealed, "READY")?;
        self.numbers.heard(number);
        let peer = Metadata::read("READY", plain)?;
        fits(own.socket, peer.socket, say)?;
        let numbers = std::mem::take(&mut self.numbers);
        let seal = Box::new(Seal { role: Role::Client, key, numbers });
        Ok(Met { peer, seal: Some(seal), key: Some(*self.server.as_bytes()) })
    }
}
