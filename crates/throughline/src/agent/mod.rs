//! Agents: instructions, tools and a client, and the loop that runs them.
