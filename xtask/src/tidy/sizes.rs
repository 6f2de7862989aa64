//! Sizes of files and functions, and the ratchet that lets what is too big only shrink.
//!
//! Every large database grew a file of ten thousand lines at its heart, one harmless addition after
//! another. Here the addition fails. What is over a limit for a good reason is listed in
//! `xtask/ratchet.txt` with its present size, one per line:
//!
//! ```text
//! file crates/txlog/src/file.rs 640
//! function crates/node/src/reactor.rs turn 85
//! ```
//!
//! Tests do not count: not files of tests, nor the module of tests at a file's end.

use super::Complaint;
use crate::tree::{TextFile, Tree};
use std::path::Path;

pub const RATCHET: &str = "xtask/ratchet.txt";

/// From here on a file is worth a look.
const FILE_LINES_WARN: usize = 400;

/// Beyond this it is refused.
const FILE_LINES_MAX: usize = 600;

/// A function fits a screen; from its first line to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// A file or a function, and its lines of code.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Size {
    /// `file PATH` or `function PATH NAME`, as the ratchet writes it.
    subject: String,
    path: String,
    line: usize,
    lines: usize,
    lines_max: usize,
}

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let sizes = measure(tree);
    let mut complaints = Vec::new();
    let ratchet = ratchet(tree, &mut complaints);
    let listed = |subject: &str| ratchet.iter().find(|entry| entry.subject == subject);
    for size in sizes.iter().filter(|size| size.lines > size.lines_max) {
        let Size { path, line, lines, lines_max, subject } = size;
        let text = match listed(subject) {
            Some(entry) if *lines > entry.lines => format!(
                "{lines} lines, but {RATCHET} allows {}: split it by owner of state",
                entry.lines
            ),
            Some(_) => continue,
            None => format!(
                "{lines} lines, the limit is {lines_max}: split it by owner of state, or argue in \
                 review for a line `{subject} {lines}` in {RATCHET}"
            ),
        };
        complaints.push(Complaint::new(path, *line, text));
    }
    for entry in &ratchet {
        let now =
            sizes.iter().find(|size| size.subject == entry.subject).map_or(0, |size| size.lines);
        if now < entry.lines {
            let text = format!(
                "`{}` is down to {now} lines: run `cargo xtask tidy --shrink` to keep it so",
                entry.subject
            );
            complaints.push(Complaint::new(RATCHET, entry.line, text));
        }
    }
    complaints
}

/// Files that are growing towards the limit.
pub fn notes(tree: &Tree) -> Vec<Complaint> {
    let near = |size: &Size| {
        size.subject.starts_with("file ")
            && (FILE_LINES_WARN + 1..=FILE_LINES_MAX).contains(&size.lines)
    };
    let note = |size: Size| {
        let text =
            format!("{} lines of {FILE_LINES_MAX}: does it still hold one idea?", size.lines);
        Complaint::new(&size.path, 0, text)
    };
    measure(tree).into_iter().filter(near).map(note).collect()
}

/// Lowers every entry of the ratchet to the size reached, and drops those within the limits.
///
/// # Errors
/// The ratchet cannot be written.
#[expect(clippy::disallowed_methods, reason = "a tool of the repository writes its own list")]
pub fn shrink(tree: &mut Tree, root: &Path) -> std::io::Result<()> {
    let sizes = measure(tree);
    let Some(file) = tree.files.iter_mut().find(|file| file.path == RATCHET) else {
        return Ok(());
    };
    let shrunk = |line: &str| {
        let Some((subject, allowed)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))
        else {
            return Some(format!("{line}\n"));
        };
        let size = sizes.iter().find(|size| size.subject == subject)?;
        let allowed: usize = allowed.parse().unwrap_or(size.lines);
        (size.lines > size.lines_max).then(|| format!("{subject} {}\n", size.lines.min(allowed)))
    };
    file.text = file.text.lines().filter_map(shrunk).collect();
    std::fs::write(root.join(RATCHET), &file.text)
}

fn measure(tree: &Tree) -> Vec<Size> {
    let mut sizes = Vec::new();
    for file in tree.sources() {
        sizes.push(Size {
            subject: format!("file {}", file.path),
            path: file.path.clone(),
            line: 0,
            lines: file.code_lines().count(),
            lines_max: FILE_LINES_MAX,
        });
        measure_functions(file, &mut sizes);
    }
    sizes
}

/// Finds each function's end by its indentation, which rustfmt guarantees.
fn measure_functions(file: &TextFile, sizes: &mut Vec<Size>) {
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
        sizes.push(Size {
            subject: format!("function {} {name}", file.path),
            path: file.path.clone(),
            line: number,
            lines: end.map_or(1, |end| end + 1),
            lines_max: FUNCTION_LINES_MAX,
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

/// The entries of the ratchet, `lines` being what it allows; complains of lines it cannot read.
fn ratchet(tree: &Tree, complaints: &mut Vec<Complaint>) -> Vec<Size> {
    let mut entries = Vec::new();
    let Some(file) = tree.get(RATCHET) else { return entries };
    for (number, line) in
        file.lines().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        match line.rsplit_once(' ').map(|(subject, lines)| (subject, lines.parse())) {
            Some((subject, Ok(lines))) => entries.push(Size {
                subject: subject.to_owned(),
                path: RATCHET.to_owned(),
                line: number,
                lines,
                lines_max: 0,
            }),
            _ => complaints.push(Complaint::new(
                RATCHET,
                number,
                "write `file PATH LINES` or `function PATH NAME LINES`",
            )),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/node/src/reactor.rs";

    fn function(indentation: &str, name: &str, lines: usize) -> String {
        let body = format!("{indentation}    step();\n").repeat(lines - 2);
        format!("{indentation}pub(crate) fn {name}(&self) {{\n{body}{indentation}}}\n")
    }

    fn complaints(text: &str, ratchet: &str) -> Vec<String> {
        let tree = Tree::of(&[(PATH, text), (RATCHET, ratchet)]);
        check(&tree).iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn a_long_function_is_refused_unless_the_ratchet_knows_it() {
        let text = format!("impl Reactor {{\n{}}}\n", function("    ", "turn", 71));
        let found = complaints(&text, "");
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{PATH}:2: 71 lines")),
            "{found:?}"
        );
        assert_eq!(complaints(&text, &format!("# why\nfunction {PATH} turn 71\n")), [""; 0]);
        let found = complaints(&text, &format!("function {PATH} turn 70\n"));
        assert!(found[0].contains("allows 70"), "{found:?}");
        assert_eq!(complaints(&function("", "turn", 70), ""), [""; 0]);
    }

    #[test]
    fn what_has_shrunk_must_not_grow_again() {
        let text = function("", "turn", 75);
        let found = complaints(&text, &format!("function {PATH} turn 80\n"));
        assert!(found.len() == 1 && found[0].contains("down to 75 lines"), "{found:?}");
        let found = complaints(&text, &format!("function {PATH} turn 75\nfile gone.rs 900\n"));
        assert!(found.len() == 1 && found[0].contains("down to 0 lines"), "{found:?}");
    }

    #[test]
    fn a_long_file_is_refused_but_its_tests_do_not_count() {
        let code = "const A: u8 = 1;\n".repeat(600);
        assert_eq!(complaints(&code, ""), [""; 0]);
        let found = complaints(&format!("{code}const B: u8 = 1;\n"), "");
        assert!(found[0].contains("601 lines, the limit is 600"), "{found:?}");
        let tests =
            "\n#[cfg(test)]\nmod tests {\n".to_owned() + &"    // a test\n".repeat(50) + "}\n";
        assert_eq!(complaints(&(code[..code.len() - 17].to_owned() + &tests), ""), [""; 0]);
    }

    #[test]
    fn declarations_and_one_line_functions_have_no_size() {
        let text =
            "trait Clock {\n    fn now(&self);\n    fn wide(\n        &self,\n    ) -> u64;\n}\n"
                .to_owned()
                + "fn short() {}\n"
                + &"const A: u8 = 1;\n".repeat(80)
                + "fn last() {\n}\n";
        assert_eq!(complaints(&text, ""), [""; 0]);
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
