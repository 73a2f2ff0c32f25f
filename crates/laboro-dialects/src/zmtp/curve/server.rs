//! The server's side of the CURVE handshake: HELLO, WELCOME, INITIATE, READY. It keeps the little it must
//! remember of a client itself, on its connection, so the cookie is only something to be given back.

use super::super::command::{self, Metadata};
use super::super::handshake::{Met, fits};
use super::super::{ZmtpError, frame, key::KeyBytes, options::Allow};
use super::*;
use crypto_box::{PublicKey, SecretKey};

pub(in super::super) struct CurveServer {
    secret: SecretKey,
    public: KeyBytes,
    allow: Allow,
    numbers: Nonces,
    stage: CurveStage,
}

enum CurveStage {
    Hello,
    Initiate(Box<Welcomed>),
}

/// A client that has the server's public key. Who it is, it has not said yet.
struct Welcomed {
    client_short: KeyBytes,
    short: SecretKey,
    cookie: [u8; COOKIE_BYTES],
}

impl CurveServer {
    pub fn new(secret: KeyBytes, public: KeyBytes, allow: Allow) -> CurveServer {
        let secret = SecretKey::from(secret);
        CurveServer { secret, public, allow, numbers: Nonces::default(), stage: CurveStage::Hello }
    }

    pub fn receive(
        &mut self,
        body: &mut [u8],
        own: &Metadata,
        say: &mut BytesMut,
    ) -> Result<Option<Met>, ZmtpError> {
        let wanted = match self.stage {
            CurveStage::Hello => "HELLO",
            CurveStage::Initiate(_) => "INITIATE",
        };
        match command::split(body)? {
            (b"ERROR", rest) => return Err(command::read_error(rest)),
            (name, _) if name == wanted.as_bytes() => {}
            (name, _) => return Err(command::other(name, wanted)),
        }
        match std::mem::replace(&mut self.stage, CurveStage::Hello) {
            CurveStage::Hello => {
                self.stage = CurveStage::Initiate(Box::new(self.welcome(body, say)?));
                Ok(None)
            }
            CurveStage::Initiate(client) => self.admit(*client, body, own, say).map(Some),
        }
    }

    /// HELLO shows that the client has our public key; WELCOME shows that we have its secret.
    fn welcome(&mut self, body: &mut [u8], say: &mut BytesMut) -> Result<Welcomed, ZmtpError> {
        let malformed = |why| ZmtpError::Malformed { command: "HELLO", why };
        let hello: &mut [u8; HELLO_BYTES] =
            body.try_into().map_err(|_| malformed("it has not 200 bytes"))?;
        if hello[6..8] != [1, 0] {
            return Err(malformed("its version is not 1.0"));
        }
        let client_short: KeyBytes = *hello[80..].first_chunk().expect("a hello has 200 bytes");
        let number = hello[112..].first_chunk().expect("a hello has 200 bytes");
        let number = u64::from_be_bytes(*number);
        let key = SalsaBox::new(&PublicKey::from(client_short), &self.secret);
        let zeros = open(&key, counted(b"CurveZMQHELLO---", number), &mut hello[120..], "HELLO")?;
        if zeros.iter().any(|&byte| byte != 0) {
            return Err(malformed("its signature is not of zeros"));
        }
        self.numbers.heard(number);

        let short = SecretKey::from(random::<32>());
        let (tail, cookie) = (random(), random());
        frame::write_header(frame::COMMAND, WELCOME_BYTES, say);
        say.put_slice(b"\x07WELCOME");
        say.put_slice(&tail);
        seal(&key, random_nonce(b"WELCOME-", &tail), say, |say| {
            say.put_slice(short.public_key().as_bytes());
            say.put_slice(&cookie);
        });
        Ok(Welcomed { client_short, short, cookie })
    }

    /// INITIATE says who the client is, and the vouch in it proves so for this connection only.
    fn admit(
        &mut self,
        client: Welcomed,
        body: &mut [u8],
        own: &Metadata,
        say: &mut BytesMut,
    ) -> Result<Met, ZmtpError> {
        let malformed = |why| ZmtpError::Malformed { command: "INITIATE", why };
        let cut_off = malformed("it is cut off");
        let (cookie, rest) = body[9..].split_at_mut_checked(COOKIE_BYTES).ok_or(cut_off.clone())?;
        if *cookie != client.cookie {
            return Err(malformed("its cookie is not the one it was given"));
        }
        let (number, sealed) = rest.split_first_chunk_mut().ok_or(cut_off.clone())?;
        let number = u64::from_be_bytes(*number);
        self.numbers.check(number)?;
        let key = SalsaBox::new(&PublicKey::from(client.client_short), &client.short);
        let plain = open(&key, counted(b"CurveZMQINITIATE", number), sealed, "INITIATE")?;
        self.numbers.heard(number);

        let (client_key, rest) = plain.split_first_chunk::<32>().ok_or(cut_off.clone())?;
        let (vouch, metadata) = rest.split_first_chunk::<VOUCH_BYTES>().ok_or(cut_off)?;
        self.check_vouch(&client, client_key, vouch)?;
        let peer = Metadata::read("INITIATE", metadata)?;
        if !(self.allow)(client_key) {
            // As libzmq's authenticators refuse; its clients then know that trying again is in vain.
            command::write_error("400", say);
            return Err(ZmtpError::Denied { key: super::super::key::to_text(client_key) });
        }
        fits(own.socket, peer.socket, say)?;

        let number = self.numbers.next();
        frame::write_header(frame::COMMAND, 6 + 8 + TAG_BYTES + own.bytes(), say);
        say.put_slice(b"\x05READY");
        say.put_u64(number);
        seal(&key, counted(b"CurveZMQREADY---", number), say, |say| own.write(say));
        let numbers = std::mem::take(&mut self.numbers);
        let seal = Box::new(Seal { role: Role::Server, key, numbers });
        Ok(Met { peer, seal: Some(seal), key: Some(*client_key) })
    }

    fn check_vouch(
        &self,
        client: &Welcomed,
        client_key: &KeyBytes,
        vouch: &[u8; VOUCH_BYTES],
    ) -> Result<(), ZmtpError> {
        let (tail, sealed) = vouch.split_first_chunk().expect("a vouch begins with its nonce");
        let mut sealed: [u8; TAG_BYTES + 64] = sealed.try_into().expect("a vouch has two keys");
        let key = SalsaBox::new(&PublicKey::from(*client_key), &client.short);
        let plain = open(&key, random_nonce(b"VOUCH---", tail), &mut sealed, "vouch of INITIATE")?;
        if plain[..32] != client.client_short || plain[32..] != self.public {
            return Err(ZmtpError::Malformed {
                command: "INITIATE",
                why: "its vouch is for another connection",
            });
        }
        Ok(())
    }
}
