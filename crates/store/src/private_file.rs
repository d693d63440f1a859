use std::fs::{File, OpenOptions};
use std::path::Path;

/// Make a new file that only its owner can read and write. What SQLite puts beside a database file
/// has the permissions of that file.
///
/// ```
/// let folder = std::env::temp_dir().join(format!("throughline-private-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let path = folder.join("export.ndjson");
/// drop(throughline_store::create_private(&path)?);
/// # #[cfg(unix)]
/// # {
/// use std::os::unix::fs::PermissionsExt;
/// assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
/// # }
/// std::fs::remove_dir_all(folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn create_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}
