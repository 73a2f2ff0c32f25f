//! Profiles and settings as records had them before their fields had tags: all of them, in one order. Read for ever and
//! never written.

use super::Decoder;
use crate::record::RecordError;
use laboro_core::{Backoff, Needs, Profile, Request, Setting, Stdin};

const SAME: u8 = 0;
const NEW: u8 = 1;

impl Decoder<'_> {
    pub(super) fn positional_profile(&mut self) -> Result<Profile, RecordError> {
        match self.from.u8()? {
            SAME => match &self.last.profile {
                Some(profile) => return Ok(profile.clone()),
                None => return self.from.malformed("no profile to repeat"),
            },
            NEW => {}
            _ => return self.from.malformed("neither a new profile nor the last one"),
        }
        let profile = Profile {
            needs: Needs {
                slots: self.from.u32()?,
                memory: self.from.u64()?,
                resources: self.list(|from| {
                    Ok((from.plain_name()?, Request::whole(from.from.u32()?.into())))
                })?,
                tags: self.list(Decoder::plain_name)?,
                nodes: 0,
                variants: Vec::new(),
            },
            priority: self.from.i32()?,
            attempts: self.from.u16()?,
            lost_max: self.from.u16()?,
            backoff: Backoff { first_ms: self.from.u64()?, most_ms: self.from.u64()? },
            retry_on: self.list(|from| from.from.i32())?,
            time_limit_ms: self.option(|from| from.from.u64())?,
            time_request_ms: None,
            runs_anyway: self.from.bool()?,
        };
        // Only one without lists was repeated: a byte that stood for long lists could be there a million times.
        let Needs { resources, tags, .. } = &profile.needs;
        let is_plain = resources.is_empty() && tags.is_empty() && profile.retry_on.is_empty();
        self.last.profile = is_plain.then(|| profile.clone());
        Ok(profile)
    }

    pub(super) fn positional_setting(&mut self) -> Result<Setting, RecordError> {
        let mut setting = Setting {
            dir: self.option(|from| Ok(from.from.string()?.into()))?,
            env: self.list(|from| Ok((from.from.string()?.into(), from.from.string()?.into())))?,
            stdin: self
                .option(|from| Ok(Stdin::Text(from.from.string()?.into())))?
                .unwrap_or_default(),
            ..Setting::default()
        };
        setting.set_both_streams(self.option(|from| Ok(from.from.string()?.into()))?);
        Ok(setting)
    }
}
