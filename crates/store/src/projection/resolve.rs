//! Resolves the type and enum names in descriptors, each name once.
//!
//! A descriptor names a type or enum by an id of up to 512 bytes, and a payload may have millions
//! of values for one field. The resolver therefore caches results by the *address* of the id. The
//! id belongs to the descriptor, so its address cannot change while the registry is borrowed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::registry::{EnumTable, Registry, TypeVersion};

/// Caches the types and enums that descriptors name.
#[derive(Debug)]
pub(super) struct Resolver<'r> {
    pub(super) registry: &'r Registry,
    types: HashMap<usize, Option<&'r TypeVersion>>,
    enums: HashMap<usize, Option<&'r EnumTable>>,
}

impl<'r> Resolver<'r> {
    pub(super) fn new(registry: &'r Registry) -> Self {
        Self {
            registry,
            types: HashMap::new(),
            enums: HashMap::new(),
        }
    }

    /// The newest version of the type that a descriptor names.
    pub(super) fn latest(&mut self, id: &'r Arc<str>) -> Option<&'r TypeVersion> {
        let registry = self.registry;
        *self
            .types
            .entry(address(id))
            .or_insert_with(|| registry.latest(id).map(|version| &**version))
    }

    /// The enum that a descriptor names.
    pub(super) fn enum_table(&mut self, id: &'r Arc<str>) -> Option<&'r EnumTable> {
        let registry = self.registry;
        *self
            .enums
            .entry(address(id))
            .or_insert_with(|| registry.enum_table(id))
    }
}

fn address(id: &Arc<str>) -> usize {
    Arc::as_ptr(id).addr()
}

#[cfg(test)]
mod tests {
    use super::super::fuzz::{sample_registry, sample_type};
    use super::*;
    use crate::registry::Kind;

    #[test]
    fn names_resolve_as_in_the_registry_and_are_looked_up_once() {
        let registry = sample_registry();
        let version = registry.descriptor(&sample_type().id, 2).unwrap();
        let mut resolver = Resolver::new(registry);
        let role = version
            .field_named("role")
            .unwrap()
            .shape
            .enum_id
            .as_ref()
            .unwrap();
        let Kind::Type(link) = &version.field_named("link").unwrap().shape.kind else {
            panic!()
        };
        for _ in 0..1000 {
            assert_eq!(resolver.enum_table(role).unwrap().label(2), Some("user"));
            assert_eq!(resolver.latest(link).unwrap().type_ref.version, 2);
        }
        assert_eq!((resolver.enums.len(), resolver.types.len()), (1, 1));
    }

    #[test]
    fn a_name_that_resolves_nowhere_stays_so() {
        let unpublished: Arc<str> = "unpublished".into();
        let mut resolver = Resolver::new(sample_registry());
        for _ in 0..2 {
            assert!(
                resolver.latest(&unpublished).is_none()
                    && resolver.enum_table(&unpublished).is_none()
            );
        }
    }
}
