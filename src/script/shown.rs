//! How a plan is printed: as text and as JSON, with secrets masked.

use super::env::variable;
use super::plan::Plan;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt;

impl Plan {
    /// The plan for `--dry-run`: `{runtime, name, why[], program, argv[], permissions, permissionFlags[], cwd, env{}, script?, entry, dispatch?, timeoutMs?}`; secrets are masked.
    pub fn to_json(&self) -> Value {
        let text = |t: &OsString| Value::from(t.to_string_lossy());
        let env: serde_json::Map<String, Value> =
            self.shown_env().map(|(k, v)| (k.to_owned(), v.into())).collect();
        let mut plan = json!({
            "runtime": self.runtime,
            "name": self.runtime_name,
            "why": self.why,
            "program": self.program,
            "argv": self.argv.iter().map(text).collect::<Vec<_>>(),
            "permissions": self.permissions,
            "permissionFlags": self.permission_flags,
            "cwd": self.cwd,
            "env": env,
            "entry": self.entry,
        });
        let mut add = |key: &str, value: Option<Value>| {
            if let (Some(value), Some(map)) = (value, plan.as_object_mut()) {
                map.insert(key.into(), value);
            }
        };
        add("script", self.script.as_ref().map(|p| json!(p)));
        add("dispatch", self.dispatch.map(Value::from));
        add("timeoutMs", self.timeout.map(|t| json!(t.as_millis() as u64)));
        plan
    }

    fn shown_env(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.added.iter().map(|(name, value)| {
            let secret = variable(name).is_some_and(|v| v.secret) && !value.is_empty();
            (*name, if secret { "***".to_owned() } else { value.to_string_lossy().into_owned() })
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |words: &[OsString]| {
            words.iter().map(|w| shell(&w.to_string_lossy())).collect::<Vec<_>>().join(" ")
        };
        writeln!(f, "runtime      {} ({})", self.runtime_name, self.why.join("; "))?;
        writeln!(
            f,
            "permissions  {} ({})",
            self.permissions,
            match self.permission_flags.as_slice() {
                [] => "no flags".to_owned(),
                flags => flags.join(" "),
            }
        )?;
        writeln!(f, "directory    {}", self.cwd.display())?;
        if let Some(script) = &self.script {
            writeln!(f, "script       {}", script.display())?;
        }
        if let Some(timeout) = self.timeout {
            writeln!(f, "time-out     {}", crate::settings::duration_text(timeout))?;
        }
        writeln!(f, "command      {} {}", shell(&self.program.to_string_lossy()), words(&self.argv))?;
        writeln!(f, "environment  (added to that of mcpx)")?;
        for (name, value) in self.shown_env() {
            writeln!(f, "  {name}={}", shell(&value))?;
        }
        Ok(())
    }
}

/// A word as a shell would need it.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
