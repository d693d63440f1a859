//! The VFS: maps files to disks. Everything that it does not change is the platform's.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use rusqlite::ffi;

use super::handle::{self, Handle};
use super::lock;
use super::state::DiskState;

/// Disks that are in use.
static DISKS: Mutex<Vec<Weak<Mutex<DiskState>>>> = Mutex::new(Vec::new());

/// The VFS that was the default before.
static PLATFORM: OnceLock<Platform> = OnceLock::new();

struct Platform(*mut ffi::sqlite3_vfs);

// SAFETY: a registered VFS lives for ever and is never changed, and SQLite itself calls it from any
// thread.
unsafe impl Send for Platform {}
// SAFETY: as above.
unsafe impl Sync for Platform {}

/// Make our VFS the default of the process, once.
pub(super) fn install() {
    PLATFORM.get_or_init(|| {
        // SAFETY: the name may be null, which asks for the default. What it gives is null or a VFS
        // that stays registered.
        let platform = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        assert!(!platform.is_null(), "SQLite has no default VFS");
        // SAFETY: it is not null, and nothing writes to it. The copy shares its functions: those
        // that we leave alone find in the copy the very values that they would find in the original.
        let mut ours = unsafe { *platform };
        ours.pNext = std::ptr::null_mut();
        ours.zName = c"throughline-disk".as_ptr();
        ours.szOsFile += handle::SIZE;
        ours.xOpen = Some(open);
        ours.xDelete = Some(delete);
        // SAFETY: it is leaked, so it lives as long as SQLite may call it.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(ours)), 1) };
        assert_eq!(code, ffi::SQLITE_OK, "SQLite takes no VFS");
        throughline_store::trials::sync_by(sync);
        Platform(platform)
    });
}

/// Adds a disk on which files are looked up from now on.
pub(super) fn mount(state: &Arc<Mutex<DiskState>>) {
    let mut disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    disks.retain(|disk| disk.strong_count() > 0);
    disks.push(Arc::downgrade(state));
}

/// The disk that a file is on.
fn disk_of(path: &Path) -> Option<Arc<Mutex<DiskState>>> {
    let disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut living = disks.iter().rev().filter_map(Weak::upgrade);
    living.find(|disk| lock(disk).covers(path))
}

/// Syncs a log that the store syncs without SQLite, if it is on one of our disks.
fn sync(path: &Path) -> Option<io::Result<()>> {
    let disk = disk_of(path)?;
    let code = lock(&disk).sync_log(path);
    Some(match code {
        ffi::SQLITE_OK => Ok(()),
        _ => Err(io::Error::other("the disk was told to fail")),
    })
}

fn platform() -> *mut ffi::sqlite3_vfs {
    PLATFORM.get().map_or(std::ptr::null_mut(), |it| it.0)
}

/// The path that SQLite means; temporary files have none.
///
/// # Safety
///
/// `name` is null or a C string.
unsafe fn path_of(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: it is a C string, as SQLite says.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str().ok().map(PathBuf::from)
}

/// `xOpen`.
///
/// # Safety
///
/// As SQLite calls it: `file` has `szOsFile` bytes, the other pointers are valid or null.
unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let platform = platform();
    // SAFETY: `install` found it before it registered this function. `file` is larger than the
    // platform needs, with or without our part before it.
    unsafe {
        let Some(open) = (*platform).xOpen else {
            return ffi::SQLITE_CANTOPEN;
        };
        (*file).pMethods = std::ptr::null();
        let path = path_of(name);
        let Some((path, disk)) = path.and_then(|path| disk_of(&path).map(|disk| (path, disk)))
        else {
            // Not ours: from here on SQLite uses the platform's methods.
            return open(platform, name, file, flags, out);
        };
        let real = handle::real(file);
        let opened = lock(&disk).open(&path, handle::syncs_names(flags), || {
            open(platform, name, real, flags, out)
        });
        match opened {
            Ok(no) => {
                handle::put(file, Handle::new(disk, no, flags));
                ffi::SQLITE_OK
            }
            Err(code) => code,
        }
    }
}

/// `xDelete`.
///
/// # Safety
///
/// As SQLite calls it: `name` is a C string.
unsafe extern "C" fn delete(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync_names: c_int,
) -> c_int {
    let platform = platform();
    // SAFETY: `install` found it before it registered this function; `name` is passed on.
    unsafe {
        let Some(delete) = (*platform).xDelete else {
            return ffi::SQLITE_IOERR_DELETE;
        };
        let path = path_of(name);
        match path.and_then(|path| disk_of(&path).map(|disk| (path, disk))) {
            None => delete(platform, name, sync_names),
            // The platform need not sync the directory, because the model does.
            Some((path, disk)) => {
                lock(&disk).delete(&path, sync_names != 0, || delete(platform, name, 0))
            }
        }
    }
}
