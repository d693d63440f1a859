//! The forms a function can have to be a tool.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::ToolFuture;
use super::schema::{self, Derived};
use crate::tool::{CallContext, IntoToolOutput, Parameters, ToolError};

/// A function that can be a tool. `M` only tells the forms apart; it is never written out.
///
/// Implemented for `async` functions and closures of arguments and [`CallContext`], of one of the
/// two, or of nothing. Not meant to be implemented elsewhere: a [`Tool`](crate::Tool) is.
pub trait ToolFn<M>: sealed::Sealed<M> + Send + Sync + 'static {}

impl<F: sealed::Sealed<M> + Send + Sync + 'static, M> ToolFn<M> for F {}

/// Takes arguments and context.
pub struct Both<A>(std::marker::PhantomData<A>);
/// Takes arguments.
pub struct Args<A>(std::marker::PhantomData<A>);
/// Takes the context.
pub struct Context;
/// Takes nothing.
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

/// Run a function with what was read, or say why it could not be read.
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
