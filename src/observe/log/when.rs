//! Times as people type them: `10m` for ten minutes ago, a date, a date with a
//! time, or milliseconds since 1970. Knows nothing of clocks.

use crate::settings::parse_duration;

const MS_OF_DAY: u64 = 86_400_000;

/// A time in milliseconds since 1970. `now` is what relative times count back from.
///
/// # Errors
/// What is wrong with the text, as the end of a sentence.
pub fn parse_when(text: &str, now: u64) -> Result<u64, String> {
    let text = text.trim();
    if text == "now" {
        return Ok(now);
    }
    if text.len() >= 12 && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_err(|_| format!("\"{text}\" is too far away"));
    }
    if let Some(at) = date_time(text) {
        return Ok(at);
    }
    let ago = text.strip_suffix("ago").map_or(text, str::trim_end);
    match parse_duration(ago) {
        Ok(ago) => Ok(now.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX))),
        Err(_) => Err(format!(
            "\"{text}\" is no time; write 10m or 2h for so long ago, 2026-11-30, 2026-11-30T16:39:38Z, or milliseconds since 1970"
        )),
    }
}

/// `2026-11-30`, with `T16:39`, `T16:39:38` or `T16:39:38.123` (or a blank for the T), and `Z` or nothing: UTC.
fn date_time(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut parts = date.split('-');
    let mut number = |digits: usize| {
        let part = parts.next().filter(|p| p.len() == digits && p.bytes().all(|b| b.is_ascii_digit()))?;
        part.parse::<i64>().ok()
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    if parts.next().is_some()
        || !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let millis: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let mut seconds = 0;
    let mut count = 0;
    for (part, (size, limit)) in clock.split(':').zip([(3600, 24), (60, 60), (1, 61)]) {
        let n: u64 = part.parse().ok().filter(|n| part.len() == 2 && *n < limit)?;
        seconds += n * size;
        count += 1;
    }
    if count < 2 || clock.split(':').count() != count {
        return None;
    }
    // Days from a civil date, counted from 1970, over eras of 400 years that begin in March.
    let y = if month <= 2 { year - 1 } else { year };
    let of_era = y.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = y.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(u64::try_from(days).ok()? * MS_OF_DAY + seconds * 1000 + millis)
}

/// The step, out of a few that people like, that cuts so long a span into about forty parts.
pub fn round_to(span: u64) -> u64 {
    const PARTS: u64 = 40;
    const STEPS: [u64; 12] = [
        1_000,
        10_000,
        60_000,
        300_000,
        900_000,
        3_600_000,
        10_800_000,
        21_600_000,
        86_400_000,
        604_800_000,
        2_592_000_000,
        31_536_000_000,
    ];
    STEPS.into_iter().find(|step| span / step <= PARTS).unwrap_or(STEPS[STEPS.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::iso8601;

    #[test]
    fn times_are_read_as_they_are_written() {
        for at in [0, 951_782_400_000, 1_796_056_778_123, 1_709_164_800_001] {
            assert_eq!(parse_when(&iso8601(at), 0), Ok(at), "{}", iso8601(at));
        }
        assert_eq!(parse_when("2026-11-30", 0), Ok(1_795_996_800_000));
        assert_eq!(parse_when("2026-11-30 16:39", 0).map(iso8601).unwrap(), "2026-11-30T16:39:00.000Z");
        assert_eq!(parse_when("1h30m", 10_000_000), Ok(4_600_000));
        assert_eq!(parse_when("10m ago", 10_000_000), Ok(9_400_000));
        assert_eq!(parse_when("1796056778123", 5), Ok(1_796_056_778_123));
        for wrong in ["", "soon", "2026-13-01", "2026-11-30T25:00", "2026-11-30T10", "2026-11-30T10:00:00:00"]
        {
            assert!(parse_when(wrong, 5).is_err(), "{wrong}");
        }
        assert_eq!(round_to(3_600_000), 300_000);
    }
}
