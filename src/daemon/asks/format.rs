//! The formats that a text field of a form may have (MCP, elicitation: `email`,
//! `uri`, `date`, `date-time`). Knows nothing of forms.

/// Each format with whether a text has it, and a text that does. A format that is not listed is not checked,
/// as JSON Schema has it.
type Format = (&'static str, fn(&str) -> bool, &'static str);

const FORMATS: [Format; 4] = [
    ("date", is_date, "2026-01-31"),
    ("date-time", is_date_time, "2026-01-31T12:00:00Z"),
    ("email", is_email, "name@example.com"),
    ("uri", is_uri, "https://example.com/"),
];

/// Whether a text has a format.
pub fn has(text: &str, format: &str) -> bool {
    FORMATS.iter().find(|row| row.0 == format).is_none_or(|row| row.1(text))
}

/// A text that has the format.
pub fn example(format: &str) -> Option<&'static str> {
    FORMATS.iter().find(|row| row.0 == format).map(|row| row.2)
}

/// `value` of exactly `digits` digits, within the bounds.
fn number(text: &str, digits: usize, least: u32, most: u32) -> Option<u32> {
    let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| plain && (least..=most).contains(n))
}

/// RFC 3339, full-date: a day that the calendar has.
fn is_date(text: &str) -> bool {
    let read = || {
        let mut parts = text.splitn(3, '-');
        let year = number(parts.next()?, 4, 0, 9999)?;
        let month = number(parts.next()?, 2, 1, 12)?;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        number(parts.next()?, 2, 1, days)
    };
    read().is_some()
}

/// RFC 3339, date-time: with `Z` or an offset; a leap second is allowed.
fn is_date_time(text: &str) -> bool {
    let read = || {
        let (date, time) = text.split_once(['T', 't'])?;
        let zone = time.find(['Z', 'z', '+', '-'])?;
        let (time, zone) = time.split_at(zone);
        let of_day =
            |hours: &str, minutes: &str| Some((number(hours, 2, 0, 23)?, number(minutes, 2, 0, 59)?));
        if !matches!(zone, "Z" | "z") {
            let (hours, minutes) = zone[1..].split_once(':')?;
            of_day(hours, minutes)?;
        }
        let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let mut parts = whole.splitn(3, ':');
        of_day(parts.next()?, parts.next()?)?;
        number(parts.next()?, 2, 0, 60)?;
        (is_date(date) && !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit())).then_some(())
    };
    read().is_some()
}

/// RFC 5321 in short: something, an at sign, and a domain, none with spaces or another at sign.
fn is_email(text: &str) -> bool {
    let (local, domain) = text.rsplit_once('@').unwrap_or_default();
    let word = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c == '@');
    word(local) && word(domain) && domain.split('.').all(|label| !label.is_empty())
}

/// RFC 3986: a scheme, a colon, and something without spaces.
fn is_uri(text: &str) -> bool {
    let (scheme, rest) = text.split_once(':').unwrap_or_default();
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    named && !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_knows_its_own() {
        for (format, _, text) in FORMATS {
            assert!(has(text, format), "{format}");
        }
        for (format, text) in [
            ("date", "2024-02-29"),
            ("date-time", "2026-01-31t23:59:60.25+01:30"),
            ("email", "ü.b+c@localhost"),
            ("uri", "urn:isbn:0"),
            ("hostname", "whatever it is"),
        ] {
            assert!(has(text, format), "{format} {text}");
        }
        for (format, text) in [
            ("date", "no"),
            ("date", "2026-02-29"),
            ("date", "2026-1-01"),
            ("date", "+026-01-01"),
            ("date", "2026-01-01-01"),
            ("date-time", "2026-01-31"),
            ("date-time", "2026-01-31T12:00:00"),
            ("date-time", "2026-01-31T24:00:00Z"),
            ("date-time", "2026-01-31T12:00:00.Z"),
            ("email", "zz"),
            ("email", "a b@c"),
            ("email", "a@b..c"),
            ("email", "@b"),
            ("uri", "example.com"),
            ("uri", "http:"),
            ("uri", "a:b c"),
            ("uri", ""),
        ] {
            assert!(!has(text, format), "{format} {text}");
        }
    }
}
