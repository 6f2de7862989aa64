//! Rust sources as tokens, for rules that ask what code names: paths, items, fields.
//!
//! Not a parser: comments and the contents of texts are left out, `::` is one token, and whoever
//! asks matches short sequences. rustfmt and the compiler have read the files before.

/// A word, a number, `::`, or one other sign. A literal text is `"`, whatever it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token<'t> {
    pub text: &'t str,
    /// From 1.
    pub line: usize,
}

impl Token<'_> {
    pub fn is_word(&self) -> bool {
        self.text.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
    }
}

/// The tokens of `text`, without items that are compiled for tests alone.
pub fn code_tokens(text: &str) -> Vec<Token<'_>> {
    without_tests(&tokens(text))
}

/// The names of the modules that are declared for tests alone (`#[cfg(test)] mod name;`).
pub fn test_modules(text: &str) -> Vec<&str> {
    let tokens = tokens(text);
    let mut names = Vec::new();
    for index in 0..tokens.len() {
        let Some(after) = test_attribute_end(&tokens[index..]) else { continue };
        let item = &tokens[index + after..item_end(&tokens, index + after)];
        if let Some(place) = item.iter().position(|token| token.text == "mod")
            && let [_, name, end] = item[place..]
            && end.text == ";"
        {
            names.push(name.text);
        }
    }
    names
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = token_length(rest, first);
        let token = &rest[..length];
        let is_comment = token.starts_with("//") || token.starts_with("/*");
        if !is_comment && !first.is_whitespace() {
            let shown = if is_text(token) { "\"" } else { token };
            tokens.push(Token { text: shown, line });
        }
        line += token.matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Whether a token is a literal text; a lifetime is not.
fn is_text(token: &str) -> bool {
    let bare = token.trim_start_matches(['b', 'c', 'r']).trim_start_matches('#');
    bare.starts_with('"') || (bare.starts_with('\'') && bare.len() > 1 && bare.ends_with('\''))
}

fn token_length(rest: &str, first: char) -> usize {
    let find = |end: &str, from: usize| {
        rest[from..].find(end).map_or(rest.len(), |found| from + found + end.len())
    };
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return find("*/", 2);
    }
    if let Some(length) = raw_text_length(rest) {
        return length;
    }
    let prefix = rest.len() - rest.trim_start_matches(['b', 'c']).len();
    match rest.as_bytes().get(prefix) {
        Some(b'"') if prefix <= 1 => return prefix + quoted_length(&rest[prefix..], '"'),
        Some(b'\'') if prefix <= 1 => {
            if let Some(length) = letter_length(&rest[prefix..]) {
                return prefix + length;
            }
        }
        _ => {}
    }
    if rest.starts_with("::") {
        return 2;
    }
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    match is_part(first) {
        true => rest.find(|letter| !is_part(letter)).unwrap_or(rest.len()),
        false => first.len_utf8(),
    }
}

/// `r"…"`, `br#"…"#` and the like.
fn raw_text_length(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('r').or_else(|| rest.strip_prefix("br"))?;
    let signs = body.len() - body.trim_start_matches('#').len();
    let text = body[signs..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(signs));
    let length = text.find(&end).map_or(text.len(), |found| found + end.len());
    Some(rest.len() - text.len() + length)
}

fn quoted_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (index, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if letter == quote => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a letter in quotes; `None` of a lifetime.
fn letter_length(rest: &str) -> Option<usize> {
    let mut letters = rest.char_indices().skip(1);
    let (_, letter) = letters.next()?;
    if letter == '\\' {
        return Some(quoted_length(rest, '\''));
    }
    letters.next().filter(|&(_, end)| end == '\'').map(|(index, _)| index + 1)
}

fn without_tests<'t>(tokens: &[Token<'t>]) -> Vec<Token<'t>> {
    let mut code = Vec::with_capacity(tokens.len());
    let mut index = 0;
    while index < tokens.len() {
        match test_attribute_end(&tokens[index..]) {
            Some(after) => index = item_end(tokens, index + after),
            None => {
                code.push(tokens[index]);
                index += 1;
            }
        }
    }
    code
}

/// The number of tokens of an attribute `#[cfg(…test…)]` that `tokens` begins with.
fn test_attribute_end(tokens: &[Token<'_>]) -> Option<usize> {
    let is = |index: usize, text: &str| tokens.get(index).is_some_and(|token| token.text == text);
    if !(is(0, "#") && is(1, "[") && is(2, "cfg")) {
        return None;
    }
    let end = tokens.iter().position(|token| token.text == "]")?;
    let named = |name: &str| tokens[3..end].iter().any(|token| token.text == name);
    (named("test") && !named("not")).then_some(end + 1)
}

/// The index behind the item, field, arm or statement that begins at `from`.
fn item_end(tokens: &[Token<'_>], from: usize) -> usize {
    const ITEMS: &[&str] = &["fn", "mod", "impl", "struct", "enum", "trait", "type", "const"];
    let mut depth = 0usize;
    let head = tokens[from..].iter().take_while(|token| token.text != "{");
    let words: Vec<&str> = head.filter(|token| token.is_word()).take(4).map(|t| t.text).collect();
    let begins_with = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let (is_use, is_item) = (begins_with(&["use"]), begins_with(ITEMS));
    for (index, token) in tokens.iter().enumerate().skip(from) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return index,
            "}" if depth == 1 && !is_use => return index + 1,
            ")" | "]" | "}" => depth -= 1,
            "," if depth == 0 && !is_item => return index + 1,
            ";" if depth == 0 => return index + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        code_tokens(text).iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_texts_name_nothing() {
        let text = "use crate::a; // crate::b\n/* crate::c */ let d = \"crate::\\\"e\";";
        assert_eq!(texts(text), ["use", "crate", "::", "a", ";", "let", "d", "=", "\"", ";"]);
        assert_eq!(
            texts("r#\"a\"b\"#; b\"c\"; br\"\\\"; e"),
            ["\"", ";", "\"", ";", "\"", ";", "e"]
        );
        assert_eq!(texts("'a' '\\'' b'\"' &'a str"), ["\"", "\"", "\"", "&", "'", "a", "str"]);
    }

    #[test]
    fn tokens_know_their_line() {
        let lines: Vec<usize> = tokens("a\n\"b\nc\"\n d").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 4]);
    }

    #[test]
    fn what_is_compiled_for_tests_alone_is_left_out() {
        assert_eq!(texts("#[cfg(test)]\nmod tests {\n use super::*;\n}\na"), ["a"]);
        assert_eq!(texts("#[cfg(test)]\nuse a::{b, c};\nd"), ["d"]);
        assert_eq!(texts("#[cfg(any(test, feature = \"twins\"))]\npub mod twin;\na"), ["a"]);
        assert_eq!(texts("#[cfg(not(test))]\na")[10..], ["a"]);
        assert_eq!(texts("{ #[cfg(test)]\n a: B, c: D }"), ["{", "c", ":", "D", "}"]);
        assert_eq!(texts("{ #[cfg(test)]\n a.b(c, d); e }"), ["{", "e", "}"]);
    }

    #[test]
    fn modules_of_tests_are_known_by_name() {
        let text = "mod a;\n#[cfg(test)]\npub(crate) mod long;\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(test_modules(text), ["long"]);
    }
}
