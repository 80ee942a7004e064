//! Both stores against the one suite.

use std::sync::{Mutex, PoisonError};

use outlast_store::conformance::{Place, conformance};
use outlast_store::{FjallStore, MemoryStore, OpenOptions, Store};
use tempfile::TempDir;

struct Directory(TempDir);

impl Place for Directory {
    fn open(&self) -> Box<dyn Store> {
        let opened = FjallStore::open(self.0.path(), OpenOptions::default());
        let (store, opened) = opened.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(opened.torn_bytes, 0);
        Box::new(store)
    }
}

struct Memory(Mutex<MemoryStore>);

impl Place for Memory {
    fn open(&self) -> Box<dyn Store> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = last.crash();
        Box::new(last.clone())
    }
}

#[test]
fn the_store_on_disk_conforms() {
    conformance(&|| Box::new(Directory(TempDir::new().unwrap())));
}

#[test]
fn the_store_in_memory_conforms() {
    conformance(&|| Box::new(Memory(Mutex::default())));
}
