//! The signatures that a tool function can have.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::ToolFuture;
use super::schema::{self, Derived};
use crate::tool::{CallContext, IntoToolOutput, Parameters, ToolError};

/// A function that can be a tool. `M` only distinguishes the signatures; users never write it.
///
/// Implemented for `async` functions and closures that take arguments and [`CallContext`], one of
/// the two, or nothing. This trait is sealed; implement [`Tool`](crate::Tool) for other tools.
pub trait ToolFn<M>: sealed::Sealed<M> + Send + Sync + 'static {}

impl<F: sealed::Sealed<M> + Send + Sync + 'static, M> ToolFn<M> for F {}

/// Takes arguments and the context.
pub struct Both<A>(std::marker::PhantomData<A>);
/// Takes the arguments.
pub struct Args<A>(std::marker::PhantomData<A>);
/// Takes the context.
pub struct Context;
/// Takes no arguments.
pub struct Nothing;

pub(super) mod sealed {
    use super::{CallContext, Derived, ToolFuture};

    pub trait Sealed<M> {
        fn parameters(&self) -> Derived;
        fn call(&self, arguments: &str, context: CallContext) -> ToolFuture;
    }
}

fn read<A: DeserializeOwned>(arguments: &str) -> Result<A, ToolError> {
    serde_json::from_str(arguments).map_err(ToolError::arguments)
}

/// Runs a function with its arguments, or returns the error of reading them.
fn answer<A, Fut>(read: Result<A, ToolError>, run: impl FnOnce(A) -> Fut) -> ToolFuture
where
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    match read {
        Ok(arguments) => run(arguments).map(IntoToolOutput::into_tool_output).boxed(),
        Err(error) => std::future::ready(Err(error)).boxed(),
    }
}

impl<F, A, Fut> sealed::Sealed<Both<A>> for F
where
    F: Fn(A, CallContext) -> Fut,
    A: DeserializeOwned + JsonSchema,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    fn parameters(&self) -> Derived {
        schema::of::<A>()
    }

    fn call(&self, arguments: &str, context: CallContext) -> ToolFuture {
        answer(read(arguments), |arguments| self(arguments, context))
    }
}

impl<F, A, Fut> sealed::Sealed<Args<A>> for F
where
    F: Fn(A) -> Fut,
    A: DeserializeOwned + JsonSchema,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    fn parameters(&self) -> Derived {
        schema::of::<A>()
    }

    fn call(&self, arguments: &str, _context: CallContext) -> ToolFuture {
        answer(read(arguments), self)
    }
}

impl<F, Fut> sealed::Sealed<Context> for F
where
    F: Fn(CallContext) -> Fut,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    fn parameters(&self) -> Derived {
        Derived::plain(Parameters::none())
    }

    fn call(&self, _arguments: &str, context: CallContext) -> ToolFuture {
        answer(Ok(context), self)
    }
}

impl<F, Fut> sealed::Sealed<Nothing> for F
where
    F: Fn() -> Fut,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    fn parameters(&self) -> Derived {
        Derived::plain(Parameters::none())
    }

    fn call(&self, _arguments: &str, _context: CallContext) -> ToolFuture {
        answer(Ok(()), |()| self())
    }
}
