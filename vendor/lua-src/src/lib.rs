//! Compiles Lua 5.1.5. The interface is the part of the published crate `lua-src` that the build of
//! `mlua-sys` calls.

use std::env;
use std::path::{Path, PathBuf};

/// The version that is here.
#[derive(Clone, Copy, Debug)]
pub enum Version {
    Lua51,
}
pub use Version::Lua51;

/// A build of Lua; it takes target, host and optimisation from Cargo's environment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Build;

/// What a build made.
#[derive(Clone, Debug)]
pub struct Artifacts {
    source: PathBuf,
    library: PathBuf,
}

const NAME: &str = "lua5.1";

impl Build {
    pub fn new() -> Self {
        Self
    }

    /// Compiles the library.
    ///
    /// # Panics
    /// Not called by a build script, or the C compiler fails.
    pub fn build(&self, _version: Version) -> Artifacts {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua-5.1.5");
        let out = env::var_os("OUT_DIR").expect("a build script calls this");
        let library = Path::new(&out).join("lib");
        println!("cargo:rerun-if-changed={}", source.display());
        let files = std::fs::read_dir(&source).expect("the sources lie beside this crate");
        let files = files.filter_map(|entry| Some(entry.ok()?.path()));
        cc::Build::new()
            .files(files.filter(|path| path.extension().is_some_and(|it| it == "c")))
            .include(&source)
            .define("LUA_USE_POSIX", None)
            .flag_if_supported("-fno-common")
            .warnings(false)
            .cargo_metadata(false)
            .out_dir(&library)
            .compile(NAME);
        Artifacts { source, library }
    }
}

impl Artifacts {
    /// Tells Cargo where the library lies.
    pub fn print_cargo_metadata(&self) {
        println!("cargo:rustc-link-search=native={}", self.library.display());
        println!("cargo:rustc-link-lib=static={NAME}");
        println!("cargo:include={}", self.source.display());
        println!("cargo:lib={}", self.library.display());
    }
}
