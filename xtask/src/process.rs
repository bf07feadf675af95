//! Runs other programs: prints them before they run, gives them no standard input, and names them
//! in errors.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::checkout;

/// Returns the cargo that runs this task, with the checkout as its working directory.
///
/// It does not get what `cargo run` says of xtask's own package. The build script of ring asks for
/// these variables, so ring and all above it would be built again whenever somebody who built by
/// hand runs a task, or the other way round.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(checkout::root());
    for (name, _) in env::vars_os() {
        let of_package = |prefix: &&str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(of_package) {
            command.env_remove(&name);
        }
    }
    command
}

/// Returns the command that builds programs as the tests have them. Their packages are not named:
/// cargo selects the features of shared crates for the packages that a command names, and with
/// those of the whole workspace each time, nothing is compiled again for other features.
pub fn build_for_tests(programs: &[&str]) -> Command {
    let mut build = cargo();
    build.args(["build", "--locked", "--workspace"]);
    build.args(programs.iter().flat_map(|program| ["--bin", program]));
    build
}

/// Returns the command that builds precise as those do who build it themselves.
pub fn build_release() -> Command {
    let mut build = cargo();
    build.args(["build", "--locked", "--release", "--package", "precise-user"]);
    build
}

/// Returns this program, for programs that it starts and that start it again. Not by its path: the
/// builds of earlier steps may have put another build of xtask there, or nothing yet.
pub fn own_binary() -> PathBuf {
    PathBuf::from(format!("/proc/{}/exe", std::process::id()))
}

/// Prints the command and runs it. An exit status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", show(command));
    let status = command.stdin(Stdio::null()).status().with_context(|| cannot_start(command))?;
    if !status.success() {
        bail!("`{}` ended with {status}; what it wrote is above", show(command));
    }
    Ok(())
}

/// Runs the command and returns its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes(command)?).into_owned())
}

/// Runs the command and returns its standard output, which need not be text.
pub fn bytes(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}: {}", show(command), output.status, said.trim());
    }
    Ok(output.stdout)
}

/// Returns the command as a user would type it: environment first, program names without their
/// folder.
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

/// Finds a program in PATH or among cargo's installed binaries, which are not in every PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(checkout::cargo_home().map(|home| home.join("bin")))
        .map(|folder| folder.join(name))
        .find(|file| file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0))
}

/// Returns whether this process is root. /proc/self belongs to the effective user.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Returns why a command did not start.
pub fn cannot_start(command: &Command) -> String {
    format!("`{}` cannot be started; `cargo xtask setup` installs what is missing", show(command))
}

/// Quotes a word for the shell; the separator of cargo's encoded flags is shown as a space.
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
