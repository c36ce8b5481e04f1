//! `mcpx catalog`: one block that says what there is, within a budget of tokens.

use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, no_servers};
use super::super::out::note;
use super::super::schemas;
use crate::catalog::budget::tokens;
use crate::error::{Error, Result};
use crate::settings::CATALOG_BUDGET;
use serde_json::{Value, json};
use std::fmt::Write;

/// The command.
pub static COMMAND: Command = Command {
    name: "catalog",
    group: Group::Discover,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Print what there is in one block, within a budget of tokens",
    about: "For a model's context: a line for every namespace, and as many whole signatures as fit, spread evenly over \
            the namespaces. What was left out is said, with the command that shows it. Tokens are estimated: about four \
            letters of a word, or two signs, make one, which is within some 20 % of common tokenizers.",
    flags: &[Flag::value("budget", "N", "How many tokens it may take").of("catalog.budget")],
    settings: &["catalog.describe", "catalog.wait", "catalog.frozen"],
    examples: &[
        example("mcpx catalog --budget 1000", "for a small context"),
        example("mcpx --json catalog", "with what each namespace takes"),
    ],
    run,
};

/// A namespace, and which of its signatures were taken.
struct Part<'a> {
    head: String,
    ident: &'a str,
    /// Signatures in the server's order, and what each takes.
    signatures: Vec<(String, usize)>,
    taken: Vec<bool>,
    error: Option<&'a Error>,
}

impl Part<'_> {
    fn left(&self) -> usize {
        self.taken.iter().filter(|t| !**t).count()
    }
    /// The line that says what is left out.
    fn rest(&self) -> String {
        format!("// {} more: mcpx tools {}", self.left(), self.ident)
    }
    fn text(&self) -> String {
        let mut out = format!("{}\n", self.head);
        for ((signature, _), _) in self.signatures.iter().zip(&self.taken).filter(|(_, taken)| **taken) {
            let _ = writeln!(out, "{signature}");
        }
        if self.left() > 0 {
            let _ = writeln!(out, "{}", self.rest());
        }
        out
    }
}

fn run(cx: &mut Cx) -> Result<u8> {
    let world = cx.world()?;
    if world.config.servers.is_empty() {
        return Err(no_servers(world, "there is no catalogue"));
    }
    let describe = usize::try_from(world.settings.get(&crate::settings::CATALOG_DESCRIBE)).unwrap_or(0);
    let budget = usize::try_from(world.settings.get(&CATALOG_BUDGET)).unwrap_or(usize::MAX);
    let known = schemas::load_rows(cx, schemas::select(world, &[])?)?;
    let (cache, _) = schemas::cache(world);
    let mut parts: Vec<Part> = Vec::new();
    for k in &known {
        let (def, ident) = (k.namespace.def, k.namespace.ident.as_str());
        let said = || crate::catalog::filter::summary(&cache, def, std::time::Duration::MAX)?.description;
        let about = def.description.clone().or_else(said).unwrap_or_default();
        let about = super::super::table::fit(&super::super::table::one_line(&about), describe);
        let mut head = format!("// {ident}");
        match &k.tools {
            Ok(rows) => {
                let _ = write!(head, ", {} tools", rows.len());
            }
            Err(_) => head.push_str(", not available"),
        }
        if !about.is_empty() {
            let _ = write!(head, ": {about}");
        }
        let rows = k.tools.as_deref().unwrap_or_default();
        let signatures: Vec<(String, usize)> = rows
            .iter()
            .map(|row| {
                let line = format!("{ident}.{}", row.signature);
                let cost = tokens(&line) + 1;
                (line, cost)
            })
            .collect();
        let taken = vec![false; signatures.len()];
        parts.push(Part { head, ident, signatures, taken, error: k.tools.as_ref().err() });
    }
    fill(&mut parts, budget);
    let text: String = parts.iter().map(Part::text).collect();
    let (used, left) = (tokens(&text), parts.iter().map(Part::left).sum::<usize>());
    let shown = parts.iter().map(|p| p.taken.len()).sum::<usize>() - left;
    if cx.json() {
        let rows: Vec<Value> = parts
            .iter()
            .map(|p| {
                let taken = p.signatures.iter().zip(&p.taken).filter(|(_, t)| **t);
                json!({
                    "ident": p.ident, "tools": p.signatures.len(), "left": p.left(),
                    "signatures": taken.map(|((s, _), _)| s.as_str()).collect::<Vec<_>>(),
                    "tokens": tokens(&p.text()), "error": p.error.map(Error::to_json),
                })
            })
            .collect();
        let body = json!({
            "ok": true, "budget": budget, "tokens": used, "shown": shown, "left": left, "text": text, "namespaces": rows,
        });
        drop(parts);
        drop(known);
        cx.out.json(&body)?;
        return Ok(0);
    }
    drop(parts);
    drop(known);
    cx.out.text(&text)?;
    if used > budget {
        note(&format!("the namespaces alone take about {used} tokens, more than the budget of {budget}"));
    }
    Ok(0)
}

/// Takes signatures in turn from each namespace, as long as one fits.
fn fill(parts: &mut [Part], budget: usize) {
    // What is there in any case: the heads, and a line that something is left out.
    let mut used: usize = parts
        .iter()
        .map(|p| tokens(&p.head) + 1 + if p.left() > 0 { tokens(&p.rest()) + 1 } else { 0 })
        .sum();
    let longest = parts.iter().map(|p| p.signatures.len()).max().unwrap_or(0);
    for round in 0..longest {
        for part in parts.iter_mut() {
            let Some((_, cost)) = part.signatures.get(round) else { continue };
            // With its last signature a namespace needs no line for what is left out.
            let saved = if part.left() == 1 { tokens(&part.rest()) + 1 } else { 0 };
            if used + cost <= budget + saved {
                used = (used + cost).saturating_sub(saved);
                part.taken[round] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(ident: &'static str, n: usize, length: usize) -> Part<'static> {
        let line = |i: usize| format!("{ident}.t{i}({})", "word ".repeat(length));
        let signatures: Vec<(String, usize)> = (0..n).map(|i| (line(i), tokens(&line(i)) + 1)).collect();
        Part { head: format!("// {ident}, {n} tools"), ident, taken: vec![false; n], signatures, error: None }
    }

    #[test]
    fn a_budget_is_kept_shared_evenly_and_used() {
        for budget in [60, 100, 200, 400, 100_000] {
            let mut parts = [part("a", 20, 2), part("b", 3, 2), part("c", 1, 300)];
            fill(&mut parts, budget);
            let text: String = parts.iter().map(Part::text).collect();
            assert!(tokens(&text) <= budget, "{budget}: {} {text}", tokens(&text));
            let heads = ["// a, 20 tools", "// b, 3 tools", "// c, 1 tools"];
            assert!(heads.iter().all(|h| text.contains(h)), "{text}");
            if budget >= 200 {
                assert_eq!(parts[1].left(), 0, "no namespace takes the others' share: {text}");
            }
            if budget == 200 {
                assert!(parts[0].taken.iter().any(|t| *t) && parts[2].left() == 1, "{text}");
                assert!(text.contains("// 1 more: mcpx tools c"), "{text}");
            }
            if budget == 100_000 {
                assert!(parts.iter().all(|p| p.left() == 0) && !text.contains("more:"));
            }
        }
    }
}
