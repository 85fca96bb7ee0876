//! The macros that turn a table into a [`Record`](super::Record). The header of
//! [`record`](super) has a worked example.
//!
//! A variant of an enum is written as in Rust: `Lost { 3 reason: Text }` or `Sent(2 by: Text)`, and
//! `Opened()` for one without fields. The helpers below handle these three forms. In
//! `Lost { 3 reason as lost_because: Text }` the published name differs from the field's, where
//! two variants use one name for different things.

/// Implements [`Record`](crate::record::Record) for a struct.
#[macro_export]
macro_rules! record_struct {
    ($name:ident { $($tag:literal $field:ident: $shape:ty,)+ }) => {
        impl $crate::record::Record for $name {
            const NAME: &'static str = stringify!($name);

            fn write_fields<'a>(&'a self, out: &mut $crate::record::RecordWriter<'a>) {
                $(<$shape as $crate::record::Shape<_>>::write(&self.$field, $tag, out);)+
            }

            fn read_fields(
                from: &$crate::record::RecordReader<'_, '_>,
            ) -> Result<Self, $crate::record::DamagedRecord> {
                Ok(Self {
                    $($field: from.read_field::<Self, $shape, _>($tag, stringify!($field))?,)+
                })
            }
        }

        #[cfg(any(test, feature = "dev"))]
        impl $crate::record::describe::DescribeRecord for $name {
            fn describe(bundle: &mut $crate::record::describe::BundleText)
                -> $crate::record::describe::FieldTexts
            {
                let mut fields = $crate::record::describe::FieldTexts::default();
                $(fields.add_field::<$shape>($tag, stringify!($field), bundle);)+
                fields
            }
        }

        #[cfg(any(test, feature = "dev"))]
        impl $crate::record::sample::Sample for $name {
            fn sample(from: &mut $crate::record::sample::Choices) -> Self {
                Self {
                    $($field: <$shape as $crate::record::sample::SampleShape<_>>::sample(from),)+
                }
            }
        }
    };
}

/// Implements [`Record`](crate::record::Record) for an enum. The tag after `kind` has the word
/// that names the variant.
#[macro_export]
macro_rules! record_enum {
    ($name:ident, kind $kind:literal { $($word:literal $variant:ident $fields:tt)+ }) => {
        impl $crate::record::Record for $name {
            const NAME: &'static str = stringify!($name);

            fn write_fields<'a>(&'a self, out: &mut $crate::record::RecordWriter<'a>) {
                match self {
                    $($crate::variant_pattern!($variant $fields) => {
                        out.push_kind($kind, $word);
                        $crate::write_variant!(out $fields);
                    })+
                }
            }

            fn read_fields(
                from: &$crate::record::RecordReader<'_, '_>,
            ) -> Result<Self, $crate::record::DamagedRecord> {
                match from.read_kind::<Self>($kind)? {
                    $($word => Ok($crate::read_variant!(from $variant $fields)),)+
                    other => Err($crate::record::DamagedRecord::unknown_kind::<Self>(other)),
                }
            }
        }

        #[cfg(any(test, feature = "dev"))]
        impl $crate::record::describe::DescribeRecord for $name {
            fn describe(bundle: &mut $crate::record::describe::BundleText)
                -> $crate::record::describe::FieldTexts
            {
                let mut fields = $crate::record::describe::FieldTexts::default();
                fields.add_field::<$crate::record::Text>($kind, "kind", bundle);
                $($crate::describe_variant!(fields bundle $fields);)+
                fields
            }
        }

        #[cfg(any(test, feature = "dev"))]
        impl $crate::record::sample::SampleKinds for $name {
            const KINDS: &'static [&'static str] = &[$($word),+];

            fn sample_kind(kind: &str, from: &mut $crate::record::sample::Choices) -> Option<Self> {
                match kind {
                    $($word => Some($crate::sample_variant!(from $variant $fields)),)+
                    _ => None,
                }
            }
        }

        #[cfg(any(test, feature = "dev"))]
        impl $crate::record::sample::Sample for $name {
            fn sample(from: &mut $crate::record::sample::Choices) -> Self {
                $crate::record::sample::sample_any_kind(from)
            }
        }
    };
}

/// The name of a field in bundles and errors: its own, unless the table gives another.
#[doc(hidden)]
#[macro_export]
macro_rules! field_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:ident) => {
        stringify!($name)
    };
}

/// The pattern that binds the fields of a variant.
#[doc(hidden)]
#[macro_export]
macro_rules! variant_pattern {
    ($variant:ident ()) => {
        Self::$variant
    };
    ($variant:ident ($tag:literal $field:ident: $shape:ty)) => {
        Self::$variant($field)
    };
    ($variant:ident {
        $($tag:literal $field:ident $(as $name:ident)?: $shape:ty),+ $(,)?
    }) => {
        Self::$variant { $($field),+ }
    };
}

/// Writes the bound fields of a variant.
#[doc(hidden)]
#[macro_export]
macro_rules! write_variant {
    ($out:ident ()) => {};
    ($out:ident ($tag:literal $field:ident: $shape:ty)) => {
        <$shape as $crate::record::Shape<_>>::write($field, $tag, $out)
    };
    ($out:ident {
        $($tag:literal $field:ident $(as $name:ident)?: $shape:ty),+ $(,)?
    }) => {
        $(<$shape as $crate::record::Shape<_>>::write($field, $tag, $out);)+
    };
}

/// Makes a variant from the fields that are read.
#[doc(hidden)]
#[macro_export]
macro_rules! read_variant {
    ($from:ident $variant:ident ()) => {
        Self::$variant
    };
    ($from:ident $variant:ident ($tag:literal $field:ident: $shape:ty)) => {
        Self::$variant($from.read_field::<Self, $shape, _>($tag, stringify!($field))?)
    };
    ($from:ident $variant:ident {
        $($tag:literal $field:ident $(as $name:ident)?: $shape:ty),+ $(,)?
    }) => {
        Self::$variant {
            $($field: $from.read_field::<Self, $shape, _>(
                $tag,
                $crate::field_name!($field $($name)?),
            )?,)+
        }
    };
}

/// Adds the fields of a variant to the description of its enum.
#[doc(hidden)]
#[macro_export]
macro_rules! describe_variant {
    ($fields:ident $bundle:ident ()) => {};
    ($fields:ident $bundle:ident ($tag:literal $field:ident: $shape:ty)) => {
        $fields.add_variant_field::<$shape>($tag, stringify!($field), $bundle)
    };
    ($fields:ident $bundle:ident {
        $($tag:literal $field:ident $(as $name:ident)?: $shape:ty),+ $(,)?
    }) => {
        $($fields.add_variant_field::<$shape>(
            $tag,
            $crate::field_name!($field $($name)?),
            $bundle,
        );)+
    };
}

/// Makes a variant with any fields.
#[doc(hidden)]
#[macro_export]
macro_rules! sample_variant {
    ($from:ident $variant:ident ()) => {
        Self::$variant
    };
    ($from:ident $variant:ident ($tag:literal $field:ident: $shape:ty)) => {
        Self::$variant(<$shape as $crate::record::sample::SampleShape<_>>::sample($from))
    };
    ($from:ident $variant:ident {
        $($tag:literal $field:ident $(as $name:ident)?: $shape:ty),+ $(,)?
    }) => {
        Self::$variant {
            $($field: <$shape as $crate::record::sample::SampleShape<_>>::sample($from),)+
        }
    };
}
