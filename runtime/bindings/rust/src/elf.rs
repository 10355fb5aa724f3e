// SPDX-License-Identifier: MIT
//! Is a module's file whole? dlopen maps what its header says: the first access beyond the end raises SIGBUS.
use std::fs::File;
use std::io::Read;

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(size)?)?;
    Some(field.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

/// The bytes that a little-endian ELF file of 64 bits has at least, by its header. None: dlopen knows better.
fn bytes_due(start: &[u8]) -> Option<u64> {
    const LOADED: u64 = 1;
    if !start.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (number(start, 32, 8)?, number(start, 54, 2)?, number(start, 56, 2)?);
    let mut due = table.checked_add(size * count)?;
    for i in 0..count {
        let at = usize::try_from(table.checked_add(i * size)?).ok()?;
        let segment = start.get(at..)?;
        if number(segment, 0, 4)? == LOADED {
            due = due.max(number(segment, 8, 8)?.checked_add(number(segment, 32, 8)?)?);
        }
    }
    Some(due)
}

/// Is there something else than a file? A pipe would be waited for.
pub fn is_no_file(path: &str) -> bool {
    std::fs::metadata(path).map_or(false, |found| !found.is_file())
}

/// What is due and what is there, if that is less.
pub fn cut_short(path: &str) -> Option<(u64, u64)> {
    const START: u64 = 65536;
    let file = File::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    let mut start = Vec::new();
    file.take(START).read_to_end(&mut start).ok()?;
    let due = bytes_due(&start)?;
    if bytes < due {
        Some((due, bytes))
    } else {
        None
    }
}
