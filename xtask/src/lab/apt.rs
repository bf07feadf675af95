//! Downloads Debian packages with a private apt configuration. It neither reads nor changes the
//! host's own apt state, except that it uses the mirrors and keys of the host's sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::sh;

/// A private apt for one or two Debian suites.
pub struct Apt {
    dir: PathBuf,
}

/// A Debian source of the host.
#[derive(Debug, Clone, PartialEq)]
struct Source {
    uris: String,
    suites: String,
    signed_by: String,
}

impl Apt {
    /// Creates an apt in `dir` for `suites`, and fetches their package lists.
    pub fn new(dir: PathBuf, suites: &[&str]) -> Result<Self> {
        Self::of("deb", dir, suites)
    }

    /// Creates an apt in `dir` for the source packages of this machine's Debian, and fetches their
    /// list.
    pub fn of_sources(dir: PathBuf) -> Result<Self> {
        Self::of("deb-src", dir, &[&host_codename()])
    }

    fn of(types: &str, dir: PathBuf, suites: &[&str]) -> Result<Self> {
        let sources = host_sources()?;
        let mut stanzas = String::new();
        for suite in suites {
            let security = suite.ends_with("-security");
            let source = sources
                .iter()
                .find(|s| s.suites.split_whitespace().any(|name| name.ends_with("-security") == security))
                .with_context(|| format!("no Debian source for {suite} in /etc/apt"))?;
            let uris = &source.uris;
            stanzas += &format!("Types: {types}\nURIs: {uris}\nSuites: {suite}\nComponents: main\n");
            if !source.signed_by.is_empty() {
                stanzas += &format!("Signed-By: {}\n", source.signed_by);
            }
            stanzas.push('\n');
        }
        for sub in ["state/lists/partial", "cache/archives/partial", "sources"] {
            fs::create_dir_all(dir.join(sub))?;
        }
        fs::write(dir.join("sources/lab.sources"), stanzas)?;
        let apt = Self { dir };
        sh::run(apt.command("apt-get").args(["-q", "update"]))?;
        Ok(apt)
    }

    fn command(&self, name: &str) -> Command {
        let option = |key: &str, path: &str| format!("{key}={}", self.dir.join(path).display());
        let mut command = Command::new(name);
        command.args([
            "-o",
            "Dir::Etc::sourcelist=/dev/null",
            "-o",
            &option("Dir::Etc::sourceparts", "sources"),
            "-o",
            &option("Dir::State", "state"),
            "-o",
            "Dir::State::status=/dev/null",
            "-o",
            &option("Dir::Cache", "cache"),
            "-o",
            "APT::Sandbox::User=root",
        ]);
        command
    }

    /// Returns the first dependency of `package` whose name starts with `prefix`. This is how the
    /// meta package linux-image-cloud-amd64 names the current kernel.
    pub fn dependency(&self, package: &str, prefix: &str) -> Result<String> {
        self.dependencies(package)?
            .into_iter()
            .find(|name| name.starts_with(prefix))
            .with_context(|| format!("{package} depends on no {prefix}…"))
    }

    /// Returns the packages that `package` depends on, without alternatives to others.
    pub fn dependencies(&self, package: &str) -> Result<Vec<String>> {
        let text = sh::stdout(self.command("apt-cache").args(["depends", package]))?;
        let text = String::from_utf8_lossy(&text);
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(names.map(str::to_owned).collect())
    }

    /// Downloads the source of a package into `dir`, and unpacks what its authors released into the
    /// folder `name` in it. Debian's patches are not applied.
    pub fn source(&self, dir: &Path, package: &str, name: &str) -> Result<()> {
        fs::create_dir_all(dir)?;
        let fetch = ["-q", "source", "--download-only", package];
        sh::run(self.command("apt-get").args(fetch).current_dir(dir))?;
        let list = sh::stdout(self.command("apt-cache").args(["showsrc", package]))?;
        let list = String::from_utf8_lossy(&list).into_owned();
        let words = list.split_whitespace();
        let released = words
            .filter(|word| dir.join(word).exists())
            .find(|file| file.contains(".orig.tar.") && !file.ends_with(".asc"))
            .with_context(|| format!("the source of {package} has no archive of its authors"))?;
        let unpacked = dir.join(format!("{name}.partial"));
        fs::create_dir_all(&unpacked)?;
        let archive = dir.join(released);
        sh::run(
            Command::new("tar").arg("-xf").arg(archive).args(["--strip-components=1", "-C"]).arg(&unpacked),
        )?;
        fs::rename(&unpacked, dir.join(name))?;
        Ok(())
    }

    /// Downloads a package of one suite with all that it depends on, and returns the files.
    pub fn with_dependencies(&self, package: &str, suite: &str) -> Result<Vec<PathBuf>> {
        let wanted = format!("{package}/{suite}");
        let fetch = ["-q", "-y", "--download-only", "--no-install-recommends", "install", &wanted];
        sh::run(self.command("apt-get").args(fetch))?;
        let packages = fs::read_dir(self.dir.join("cache/archives"))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(packages.into_iter().filter(|path| path.extension().is_some_and(|name| name == "deb")).collect())
    }

    /// Downloads packages into `dir` and returns their files, in the given order.
    pub fn download(&self, dir: &Path, packages: &[String]) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(dir)?;
        sh::run(self.command("apt-get").args(["-q", "download"]).args(packages).current_dir(dir))?;
        let files: Vec<PathBuf> =
            fs::read_dir(dir)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
        packages
            .iter()
            .map(|package| {
                let prefix = format!("{package}_");
                files
                    .iter()
                    .find(|f| f.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&prefix)))
                    .cloned()
                    .with_context(|| format!("apt downloaded no {package}"))
            })
            .collect()
    }
}

/// Returns the Debian sources of this machine, from both of apt's formats.
fn host_sources() -> Result<Vec<Source>> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(dir) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(dir.flatten().map(|entry| entry.path()));
    }
    let mut sources = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        match file.extension().and_then(|e| e.to_str()) {
            Some("sources") => sources.extend(parse_deb822(&text)),
            Some("list") => sources.extend(parse_one_line(&text)),
            _ => {}
        }
    }
    // A third-party repository would not have Debian's suites.
    let codename = host_codename();
    sources.retain(|s| s.suites.split_whitespace().any(|suite| suite.split('-').next() == Some(&codename)));
    if sources.is_empty() {
        bail!("the lab needs Debian kernels, and no source in /etc/apt names the suite {codename:?}");
    }
    Ok(sources)
}

fn host_codename() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .unwrap_or_default()
        .trim_matches('"')
        .to_owned()
}

fn parse_deb822(text: &str) -> Vec<Source> {
    text.split("\n\n")
        .filter_map(|stanza| {
            let field = |key: &str| {
                stanza.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case(key).then(|| value.trim().to_owned())
                })
            };
            let components = field("Components")?;
            (field("Enabled").as_deref() != Some("no") && components.split_whitespace().any(|c| c == "main"))
                .then_some(())?;
            Some(Source {
                uris: field("URIs")?,
                suites: field("Suites")?,
                signed_by: field("Signed-By").unwrap_or_default(),
            })
        })
        .collect()
}

fn parse_one_line(text: &str) -> Vec<Source> {
    text.lines()
        .filter_map(|line| {
            let mut rest = line.trim().strip_prefix("deb ")?.trim();
            let mut signed_by = String::new();
            if let Some((options, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
                signed_by = options
                    .split_whitespace()
                    .find_map(|o| o.strip_prefix("signed-by="))
                    .unwrap_or_default()
                    .to_owned();
                rest = after.trim();
            }
            let mut words = rest.split_whitespace();
            let (uri, suite) = (words.next()?, words.next()?);
            words.any(|component| component == "main").then(|| Source {
                uris: uri.to_owned(),
                suites: suite.to_owned(),
                signed_by,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uris: &str, suites: &str, signed_by: &str) -> Source {
        Source { uris: uris.into(), suites: suites.into(), signed_by: signed_by.into() }
    }

    #[test]
    fn deb822_stanzas_are_read_and_disabled_ones_skipped() {
        let text = "Types: deb\n# a comment: with a colon\nURIs: http://a/debian\nSuites: bookworm bookworm-updates\n\
                    Components: main contrib\nSigned-By: /k.gpg\n\nEnabled: no\nTypes: deb\nURIs: http://b\nSuites: x\n\
                    Components: main\n";
        assert_eq!(parse_deb822(text), [source("http://a/debian", "bookworm bookworm-updates", "/k.gpg")]);
    }

    #[test]
    fn one_line_sources_are_read_with_their_key() {
        let text = "# deb http://no main\ndeb [arch=amd64 signed-by=/k.gpg] http://a/debian trixie main\ndeb http://b trixie contrib\n";
        assert_eq!(parse_one_line(text), [source("http://a/debian", "trixie", "/k.gpg")]);
    }
}
