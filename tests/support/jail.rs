//! What a tenant of a machine has: programs run as a user without rights, in namespaces and a root
//! folder of their own.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Result, ensure};
use tempfile::TempDir;

use crate::program;

/// The program of the host that starts a program of a jail, with [`Jail::arguments`].
pub const STARTER: &str = "setpriv";

/// Its first arguments. The user has no capability and can gain none, and creates a user namespace,
/// which gives no right on the host.
const TENANT: [&str; 13] = [
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "--no-new-privs",
    "unshare",
    "--user",
    "--mount",
    "--pid",
    "--ipc",
    "--net",
    "--fork",
];

/// A root folder for tenants, removed when this is dropped. They may write anywhere in it.
#[derive(Debug)]
pub struct Jail(TempDir);

impl Jail {
    /// Creates an empty jail.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder cannot be created.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let temporary = folder.path().join("tmp");
        fs::create_dir(&temporary)?;
        for folder in [folder.path(), &temporary] {
            fs::set_permissions(folder, Permissions::from_mode(0o777))?;
        }
        Ok(Self(folder))
    }

    /// Returns the folder that is the root of the tenants.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Compiles a C program that needs no other file. `options` are further ones of the compiler.
    ///
    /// # Errors
    ///
    /// Returns the compiler's errors.
    pub fn c(&self, name: &str, source: &str, options: &[&str]) -> Result<PathBuf> {
        program::c_with(&[&["-static"], options].concat(), self.folder(), name, source)
    }

    /// Returns the arguments of [`STARTER`] that run a program of the jail; its own may follow.
    pub fn arguments<'a>(&'a self, program: &'a str) -> impl Iterator<Item = &'a OsStr> {
        let root = ["--root".as_ref(), self.folder().as_os_str(), program.as_ref()];
        TENANT.iter().map(OsStr::new).chain(root)
    }

    /// Starts a program of the jail.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Result<Child> {
        let mut command = Command::new(STARTER);
        command.args(self.arguments(program)).args(arguments).current_dir("/").stdin(Stdio::null());
        Ok(command.spawn()?)
    }

    /// Runs a program of the jail to its end.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not exit with 0.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let status = self.start(program, arguments)?.wait()?;
        ensure!(status.success(), "{program} in its jail: {status}");
        Ok(())
    }
}
