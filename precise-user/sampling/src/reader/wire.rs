//! Messages over a socket, with descriptors.
//!
//! A message is its length in bytes (32 bits) and its content, in the format of postcard. The
//! descriptors come with the first byte.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Serialize, de::DeserializeOwned};

/// Maximum number of bytes of a message.
pub const MAX_MESSAGE: usize = 32 << 20;
/// Maximum number of descriptors of a message.
pub const MAX_DESCRIPTORS: usize = 2;

/// Sends a message.
pub fn send<T: Serialize>(
    socket: &UnixStream,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    bytes = postcard::to_extend(message, bytes).map_err(io::Error::other)?;
    let length = bytes.len() - 4;
    let field = u32::try_from(length).ok().filter(|_| length <= MAX_MESSAGE);
    let field = field.ok_or_else(|| io::Error::other(format!("a message of {length} bytes is too long")))?;
    let (head, _) = bytes.split_at_mut(4);
    head.copy_from_slice(&field.to_le_bytes());

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for a message"));
    }
    let sent = loop {
        match sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut rest = socket;
    rest.write_all(bytes.get(sent..).unwrap_or_default())
}

/// Waits for a message. `ready` is called before each read that may block, and ends the wait by an
/// error.
pub fn receive<T: DeserializeOwned>(
    socket: &UnixStream,
    mut ready: impl FnMut() -> io::Result<()>,
) -> io::Result<(T, Vec<File>)> {
    let mut head = [0; 4];
    let mut descriptors = Vec::new();
    ready()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut head)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?.bytes,
        }
    };
    if got == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received.map(|fd: OwnedFd| File::from(fd)));
        }
    }
    fill(socket, head.get_mut(got..).unwrap_or_default(), &mut ready)?;
    let length = u32::from_le_bytes(head) as usize;
    if length > MAX_MESSAGE {
        return Err(io::Error::other(format!("a message claims to have {length} bytes")));
    }
    let mut content = vec![0; length];
    fill(socket, &mut content, &mut ready)?;
    Ok((postcard::from_bytes(&content).map_err(io::Error::other)?, descriptors))
}

fn fill(
    mut socket: &UnixStream,
    mut buffer: &mut [u8],
    ready: &mut impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    while !buffer.is_empty() {
        ready()?;
        match socket.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => buffer = buffer.get_mut(got..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
