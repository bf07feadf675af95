//! A process that does not outlive its test.

use std::{
    ops::{Deref, DerefMut},
    process::Child,
};

/// A child that is killed and reaped when this is dropped.
#[derive(Debug)]
pub struct KillOnDrop(Child);

impl From<Child> for KillOnDrop {
    fn from(child: Child) -> Self {
        Self(child)
    }
}

impl Deref for KillOnDrop {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for KillOnDrop {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}
