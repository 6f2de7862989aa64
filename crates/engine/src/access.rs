//! The access word of an entry: 24 bits that say when or how often a key was used.
//!
//! ```text
//! LRU: seconds, modulo 2^24 (194 days)       LFU: minutes, modulo 2^16 | logarithmic counter (8)
//! ```
//! The LFU counter grows with probability 1 / ((counter - 5) · lfu-log-factor + 1) and loses one
//! per lfu-decay-time minutes without use (Redis documentation, "Key eviction").

use crate::settings::Settings;
use base::UnixMillis;

/// What a new key's LFU counter starts with, so that it is not evicted at once.
const LFU_INITIAL: u32 = 5;

const WORD_MASK: u32 = (1 << 24) - 1;

/// The word of a new entry.
pub fn fresh(now: UnixMillis, settings: &Settings) -> u32 {
    if settings.maxmemory_policy.is_lfu() { minutes(now) << 8 | LFU_INITIAL } else { seconds(now) }
}

/// The word after one more use. Chance comes from the word and the time: no generator is drawn.
pub fn touched(word: u32, now: UnixMillis, settings: &Settings) -> u32 {
    if !settings.maxmemory_policy.is_lfu() {
        return seconds(now);
    }
    let counter = lfu_counter(word, now, settings);
    let base = u64::from(counter.saturating_sub(LFU_INITIAL));
    let odds = base * settings.lfu_log_factor + 1;
    let draw = (now.0 as u64 ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let grown = if counter < 255 && draw.is_multiple_of(odds) { counter + 1 } else { counter };
    minutes(now) << 8 | grown
}

/// The LFU counter, decayed to now: what OBJECT FREQ shows.
pub fn lfu_counter(word: u32, now: UnixMillis, settings: &Settings) -> u32 {
    decayed(word, now, settings.lfu_decay_time)
}

fn decayed(word: u32, now: UnixMillis, decay_time: u64) -> u32 {
    let elapsed = minutes(now).wrapping_sub(word >> 8) & 0xffff;
    let periods = u64::from(elapsed).checked_div(decay_time).unwrap_or(0);
    (word & 0xff).saturating_sub(u32::try_from(periods).unwrap_or(u32::MAX))
}

/// How idle keys are, as the policy has it, which counts uses or asks for the last one.
#[derive(Clone, Copy, Debug)]
pub struct Idleness {
    now: UnixMillis,
    /// Of a policy that counts uses.
    lfu_decay_time: Option<u64>,
}

impl Idleness {
    pub fn at(now: UnixMillis, settings: &Settings) -> Self {
        let lfu_decay_time = settings.maxmemory_policy.is_lfu().then_some(settings.lfu_decay_time);
        Self { now, lfu_decay_time }
    }

    /// The more, the idler is the key that has this access word.
    pub fn of(self, word: u32) -> u32 {
        match self.lfu_decay_time {
            Some(decay_time) => 255 - decayed(word, self.now, decay_time),
            None => idle_seconds(word, self.now),
        }
    }
}

/// Seconds since the last use: what OBJECT IDLETIME shows.
pub fn idle_seconds(word: u32, now: UnixMillis) -> u32 {
    seconds(now).wrapping_sub(word) & WORD_MASK
}

/// The word of a key that was last used this many seconds ago.
pub fn of_idle(idle_seconds: u64, now: UnixMillis) -> u32 {
    seconds(now).wrapping_sub(idle_seconds as u32) & WORD_MASK
}

/// The word of a key whose LFU counter stands here.
pub fn of_frequency(counter: u8, now: UnixMillis) -> u32 {
    minutes(now) << 8 | u32::from(counter)
}

fn seconds(now: UnixMillis) -> u32 {
    (now.0 / 1000) as u32 & WORD_MASK
}

fn minutes(now: UnixMillis) -> u32 {
    (now.0 / 60_000) as u32 & 0xffff
}
