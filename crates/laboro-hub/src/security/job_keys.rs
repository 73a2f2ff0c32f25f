//! Secrets for tasks: each job has one, made of its number and a key of the hub, so that nothing has to be kept for it and
//! it can be made again for every task. Whether the job still lives is asked elsewhere.

use super::SecurityError;
use laboro_core::JobId;
use laboro_net::hex::{hex, unhex};
use laboro_net::secret_file;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::path::Path;

/// By which leaked ones are found. That of other secrets has hex digits behind the first underline.
const PREFIX: &str = "laboro_job";

pub(crate) const FILE: &str = "jobs.key";

#[derive(Clone)]
pub(crate) struct JobKeys(hmac::Key);

impl fmt::Debug for JobKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobKeys")
    }
}

impl JobKeys {
    /// Reads the hub's key, or makes it.
    pub fn open(dir: &Path) -> Result<JobKeys, SecurityError> {
        let path = dir.join(FILE);
        let key = |text: &str| unhex(text.trim()).filter(|bytes| bytes.len() == 32);
        let bytes = match secret_file::read(&path)? {
            Some(text) => key(&text).ok_or_else(|| {
                SecurityError::malformed(
                    &path,
                    "it is not 64 hex digits: remove it, and a new one is made",
                )
            })?,
            None => {
                let mut bytes = vec![0; 32];
                SystemRandom::new().fill(&mut bytes).map_err(|_| SecurityError::NoRandom)?;
                secret_file::replace(&path, &format!("{}\n", hex(&bytes)))?;
                bytes
            }
        };
        Ok(JobKeys(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// What opens the hub to tasks of this job.
    pub fn secret(&self, job: JobId) -> String {
        let tag = hmac::sign(&self.0, message(job).as_bytes());
        format!("{PREFIX}{}_{}", job.0, hex(tag.as_ref()))
    }

    /// The job whose secret this is. `None`: it is none of ours.
    pub fn job(&self, secret: &[u8]) -> Option<JobId> {
        let text = std::str::from_utf8(secret).ok()?.strip_prefix(PREFIX)?;
        let (number, tag) = text.split_once('_')?;
        // One job has one secret, not also one with zeros before its number.
        let job = number.parse().ok().filter(|job: &u32| job.to_string() == number).map(JobId)?;
        let tag = unhex(tag)?;
        hmac::verify(&self.0, message(job).as_bytes(), &tag).ok()?;
        Some(job)
    }
}

/// Says what the key was used for, should it ever be used for something else.
fn message(job: JobId) -> String {
    format!("access of job {}", job.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    use super::*;

    #[test]
    fn a_jobs_secret_is_its_own_and_stays_the_same() {
        let dir = tempfile::TempDir::new().unwrap();
        let keys = JobKeys::open(dir.path()).unwrap();
        let secret = keys.secret(JobId(12));
        let again = JobKeys::open(dir.path()).unwrap();
        assert_eq!(again.job(secret.as_bytes()), Some(JobId(12)));
        let other = JobKeys::open(tempfile::TempDir::new().unwrap().path()).unwrap();
        assert_eq!(other.job(secret.as_bytes()), None, "another hub has another key");
        let tag = secret.rsplit_once('_').unwrap().1;
        for wrong in [
            format!("laboro_job13_{tag}"),
            format!("laboro_job012_{tag}"),
            format!("laboro_job12_{}", &tag[2..]),
            "laboro_job12_".to_owned(),
            format!("laboro_job_{tag}"),
        ] {
            assert_eq!(again.job(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
