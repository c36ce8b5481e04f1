//! Finds whose answer a message is without keeping the message: it is over the
//! limit and thrown away as it comes in. Knows nothing but JSON's brackets.

/// Longer ids are not ours.
const LONGEST: usize = 20;

/// Looks for the member `id` of the outermost object, byte by byte.
#[derive(Debug, Default)]
pub(super) struct IdScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string that was read last at depth 1, while it may still be a key.
    text: Vec<u8>,
    /// Between the key `id` and the end of its value.
    in_id: bool,
    id: Vec<u8>,
    found: Option<u64>,
}

impl IdScan {
    /// Takes the next part of the message.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ if self.depth == 1 && self.text.len() < LONGEST => self.text.push(byte),
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.in_id = false;
                self.text.clear();
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.in_id = false;
            }
            b':' if self.depth == 1 => self.in_id = self.text == b"id",
            b',' | b'}' | b']' => {
                if self.in_id && self.depth == 1 {
                    self.found = std::str::from_utf8(&self.id).ok().and_then(|id| id.parse().ok());
                    self.in_id = false;
                }
                if byte != b',' {
                    self.depth = self.depth.saturating_sub(1);
                }
            }
            _ if self.in_id && !byte.is_ascii_whitespace() && self.id.len() <= LONGEST => {
                self.id.push(byte);
            }
            _ => {}
        }
    }

    /// The id, once the message has been fed to its end.
    pub fn id(&self) -> Option<u64> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Option<u64> {
        let mut scan = IdScan::default();
        for part in text.as_bytes().chunks(3) {
            scan.feed(part);
        }
        scan.id()
    }

    #[test]
    fn the_outermost_id_is_found_wherever_it_stands() {
        assert_eq!(scan(r#"{"jsonrpc":"2.0","id": 12 ,"result":{"id":5}}"#), Some(12));
        assert_eq!(scan(r#"{"result":{"id":5,"a":["\"id\":6"]},"jsonrpc":"2.0","id":13}"#), Some(13));
    }

    #[test]
    fn other_ids_are_not_mistaken_for_it() {
        assert_eq!(scan(r#"{"result":{"id":5}}"#), None);
        assert_eq!(scan(r#"{"x":"id","y":5}"#), None);
        assert_eq!(scan(r#"{"id":"5"}"#), None);
        assert_eq!(scan(r#"{"id":[5]}"#), None);
        assert_eq!(scan(r#"{"id":99999999999999999999999}"#), None);
        assert_eq!(scan("garbage, with {commas: }"), None);
    }
}
