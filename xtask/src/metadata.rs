//! What `cargo metadata` says about the packages of a workspace.

use std::borrow::Cow;
use std::path::Path;

use crate::json::{self, Value};
use crate::tool::{self, Failure};

/// A package and what it declares to need.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// The folder of a package of ours, as `crates/model`; None for a package from a registry.
    pub(crate) folder: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
    /// The folder it is taken from, when that is one of ours.
    pub(crate) folder: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Dev,
    Build,
}

/// Reads the packages of the workspace whose manifest is at `manifest`, itself and all it needs.
pub(crate) fn read(manifest: &Path) -> Result<Vec<Package>, Failure> {
    let text = tool::output(
        tool::cargo()
            .args([
                "metadata",
                "--format-version",
                "1",
                "--locked",
                "--manifest-path",
            ])
            .arg(manifest),
    )?;
    let root = tool::root().to_string_lossy().into_owned();
    packages(&text, &root)
}

fn packages(text: &str, root: &str) -> Result<Vec<Package>, Failure> {
    let document = json::parse(text)
        .map_err(|error| Failure::new(format!("cargo metadata cannot be read: {error}")))?;
    let packages = document.get("packages").and_then(Value::as_array);
    let packages = packages.ok_or_else(|| Failure::new("cargo metadata holds no packages"))?;
    Ok(packages.iter().map(|value| package(value, root)).collect())
}

fn package(value: &Value<'_>, root: &str) -> Package {
    let ours = value.get("source").is_none_or(Value::is_null);
    let manifest = string(value, "manifest_path").unwrap_or_default();
    let folder = manifest
        .strip_suffix("Cargo.toml")
        .map(|folder| relative(folder, root));
    let dependencies = value
        .get("dependencies")
        .and_then(Value::as_array)
        .unwrap_or_default();
    Package {
        name: string(value, "name").unwrap_or_default(),
        version: string(value, "version").unwrap_or_default(),
        licence: string(value, "license"),
        folder: folder.filter(|_| ours),
        dependencies: dependencies
            .iter()
            .map(|value| dependency(value, root))
            .collect(),
    }
}

fn dependency(value: &Value<'_>, root: &str) -> Dependency {
    Dependency {
        name: string(value, "name").unwrap_or_default(),
        kind: match string(value, "kind").as_deref() {
            Some("dev") => DependencyKind::Dev,
            Some("build") => DependencyKind::Build,
            _ => DependencyKind::Normal,
        },
        folder: string(value, "path").map(|path| relative(&path, root)),
    }
}

fn string(value: &Value<'_>, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(Cow::into_owned)
}

fn relative(path: &str, root: &str) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .replace('\\', "/")
        .trim_matches('/')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{DependencyKind, packages};

    #[test]
    fn packages_carry_their_folder_licence_and_needs() {
        let text = r#"{"packages":[
            {"name":"a","version":"1.2.3","source":null,"license":"MIT","manifest_path":"/x/crates/a/Cargo.toml",
             "dependencies":[{"name":"b","kind":"dev","path":"/x/crates/b"},{"name":"c","kind":null}]},
            {"name":"c","version":"2.0.0","source":"registry+x","license":null,"manifest_path":"/y/c/Cargo.toml",
             "dependencies":[]}]}"#;
        let read = packages(text, "/x").unwrap();
        assert_eq!(read[0].folder.as_deref(), Some("crates/a"));
        assert_eq!(read[0].licence.as_deref(), Some("MIT"));
        assert_eq!(read[0].dependencies[0].folder.as_deref(), Some("crates/b"));
        let kinds: Vec<DependencyKind> = read[0].dependencies.iter().map(|d| d.kind).collect();
        assert_eq!(kinds, [DependencyKind::Dev, DependencyKind::Normal]);
        assert_eq!(
            (read[1].folder.as_deref(), read[1].licence.as_deref()),
            (None, None)
        );
        assert!(packages("{}", "/x").is_err());
    }
}
