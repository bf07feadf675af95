//! Running other programs: shown before they run, without standard input, and with errors that name
//! them.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::checkout;

/// The cargo that runs this task, at work in the checkout.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(checkout::root());
    command
}

/// Shows the command, runs it, and takes an exit status other than 0 as an error.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", show(command));
    let status = command.stdin(Stdio::null()).status().with_context(|| cannot_start(command))?;
    if !status.success() {
        bail!("`{}` ended with {status}; what it wrote is above", show(command));
    }
    Ok(())
}

/// What the command writes to standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}: {}", show(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it: environment first, program names without their folder.
pub fn show(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quote(value)));
        }
    }
    words.push(quote(Path::new(command.get_program()).file_name().unwrap_or(command.get_program())));
    words.extend(command.get_args().map(quote));
    words.join(" ")
}

/// The program in PATH or among cargo's installed binaries, which not every PATH holds.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(checkout::cargo_home().map(|home| home.join("bin")))
        .map(|folder| folder.join(name))
        .find(|file| file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0))
}

/// Whether this process has root's rights. /proc/self belongs to the effective user.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

fn cannot_start(command: &Command) -> String {
    format!("`{}` cannot be started; `cargo xtask setup` installs what is missing", show(command))
}

/// A word as the shell reads it back; the separator of cargo's encoded flags is shown as a space.
fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy().replace('\x1f', " ");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_typed() {
        let mut command = Command::new("/usr/bin/apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "it's", "a b"]);
        assert_eq!(show(&command), r"DEBIAN_FRONTEND=noninteractive apt-get install -y 'it'\''s' 'a b'");
    }

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("why"), "{error}");
        let error = format!("{:#}", run(&mut Command::new("/nonexistent/tool")).unwrap_err());
        assert!(error.contains("`tool` cannot be started"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_found() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
