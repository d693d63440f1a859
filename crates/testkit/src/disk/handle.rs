//! Files as SQLite uses them: our part, followed by the platform's file, which does the work.
//!
//! Every function here is called by SQLite only, with a file that `open` of our VFS has filled in
//! and that is not closed yet. That is what "as SQLite calls it" means below.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use rusqlite::ffi::{self, sqlite3_file};

use super::directory::FileNo;
use super::fault::FileKind;
use super::lock;
use super::state::DiskState;

/// What we know of an open file.
pub(super) struct Handle {
    disk: Arc<Mutex<DiskState>>,
    file: (FileNo, FileKind),
}

impl Handle {
    pub(super) fn new(disk: Arc<Mutex<DiskState>>, no: FileNo, flags: c_int) -> Self {
        let place = if flags & ffi::SQLITE_OPEN_WAL != 0 {
            FileKind::Log
        } else if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
            FileKind::Main
        } else {
            FileKind::Anywhere
        };
        Self {
            disk,
            file: (no, place),
        }
    }
}

/// Whether the platform syncs the directory with the first sync of such a file, if it is new.
pub(super) fn syncs_names(flags: c_int) -> bool {
    let such =
        ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL;
    flags & such != 0
}

/// Our part of a file.
#[repr(C)]
struct Front {
    base: sqlite3_file,
    handle: *mut Handle,
}

/// The size of our part, rounded so that the platform's is aligned.
pub(super) const SIZE: c_int = 32;
const _: () = assert!(size_of::<Front>() <= SIZE as usize && SIZE % 16 == 0);

/// The platform's part of a file.
///
/// # Safety
///
/// `file` has room for both parts.
pub(super) unsafe fn real(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: it is within the file.
    unsafe { file.byte_add(SIZE as usize) }
}

/// Fill in our part.
///
/// # Safety
///
/// `file` has room for both parts and is not filled in yet.
pub(super) unsafe fn put(file: *mut sqlite3_file, handle: Handle) {
    let front = Front {
        base: sqlite3_file {
            pMethods: &raw const METHODS,
        },
        handle: Box::into_raw(Box::new(handle)),
    };
    // SAFETY: there is room for it, and SQLite aligns files to eight bytes.
    unsafe { file.cast::<Front>().write(front) };
}

/// Our part of a file.
///
/// # Safety
///
/// As SQLite calls it. The handle must not be used once the file is closed.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a Handle {
    // SAFETY: `put` filled it in, and it is not closed.
    unsafe { &*(*file.cast::<Front>()).handle }
}

/// Call a method of the platform's file.
macro_rules! platform {
    ($file:expr, $method:ident, $missing:expr $(, $argument:expr)*) => {{
        let file = real($file);
        match (*(*file).pMethods).$method {
            Some(method) => method(file $(, $argument)*),
            None => $missing,
        }
    }};
}

/// Version 2: with shared memory, without memory-mapped I/O.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock_file),
    xUnlock: Some(unlock_file),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: as SQLite calls it, and it does not use the file afterwards.
    unsafe {
        let code = platform!(file, xClose, ffi::SQLITE_IOERR_CLOSE);
        drop(Box::from_raw((*file.cast::<Front>()).handle));
        code
    }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    to: *mut c_void,
    size: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: as SQLite calls it; `to` has `size` bytes.
    unsafe {
        let handle = handle(file);
        let code = lock(&handle.disk).read(handle.file.1);
        if code != ffi::SQLITE_OK {
            return code;
        }
        platform!(file, xRead, ffi::SQLITE_IOERR_READ, to, size, at)
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    size: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    let (Ok(length), Ok(place)) = (usize::try_from(size), usize::try_from(at)) else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: as SQLite calls it; `from` has `size` bytes, and what is written is a part of them.
    unsafe {
        let handle = handle(file);
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), length);
        lock(&handle.disk).write(handle.file, place, bytes, |part| {
            let size = c_int::try_from(part.len()).unwrap_or(size);
            let from = part.as_ptr().cast();
            platform!(file, xWrite, ffi::SQLITE_IOERR_WRITE, from, size, at)
        })
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    let Ok(length) = usize::try_from(size) else {
        return ffi::SQLITE_IOERR_TRUNCATE;
    };
    // SAFETY: as SQLite calls it.
    unsafe {
        let handle = handle(file);
        lock(&handle.disk).truncate(handle.file, length, || {
            platform!(file, xTruncate, ffi::SQLITE_IOERR_TRUNCATE, size)
        })
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: as SQLite calls it.
    let handle = unsafe { handle(file) };
    // The platform is not called: the model tracks what is synced, and a real sync would cost most
    // of the time.
    lock(&handle.disk).sync(handle.file)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, to: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: as SQLite calls it; `to` is valid.
    unsafe {
        if lock(&handle(file).disk).is_cut() {
            return ffi::SQLITE_IOERR_FSTAT;
        }
        platform!(file, xFileSize, ffi::SQLITE_IOERR_FSTAT, to)
    }
}

unsafe extern "C" fn lock_file(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: as SQLite calls it.
    unsafe {
        if lock(&handle(file).disk).is_cut() {
            return ffi::SQLITE_IOERR_LOCK;
        }
        platform!(file, xLock, ffi::SQLITE_IOERR_LOCK, level)
    }
}

/// Works also after a cut: a connection that waits for the lock must see the cut.
unsafe extern "C" fn unlock_file(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: as SQLite calls it.
    unsafe { platform!(file, xUnlock, ffi::SQLITE_IOERR_UNLOCK, level) }
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, to: *mut c_int) -> c_int {
    let missing = ffi::SQLITE_IOERR_CHECKRESERVEDLOCK;
    // SAFETY: as SQLite calls it; `to` is valid.
    unsafe { platform!(file, xCheckReservedLock, missing, to) }
}

unsafe extern "C" fn file_control(
    file: *mut sqlite3_file,
    what: c_int,
    argument: *mut c_void,
) -> c_int {
    if what == ffi::SQLITE_FCNTL_MMAP_SIZE {
        return ffi::SQLITE_NOTFOUND;
    }
    // SAFETY: as SQLite calls it; what the argument is depends on what is asked for.
    unsafe { platform!(file, xFileControl, ffi::SQLITE_NOTFOUND, what, argument) }
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    // SAFETY: as SQLite calls it.
    unsafe { platform!(file, xSectorSize, 0) }
}

/// Of the optional guarantees of a file system, this disk gives one: a write does not damage
/// neighbouring data.
unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: as SQLite calls it.
    let all = unsafe { platform!(file, xDeviceCharacteristics, 0) };
    all & ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    to: *mut *mut c_void,
) -> c_int {
    // SAFETY: as SQLite calls it; `to` is valid.
    unsafe {
        if lock(&handle(file).disk).is_cut() {
            return ffi::SQLITE_IOERR_SHMMAP;
        }
        platform!(
            file,
            xShmMap,
            ffi::SQLITE_IOERR_SHMMAP,
            page,
            size,
            extend,
            to
        )
    }
}

unsafe extern "C" fn shm_lock(
    file: *mut sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: as SQLite calls it.
    unsafe {
        let may_lock = lock(&handle(file).disk).lock();
        if !may_lock && flags & ffi::SQLITE_SHM_UNLOCK == 0 {
            return ffi::SQLITE_IOERR_SHMLOCK;
        }
        platform!(
            file,
            xShmLock,
            ffi::SQLITE_IOERR_SHMLOCK,
            first,
            count,
            flags
        )
    }
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: as SQLite calls it.
    unsafe { platform!(file, xShmBarrier, ()) }
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: as SQLite calls it.
    unsafe { platform!(file, xShmUnmap, ffi::SQLITE_OK, delete) }
}
