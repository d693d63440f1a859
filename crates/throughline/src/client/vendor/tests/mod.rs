mod cuts;
mod errors;
mod faults;
mod keep;
mod requests;
mod secrets;
mod support;
