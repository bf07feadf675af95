//! Text from untrusted names, made safe for a terminal, and cut to a width.

use unicode_width::UnicodeWidthChar;

/// The place where a text that is too long loses characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In the middle: for functions, whose start and end both matter.
    Middle,
    /// At the start: for paths, whose end matters most.
    Start,
    /// At the end.
    End,
}

/// Returns `text` with every character that a terminal acts on replaced by `�`: control characters
/// (and with them every escape sequence), and characters that reverse or hide the text around them
/// (bidirectional, zero-width, line separators).
///
/// The profiled programs choose the process names, cgroups, paths and symbols, so they cannot be
/// trusted.
pub fn sanitize(text: &str) -> String {
    text.chars().map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns whether a character must not reach a terminal or a page: a control character, a
/// character that reverses or hides text, or a noncharacter.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{ad}' | '\u{180e}'
            | '\u{fdd0}'..='\u{fdef}')
        // The last two code points of each plane are noncharacters.
        || (c as u32) & 0xfffe == 0xfffe
}

/// Returns a file name as a shell takes it: in quotes, unless it needs none.
pub fn quoted(file: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !file.is_empty() && file.chars().all(plain) {
        file.to_owned()
    } else {
        format!("'{}'", file.replace('\'', r"'\''"))
    }
}

/// Returns a sentence with a full stop at its end.
pub fn ending(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Returns the number of columns that `text` takes.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Returns `text` in at most `columns`, with `…` in place of what was cut.
pub fn fit(text: &str, columns: usize, cut: Cut) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(rest) = columns.checked_sub(1) else { return String::new() };
    let tail = match cut {
        Cut::Start => rest,
        Cut::Middle => rest / 2,
        Cut::End => 0,
    };
    let head: String = take(text.chars(), rest - tail).collect();
    let mut end: Vec<char> = take(text.chars().rev(), tail).collect();
    end.reverse();
    head + "…" + &end.into_iter().collect::<String>()
}

/// Takes characters from the front, up to `columns`.
fn take(chars: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    chars
        .scan(0, |used, c| {
            *used += char_width(c);
            Some((*used, c))
        })
        .take_while(move |(used, _)| *used <= columns)
        .map(|(_, c)| c)
}

/// Wraps `text` in lines of at most `columns`, broken at spaces; all lines but the first are
/// indented by `indent` spaces. A word that is longer than a line is not broken.
pub fn wrap(text: &str, columns: usize, indent: usize) -> String {
    wrap_after("", text, columns, indent)
}

/// Wraps like [`wrap`], with `before` in front of the first line. Runs of spaces in `before` are
/// kept, because they align columns.
pub fn wrap_after(before: &str, text: &str, columns: usize, indent: usize) -> String {
    let begin = width(before);
    let room = |number| columns.saturating_sub(if number == 0 { begin } else { indent });
    let lines = lines(text, |number, line| width(line) <= room(number));
    before.to_owned() + &lines.join(&format!("\n{:indent$}", ""))
}

/// Splits `text` into lines, each with as many words as fit. `fits` gets the number of a line, from
/// 0, and its text. A word that does not fit gets a line of its own.
pub fn lines(text: &str, fits: impl Fn(usize, &str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let before = line.len();
        if before > 0 {
            line.push(' ');
        }
        line += word;
        if before > 0 && !fits(lines.len(), &line) {
            line.truncate(before);
            lines.push(std::mem::replace(&mut line, word.to_owned()));
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminals_get_no_orders() {
        assert_eq!(sanitize("a\x1b[31mb\r\n\u{9b}c"), "a\u{fffd}[31mb\u{fffd}\u{fffd}\u{fffd}c");
        assert_eq!(sanitize("user\u{202e}gnp.exe"), "user\u{fffd}gnp.exe");
        assert_eq!(sanitize("größe 中文"), "größe 中文");
    }

    #[test]
    fn a_shell_takes_a_quoted_name_as_one_word() {
        assert_eq!(quoted("/srv/app-1.2/src"), "/srv/app-1.2/src");
        assert_eq!(quoted("/tmp/o'brien; $(id)"), r"'/tmp/o'\''brien; $(id)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn long_names_keep_what_matters() {
        assert_eq!(fit("alloc::vec::Vec<T>::push", 12, Cut::Middle), "alloc:…:push");
        assert_eq!(fit("/home/me/src/deep/file.c:120", 12, Cut::Start), "…/file.c:120");
        assert_eq!(fit("abcdef", 4, Cut::End), "abc…");
        assert_eq!(fit("中文中文", 5, Cut::Middle), "中…文");
        assert_eq!(fit("abc", 0, Cut::End), "");
    }

    #[test]
    fn sentences_wrap() {
        assert_eq!(wrap("one two three four", 9, 2), "one two\n  three\n  four");
        assert_eq!(wrap("one  two", 1, 0), "one\ntwo");
        assert_eq!(wrap_after("  a    ", "one two three", 12, 4), "  a    one\n    two\n    three");
        assert_eq!((wrap("", 9, 2), wrap_after("  ", "", 9, 4)), (String::new(), "  ".to_owned()));
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_asked(text in ".*", columns in 0usize..40) {
            for cut in [Cut::Middle, Cut::Start, Cut::End] {
                prop_assert!(width(&fit(&text, columns, cut)) <= columns);
            }
        }
    }
}
