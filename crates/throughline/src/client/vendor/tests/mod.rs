mod cuts;
mod errors;
mod faults;
mod keep;
mod refused;
mod requests;
mod secrets;
mod support;
