//! Cgroup names as users write them: a path, a pattern, or the name of a unit, container or pod.

use std::borrow::Borrow;

use precise_model::Owner;

/// A name of cgroups, as the option `-G` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// A path, or a path with wildcards.
    Path,
    /// `pod:NAMESPACE/POD`, `pod:NAMESPACE/POD/CONTAINER`, `pod:POD` or `pod:UID`.
    Pod(Vec<String>),
    /// `container:NAME`, or the beginning of the container's id.
    Container(String),
    /// `unit:nginx.service`.
    Unit(String),
}

impl Pattern {
    /// Parses a name.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let what = match text.split_once(':') {
            Some((_, "")) => return Err("the name after the colon is missing".to_owned()),
            Some(("pod", pod)) => {
                let parts: Vec<String> = pod.split('/').map(str::to_owned).collect();
                if parts.len() > 3 || parts.iter().any(String::is_empty) {
                    return Err(
                        "write a pod as pod:POD, pod:NAMESPACE/POD or pod:NAMESPACE/POD/CONTAINER".to_owned()
                    );
                }
                What::Pod(parts)
            }
            Some(("container", name)) => What::Container(name.to_owned()),
            Some(("unit", name)) => What::Unit(name.to_owned()),
            _ => What::Path,
        };
        Ok(Self { text: text.to_owned(), what })
    }

    /// Returns the text as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the name may match cgroups that do not exist yet: all names except plain
    /// paths.
    pub fn may_grow(&self) -> bool {
        self.what != What::Path || self.text.contains(['*', '?'])
    }

    /// Returns the first and last level below the root that a matching cgroup can have, in
    /// hierarchies whose levels end at `deepest`. `written` is the text as a path of the hierarchy,
    /// without a mount point.
    pub fn levels(&self, written: &str, deepest: u32) -> (u32, u32) {
        match self.what {
            What::Path if !self.text.contains("**") => {
                let level = written.trim_end_matches('/').matches('/').count() as u32;
                (level.min(deepest), level.min(deepest))
            }
            _ => (0, deepest),
        }
    }

    /// Returns whether the name matches this cgroup. `written` is the text as a path of the
    /// hierarchy, without a mount point. `owner` is called only if the path alone does not decide.
    pub fn holds<O: Borrow<Owner>>(
        &self,
        path: &str,
        written: &str,
        owner: impl FnOnce() -> Option<O>,
    ) -> bool {
        let is = |pattern: &str, name: &Option<String>| {
            name.as_deref().is_some_and(|name| matches(pattern.as_bytes(), name.as_bytes()))
        };
        if self.what == What::Path {
            return matches(written.as_bytes(), path.as_bytes());
        }
        let Some(owner) = owner() else { return false };
        let owner: &Owner = owner.borrow();
        match &self.what {
            What::Path => false,
            What::Unit(unit) => owner.container_id.is_none() && is(unit, &owner.unit),
            What::Container(name) => {
                is(name, &owner.container) || is(&format!("{name}*"), &owner.container_id)
            }
            What::Pod(parts) => match &parts[..] {
                [pod] => is(pod, &owner.pod) || is(pod, &owner.pod_uid),
                [namespace, pod] => is(namespace, &owner.namespace) && is(pod, &owner.pod),
                [namespace, pod, container] => {
                    is(namespace, &owner.namespace) && is(pod, &owner.pod) && is(container, &owner.container)
                }
                _ => false,
            },
        }
    }
}

/// Returns whether `text` matches `pattern`: `*` and `?` match within one component of a path,
/// `**` matches any depth. Takes time proportional to the product of their lengths, regardless of
/// the number of stars.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // `reach[n]`: whether the pattern so far matches the first n bytes of the text.
    let mut reach = vec![false; text.len() + 1];
    if let Some(first) = reach.first_mut() {
        *first = true;
    }
    let mut rest = pattern;
    while let Some((&byte, tail)) = rest.split_first() {
        let (any_depth, star) = (rest.starts_with(b"**"), byte == b'*');
        rest = if any_depth { tail.get(1..).unwrap_or_default() } else { tail };
        let mut before = false;
        for (n, here) in reach.iter_mut().enumerate() {
            // `before`: for a star, whether the pattern including the star matches the first n - 1
            // bytes; for a character, whether the pattern before it does.
            let last = n.checked_sub(1).and_then(|at| text.get(at)).copied();
            let was = *here;
            if star {
                *here |= before && last.is_some_and(|b| any_depth || b != b'/');
                before = *here;
            } else {
                *here = before && last.is_some_and(|b| b == byte || (byte == b'?' && b != b'/'));
                before = was;
            }
        }
    }
    reach.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn owner() -> Option<Arc<Owner>> {
        Some(Arc::new(Owner {
            namespace: Some("shop".into()),
            pod: Some("web-0".into()),
            pod_uid: Some("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0".into()),
            container: Some("nginx".into()),
            container_id: Some("3f4e5d".repeat(11)),
            unit: Some("cri-containerd-x.scope".into()),
            ..Owner::default()
        }))
    }

    #[test]
    fn pods_containers_and_units() {
        for (text, expected) in [
            ("pod:shop/web-*", true),
            ("pod:shop/web-0/nginx", true),
            ("pod:shop/web-0/istio", false),
            ("pod:*/web-0", true),
            ("pod:web-0", true),
            ("pod:0f1e2d3c-*", true),
            ("pod:other/web-0", false),
            ("container:nginx", true),
            ("container:3f4e5d", true),
            ("container:4f", false),
            // A container is not a unit, although systemd created its scope.
            ("unit:*.scope", false),
        ] {
            let pattern = Pattern::parse(text).expect("it parses");
            assert_eq!(pattern.holds("/x", text, owner), expected, "{text}");
            assert!(!pattern.holds("/x", text, || None::<Arc<Owner>>), "{text}");
            assert!(pattern.may_grow());
        }
        let unit = Owner { unit: Some("nginx.service".into()), ..Owner::default() };
        assert!(Pattern::parse("unit:nginx.*").is_ok_and(|p| p.holds("/x", "", || Some(Arc::new(unit)))));
    }

    #[test]
    fn paths_have_one_level() {
        let levels = |text| Pattern::parse(text).map(|pattern| pattern.levels(text, 23));
        assert_eq!(levels("/a/b-*"), Ok((2, 2)));
        assert_eq!(levels("/a/*/"), Ok((2, 2)));
        assert_eq!(levels("/a/**"), Ok((0, 23)));
        assert_eq!(levels("pod:x"), Ok((0, 23)));
        assert!(Pattern::parse("/a/b").is_ok_and(|pattern| !pattern.may_grow()));
    }

    #[test]
    fn mistakes_are_said() {
        for text in ["pod:", "container:", "pod:a//b", "pod:a/b/c/d"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        // A path may contain a colon.
        assert!(Pattern::parse("/x.slice:cri-containerd:*").is_ok());
    }
}
