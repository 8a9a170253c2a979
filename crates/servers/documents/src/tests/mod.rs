//! Schemas, values and operations, each beside the others.

mod model_tests;
mod operation_tests;
mod schema_tests;
