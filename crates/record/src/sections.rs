//! The list of sections as a macro: the enum of results, its keys, reading, writing and schema come from one line each.

/// Makes [`JobResult`](crate::JobResult) and the accessors of [`JobResults`](crate::JobResults) from a list of sections:
/// documentation, variant, key of the record, type.
macro_rules! sections {
    ($($(#[doc = $doc:literal])+ $variant:ident = $key:ident: $type:ty;)+) => {
        /// A section of a record that one job fills.
        #[derive(Clone, Debug, PartialEq)]
        pub enum JobResult {
            $($(#[doc = $doc])+ $variant(Box<$type>),)+
            /// A section that a later plimsoll has added.
            Unknown(UnknownSection),
        }

        impl JobResult {
            /// The key of the section in the record.
            #[must_use]
            pub fn key(&self) -> &str {
                match self {
                    $(Self::$variant(_) => stringify!($key),)+
                    Self::Unknown(section) => &section.key,
                }
            }

            /// Reads the section under `key`; the error names the field.
            fn read(key: String, value: Value) -> Result<Self, String> {
                match key.as_str() {
                    $(stringify!($key) => {
                        read_section(&key, value).map(|one| Self::$variant(Box::new(one)))
                    })+
                    _ => Ok(Self::Unknown(UnknownSection { key, value })),
                }
            }

        }

        /// The content of the section.
        impl Serialize for JobResult {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(one) => one.serialize(serializer),)+
                    Self::Unknown(section) => section.value.serialize(serializer),
                }
            }
        }

        impl JobResults {
            $(
                $(#[doc = $doc])+
                #[must_use]
                pub fn $key(&self) -> Option<&$type> {
                    self.0.iter().find_map(|one| match one {
                        JobResult::$variant(one) => Some(&**one),
                        _ => None,
                    })
                }
            )+
        }

        $(
            impl From<$type> for JobResult {
                fn from(result: $type) -> Self {
                    Self::$variant(Box::new(result))
                }
            }
        )+

        /// The sections as properties of the record, none of them required.
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for JobResults {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                "JobResults".into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut properties = Map::new();
                $(
                    let mut section = generator.subschema_for::<$type>();
                    let told = [$($doc),+].map(str::trim).join(" ");
                    section.insert("description".to_owned(), told.into());
                    properties.insert(stringify!($key).to_owned(), section.into());
                )+
                schemars::json_schema!({ "type": "object", "properties": properties })
            }
        }
    };
}
