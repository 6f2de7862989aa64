//! Files and functions stay small enough to read. [`super::ratchet`] lists what is over a limit.
//!
//! Tests do not count: not files of tests, nor the module of tests at a file's end.

use super::Complaint;
use super::ratchet::Measure;
use crate::tree::{TextFile, Tree};

/// From here on a file is worth a look.
const FILE_LINES_WARN: usize = 400;

/// Beyond this it is refused.
const FILE_LINES_MAX: usize = 600;

/// A function fits a screen; from its first line to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// What to do about either.
const ADVICE: &str = "split it by owner of state";

/// Files that are growing towards the limit.
pub fn notes(tree: &Tree) -> Vec<Complaint> {
    let near = |size: &Measure| {
        size.subject.starts_with("file ")
            && (FILE_LINES_WARN + 1..=FILE_LINES_MAX).contains(&size.size)
    };
    let note = |size: Measure| {
        let text = format!("{} lines of {FILE_LINES_MAX}: does it still hold one idea?", size.size);
        Complaint::new(&size.path, 0, text)
    };
    measure(tree).into_iter().filter(near).map(note).collect()
}

/// The lines of every file and function.
pub fn measure(tree: &Tree) -> Vec<Measure> {
    let mut sizes = Vec::new();
    for file in tree.sources() {
        sizes.push(Measure {
            subject: format!("file {}", file.path),
            path: file.path.clone(),
            line: 0,
            size: file.code_lines().count(),
            size_max: FILE_LINES_MAX,
            unit: "lines",
            advice: ADVICE.to_owned(),
        });
        measure_functions(file, &mut sizes);
    }
    sizes
}

/// Finds each function's end by its indentation, which rustfmt guarantees.
fn measure_functions(file: &TextFile, sizes: &mut Vec<Measure>) {
    let lines: Vec<(usize, &str)> = file.code_lines().collect();
    for (index, &(number, line)) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indentation = line.len() - line.trim_start().len();
        let closing = format!("{}}}", &line[..indentation]);
        let ends = |(_, line): &(usize, &str)| *line == closing || line.trim_end().ends_with(';');
        let end = lines[index..].iter().position(|(_, line)| *line == closing);
        // A declaration without a body ends with its signature.
        let signature =
            lines[index..].iter().position(|(_, line)| line.ends_with('{') || line.ends_with('}'));
        let declared = lines[index..].iter().position(ends);
        if line.ends_with('}') || declared < signature {
            continue;
        }
        sizes.push(Measure {
            subject: format!("function {} {name}", file.path),
            path: file.path.clone(),
            line: number,
            size: end.map_or(1, |end| end + 1),
            size_max: FUNCTION_LINES_MAX,
            unit: "lines",
            advice: ADVICE.to_owned(),
        });
    }
}

/// The name of the function whose signature begins on `line`.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        rest = match rest.split_once(' ')? {
            ("fn", name) => {
                let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                return end.map(|end| &name[..end]);
            }
            ("pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"", rest) => rest,
            (visibility, rest) if visibility.starts_with("pub(") => rest,
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/node/src/reactor.rs";

    fn function(indentation: &str, name: &str, lines: usize) -> String {
        let body = format!("{indentation}    step();\n").repeat(lines - 2);
        format!("{indentation}pub(crate) fn {name}(&self) {{\n{body}{indentation}}}\n")
    }

    fn complaints(text: &str) -> Vec<String> {
        let tree = Tree::of(&[(PATH, text)]);
        let over = |measure: &Measure| measure.size > measure.size_max;
        let shown = |found: Measure| format!("{}:{} {}", found.subject, found.line, found.size);
        measure(&tree).into_iter().filter(over).map(shown).collect()
    }

    #[test]
    fn a_long_function_is_found_at_its_first_line() {
        let text = format!("impl Reactor {{\n{}}}\n", function("    ", "turn", 71));
        assert_eq!(complaints(&text), [format!("function {PATH} turn:2 71")]);
        assert_eq!(complaints(&function("", "turn", 70)), [""; 0]);
    }

    #[test]
    fn a_long_file_is_refused_but_its_tests_do_not_count() {
        let code = "const A: u8 = 1;\n".repeat(600);
        assert_eq!(complaints(&code), [""; 0]);
        let found = complaints(&format!("{code}const B: u8 = 1;\n"));
        assert!(found == [format!("file {PATH}:0 601")], "{found:?}");
        let tests =
            "\n#[cfg(test)]\nmod tests {\n".to_owned() + &"    // a test\n".repeat(50) + "}\n";
        assert_eq!(complaints(&(code[..code.len() - 17].to_owned() + &tests)), [""; 0]);
    }

    #[test]
    fn declarations_and_one_line_functions_have_no_size() {
        let text =
            "trait Clock {\n    fn now(&self);\n    fn wide(\n        &self,\n    ) -> u64;\n}\n"
                .to_owned()
                + "fn short() {}\n"
                + &"const A: u8 = 1;\n".repeat(80)
                + "fn last() {\n}\n";
        assert_eq!(complaints(&text), [""; 0]);
    }

    #[test]
    fn every_form_of_a_signature_is_recognized() {
        for line in [
            "fn name() {",
            "    pub fn name<T>(",
            "pub(super) const fn name()",
            "pub unsafe extern \"C\" fn name(",
            "async fn name()",
        ] {
            assert_eq!(function_name(line), Some("name"), "{line}");
        }
        for line in ["// fn name()", "let fn_name = 1;", "type F = fn (u8);", "impl Fn for X {"] {
            assert_eq!(function_name(line), None, "{line}");
        }
    }
}
