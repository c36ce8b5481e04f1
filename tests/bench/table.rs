//! Prints rows of figures, and keeps them as a page.

use std::fmt::Write;
use std::sync::Mutex;

/// The tables so far, as Markdown.
static PAGE: Mutex<String> = Mutex::new(String::new());

/// What has been printed, as Markdown.
pub fn page() -> String {
    PAGE.lock().expect("one thread").clone()
}

/// One figure, and what to compare it with.
pub struct Row {
    name: String,
    value: f64,
    base: Option<f64>,
    budget: Option<f64>,
    extra_budget: Option<f64>,
}

impl Row {
    /// A figure.
    pub fn new(name: impl Into<String>, value: f64) -> Row {
        Row { name: name.into(), value, base: None, budget: None, extra_budget: None }
    }
    /// What the same takes without mcpx, or in mcpx.
    pub fn over(mut self, base: f64) -> Row {
        self.base = Some(base);
        self
    }
    /// The most that it may be.
    pub fn budget(mut self, most: f64) -> Row {
        self.budget = Some(most);
        self
    }
    /// The most that it may be over its base.
    pub fn extra_budget(mut self, most: f64) -> Row {
        self.extra_budget = Some(most);
        self
    }
}

/// Rows under a title.
pub struct Table {
    title: String,
    rows: Vec<Row>,
}

impl Table {
    /// An empty one.
    pub fn new(title: &str) -> Table {
        Table { title: title.to_owned(), rows: Vec::new() }
    }
    /// Adds a row.
    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }
    /// Prints it.
    pub fn print(&self) {
        self.keep();
        let width = self.rows.iter().map(|r| r.name.chars().count()).max().unwrap_or(0).max(44);
        println!("\n{:<width$} {:>10} {:>10} {:>8}", self.title, "median", "over", "ratio");
        for row in &self.rows {
            let base = row.base.filter(|b| *b > 0.0);
            let over = base.map_or(String::new(), |b| format!("{:+.3}", row.value - b));
            let ratio = base.map_or(String::new(), |b| format!("{:.2}", row.value / b));
            let verdict = match (row.budget, row.extra_budget, base) {
                (Some(most), _, _) => verdict(row.value, most, "budget"),
                (_, Some(most), Some(b)) => verdict(row.value - b, most, "budget above the base,"),
                _ => String::new(),
            };
            println!("{:<width$} {:>10.3} {over:>10} {ratio:>8}  {verdict}", row.name, row.value);
        }
    }
}

impl Table {
    /// Keeps it for the page, ratios first.
    fn keep(&self) {
        let mut page = PAGE.lock().expect("one thread");
        let _ = writeln!(page, "\n## {}\n\n| | ratio | median | over | budget |", self.title);
        page.push_str("| --- | ---: | ---: | ---: | --- |\n");
        for row in &self.rows {
            let base = row.base.filter(|b| *b > 0.0);
            let ratio = base.map_or(String::new(), |b| format!("**{:.2}**", row.value / b));
            let over = base.map_or(String::new(), |b| format!("{:+.3}", row.value - b));
            let verdict = match (row.budget, row.extra_budget, base) {
                (Some(most), _, _) => verdict(row.value, most, "budget"),
                (_, Some(most), Some(b)) => verdict(row.value - b, most, "budget above the base,"),
                _ => String::new(),
            };
            let _ = writeln!(page, "| {} | {ratio} | {:.3} | {over} | {verdict} |", row.name, row.value);
        }
    }
}

fn verdict(value: f64, most: f64, what: &str) -> String {
    let word = if value <= most { "within" } else { "BEYOND" };
    format!("{word} the {what} {most}")
}
