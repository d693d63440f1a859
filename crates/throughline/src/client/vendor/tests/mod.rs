mod cuts;
mod errors;
mod faults;
mod native_refusals;
mod requests;
mod secrets;
mod stored_by;
mod support;
