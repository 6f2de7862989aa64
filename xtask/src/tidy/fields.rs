//! Structs stay small enough to have one owner of each field.
//!
//! A struct that everything hangs on ties together whoever uses it, by fields instead of imports.
//! Plain settings are the exception: a list of numbers that nobody changes ties nobody.

use super::ratchet::Measure;
use crate::tokens::{Token, code_tokens};
use crate::tree::Tree;

const FIELDS_MAX: usize = 25;

/// Structs that may be longer, each with its reason.
const PLAIN: &[&str] = &[
    // One field for each directive that the node itself obeys; read by everyone, set in one place.
    "NodeSettings",
];

/// The fields of every struct but the plain ones.
pub fn measure(tree: &Tree) -> Vec<Measure> {
    let mut measures = Vec::new();
    for file in tree.sources().filter(|file| !file.is_test()) {
        let tokens = code_tokens(&file.text);
        for index in 0..tokens.len() {
            let Some((name, fields)) = structure(&tokens[index..]) else { continue };
            if PLAIN.contains(&name) {
                continue;
            }
            measures.push(Measure {
                subject: format!("struct {} {name}", file.path),
                path: file.path.clone(),
                line: tokens[index].line,
                size: fields,
                size_max: FIELDS_MAX,
                unit: "fields",
                advice: "group them by who changes them".to_owned(),
            });
        }
    }
    measures
}

/// The name and the number of fields of the struct that `tokens` begins with, if it names them.
fn structure<'t>(tokens: &[Token<'t>]) -> Option<(&'t str, usize)> {
    let [keyword, name, ..] = tokens else { return None };
    if keyword.text != "struct" || !name.is_word() {
        return None;
    }
    let body = tokens.iter().position(|token| matches!(token.text, "{" | ";" | "("))?;
    if tokens[body].text != "{" {
        return None;
    }
    let (mut depth, mut fields) = (0, 0);
    for token in &tokens[body..] {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            ":" if depth == 1 => fields += 1,
            _ => {}
        }
        if depth == 0 {
            return Some((name.text, fields));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Vec<(String, usize)> {
        let tree = Tree::of(&[("crates/node/src/server.rs", text)]);
        measure(&tree).into_iter().map(|found| (found.subject, found.size)).collect()
    }

    #[test]
    fn the_fields_of_a_struct_are_counted() {
        let text = "/// A: b.\npub struct Server<T: Clock> {\n    /// Why: so.\n    #[cfg(unix)]\n\
                    pub a: Box<dyn Fn(u8) -> io::Result<()>>,\n    b: [u8; 4],\n}\n\
                    struct Unit;\nstruct Pair(u8, u8);\n";
        assert_eq!(sizes(text), [("struct crates/node/src/server.rs Server".to_owned(), 2)]);
    }

    #[test]
    fn tests_may_hold_what_they_like() {
        assert_eq!(sizes("#[cfg(test)]\nmod tests {\n    struct A { b: u8 }\n}\n"), []);
    }
}
