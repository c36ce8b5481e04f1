//! Reads and writes durations (`250ms`, `1h30m`, `0`) and sizes (`64KiB`,
//! `16MB`) as people type them. Messages name no setting; the caller adds it.

use std::time::Duration;

/// Units of time, largest first, in nanoseconds.
const TIME: &[(&str, u64)] = &[
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Units of size; the binary ones first, so that 1024 is written `1KiB`.
const SIZE: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// A number such as `12` or `1.5`, kept exact: `digits / 10^scale`.
struct Number {
    digits: u128,
    scale: u32,
}

impl Number {
    /// The number times `unit`; `None` when it does not fit or is not whole.
    fn times(&self, unit: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(unit))?;
        let divisor = 10u128.pow(self.scale);
        if product % divisor != 0 {
            return None;
        }
        u64::try_from(product / divisor).ok()
    }
}

/// Splits a leading number from the text behind it.
fn number(text: &str) -> Option<(Number, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // More digits than these cannot be meant, and would overflow the exact arithmetic.
    if whole.is_empty() || whole.len() > 19 || fraction.len() > 9 || fraction.contains('.') {
        return None;
    }
    if number.ends_with('.') {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((Number { digits, scale: fraction.len() as u32 }, rest))
}

/// Reads a duration: `0`, or numbers with units from large to small (`1h30m`, `250ms`, `1.5s`).
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("is empty; write a duration such as 30s, 250ms or 1h30m".into());
    }
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.starts_with('-') {
        return Err(format!("a duration cannot be negative: \"{text}\""));
    }
    let wrong = || format!("\"{text}\" is not a duration; write one such as 30s, 250ms, 1h30m or 0");
    let mut total: u64 = 0;
    let mut rest = text;
    let mut last_unit = u64::MAX;
    while !rest.is_empty() {
        let (amount, behind) = number(rest).ok_or_else(wrong)?;
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, after) = behind.split_at(end);
        if unit.is_empty() {
            return Err(format!(
                "\"{text}\" has no unit; write {0}s for seconds or {0}ms for milliseconds",
                rest.trim_end_matches('.')
            ));
        }
        let size = TIME
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, size)| *size)
            .ok_or_else(|| format!("\"{unit}\" is not a unit of time; use d, h, m, s, ms, us or ns"))?;
        if size >= last_unit {
            return Err(format!("the units of \"{text}\" must go from large to small, each once"));
        }
        last_unit = size;
        let part = amount.times(size).ok_or_else(|| format!("\"{text}\" is too long, or finer than 1ns"))?;
        total = total.checked_add(part).ok_or_else(|| format!("\"{text}\" is too long"))?;
        rest = after;
    }
    Ok(Duration::from_nanos(total))
}

/// Writes a duration so that [`parse_duration`] reads the same one.
pub fn duration_text(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0".into();
    }
    let mut text = String::new();
    for (unit, size) in TIME {
        if rest >= *size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    text
}

/// Reads a size in bytes: `65536`, `64KiB` (1024) or `16MB` (1000); units in any case.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("is empty; write a size such as 64KiB or 16MB".into());
    }
    if text.starts_with('-') {
        return Err(format!("a size cannot be negative: \"{text}\""));
    }
    let wrong = || format!("\"{text}\" is not a size; write one such as 65536, 64KiB or 16MB");
    let (amount, unit) = number(text).ok_or_else(wrong)?;
    let unit = unit.trim_start();
    let size = if unit.is_empty() {
        1
    } else if let Some((_, size)) = SIZE.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        *size
    } else if ["k", "m", "g", "t"].iter().any(|p| p.eq_ignore_ascii_case(unit)) {
        let unit = unit.to_ascii_uppercase();
        return Err(format!("\"{text}\" could mean 1000 or 1024; write {unit}B (1000) or {unit}iB (1024)"));
    } else {
        return Err(format!("\"{unit}\" is not a unit of size; use B, KB, MB, GB, TB, KiB, MiB, GiB or TiB"));
    };
    amount.times(size).ok_or_else(|| format!("\"{text}\" is too large, or not a whole number of bytes"))
}

/// Writes a size so that [`parse_bytes`] reads the same one, in the largest unit that divides it.
pub fn bytes_text(bytes: u64) -> String {
    if bytes == 0 {
        return "0".into();
    }
    let unit =
        SIZE.iter().filter(|(_, size)| bytes.is_multiple_of(*size)).min_by_key(|(_, size)| bytes / size);
    match unit {
        Some((name, size)) => format!("{}{name}", bytes / size),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_back() {
        for (text, ms, canonical) in [
            ("0", 0, "0"),
            ("250ms", 250, "250ms"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90m", 5_400_000, "1h30m"),
            ("1.5s", 1500, "1s500ms"),
            (" 5m ", 300_000, "5m"),
            ("1d", 86_400_000, "1d"),
            ("0s", 0, "0"),
        ] {
            let read = parse_duration(text).unwrap();
            assert_eq!(read, Duration::from_millis(ms), "{text}");
            assert_eq!(duration_text(read), canonical);
            assert_eq!(parse_duration(canonical).unwrap(), read);
        }
    }

    #[test]
    fn durations_that_cannot_be_meant_are_refused() {
        for (text, part) in [
            ("", "empty"),
            ("30", "no unit"),
            ("-5s", "negative"),
            ("5 minutes", "not a unit"),
            ("5x", "\"x\" is not a unit"),
            ("s", "not a duration"),
            ("30m1h", "large to small"),
            ("1m1m", "large to small"),
            ("1.s", "not a duration"),
            ("1..2s", "not a duration"),
            ("99999999999999999999s", "not a duration"),
            ("9999999999999999999d", "too long"),
            ("0.1ns", "finer"),
            ("1h٣m", "not a"),
        ] {
            let message = parse_duration(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn sizes_are_read_and_written_back() {
        for (text, bytes, canonical) in [
            ("0", 0, "0"),
            ("65536", 65536, "64KiB"),
            ("64KiB", 65536, "64KiB"),
            ("16MB", 16_000_000, "16MB"),
            ("16mb", 16_000_000, "16MB"),
            ("1.5 KiB", 1536, "1536B"),
            ("1000000", 1_000_000, "1MB"),
            ("7B", 7, "7B"),
        ] {
            assert_eq!(parse_bytes(text).unwrap(), bytes, "{text}");
            assert_eq!(bytes_text(bytes), canonical);
            assert_eq!(parse_bytes(canonical).unwrap(), bytes);
        }
    }

    #[test]
    fn sizes_that_cannot_be_meant_are_refused() {
        for (text, part) in [
            ("", "empty"),
            ("-1", "negative"),
            ("64K", "1000 or 1024"),
            ("5 apples", "not a unit"),
            ("MB", "not a size"),
            ("0.5B", "whole number"),
            ("99999999TiB", "too large"),
        ] {
            let message = parse_bytes(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
