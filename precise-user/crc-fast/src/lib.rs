//! CRC-64/NVME, with the names that `object_store` uses of the crate `crc-fast`.
//!
//! `object_store` computes one checksum, and only where a user asks for it
//! (`AWS_CHECKSUM_ALGORITHM=crc64nvme`). The real crate chooses among 50 checksums at run time, so
//! that the linker keeps the tables of all of them: 706 kB of a binary that may have 15 MB.
//! `[patch.crates-io]` in the workspace's Cargo.toml puts this crate in its place. It computes 1 GB
//! in about two seconds, and a request has at most a few MB.
//!
//! ```
//! let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
//! digest.update(b"1234");
//! digest.update(b"56789");
//! assert_eq!(digest.finalize(), 0xae8b_1486_0a79_9888);
//! ```

/// The polynomial of the NVM Express command set specification, bit-reversed.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;

/// What each byte does to a checksum whose lowest byte it was.
const TABLE: [u64; 256] = table();

/// A checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrcAlgorithm {
    /// 64 bits, as NVM Express defines it and S3 takes it.
    Crc64Nvme,
}

/// A checksum while bytes are added to it.
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    state: u64,
}

impl Digest {
    /// Returns the checksum of no bytes.
    pub fn new(algorithm: CrcAlgorithm) -> Self {
        match algorithm {
            CrcAlgorithm::Crc64Nvme => Self { state: u64::MAX },
        }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let lowest = (self.state as u8) ^ byte;
            self.state = TABLE[usize::from(lowest)] ^ (self.state >> 8);
        }
    }

    /// Returns the checksum of all bytes so far.
    pub fn finalize(&self) -> u64 {
        !self.state
    }
}

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut rest = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(bytes: &[u8]) -> u64 {
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        digest.update(bytes);
        digest.finalize()
    }

    /// The examples of the specification: 4 KiB of zeros, of ones, and counting up and down.
    #[test]
    fn the_examples_of_the_specification_have_its_checksums() {
        let up: Vec<u8> = (0..4096u32).map(|at| at as u8).collect();
        let down: Vec<u8> = up.iter().map(|byte| !byte).collect();
        assert_eq!(checksum(&[0; 4096]), 0x6482_d367_eb22_b64e);
        assert_eq!(checksum(&[0xff; 4096]), 0xc0dd_ba73_02ec_a3ac);
        assert_eq!(checksum(&up), 0x3e72_9f5f_6750_449c);
        assert_eq!(checksum(&down), 0x9a2d_f64b_8e9e_517e);
        assert_eq!(checksum(b""), 0);
    }
}
