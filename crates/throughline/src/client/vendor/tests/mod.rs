mod cuts;
mod errors;
mod faults;
mod requests;
mod secrets;
mod support;
