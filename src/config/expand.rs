//! Expands `${VAR}` and `${VAR:-default}` in a definition's texts. A `$` that
//! no `{` follows stays as it is.

use crate::util::Env;

/// What a text is, that variables are filled in into.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Into {
    /// Nothing more than a text.
    Text,
    /// One with placeholders of its own in braces: a brace in a value is none of them.
    Template,
}

/// Expands a text. The message of a fault names the variable, not the field.
pub(super) fn expand(text: &str, env: &Env) -> Result<String, String> {
    expand_into(text, env, Into::Text)
}

/// The same for a text that may be a template.
pub(super) fn expand_into(text: &str, env: &Env, into: Into) -> Result<String, String> {
    // Looking for one character is much faster than for two, and hardly any text has it.
    if !text.contains('$') {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        out.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        let end = closing(inside).ok_or("a ${ is never closed by }")?;
        let value = value(&inside[..end], env)?;
        match into {
            Into::Text => out.push_str(&value),
            Into::Template => out.push_str(&value.replace('{', "{{").replace('}', "}}")),
        }
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Where the brace closes; a default may hold further variables.
fn closing(inside: &str) -> Option<usize> {
    let mut depth = 0usize;
    let bytes = inside.as_bytes();
    for (i, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if i > 0 && bytes[i - 1] == b'$' => depth += 1,
            b'}' if depth == 0 => return Some(i),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The value of what stands between the braces.
fn value(inside: &str, env: &Env) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let starts_well = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !starts_well || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(format!(
            "${{{inside}}} is not filled in here; only ${{NAME}} and ${{NAME:-default}} are, from the environment"
        ));
    }
    match (env.get(name), default) {
        // As in a shell: `:-` also stands in for an empty value.
        (Some(value), default) if !value.is_empty() || default.is_none() => match value.to_str() {
            Some(value) => Ok(value.to_owned()),
            None => Err(format!("the variable {name} is not valid UTF-8")),
        },
        (_, Some(default)) => expand(default, env),
        (_, None) => Err(format!("the variable {name} is not set; set it, or write ${{{name}:-default}}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_defaults_are_filled_in() {
        let env = Env::from_pairs([("A", "one"), ("EMPTY", "")]);
        for (text, wanted) in [
            ("plain $A $$ {A} $", "plain $A $$ {A} $"),
            ("${A}", "one"),
            ("x${A}y${A}z", "xoneyonez"),
            ("${EMPTY}", ""),
            ("${EMPTY:-d}", "d"),
            ("${NONE:-}", ""),
            ("${NONE:-a:-b}", "a:-b"),
            ("${NONE:-${A}/x}", "one/x"),
            ("${NONE:-${NONE2:-${A}}}!", "one!"),
            ("${A:-${NONE}}", "one"),
            ("$${A}", "$one"),
        ] {
            assert_eq!(expand(text, &env).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_is_said() {
        use std::os::unix::ffi::OsStringExt;
        let mut env = Env::default();
        env.set("BAD", std::ffi::OsString::from_vec(vec![0xff]));
        for (text, part) in [
            ("${NONE}", "the variable NONE is not set"),
            ("${NONE:-${ALSO}}", "ALSO is not set"),
            ("${A", "never closed"),
            ("${}", "is not filled in"),
            ("${input:token}", "${input:token} is not filled in"),
            ("${env:HOME}", "is not filled in"),
            ("${1A}", "is not filled in"),
            ("${BAD}", "BAD is not valid UTF-8"),
        ] {
            let message = expand(text, &env).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
