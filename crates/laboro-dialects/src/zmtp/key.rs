//! Keys of CURVE: 32 bytes, and the 40 characters (Z85) that ZeroMQ programs write them with.

use std::fmt;

/// A public or a secret key of Curve25519.
pub type KeyBytes = [u8; 32];

/// A secret and the public key that belongs to it.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct KeyPair {
    pub public: KeyBytes,
    pub secret: KeyBytes,
}

impl KeyPair {
    /// A new pair, from the system's random numbers.
    pub fn generate() -> KeyPair {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the system has random bytes");
        KeyPair::from_secret(secret)
    }

    /// The pair that this secret belongs to.
    pub fn from_secret(secret: KeyBytes) -> KeyPair {
        let public = *crypto_box::SecretKey::from(secret).public_key().as_bytes();
        KeyPair { public, secret }
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", to_text(&self.public))
    }
}

/// Why a text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum KeyError {
    #[error("key has {0} characters, not 40")]
    Length(usize),
    #[error("key has the character {0:?}, which no key has")]
    Character(char),
    #[error("key has five characters at {0} that stand for no four bytes")]
    TooLarge(usize),
}

const DIGITS: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// The 40 characters of a key.
pub fn to_text(key: &KeyBytes) -> String {
    let (words, _) = key.as_chunks::<4>();
    let digits = words.iter().flat_map(|&word| {
        let word = u32::from_be_bytes(word);
        [52_200_625, 614_125, 7_225, 85, 1].map(|place| word / place % 85)
    });
    digits.map(|digit| char::from(DIGITS[digit as usize])).collect()
}

/// The key that 40 characters stand for.
pub fn from_text(text: &str) -> Result<KeyBytes, KeyError> {
    let count = text.chars().count();
    if count != 40 {
        return Err(KeyError::Length(count));
    }
    let mut digits = Vec::with_capacity(40);
    for c in text.chars() {
        let digit = DIGITS.iter().position(|&digit| char::from(digit) == c);
        digits.push(digit.ok_or(KeyError::Character(c))? as u64);
    }
    let mut key = [0; 32];
    let (fives, _) = digits.as_chunks::<5>();
    for (at, (five, word)) in fives.iter().zip(key.chunks_mut(4)).enumerate() {
        let value = five.iter().fold(0, |value, digit| value * 85 + digit);
        let value = u32::try_from(value).map_err(|_| KeyError::TooLarge(at * 5))?;
        word.copy_from_slice(&value.to_be_bytes());
    }
    Ok(key)
}
