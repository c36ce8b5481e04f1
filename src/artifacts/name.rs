//! Names and media types: what is safe as a file name and as a header line. Knows
//! nothing of files.

/// The longest name, in bytes; every file system takes it, with room for a suffix.
const LONGEST: usize = 120;

/// Media types and the extension that each is known by; the first of several is the usual one.
const TYPES: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/jpeg", "jpeg"),
    ("image/jpg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/svg+xml", "svg"),
    ("image/tiff", "tiff"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("audio/aac", "m4a"),
    ("video/mp4", "mp4"),
    ("video/webm", "webm"),
    ("audio/webm", "webm"),
    ("application/pdf", "pdf"),
    ("application/json", "json"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
    ("text/html", "html"),
    ("text/css", "css"),
    ("text/csv", "csv"),
    ("text/markdown", "md"),
    ("text/javascript", "js"),
    ("text/plain", "txt"),
    ("text/plain", "log"),
];

/// A file name's extension for a media type.
pub fn extension(mime: &str) -> &'static str {
    let essence = mime.split(';').next().unwrap_or(mime).trim().to_ascii_lowercase();
    match TYPES.iter().find(|(known, _)| *known == essence) {
        Some((_, extension)) => extension,
        None if essence.starts_with("text/") => "txt",
        None => "bin",
    }
}

/// The media type of an artifact: what was said when it is one, else what the name's extension means.
pub fn media_type(said: Option<&str>, name: &str) -> String {
    if let Some(said) = said.filter(|s| is_media_type(s)) {
        return said.to_owned();
    }
    let extension = name.rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase()).unwrap_or_default();
    let known = TYPES.iter().find(|(_, e)| *e == extension);
    known.map_or("application/octet-stream", |(mime, _)| mime).to_owned()
}

/// `type/subtype`, perhaps with parameters; nothing that could begin another header line.
fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let token =
        |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b));
    text.len() <= LONGEST
        && text.bytes().all(|b| (b' '..0x7f).contains(&b))
        && essence.split_once('/').is_some_and(|(a, b)| token(a) && token(b))
}

/// A name that is a file name and nothing else: the last part of a path, without control
/// characters, not hidden, not too long. `otherwise` when nothing is left of it.
pub fn clean(name: &str, otherwise: &str) -> String {
    let last = name.rsplit(['/', '\\']).find(|part| !part.trim_matches(['.', ' ']).is_empty());
    let kept: String =
        last.unwrap_or_default().chars().filter(|c| !c.is_control() && !is_invisible(*c)).collect();
    let kept = kept.trim().trim_start_matches('.').trim();
    if kept.is_empty() {
        return otherwise.to_owned();
    }
    if kept.len() <= LONGEST {
        return kept.to_owned();
    }
    // What tells what it is stands at the end, and stays.
    let (stem, tail) = match kept.rsplit_once('.') {
        Some((stem, extension)) if extension.len() <= 16 => (stem, format!(".{extension}")),
        _ => (kept, String::new()),
    };
    let room = LONGEST - tail.len();
    let end = (0..=room).rev().find(|at| stem.is_char_boundary(*at)).unwrap_or(0);
    format!("{}{tail}", &stem[..end])
}

/// Characters that show nothing but change how the rest is shown, so that a name could look like another.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_path() {
        let clean = |name: &str| clean(name, "artifact");
        for (given, wanted) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("/abs/olute.txt", "olute.txt"),
            ("C:\\dir\\file.txt", "file.txt"),
            ("..", "artifact"),
            ("a/..", "a"),
            (".hidden", "hidden"),
            ("", "artifact"),
            ("a\0b\nc.txt", "abc.txt"),
            ("  spaced name.txt ", "spaced name.txt"),
            ("täst ü.png", "täst ü.png"),
            ("photo\u{202e}gnp.exe", "photognp.exe"),
        ] {
            assert_eq!(clean(given), wanted, "{given:?}");
        }
        let long = clean(&format!("{}.json", "ä".repeat(500)));
        assert!(long.len() <= LONGEST && long.ends_with("ä.json"), "{long}");
    }

    #[test]
    fn a_media_type_is_what_was_said_or_what_the_name_means() {
        assert_eq!(media_type(Some("image/png"), "x.txt"), "image/png");
        assert_eq!(media_type(Some("text/plain; charset=utf-8"), "x"), "text/plain; charset=utf-8");
        assert_eq!(media_type(None, "a.b.CSV"), "text/csv");
        assert_eq!(media_type(None, "nothing"), "application/octet-stream");
        for bad in ["text/html\r\nSet-Cookie: a", "html", "/", "a/b/c", "ä/b"] {
            assert_eq!(media_type(Some(bad), "x.md"), "text/markdown", "{bad:?}");
        }
        for (mime, found) in [("image/jpeg", "jpg"), ("text/x-odd", "txt"), ("odd/thing", "bin")] {
            assert_eq!(extension(mime), found);
        }
    }
}
