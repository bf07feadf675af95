//! Compares the public interfaces of the crates that others build on with docs/api, so that a
//! review shows every change of one.
//!
//! With `PRECISE_UPDATE_DOCUMENTS=1` the lists are rewritten: see [`UPDATE`].
//!
//! A list contains all `pub` items, module by module, without bodies and values, as the sources
//! declare them. It does not depend on a compiler, so it is the same with every toolchain. It
//! includes `pub` items in private modules, because a `pub use` may export them.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem, Visibility};

const UPDATE: &str = "PRECISE_UPDATE_DOCUMENTS=1 cargo test -p xtask --test public_api";

/// The crates, by their folder below precise-user.
const CRATES: [&str; 3] = ["model", "capture", "views"];

#[test]
fn public_interfaces_are_those_of_the_documentation() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no checkout")?;
    let folder = root.join("docs/api");
    let mut changed = Vec::new();
    for name in CRATES {
        let list = list(&root.join("precise-user").join(name).join("src"))?;
        let file = folder.join(format!("{name}.txt"));
        if std::env::var_os("PRECISE_UPDATE_DOCUMENTS").is_some() {
            fs::create_dir_all(&folder)?;
            fs::write(&file, list)?;
        } else if fs::read_to_string(&file).unwrap_or_default() != list {
            changed.push(file.strip_prefix(root)?.display().to_string());
        }
    }
    ensure!(changed.is_empty(), "{} differ from the sources: `{UPDATE}`", changed.join(", "));
    Ok(())
}

/// Returns the list of a crate with its sources in this folder.
fn list(src: &Path) -> Result<String> {
    let mut list = String::new();
    module("crate", true, &read(&src.join("lib.rs"))?, src, &mut list)?;
    Ok(list)
}

fn read(file: &Path) -> Result<Vec<Item>> {
    let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(syn::parse_file(&text).with_context(|| format!("{} does not parse", file.display()))?.items)
}

/// Adds the items of a module and of the modules below it; the files of its submodules are in
/// `folder`.
fn module(path: &str, public: bool, items: &[Item], folder: &Path, list: &mut String) -> Result<()> {
    let mut shown: Vec<Item> = items.iter().filter_map(shown).collect();
    // The order in a file is not part of the interface.
    shown.sort_by_cached_key(|item| printed(vec![item.clone()]));
    if !shown.is_empty() {
        let visibility = if public { "" } else { " (private)" };
        write!(list, "// {path}{visibility}\n\n{}\n", printed(shown))?;
    }
    let modules = items.iter().filter_map(|item| match item {
        Item::Mod(module) if !hidden(&module.attrs) => Some(module),
        _ => None,
    });
    let mut modules: Vec<_> = modules.collect();
    modules.sort_by_key(|module| module.ident.to_string());
    for inner in modules {
        let name = inner.ident.to_string();
        let public = public && matches!(inner.vis, Visibility::Public(_));
        let path = format!("{path}::{name}");
        let below = folder.join(&name);
        match &inner.content {
            Some((_, items)) => module(&path, public, items, &below, list)?,
            None => module(&path, public, &read(&file_of(folder, &name)?)?, &below, list)?,
        }
    }
    Ok(())
}

fn file_of(folder: &Path, name: &str) -> Result<PathBuf> {
    let candidates = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
    match candidates.into_iter().find(|file| file.is_file()) {
        Some(file) => Ok(file),
        None => bail!("the module {name} has no file in {}", folder.display()),
    }
}

fn printed(items: Vec<Item>) -> String {
    prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items })
}

/// Returns whether an item is only for tests, or hidden from the documentation.
fn hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            let word = list.tokens.to_string();
            list.path.is_ident("cfg") && word == "test" || list.path.is_ident("doc") && word == "hidden"
        }
        _ => false,
    })
}

/// Keeps the attributes that affect a user of the crate.
fn noticed(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| {
        ["derive", "non_exhaustive", "must_use", "deprecated"]
            .iter()
            .any(|name| attribute.path().is_ident(name))
    });
}

const fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns the visible part of an item; `None` if nothing is visible to a user of the crate.
fn shown(item: &Item) -> Option<Item> {
    let mut item = item.clone();
    let (attributes, visibility) = match &mut item {
        Item::Const(item) => (&mut item.attrs, Some(&item.vis)),
        Item::Enum(item) => (&mut item.attrs, Some(&item.vis)),
        Item::Fn(item) => (&mut item.attrs, Some(&item.vis)),
        Item::Static(item) => (&mut item.attrs, Some(&item.vis)),
        Item::Struct(item) => (&mut item.attrs, Some(&item.vis)),
        Item::Trait(item) => (&mut item.attrs, Some(&item.vis)),
        Item::Type(item) => (&mut item.attrs, Some(&item.vis)),
        Item::Use(item) => (&mut item.attrs, Some(&item.vis)),
        Item::Impl(item) => (&mut item.attrs, None),
        // A macro by example may create items, but only a compiler knows which: its use is listed
        // unchanged.
        Item::Macro(item) if item.ident.is_none() => (&mut item.attrs, None),
        _ => return None,
    };
    if hidden(attributes) || visibility.is_some_and(|visibility| !is_public(visibility)) {
        return None;
    }
    noticed(attributes);
    match &mut item {
        Item::Const(item) => *item.expr = syn::parse_quote!(_),
        Item::Static(item) => *item.expr = syn::parse_quote!(_),
        Item::Fn(item) => *item.block = syn::parse_quote!({}),
        Item::Struct(item) => fields(&mut item.fields, false),
        Item::Enum(item) => {
            for variant in &mut item.variants {
                noticed(&mut variant.attrs);
                fields(&mut variant.fields, true);
            }
        }
        Item::Trait(item) => {
            for item in &mut item.items {
                match item {
                    TraitItem::Fn(item) => {
                        noticed(&mut item.attrs);
                        item.default = item.default.as_ref().map(|_| syn::parse_quote!({}));
                    }
                    TraitItem::Const(item) => noticed(&mut item.attrs),
                    TraitItem::Type(item) => noticed(&mut item.attrs),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    if let Item::Impl(block) = &mut item
        && !implementation(block)
    {
        return None;
    }
    Some(item)
}

/// Keeps the public items of an `impl`. Returns whether anything is left.
fn implementation(block: &mut ItemImpl) -> bool {
    if block.trait_.is_some() {
        // The trait's own list has its items.
        block.items.retain(|item| matches!(item, ImplItem::Type(_)));
        return true;
    }
    block.items.retain(|item| match item {
        ImplItem::Const(item) => is_public(&item.vis) && !hidden(&item.attrs),
        ImplItem::Fn(item) => is_public(&item.vis) && !hidden(&item.attrs),
        _ => false,
    });
    for item in &mut block.items {
        match item {
            ImplItem::Const(item) => {
                noticed(&mut item.attrs);
                item.expr = syn::parse_quote!(_);
            }
            ImplItem::Fn(item) => {
                noticed(&mut item.attrs);
                item.block = syn::parse_quote!({});
            }
            _ => {}
        }
    }
    !block.items.is_empty()
}

/// Keeps the public fields; the fields of an enum's variant are all public.
fn fields(fields: &mut Fields, all: bool) {
    match fields {
        Fields::Named(named) => {
            named.named = std::mem::take(&mut named.named)
                .into_iter()
                .filter(|field| all || is_public(&field.vis))
                .map(|mut field| {
                    noticed(&mut field.attrs);
                    field
                })
                .collect();
        }
        // The name of the field is its position.
        Fields::Unnamed(unnamed) => {
            for field in &mut unnamed.unnamed {
                noticed(&mut field.attrs);
                if !all && !is_public(&field.vis) {
                    field.ty = syn::parse_quote!(_);
                }
            }
        }
        Fields::Unit => {}
    }
}
